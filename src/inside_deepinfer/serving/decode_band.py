"""How far the decode frontier may be off: other plausible inputs, each fitted through the same published point.

Uncertain are the rows per sequence, the context of the benchmark, the overlap of parts, the efficiencies and which card "SM100" is;
every combination of low and high ends is taken, once with the rest of the step as a time per step and once as a factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from inside_deepinfer.facts import (
    NotPossible,
    Quantity,
    derived,
    load_facts,
    require,
    require_not_negative,
    require_positive,
    resolve,
)
from inside_deepinfer.serving.acceptance import rows_from_verified_drafts
from inside_deepinfer.serving.cards import card_number
from inside_deepinfer.serving.decode_frontier import COUNTED_INPUTS
from inside_deepinfer.serving.facts_of_parameters import FACT_OF

EFFICIENCIES = ("hardware.hbm_efficiency", "efficiency.gemm", "efficiency.attention", "efficiency.link")
RANGES = ("rows_per_sequence", "context", "overlap")  # scenario parameters that are uncertain while nobody has chosen them
UNCERTAIN = (*RANGES, *EFFICIENCIES, "card_bandwidth", "card_fp8_peak", "batch")
INPUTS = (*COUNTED_INPUTS, "rows_per_sequence", "tokens_per_step", "uncounted_time")


@dataclass(frozen=True)
class Band:
    """What the combinations say.

    Attributes:
        batch: sequences per GPU.
        slow, fast: lowest and highest speed per user at each batch, token/(s*user); times batch they are throughput.
        members: combinations that were kept; ``refused``: those whose counted parts alone take longer than the published step. Each
            counts twice, with the rest as a time and as a factor.
        shares: counted share of the published step in each kept combination.
    """

    batch: np.ndarray
    slow: np.ndarray
    fast: np.ndarray
    members: int
    refused: int
    shares: np.ndarray


def published_inputs() -> dict[str, Any]:
    """The inputs of the published point."""
    return {name: load_facts().quantity(FACT_OF[name]).value for name in INPUTS}


def corners(inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """All combinations as columns; an input that differs from the published one was chosen and is not uncertain."""
    facts, base = load_facts(), published_inputs()
    verified = rows_from_verified_drafts(np.array(facts.quantity("spec.verified").value))
    ranges: dict[str, list[Any]] = dict(zip(RANGES, (
        verified[1:].tolist(), facts.quantity("frontier.context_range").value, facts.quantity("frontier.overlap_range").value),
        strict=True))
    ranges = {name: ends for name, ends in ranges.items() if inputs[name] == base[name]}
    ranges["efficiency"] = facts.quantity("frontier.efficiency_range").value
    ranges["peaks"] = [base["card"], facts.quantity("frontier.other_card").value]
    grid = np.meshgrid(*(np.arange(len(ends)) for ends in ranges.values()), indexing="ij")
    return {name: np.asarray(ends)[index.ravel()][:, None] for (name, ends), index in zip(ranges.items(), grid, strict=True)}


def band_of(inputs: Mapping[str, Any], batch: np.ndarray, known: Mapping[str, Quantity] | None = None) -> Band:
    """The band of a step with ``inputs`` (named in ``INPUTS``) at each batch.

    Args:
        known: numbers of this step that none of ``UNCERTAIN`` reaches, if they are there already.

    Raises:
        NotPossible: every combination takes longer, counted alone, than the published step.
    """
    require_not_negative("uncounted_time", inputs["uncounted_time"])
    require(inputs["tokens_per_step"] >= 1, "tokens_per_step", inputs["tokens_per_step"], "at least 1")
    facts, there, ends = load_facts(), published_inputs(), corners(inputs)
    sequences = facts.number("decode.sequences")
    target = sequences * there["tokens_per_step"] / facts.number("decode.benchmark")
    at_point = _at_published_point(facts.folder, tuple(ends))
    own_card = inputs["card"] != there["card"]  # then only the fit depends on which card was measured
    counted = _counted(inputs, {name: column for name, column in ends.items() if not (own_card and name == "peaks")},
                       np.asarray(batch, dtype=float), known)
    keep = at_point[:, 0] <= target
    if not keep.any():
        raise NotPossible("no combination of the uncertain inputs is as fast as the published point")
    left = target - at_point[keep]
    if inputs["uncounted_time"] != there["uncounted_time"]:  # the reader's own value holds for all
        left = np.full_like(left, inputs["uncounted_time"])
    steps = np.concatenate([counted[keep] + left, counted[keep] * (at_point[keep] + left) / at_point[keep]])
    speeds = inputs["tokens_per_step"] / steps
    return Band(np.asarray(batch), speeds.min(axis=0), speeds.max(axis=0), int(2 * keep.sum()), int(2 * (~keep).sum()),
                at_point[keep, 0] / target)


@lru_cache(maxsize=16)
def _at_published_point(folder: Path, uncertain: tuple[str, ...]) -> np.ndarray:
    """Counted step time of every combination at the published point; the combinations are told by the inputs they vary."""
    there = published_inputs()
    ends = corners({name: value if name in uncertain or name not in RANGES else None for name, value in there.items()})
    return _counted(there, ends, np.array([load_facts().number("decode.sequences")]))


def _counted(inputs: Mapping[str, Any], ends: Mapping[str, np.ndarray], batch: np.ndarray,
             known: Mapping[str, Quantity] | None = None) -> np.ndarray:
    """Counted step times of all combinations (combinations x batches)."""
    changed: dict[str, Any] = dict(inputs) | {"batch": batch[None, :]}
    for name, column in ends.items():
        if name == "efficiency":
            changed |= {fact: np.minimum(load_facts().number(fact) * column, 1.0) for fact in EFFICIENCIES}
        elif name == "peaks":
            changed |= {"card_bandwidth": card_number(column, "hbm_bandwidth"), "card_fp8_peak": card_number(column, "fp8_flops")}
        else:
            changed[name] = column
    given = dict(known or {}) | {name: Quantity(name, value, "", "derived") for name, value in changed.items()}
    found = resolve(["counted_step_time"], given)["counted_step_time"].value
    return np.broadcast_to(found, (len(next(iter(ends.values()))), batch.size))


NUMBERS = ("low", "high", "low_few", "high_few", "least_counted", "most_counted")
FEW = 4  # the band is quoted at a quarter of the scenario's batch too, away from the fitted point


@derived(label="band of the decode frontier", unit="", words=True, listed=False,
         formula="lowest and highest of all combinations of the uncertain inputs, at the batch and at a quarter of it")
def decode_band(counted_inputs: Mapping[str, Any], rows_per_sequence: Any, tokens_per_step: Any, uncounted_time: Any, batch: Any) -> Any:
    """Last axis in the order of ``NUMBERS``: token/(s*GPU) four times, then shares of the published step."""
    values = (*counted_inputs.values(), rows_per_sequence, tokens_per_step, uncounted_time, require_positive("batch", batch))
    columns = np.broadcast_arrays(*(np.asarray(value) for value in values))
    rows = [_numbers(dict(zip(INPUTS, row[:-1], strict=True)), row[-1])
            for row in zip(*(column.ravel().tolist() for column in columns), strict=True)]
    return np.reshape(rows, (*columns[0].shape, len(NUMBERS)))


def _numbers(inputs: Mapping[str, Any], batch: float) -> list[float]:
    few = max(batch / FEW, 1.0)
    found = band_of(inputs, np.array([batch, few], dtype=float))
    return [batch * found.slow[0], batch * found.fast[0], few * found.slow[1], few * found.fast[1], found.shares.min(),
            found.shares.max()]


@derived(label="least throughput per decode GPU of the band", unit="token/(s*GPU)", words=True,
         formula="lowest of all combinations at the scenario's batch")
def decode_band_low(decode_band: Any) -> Any:
    """At the published point both ends meet: every combination is fitted there."""
    return decode_band[..., NUMBERS.index("low")][()]


@derived(label="most throughput per decode GPU of the band", unit="token/(s*GPU)", words=True,
         formula="highest of all combinations at the scenario's batch")
def decode_band_high(decode_band: Any) -> Any:
    """As above."""
    return decode_band[..., NUMBERS.index("high")][()]


@derived(label="least throughput of the band at a quarter of the batch", unit="token/(s*GPU)", words=True,
         formula="lowest of all combinations at a quarter of the scenario's batch")
def decode_band_low_few(decode_band: Any) -> Any:
    """Away from the fitted point, where the form of the rest matters."""
    return decode_band[..., NUMBERS.index("low_few")][()]


@derived(label="most throughput of the band at a quarter of the batch", unit="token/(s*GPU)", words=True,
         formula="highest of all combinations at a quarter of the scenario's batch")
def decode_band_high_few(decode_band: Any) -> Any:
    """As above."""
    return decode_band[..., NUMBERS.index("high_few")][()]


@derived(label="least share of the published step that is counted", unit="ratio", words=True,
         formula="lowest counted time of all combinations over the published step")
def least_counted_share(decode_band: Any) -> Any:
    """With fast parts that all overlap."""
    return decode_band[..., NUMBERS.index("least_counted")][()]


@derived(label="largest share of the published step that is counted", unit="ratio", words=True,
         formula="highest counted time of the combinations that are not slower than the published step")
def most_counted_share(decode_band: Any) -> Any:
    """With slow parts one after another; some combinations take longer than was published and are left out."""
    return decode_band[..., NUMBERS.index("most_counted")][()]
