"""Why predicted layers miss: single experts measured with exactly their token counts, and the clock of a card that works.

Nothing here is fitted, and no fit uses it; the files come from ``benchmarks/gpu/uneven.py``, ``clocks.py`` and ``warm.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inside_deepinfer.facts import InputError
from inside_deepinfer.facts.gpu_runs import gpu_run
from inside_deepinfer.serving.measured_card import LayerPrediction, between_sizes, predict_layers, worst

POWER_CAP = "0x4"  # NVML, nvmlClocksEventReasonSwPowerCap: the clock is held down to stay within the power limit


def alone(run: str, precision: str, own_tokens: bool = False) -> dict[int, float]:
    """Seconds of one expert by its tokens; ``own_tokens``: each expert reads tokens of its own, which no cache holds."""
    what = "alone, own tokens" if own_tokens else "alone"
    return {int(row["tokens_per_expert"][0]): float(row["seconds"]) for row in gpu_run(run, "uneven").rows
            if row["what"] == what and row["precision"] == precision}


def layers_from_own_counts(run: str, own_tokens: bool = False) -> list[LayerPrediction]:
    """As ``layers_from_measured_experts``, each expert measured alone with exactly its tokens; layers not covered are left out."""
    found = []
    for row in gpu_run(run, "layer").rows:
        known, counts = alone(run, row["precision"], own_tokens), [count for count in row["tokens_per_expert"] if count]
        if set(counts) <= set(known):
            found.append(LayerPrediction(row["precision"], int(row["ep"]), float(row["seconds"]), sum(known[count] for count in counts)))
    return found


def of_worst(run: str, predictions: list[LayerPrediction]) -> LayerPrediction:
    """Another prediction of the layer that the fits miss most."""
    missed = worst(predict_layers(run))
    for entry in predictions:
        if (entry.precision, entry.ep) == (missed.precision, missed.ep):
            return entry
    raise InputError("predictions", missed.ep, f"some with {missed.precision} at EP{missed.ep}")


def counts_of_worst(run: str) -> tuple[str, list[int]]:
    """Precision and tokens per expert of that layer."""
    missed = worst(predict_layers(run))
    row = next(row for row in gpu_run(run, "layer").rows if (row["precision"], row["ep"]) == (missed.precision, missed.ep))
    return missed.precision, sorted(row["tokens_per_expert"])


def experts_of_worst(run: str) -> list[dict[str, Any]]:
    """One row per expert of that layer: tokens, seconds read off between round counts, seconds measured with its own count."""
    precision, counts = counts_of_worst(run)
    measured = alone(run, precision)
    return [{"tokens": count, "between": float(between), "measured": measured[count]}
            for count, between in zip(counts, between_sizes(run, precision, counts), strict=True)]


def padded(run: str, multiple: int) -> float:
    """Time of that layer with every count raised to a multiple, over its time as it is, minus 1."""
    precision, counts = counts_of_worst(run)
    times = {row["what"]: row["seconds"] for row in gpu_run(run, "uneven").rows
             if row["precision"] == precision and sorted(row["tokens_per_expert"]) == counts}
    if f"layer, padded to {multiple}" not in times:
        raise InputError("multiple", multiple, "one that uneven.py measured")
    return float(times[f"layer, padded to {multiple}"] / times["layer"] - 1)


def kernels(run: str, precision: str, tokens: int) -> list[list[str]]:
    """Names of the library's kernels for gate and down with these tokens."""
    for row in gpu_run(run, "uneven").rows:
        if row["what"] == "alone" and row["precision"] == precision and row["tokens_per_expert"] == [tokens]:
            return row.get("kernels", [])
    raise InputError("tokens", tokens, "a count that uneven.py measured")


@dataclass(frozen=True)
class InTurn:
    """A layer and the sum of its experts one by one, measured in turn in one state of the card, in seconds."""

    precision: str
    ep: int
    state: str
    layer: float
    experts: float
    sm_clock: float

    @property
    def error(self) -> float:
        return self.experts / self.layer - 1


def in_turn(run: str) -> list[InTurn]:
    """Every layer that ``warm.py`` measured, on a card that rested and on one that works."""
    rows = {(row["precision"], int(row["ep"]), row["state"], row["what"]): row for row in gpu_run(run, "warm").rows}
    return [InTurn(precision, ep, state, float(row["seconds"]), float(rows[precision, ep, state, "experts"]["seconds"]),
                   row["sm_mhz"] * 1e6)
            for (precision, ep, state, what), row in rows.items() if what == "layer"]


def longer_when_working(run: str, precision: str, ep: int) -> float:
    """Time of a layer on a card that works over its time on one that rested, minus 1."""
    found = {entry.state: entry.layer for entry in in_turn(run) if (entry.precision, entry.ep) == (precision, ep)}
    if not found:
        raise InputError("ep", ep, "a group that warm.py measured")
    return found["working"] / found["rested"] - 1


def clock(run: str, precision: str, after: float = 0.0, before: float = float("inf")) -> list[tuple[float, bool]]:
    """Clock (Hz) in windows that end within these seconds after the first large product, and whether the power limit held it down."""
    return [(row["sm_mhz"] * 1e6, set(row.get("reasons", [])) == {POWER_CAP}) for row in gpu_run(run, "clocks").rows
            if row["precision"] == precision and after < row["until"] <= before]
