"""V4.1-Flash as others measured it, beside what the model says of their hardware and layout; nothing here was fitted.

The number of sequences that decode at once is the measured one (output rate times time per token, Little's law), so that one
number per point is predicted: the speed per user. Throughput has the same relative error. The time per step that is not counted
is the one fitted on DeepInfer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from inside_deepinfer.facts import load_facts
from inside_deepinfer.model.shape import without_draft
from inside_deepinfer.serving.acceptance import tokens_per_step
from inside_deepinfer.serving.layouts import shared_prefill_time, shared_step_time
from inside_deepinfer.serving.published import at_published
from inside_deepinfer.serving.validation import Point, Validation, validation

LARGE_MISS = 0.30
TP = 4  # cards per worker of InferenceX and Dynamo
H100_CARDS = 8
PREFILL_CHUNK = 8192  # h100-report takes its kernel shares from a chunk of this size


@dataclass(frozen=True)
class Measured:
    """One measured decode point and its prediction.

    Attributes:
        at: how the source names it.
        card: card id. ``layout``: e.g. "TP4, prefill on the same cards".
        sequences: decoding at once in one worker.
        user_speed, predicted: token/(s*user).
        per_cluster_gpu: output token/(s*GPU) over all GPUs. ``per_decode_gpu``: over decode GPUs, NaN where there are none.
        shared: prefill runs on the same cards.
        source: source id.
    """

    at: str
    card: str
    layout: str
    sequences: float
    user_speed: float
    predicted: float
    per_cluster_gpu: float
    per_decode_gpu: float
    shared: bool
    source: str

    @property
    def error(self) -> float:
        return self.predicted / self.user_speed - 1

    @property
    def predicted_per_cluster_gpu(self) -> float:
        return self.per_cluster_gpu * (1 + self.error)


def tokens_with(drafts: int) -> float:
    """Tokens per step with fewer drafts at the acceptance that gives the agreed 3.51 with five, the same for every draft."""
    from scipy.optimize import brentq  # late: scipy takes half a second to import

    facts = load_facts()
    agreed, length = facts.number("spec.accepted_inferencex"), int(facts.number("spec.draft_length"))
    chance = brentq(lambda p: float(tokens_per_step(np.full(length, p))) - agreed, 0.01, 0.99)
    return float(tokens_per_step(np.full(drafts, chance)))


def _speed(card: str, sequences: float, rows: float, tokens: float) -> float:
    facts = load_facts()
    model, context = facts.quantity("scenario.model").value, facts.number("scenario.context")
    step = shared_step_time(model, card, TP, sequences, rows, context) + facts.number("decode.uncounted_time")
    return float(tokens / step)


@lru_cache(maxsize=1)
def inferencex() -> tuple[Measured, ...]:
    """Four GB300 with vLLM, TP4, five drafts of which 3.51 tokens come; prefill runs on the same four."""
    facts = load_facts()
    drafts, tokens = facts.number("spec.draft_length"), facts.number("spec.accepted_inferencex")
    found = []
    for row in facts.points("inferencex-v41-gb300").itertuples(index=False):
        decoding = max(TP * row.out_tok_s_gpu * row.tpot_mean, 1.0)
        found.append(Measured(f"{row.conc:g} requests", "gb300", "TP4, prefill on the same cards", decoding, row.tok_s_user,
                              _speed("gb300", decoding, drafts + 1, tokens), row.out_tok_s_gpu, float("nan"), True,
                              "inferencex-3176"))
    return tuple(found)


@lru_cache(maxsize=1)
def dynamo() -> tuple[Measured, ...]:
    """B200 and GB200 with vLLM, workers of TP4, three drafts; medians."""
    facts = load_facts()
    drafts = int(facts.number("spec.drafts_dynamo"))
    tokens, found = tokens_with(drafts), []
    for row in facts.points("dynamo-v41-agentic").itertuples(index=False):
        shared = not row.decode_gpus > 0
        gpus = row.gpus if shared else row.decode_gpus
        decoding = row.total_out_tok_s * row.itl_p50 / (gpus / TP)
        layout = "TP4, prefill on the same cards" if shared else "TP4, prefill apart"
        found.append(Measured(f"{row.card}, {row.layout}", row.card.lower(), layout, decoding, row.tok_s_user_p50,
                              _speed(row.card.lower(), decoding, drafts + 1, tokens), row.out_tok_s_gpu,
                              float("nan") if shared else row.total_out_tok_s / row.decode_gpus, shared, "dynamo-recipe"))
    return tuple(found)


@dataclass(frozen=True)
class Isolated:
    """One prompt at a time on eight H100: seconds, measured and predicted."""

    input_tokens: np.ndarray
    token_time: np.ndarray
    token_time_model: np.ndarray
    first_token: np.ndarray
    first_token_model: np.ndarray


@lru_cache(maxsize=1)
def h100() -> Isolated:
    """TP8 without speculation and without replay; all layers compute every prompt token, one sequence decodes."""
    facts = load_facts()
    table, model = facts.points("h100-v41-isolated"), facts.quantity("scenario.model").value
    inputs = table["input_tokens"].to_numpy(float)
    plain, rest = without_draft(model), facts.number("decode.uncounted_time")
    token = np.array([float(shared_step_time(plain, "h100", H100_CARDS, 1.0, 1.0, tokens)) for tokens in inputs]) + rest
    reached = facts.number("prefill.efficiency")
    first = np.array([shared_prefill_time(plain, "h100", H100_CARDS, tokens, PREFILL_CHUNK) for tokens in inputs]) / reached
    return Isolated(inputs, table["tpot_p50"].to_numpy(float), token, table["ttft_p50"].to_numpy(float), first)


def h100_points() -> tuple[Measured, ...]:
    """Decoding of the same runs as points of a frontier: one sequence on eight cards."""
    seen, nowhere = h100(), float("nan")
    return tuple(Measured(f"{tokens:,.0f} tokens", "h100", "TP8, one request", 1.0, 1 / float(time), 1 / float(model),
                          1 / float(time) / H100_CARDS, nowhere, True, "h100-report")
                 for tokens, time, model in zip(seen.input_tokens, seen.token_time, seen.token_time_model, strict=True))


def _points(rows: Iterable[Measured]) -> tuple[Point, ...]:
    return tuple(Point(row.at, row.user_speed, row.predicted) for row in rows)


def shared_share(row: Measured) -> float:
    """Share of the time that decoding gets on shared cards, if prefill were all that the model leaves out."""
    return row.user_speed / row.predicted


@validation
def third_parties() -> list[Validation]:
    """InferenceX, Dynamo and the isolated H100 runs; all tests."""
    first, second, third = inferencex(), dynamo(), h100()
    busy, apart = first[-1], [row for row in second if not row.shared]
    close = [row for row in first if abs(row.error) <= LARGE_MISS]
    prefill = float(np.median(third.first_token / third.first_token_model))
    table = load_facts().points("inferencex-v41-gb300")
    new = float((table["total_tok_s_gpu"] - table["out_tok_s_gpu"]).iloc[-1]) * (1 - load_facts().number("prefill.hit_rate"))
    isolated = tuple(Point(f"{tokens:,.0f} tokens: {what}", float(seen), float(said))
                     for what, values, model in (("time per output token", third.token_time, third.token_time_model),
                                                 ("time to first token", third.first_token, third.first_token_model))
                     for tokens, seen, said in zip(third.input_tokens, values, model, strict=True))
    return [
        Validation("inferencex_gb300", "4 GB300, vLLM TP4, speed per user", "test", "token/(s*user)", _points(first),
                   ("inferencex-3176",),
                   missing=f"Up to {close[-1].at} the error is at most {max(abs(row.error) for row in close):.0%}. "
                           f"Beyond, prefill on the same cards stops decoding, which is not counted: at {busy.at} they also take in "
                           f"{new:,.0f} new tokens per second and GPU if {load_facts().number('prefill.hit_rate'):.0%} of the input "
                           f"is cached, and the miss would mean that decoding gets {shared_share(busy):.0%} of the time."),
        Validation("dynamo", "B200 and GB200, vLLM TP4, speed per user", "test", "token/(s*user)", _points(second),
                   ("dynamo-recipe",),
                   missing="On shared cards prefill is missing. With prefill apart the step is still "
                           f"{np.mean([1 + row.error for row in apart]):.1f} times as long as predicted: the recipe states no acceptance "
                           "length (it is inferred from another benchmark), and kernels of the early vLLM build, its scheduling "
                           "between steps and the arrival of KV from prefill are not counted."),
        Validation("h100", "8 H100, vLLM TP8, one request at a time", "test", "s", isolated, ("h100-report",),
                   missing="Decoding alone is predicted within "
                           f"{np.max(np.abs(third.token_time_model / third.token_time - 1)):.0%}. Prefill takes {prefill:.1f} times as "
                           "long as predicted (median): H100 has no FP4 units, so that experts run below the FP8 rate, the all-reduce "
                           "takes 27 % of kernel time where the count has it near the link's speed, and mixing of residual streams "
                           "(8 %) is not counted."),
    ]


@validation
def own_points() -> list[Validation]:
    """DeepInfer's own points: what was fitted on them, and what then follows."""
    facts = load_facts()
    found = at_published(("throughput_per_decode_gpu", "modelled_user_speed", "prefill_capacity", "scheduled_drafts",
                          "scheduled_tokens", "tokens_all_verified", "predecessor_tokens", "schedule_gain"))
    accepted, verified, gain = (facts.quantity(name).value for name in ("spec.accepted", "spec.verified", "spec.gain"))
    return [
        Validation("v41_benchmark", "V4.1-Flash decode benchmark, EP64", "fit", "token/(s*GPU)",
                   (Point("60 sequences per GPU, supposed", facts.number("decode.benchmark"), float(found["throughput_per_decode_gpu"])),),
                   ("article-000",), fitted={"uncounted_time": facts.number("decode.uncounted_time")}),
        Validation("v41_online", "V4.1-Flash as the articles report it", "test", "token/(s*GPU), token/(s*user)",
                   (Point("throughput", facts.number("decode.throughput"), float(found["throughput_per_decode_gpu"])),
                    Point("speed per user", facts.number("decode.user_speed"), float(found["modelled_user_speed"]))),
                   ("article-000", "article-004")),
        Validation("v41_prefill", "V4.1-Flash prefill benchmark, 4 GPUs", "fit", "token/(s*GPU)",
                   (Point("new tokens", facts.number("prefill.throughput_new"), float(found["prefill_capacity"])),),
                   ("article-004",), fitted={"efficiency": facts.number("prefill.efficiency")}),
        Validation("v41_speculation", "V4.1-Flash speculation at the operating point", "test", "token",
                   (Point("tokens per step, acceptance of V4-Flash (preview)", accepted[0], float(found["predecessor_tokens"])),
                    Point("tokens per step, scheduled", accepted[1], float(found["scheduled_tokens"])),
                    Point("verified drafts, middle of the reported range", float(np.mean(verified[1:])),
                          float(found["scheduled_drafts"])),
                    Point("1 + gain over verifying all, middle of the reported range", 1 + float(np.mean(gain)),
                          1 + float(found["schedule_gain"]))),
                   ("article-001", "article-004"), fitted={"mean": facts.number("spec.acceptance_mean")}),
    ]
