"""A card as we measured it: efficiencies fitted on simple measurements, then predicting whole expert layers.

Fitted on (a) bandwidth, (b) one expert against tokens, (e) launches, (f) exchange between two cards; the layers (c) and the
gathered reads (d) are predicted without another look.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from inside_deepinfer.facts import InputError, NotPossible, load_facts, require_not_negative, require_positive
from inside_deepinfer.facts.gpu_runs import gpu_run, gpu_runs

BLEND = 4.0  # how sharply memory-bound turns into compute-bound: (a^p + b^p)^(1/p)


@dataclass(frozen=True)
class ExpertRate:
    """Time of the three products of one expert: a blend of reading its weights and computing its tokens.

    Attributes:
        read_rate: bytes per second at which weights come in while few tokens are computed.
        compute_rate: FLOP per second that many tokens reach.
        fixed: seconds that three products cost besides.
    """

    precision: str
    read_rate: float
    compute_rate: float
    fixed: float

    def seconds(self, tokens: Any, weight_bytes: float, flop_per_token: float) -> Any:
        """Seconds for ``tokens`` tokens; 0 tokens cost nothing."""
        t = np.asarray(require_not_negative("tokens", tokens), dtype=float)
        read, compute = weight_bytes / self.read_rate, t * flop_per_token / self.compute_rate
        return np.where(t > 0, self.fixed + (read**BLEND + compute**BLEND) ** (1 / BLEND), 0.0)

    def turning_point(self, weight_bytes: float, flop_per_token: float) -> float:
        """Tokens per expert at which computing takes as long as reading."""
        return weight_bytes / self.read_rate * self.compute_rate / flop_per_token


@dataclass(frozen=True)
class Link:
    """Exchange between cards: a fixed time and a rate in one direction."""

    latency: float
    rate: float

    def seconds(self, size: Any) -> Any:
        """Seconds to send ``size`` bytes to the others."""
        return self.latency + np.asarray(require_not_negative("size", size), dtype=float) / self.rate


@lru_cache(maxsize=16)
def read_bandwidth(card: str) -> float:
    """Bytes per second of reading the largest buffer, far beyond the L2 (measurement a)."""
    table = gpu_run(card, "bandwidth").table()
    largest = table[table["what"] == "read"].sort_values("bytes").iloc[-1]
    return float(largest["bytes_moved"] / largest["seconds"])


@lru_cache(maxsize=16)
def launch_time(card: str, how: str = "graph") -> float:
    """Seconds per kernel of a step with many tiny kernels: ``graph`` replay or ``eager`` (measurement e)."""
    table = gpu_run(card, "launch").table()
    if how not in ("graph", "eager"):
        raise InputError("how", how, "graph or eager")
    rows = table[table["what"] == how].sort_values("kernels")
    slope = np.polyfit(rows["kernels"], rows["seconds"], 1)[0]
    return float(slope)


@lru_cache(maxsize=16)
def expert_rate(card: str, precision: str) -> ExpertRate:
    """Fit read and compute rate on the products of one expert (measurement b); fixed cost from the launches (e)."""
    from scipy.optimize import least_squares  # late: scipy takes half a second to import
    table = gpu_run(card, "experts").table()
    rows = table[table["precision"] == precision]
    if rows.empty:
        raise InputError("precision", precision, ", ".join(table["precision"].unique()))
    fixed = launch_time(card) * int(rows["products"].iloc[0])
    weight, per_token = float(rows["weight_bytes"].iloc[0]), float(rows["flop"].iloc[0] / rows["tokens"].iloc[0])
    tokens, measured = rows["tokens"].to_numpy(float), rows["seconds"].to_numpy(float)
    start = np.array([weight / measured.min(), per_token * tokens[-1] / measured[-1]])

    def miss(factors: np.ndarray) -> np.ndarray:
        return ExpertRate(precision, *(start * np.exp(factors)), fixed).seconds(tokens, weight, per_token) / measured - 1

    read, compute = start * np.exp(least_squares(miss, np.zeros(2)).x)
    return ExpertRate(precision, float(read), float(compute), fixed)


@lru_cache(maxsize=16)
def link(card: str) -> Link:
    """Fit latency and one-direction rate on the exchange between two cards (measurement f), relative least squares."""
    from scipy.optimize import least_squares  # late: scipy takes half a second to import
    table = gpu_run(card, "alltoall").table()
    size, measured = table["bytes_to_others"].to_numpy(float), table["seconds"].to_numpy(float)
    start = np.array([measured.min(), size[-1] / measured[-1]])
    found = least_squares(lambda f: Link(*(start * np.exp(f))).seconds(size) / measured - 1, np.zeros(2))
    return Link(*(float(value) for value in start * np.exp(found.x)))


@dataclass(frozen=True)
class LayerPrediction:
    """One measured expert layer beside its prediction; seconds."""

    precision: str
    ep: int
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


def predict_layers(card: str) -> list[LayerPrediction]:
    """The experts of a layer for each EP (measurement c), from the rates of one expert alone."""
    found = []
    for row in gpu_run(card, "layer").rows:
        rate = expert_rate(card, row["precision"])
        sample = next(r for r in gpu_run(card, "experts").rows if r["precision"] == row["precision"])
        seconds = rate.seconds(np.array(row["tokens_per_expert"]), row["weight_bytes_per_expert"], sample["flop"] / sample["tokens"])
        found.append(LayerPrediction(row["precision"], int(row["ep"]), float(row["seconds"]), float(seconds.sum())))
    return found


def predict_gather(card: str) -> list[tuple[str, int, float, float]]:
    """Gathered and contiguous reads (measurement d): what, queries, measured and predicted seconds.

    The prediction knows bandwidth and one launch, and nothing of how many readers a card needs to be busy.
    """
    return [(row["what"], int(row["queries"]), float(row["seconds"]),
             launch_time(card) + row["bytes_moved"] / read_bandwidth(card)) for row in gpu_run(card, "gather").rows]


def gather_penalty(card: str) -> dict[int, float]:
    """Time of gathered reads over contiguous ones of the same size, by number of queries, minus 1."""
    table = gpu_run(card, "gather").table().pivot(index="queries", columns="what", values="seconds")
    return {int(queries): float(row["gathered"] / row["contiguous"] - 1) for queries, row in table.iterrows()}


def spread_between_runs(first: str, second: str, measurement: str) -> np.ndarray:
    """Relative difference of the medians of two runs of the same measurement, row by row."""
    a, b = (gpu_run(card, measurement).table()["seconds"].to_numpy(float) for card in (first, second))
    if len(a) != len(b):
        raise InputError("second", second, f"a run with the {len(a)} rows of {first}")
    return require_positive("seconds", b) / require_positive("seconds", a) - 1


def median_error(predictions: list[LayerPrediction]) -> float:
    """Median of the absolute relative errors."""
    return float(np.median([abs(entry.error) for entry in predictions]))


def flop_per_token(run: str) -> float:
    """FLOP that one token costs in the three products of one expert."""
    row = gpu_run(run, "experts").rows[0]
    return float(row["flop"] / row["tokens"])


def turning_point(run: str, precision: str) -> float:
    """Tokens per expert at which computing takes as long as reading its weights."""
    row = next(row for row in gpu_run(run, "experts").rows if row["precision"] == precision)
    return expert_rate(run, precision).turning_point(row["weight_bytes"], flop_per_token(run))


# ---- why a prediction misses ------------------------------------------------------------------------------------------------

def layers_from_measured_experts(run: str) -> list[LayerPrediction]:
    """As ``predict_layers``, with the measured times of one expert, read off between the sizes, in the place of the curve.

    What is wrong here too is not the curve's fault; ``measured_uneven`` shows whose it is.
    """
    found = []
    for row in gpu_run(run, "layer").rows:
        seconds = between_sizes(run, row["precision"], [count for count in row["tokens_per_expert"] if count]).sum()
        found.append(LayerPrediction(row["precision"], int(row["ep"]), float(row["seconds"]), float(seconds)))
    return found


def between_sizes(run: str, precision: str, tokens: Any) -> np.ndarray:
    """Seconds of one expert with these tokens, read off on straight lines between the sizes that were measured."""
    table = gpu_run(run, "experts").table()
    alone = table[table["precision"] == precision].sort_values("tokens")
    return np.interp(np.asarray(tokens, dtype=float), alone["tokens"].to_numpy(float), alone["seconds"].to_numpy(float))


def worst(predictions: list[LayerPrediction]) -> LayerPrediction:
    """The prediction furthest off, either way."""
    return max(predictions, key=lambda entry: abs(entry.error))


def tokens_per_expert(run: str, precision: str, ep: int) -> float:
    """Mean tokens per expert of a measured layer."""
    row = next(row for row in gpu_run(run, "layer").rows if row["precision"] == precision and row["ep"] == ep)
    return float(np.mean(row["tokens_per_expert"]))


def fixed_and_rate(run: str, most_tokens: int = 64) -> tuple[float, float]:
    """What one expert costs before its first byte (s), and how fast its bytes then come (B/s), for few tokens.

    BF16 has twice the bytes of FP8, so the difference of the two times is the time of the bytes, and what is left is fixed.
    """
    table = gpu_run(run, "experts").table()
    few = table[table["tokens"] <= most_tokens].groupby("precision")[["seconds", "weight_bytes"]].median()
    if not {"bf16", "fp8"} <= set(few.index):
        raise NotPossible(f"the fixed time of an expert needs BF16 and FP8, but {run} has {', '.join(few.index)}")
    rate = (few.loc["bf16", "weight_bytes"] - few.loc["fp8", "weight_bytes"]) / (few.loc["bf16", "seconds"] - few.loc["fp8", "seconds"])
    return float(few.loc["fp8", "seconds"] - few.loc["fp8", "weight_bytes"] / rate), float(rate)


def gather_seconds(run: str) -> dict[int, float]:
    """Seconds of the gathered reads by number of queries."""
    return {int(row["queries"]): float(row["seconds"]) for row in gpu_run(run, "gather").rows if row["what"] == "gathered"}


def gather_rate_at_the_end(run: str) -> float:
    """Bytes per second at which the additional queries of the largest gathered read came in."""
    rows = sorted((row for row in gpu_run(run, "gather").rows if row["what"] == "gathered"), key=lambda row: row["queries"])
    less, more = rows[-2], rows[-1]
    return float((more["bytes_moved"] - less["bytes_moved"]) / (more["seconds"] - less["seconds"]))


# ---- what a card reaches of its datasheet -----------------------------------------------------------------------------------

def run_for(card: str, measurement: str, reference: str) -> str:
    """The folder whose measurement speaks for a card: its own where there is one, else the reference's.

    A folder counts as a card's own if it has the card's id as its name and its files name that card; FP8 is what the model uses.
    """
    for folder in (card, reference):
        run = gpu_runs().get(folder, {}).get(measurement)
        if run and card_of(folder) and (measurement != "experts" or any(row["precision"] == "fp8" for row in run.rows)):
            return folder
    raise NotPossible(f"no card has a sound measurement {measurement!r} in data/measured/gpu; benchmarks/gpu makes one")


def card_of(folder: str) -> str:
    """Id of the card of data/hardware that a folder holds a run of; empty where the files name another card or none of ours."""
    card = folder.split("-run")[0]
    named = next(iter(gpu_runs()[folder].values())).machine.card if folder in gpu_runs() else ""
    words = "".join(letter if letter.isalnum() else " " for letter in named.lower()).split()
    return card if card in load_facts().cards and card in words else ""


def share_of_datasheet(card: str, reference: str, measurement: str, reached: Callable[[str], float], field: str) -> float:
    """Rate that ``run_for`` this card reached, over the datasheet of the card that was measured."""
    run = run_for(card, measurement, reference)
    stated = getattr(load_facts().cards[card_of(run)], field)
    if stated is None or reached(run) > stated:
        raise NotPossible(f"{measurement} in {run} reaches {reached(run):.3g}, above what data/hardware states for it ({field} {stated})")
    return reached(run) / stated


def weight_read_share(card: str, reference: str) -> float:
    """Weights come in through products: rate of the FP8 products of one expert with few tokens, its launches taken off."""
    return share_of_datasheet(card, reference, "experts", lambda run: expert_rate(run, "fp8").read_rate, "hbm_bandwidth")


def stream_read_share(card: str, reference: str) -> float:
    """Reading one large buffer."""
    return share_of_datasheet(card, reference, "bandwidth", read_bandwidth, "hbm_bandwidth")


def product_share(card: str, reference: str) -> float:
    """FP8 products of one expert with many tokens."""
    return share_of_datasheet(card, reference, "experts", lambda run: expert_rate(run, "fp8").compute_rate, "fp8_flops")


def link_share(card: str, reference: str) -> float:
    """Exchange between two cards, large messages, one direction."""
    return share_of_datasheet(card, reference, "alltoall", lambda run: link(run).rate, "scaleup_bandwidth")


def kernel_seconds(card: str, reference: str) -> float:
    """A kernel inside a replayed graph."""
    return launch_time(run_for(card, "launch", reference))
