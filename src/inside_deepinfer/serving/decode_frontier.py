"""The decode trade-off: a step's time against how many tokens it gives, and to whom.

Step time = counted parts (``step_budget``) + one number that is not counted. That number is fitted on the one published
operating point and is taken as a time per step, whatever the batch, because measurements say that what the count leaves out is
mostly a floor and not a factor: the published curves of V4-Flash (preview) fit a fixed time two to six times the counted one, by
the card that is assumed, and a time per row of less than twice it; and a step of one sequence alone leaves 5.0 ms open on 4 GB300
and 5.7 ms on 8 H100, beside the 5.8 ms fitted, where the factor would be 2.8 and 3.6 beside 1.8. What fills it is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inside_deepinfer.facts import (
    CATALOGUE,
    NotPossible,
    Quantity,
    derived,
    load_facts,
    require,
    require_not_negative,
    require_positive,
    resolve,
)
from inside_deepinfer.model import counts, weights  # noqa: F401  (these and the next register the counted step)
from inside_deepinfer.serving import efficiencies as _efficiencies  # noqa: F401
from inside_deepinfer.serving import hbm, kv_reads, links, step_budget  # noqa: F401
from inside_deepinfer.serving.facts_of_parameters import FACT_OF

# inputs of the counted step that a caller of ``step_times`` may leave as published
UNCHANGED = ("efficiencies", *links.PARAMETERS)
FIT_BATCHES = np.arange(8.0, 513.0, 8.0)  # sequences per GPU over which the two-number form is fitted


@derived(label="decode step time", unit="s", formula="counted_step_time + uncounted_time")
def decode_step_time(counted_step_time: Any, uncounted_time: Any) -> Any:
    """Counted parts and the fitted rest."""
    return counted_step_time + require_not_negative("uncounted_time", uncounted_time)


@derived(label="tokens that a step gives a sequence", unit="token", words=True,
         formula="tokens_per_step, which cannot exceed rows_per_sequence")
def tokens_of_a_step(tokens_per_step: Any, rows_per_sequence: Any) -> Any:
    """At least the model's own token, at most one per row."""
    tokens, rows = np.asarray(tokens_per_step, dtype=float), np.asarray(rows_per_sequence, dtype=float)
    require(tokens >= 1, "tokens_per_step", tokens_per_step, "at least 1")
    if np.any(tokens > rows):
        raise NotPossible(f"a step that computes {rows.min():g} rows per sequence cannot give {tokens.max():g} tokens: "
                          "every accepted draft needs a row")
    return tokens_per_step


@derived(label="decode throughput per decode GPU, modelled", unit="token/(s*GPU)",
         formula="batch * tokens_of_a_step / decode_step_time")
def throughput_per_decode_gpu(batch: Any, tokens_of_a_step: Any, decode_step_time: Any) -> Any:
    """Output tokens per second and decode GPU: the unit of the published 14,466."""
    return require_positive("batch", batch) * tokens_of_a_step / decode_step_time


@derived(label="decode throughput per GPU of the cluster, modelled", unit="token/(s*GPU)",
         formula="throughput_per_decode_gpu / (1 + pd_ratio)")
def throughput_per_cluster_gpu(throughput_per_decode_gpu: Any, pd_ratio: Any) -> Any:
    """Output tokens per second over prefill and decode GPUs together: the unit of public benchmarks and calculators."""
    return throughput_per_decode_gpu / (1 + require_positive("pd_ratio", pd_ratio))


@derived(label="speed per user, modelled", unit="token/(s*user)", formula="tokens_of_a_step / decode_step_time")
def modelled_user_speed(tokens_of_a_step: Any, decode_step_time: Any) -> Any:
    """Throughput per decode GPU is this times the sequences per GPU."""
    return tokens_of_a_step / decode_step_time


@derived(label="time between tokens, modelled", unit="s", formula="decode_step_time / tokens_of_a_step")
def inter_token_latency(decode_step_time: Any, tokens_of_a_step: Any) -> Any:
    """Mean; the tokens of one step arrive together."""
    return decode_step_time / tokens_of_a_step


@derived(label="time from request to last token", unit="s",
         formula="first_token + (output_tokens_per_request - 1) * inter_token_latency", uses={"first_token": "prefill.ttft_mean"})
def request_duration(first_token: Any, output_tokens_per_request: Any, inter_token_latency: Any) -> Any:
    """A request with one output token ends with its first token; one with none has no such time."""
    require(np.asarray(output_tokens_per_request, dtype=float) >= 1, "output tokens", output_tokens_per_request, "at least 1")
    return first_token + (output_tokens_per_request - 1) * inter_token_latency


@derived(label="published step time less the counted one", unit="s", formula="article_step_time - counted_step_time")
def step_time_left_open(article_step_time: Any, counted_step_time: Any) -> Any:
    """What ``uncounted_time`` was fitted to at the published scenario; negative where the count alone takes longer."""
    return article_step_time - counted_step_time


@derived(label="published step time over the counted one", unit="ratio", formula="article_step_time / counted_step_time")
def step_factor_left_open(article_step_time: Any, counted_step_time: Any) -> Any:
    """The other way to carry what is left: as a factor. It is a member of the band, not the model."""
    return article_step_time / require_positive("counted_step_time", counted_step_time)


@derived(label="modelled throughput over the published benchmark, minus 1", unit="ratio",
         formula="throughput_per_decode_gpu / benchmark - 1", uses={"benchmark": "decode.benchmark"})
def benchmark_error(throughput_per_decode_gpu: Any, benchmark: Any) -> Any:
    """Small by construction at the published scenario: one point, one fitted number."""
    return throughput_per_decode_gpu / require_positive("benchmark", benchmark) - 1


@derived(label="modelled speed per user over the reported one, minus 1", unit="ratio", formula="modelled_user_speed / reported - 1",
         uses={"reported": "decode.user_speed"})
def user_speed_error(modelled_user_speed: Any, reported: Any) -> Any:
    """The reported 230 stand beside 14,000, not beside the benchmark (14,466)."""
    return modelled_user_speed / require_positive("reported", reported) - 1


def step_times(batches: np.ndarray, **inputs: Any) -> np.ndarray:
    """Counted step times with a last axis over ``batches``; the other inputs are scenario parameters, scalars or arrays."""
    given = {name: Quantity(name, value if name == "model" else np.asarray(value)[..., None], "", "derived")
             for name, value in inputs.items()}
    given["batch"] = Quantity("batch", batches, "sequence/GPU", "derived")
    for name in UNCHANGED:
        given.setdefault(name, load_facts().quantity(FACT_OF[name]))
    return resolve(["counted_step_time"], given)["counted_step_time"].value


@derived(label="inputs of the counted step, without batch and rows", unit="", words=True, listed=False,
         formula="the scenario's parameters by name, for curves that count the step at other batches and rows")
def counted_inputs(model: str, card: Any, ep: Any, redundant_experts: Any, context: Any, overlap: Any, selection_overlap: Any,
                   efficiencies: Any, dispatch_format: Any, combine_format: Any, scaleup_domain: Any, scaleout_bandwidth: Any,
                   crossing: Any) -> dict[str, Any]:
    """A parameter that the step rests on and that is missing here would not reach the curves (tests/test_links.py)."""
    return dict(model=model, card=card, ep=ep, redundant_experts=redundant_experts, context=context, overlap=overlap,
                selection_overlap=selection_overlap, efficiencies=efficiencies, dispatch_format=dispatch_format,
                combine_format=combine_format, scaleup_domain=scaleup_domain, scaleout_bandwidth=scaleout_bandwidth,
                crossing=crossing)


COUNTED_INPUTS = tuple(CATALOGUE["counted_inputs"].inputs)


@derived(label="two-number form of the step time", unit="s, s, ratio", words=True, listed=False,
         formula="least squares of decode_step_time over the batch: fixed time, time per row, mean error")
def two_numbers(counted_inputs: Mapping[str, Any], rows_per_sequence: Any, uncounted_time: Any) -> Any:
    """Last axis: fixed time (s), time per row (s), mean relative error of the two numbers over the fitted batches."""
    counted = step_times(FIT_BATCHES, rows_per_sequence=rows_per_sequence, **counted_inputs)
    step = counted + np.asarray(require_not_negative("uncounted_time", uncounted_time), dtype=float)[..., None]
    rows = FIT_BATCHES * np.asarray(rows_per_sequence, dtype=float)[..., None]
    spread = rows - rows.mean(axis=-1, keepdims=True)
    per_row = (spread * step).sum(axis=-1) / (spread**2).sum(axis=-1)
    fixed = step.mean(axis=-1) - per_row * rows.mean(axis=-1)
    error = np.abs((fixed[..., None] + per_row[..., None] * rows) / step - 1).mean(axis=-1)
    return np.stack(np.broadcast_arrays(fixed, per_row, error), axis=-1)


@derived(label="fixed time of a decode step", unit="s", words=True, formula="first of the two numbers that stand for the step time")
def step_fixed_time(two_numbers: Any) -> Any:
    """What a step takes before the first row."""
    return two_numbers[..., 0][()]


@derived(label="time per row of a decode step", unit="s", words=True, formula="second of the two numbers")
def step_time_per_row(two_numbers: Any) -> Any:
    """What each row of a GPU's sequences adds, its share of drafting included."""
    return two_numbers[..., 1][()]


@derived(label="mean error of the two-number form", unit="ratio", words=True,
         formula="mean of |fixed + rows * time per row over the counted curve, minus 1|")
def step_fit_error(two_numbers: Any) -> Any:
    """Over 8 to 512 sequences per GPU."""
    return two_numbers[..., 2][()]


@derived(label="throughput that no batch reaches", unit="token/(s*GPU)",
         formula="tokens_of_a_step / (rows_per_sequence * step_time_per_row)")
def throughput_limit(tokens_of_a_step: Any, rows_per_sequence: Any, step_time_per_row: Any) -> Any:
    """Per decode GPU, where the fixed time is spread over endless sequences."""
    return tokens_of_a_step / (rows_per_sequence * require_positive("step_time_per_row", step_time_per_row))


@derived(label="speed of a user alone", unit="token/(s*user)", words=True,
         formula="tokens_of_a_step / decode_step_time with one sequence per GPU")
def user_speed_limit(counted_inputs: Mapping[str, Any], rows_per_sequence: Any, uncounted_time: Any, tokens_of_a_step: Any) -> Any:
    """No user of this layout is served faster."""
    counted = step_times(np.array([1.0]), rows_per_sequence=rows_per_sequence, **counted_inputs)[..., 0]
    return tokens_of_a_step / (counted + require_not_negative("uncounted_time", uncounted_time))
