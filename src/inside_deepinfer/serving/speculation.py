"""What confidence-scheduled verification gives at the operating point, and what wrong or late confidences cost.

Two inputs are chosen to meet what is reported: the mean acceptance (5 verified drafts give 3.29 tokens) and, taken over from the
fit on V4-Flash (preview), its spread. The cost of a row is counted (``step_budget``). Verified drafts, accepted tokens and gain
follow. Acceptance is independent from draft to draft and confidence is right unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from inside_deepinfer.facts import derived, require, require_not_negative
from inside_deepinfer.model.shape import without_draft
from inside_deepinfer.serving.acceptance import (
    Schedule,
    Survivals,
    above_threshold,
    believed_budget,
    best_budget,
    drawn_survivals,
    fixed_length,
)
from inside_deepinfer.serving.decode_frontier import COUNTED_INPUTS, step_times

ROWS = np.linspace(1.0, 6.0, 26)  # rows per sequence at which the cost is counted; it is straight in between but for kinks


class CountedCost:
    """Seconds of a decode step against rows per GPU, for given numbers of sequences: counted parts and the uncounted time.

    Args:
        sequences: sequences per GPU, one per load.
        times: loads x ``ROWS``, seconds.
    """

    def __init__(self, sequences: np.ndarray, times: np.ndarray):
        self.sequences, self.times = sequences, times

    def __call__(self, rows: Any) -> np.ndarray:
        """Seconds at rows per GPU; last axis any numbers of rows, or one number for each load."""
        rows = np.asarray(rows, dtype=float)
        each = self.sequences[:, None] if rows.ndim == 2 else self.sequences
        share = rows / each
        if rows.ndim == 2 and np.array_equal(np.round(share[0], 9), np.round(share[-1], 9)):
            low, rest = _place(share[0])  # the same rows per sequence at every load
            below = self.times[:, low]
            return below + rest * (self.times[:, low + 1] - below)
        low, rest = _place(share)
        load = np.arange(len(self.sequences))
        load = load[:, None] if rows.ndim == 2 else load
        return self.times[load, low] + rest * (self.times[load, low + 1] - self.times[load, low])


def _place(share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where rows per sequence lie between ``ROWS``."""
    place = np.clip((share - ROWS[0]) / (ROWS[1] - ROWS[0]), 0, len(ROWS) - 1)
    low = np.minimum(place.astype(int), len(ROWS) - 2)
    return low, place - low


def counted_cost(sequences: Any, uncounted_time: float, **inputs: Any) -> CountedCost:
    """The cost for ``sequences`` per GPU; ``inputs`` are those of ``COUNTED_INPUTS``."""
    n = np.atleast_1d(np.asarray(sequences, dtype=float))
    times = step_times(n, rows_per_sequence=ROWS, **inputs).T  # step_times puts the batch last
    return CountedCost(n, times + require_not_negative("uncounted_time", uncounted_time))


@lru_cache(maxsize=64)
def kept_cost(sequences: tuple[float, ...], uncounted_time: float, *inputs: Any) -> CountedCost:
    """As ``counted_cost``, kept; ``inputs`` in the order of ``COUNTED_INPUTS``."""
    return counted_cost(np.array(sequences), uncounted_time, **dict(zip(COUNTED_INPUTS, inputs, strict=True)))


@lru_cache(maxsize=64)
def survivals(mean: float, spread: float, length: int, seed: int = 0) -> Survivals:
    """As ``drawn_survivals``, kept."""
    return drawn_survivals(mean, spread, length, seed)


def rate(schedule: Schedule) -> np.ndarray:
    """Tokens per second and sequence."""
    return schedule.tokens / schedule.time


def conditional(chance: np.ndarray) -> np.ndarray:
    """Acceptance of each draft once all before it were accepted, from survivals."""
    before = np.concatenate([np.ones((len(chance), 1)), chance[:, :-1]], axis=1)
    return np.divide(chance, before, out=np.ones_like(chance), where=before > 0)


def distorted(truth: Survivals, temperature: float) -> Survivals:
    """Confidences whose log-odds were divided by ``temperature``: below 1 they are too sure of themselves."""
    from scipy.special import expit  # late: scipy takes long to import; odds may be too large for exp

    require(temperature > 0, "temperature", temperature, "above 0")
    kept = np.clip(conditional(truth.chance), 1e-12, 1 - 1e-12)
    odds = (np.log(kept) - np.log1p(-kept)) / temperature
    return Survivals(np.cumprod(expit(odds), axis=1))


def calibration_error(truth: Survivals, belief: Survivals) -> float:
    """Expected calibration error: mean distance of believed and true acceptance, all positions."""
    return float(np.abs(conditional(belief.chance) - conditional(truth.chance)).mean())


@lru_cache(maxsize=64)
def temperature_for(error: float, mean: float, spread: float, length: int) -> float:
    """The temperature below 1 at which confidences are wrong by ``error`` on average; bisection."""
    truth = Survivals(survivals(mean, spread, length).chance[:500])  # the error barely moves with more
    low, high = 0.02, 1.0
    for _ in range(18):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if calibration_error(truth, distorted(truth, middle)) > error else (low, middle)
    return 0.5 * (low + high)


def late_total(truth: Survivals, sequences: int, cost: CountedCost, seed: int = 0) -> float:
    """Throughput lost because the number of rows was chosen on the confidences of the step before; which drafts is up to date.

    Each step draws ``sequences`` sequences anew, so that one step says nothing about the next beyond the law of both: the
    worst case of staleness.
    """
    rng = np.random.default_rng(seed)
    steps = int(np.clip(60_000 / (sequences * truth.chance.shape[1]), 20, 400))
    drawn = truth.chance[rng.integers(0, len(truth.chance), (steps, sequences))].reshape(steps, -1)
    tokens = sequences + np.concatenate([np.zeros((steps, 1)), np.cumsum(-np.sort(-drawn, axis=1), axis=1)], axis=1)
    time = cost(np.asarray(sequences + np.arange(drawn.shape[1] + 1), dtype=float)[None, :])
    best = (tokens / time).argmax(axis=1)
    late = np.roll(best, 1)
    at = np.arange(steps)
    fresh_rate = tokens[at, best].sum() / time[0, best].sum()
    return float(1 - tokens[at, late].sum() / time[0, late].sum() / fresh_rate)


@derived(label="schedule at the operating point", unit="", words=True, listed=False, uses={
    "length": "spec.draft_length", "threshold": "spec.threshold"},
    formula="rows, tokens and rates of the policies at the scenario's batch")
def schedule_numbers(counted_inputs: Mapping[str, Any], uncounted_time: Any, fitting_batch: Any, acceptance_mean: Any,
                     acceptance_spread: Any, length: Any, threshold: Any) -> Any:
    """Last axis in the order of ``NUMBERS``."""
    scalars = (uncounted_time, fitting_batch, acceptance_mean, acceptance_spread)
    return _each(_numbers, tuple(counted_inputs.values()), scalars, int(length), float(threshold))


@derived(label="what wrong and late confidences cost at the operating point", unit="ratio", words=True, listed=False, uses={
    "length": "spec.draft_length", "before": "spec.ece_before", "after": "spec.ece_after"},
    formula="1 - rate with them over rate with right ones, at the scenario's batch")
def schedule_losses(counted_inputs: Mapping[str, Any], uncounted_time: Any, fitting_batch: Any, acceptance_mean: Any,
                    acceptance_spread: Any, length: Any, before: Any, after: Any) -> Any:
    """Last axis: measured error before scaling, after scaling, number of rows chosen one step late."""
    scalars = (uncounted_time, fitting_batch, acceptance_mean, acceptance_spread)
    return _each(_losses, tuple(counted_inputs.values()), scalars, int(length), float(before), float(after))


def _each(numbers: Callable[..., list[float]], machine: tuple[Any, ...], scalars: tuple[Any, ...], *more: Any) -> np.ndarray:
    """``numbers`` of every combination of the broadcast inputs, along a new last axis; ``machine`` in the order of ``COUNTED_INPUTS``."""
    columns = np.broadcast_arrays(*(np.asarray(value) for value in (*machine, *scalars)))
    rows = zip(*(column.ravel().tolist() for column in columns), strict=True)
    found = [numbers(row[:len(machine)], *row[len(machine):], *more) for row in rows]
    return np.reshape(found, (*columns[0].shape, -1))


NUMBERS = ("rows", "tokens", "rate", "tokens_all", "rate_all", "rate_threshold", "rate_plain")


@lru_cache(maxsize=256)
def _numbers(machine: tuple[Any, ...], uncounted: float, batch: int, mean: float, spread: float, length: int,
             threshold: float) -> list[float]:
    truth, n = survivals(mean, spread, length), np.array([float(batch)])
    cost = kept_cost((float(batch),), uncounted, *machine)
    best, every = best_budget(truth, n, cost), fixed_length(truth, n, cost, length)
    return [float(best.rows[0]), float(best.tokens[0]), float(rate(best)[0]), float(every.tokens[0]), float(rate(every)[0]),
            float(rate(above_threshold(truth, n, cost, threshold))[0]),
            1 / float(_plain_step(machine, n)[0] + uncounted)]


def _plain_step(machine: tuple[Any, ...], sequences: np.ndarray) -> np.ndarray:
    """Counted step of an engine without a draft model: one row and one token per sequence."""
    inputs = dict(zip(COUNTED_INPUTS, machine, strict=True))
    return step_times(sequences, rows_per_sequence=1.0, **inputs | {"model": without_draft(inputs["model"])})


@lru_cache(maxsize=256)
def _losses(machine: tuple[Any, ...], uncounted: float, batch: int, mean: float, spread: float, length: int, before: float,
            after: float) -> list[float]:
    truth, n = survivals(mean, spread, length), np.array([float(batch)])
    cost = kept_cost((float(batch),), uncounted, *machine)
    best = rate(best_budget(truth, n, cost))
    wrong = [distorted(truth, temperature_for(error, mean, spread, length)) for error in (before, after)]
    return [*(1 - float((rate(believed_budget(truth, belief, n, cost)) / best)[0]) for belief in wrong),
            late_total(truth, int(batch), cost)]


def _number(name: str) -> int:
    return NUMBERS.index(name)


@derived(label="rows per sequence that the schedule verifies", unit="row", words=True,
         formula="the budget with the most expected tokens per second at the scenario's batch")
def scheduled_rows(schedule_numbers: Any) -> Any:
    """The golden row counted."""
    return schedule_numbers[..., _number("rows")][()]


@derived(label="drafts per sequence that the schedule verifies", unit="token", formula="scheduled_rows - 1")
def scheduled_drafts(scheduled_rows: Any) -> Any:
    """As the released engine logs it, without the golden row. Reported: 3.2 to 4.4."""
    return scheduled_rows - 1


@derived(label="tokens per step with the schedule", unit="token", words=True, formula="1 + survival of the verified drafts")
def scheduled_tokens(schedule_numbers: Any) -> Any:
    """Reported: 3.20."""
    return schedule_numbers[..., _number("tokens")][()]


@derived(label="tokens per step with every draft verified", unit="token", words=True, formula="1 + survival of all drafts")
def tokens_all_verified(schedule_numbers: Any) -> Any:
    """Reported: 3.29; the mean acceptance was chosen to meet it."""
    return schedule_numbers[..., _number("tokens_all")][()]


@derived(label="throughput gained by the schedule over verifying all drafts", unit="ratio", words=True,
         formula="tokens per second scheduled over tokens per second with all drafts, minus 1")
def schedule_gain(schedule_numbers: Any) -> Any:
    """At the scenario's batch. Reported: 4 to 7 %."""
    return (schedule_numbers[..., _number("rate")] / schedule_numbers[..., _number("rate_all")] - 1)[()]


@derived(label="throughput gained over a fixed threshold", unit="ratio", words=True,
         formula="scheduled over the threshold policy, minus 1")
def gain_over_threshold(schedule_numbers: Any) -> Any:
    """The threshold that suits one load does not suit another."""
    return (schedule_numbers[..., _number("rate")] / schedule_numbers[..., _number("rate_threshold")] - 1)[()]


@derived(label="throughput gained over an engine without a draft model", unit="ratio", words=True,
         formula="scheduled tokens per second * (counted step without draft model and with one row + uncounted_time), minus 1")
def gain_over_no_drafter(schedule_numbers: Any) -> Any:
    """What guessing brings in all: drafting is paid in the one and not done in the other."""
    return (schedule_numbers[..., _number("rate")] / schedule_numbers[..., _number("rate_plain")] - 1)[()]


@derived(label="throughput lost to uncalibrated confidence", unit="ratio", words=True,
         formula="budget by overconfident confidences with the measured error before scaling, against right ones")
def miscalibration_loss(schedule_losses: Any) -> Any:
    """Error before temperature scaling, mean over positions (DSpark paper, figure 6)."""
    return schedule_losses[..., 0][()]


@derived(label="throughput lost to confidence after calibration", unit="ratio", words=True,
         formula="the same with the measured error after scaling")
def calibrated_loss(schedule_losses: Any) -> Any:
    """Error after temperature scaling."""
    return schedule_losses[..., 1][()]


@derived(label="throughput lost to a budget chosen one step late", unit="ratio", words=True,
         formula="number of rows from the step before, choice of drafts from this one, against both from this one")
def late_budget_loss(schedule_losses: Any) -> Any:
    """Small, because many sequences together look alike from step to step."""
    return schedule_losses[..., 2][()]


@derived(label="scheduled tokens per step over the reported ones, minus 1", unit="ratio", formula="scheduled_tokens / reported[1] - 1",
         uses={"reported": "spec.accepted"})
def scheduled_tokens_error(scheduled_tokens: Any, reported: Any) -> Any:
    """Not fitted."""
    return scheduled_tokens / reported[1] - 1


@derived(label="tokens per step that the predecessor's fit predicts", unit="token", words=True,
         uses={"length": "spec.draft_length", "mean": "spec.mean_predecessor", "spread": "spec.acceptance_spread"},
         formula="1 + survival of all drafts with the acceptance fitted on V4-Flash (preview)")
def predecessor_tokens(length: Any, mean: Any, spread: Any) -> Any:
    """Against the reported 3.29 of V4.1-Flash: nothing was chosen for it."""
    return 1 + float(survivals(float(mean), float(spread), int(length)).chance.sum(axis=1).mean())
