"""When a card dies: what an expert-parallel instance loses, and how many spare instances keep the service up.

One failed card stops its whole instance; it restarts with the cards that live (claim failure.blast_radius) and takes the
replaced card back with another restart. Instances fail independently, so the chain of one instance gives the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inside_deepinfer.facts import derived, require, require_not_negative, require_positive
from inside_deepinfer.facts.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

RESTARTS = 2  # per failure: one without the card, and by our assumption one when its replacement comes
MOST_MISSING = 6  # states beyond this many missing cards hold less than 1e-9 of the time at any rate we allow


@dataclass(frozen=True)
class InstanceChain:
    """Stationary behaviour of one instance.

    Attributes:
        cards: cards of a whole instance.
        up: probability of serving with 0, 1, ... missing cards.
        restarting: probability of restarting (or waiting) with that many missing.
    """

    cards: int
    up: np.ndarray
    restarting: np.ndarray

    @property
    def availability(self) -> float:
        """Share of time the instance serves, at whatever size."""
        return float(self.up.sum())

    @property
    def capacity(self) -> float:
        """Mean share of the whole instance's cards that serve."""
        return float(self.up @ (self.cards - np.arange(len(self.up))) / self.cards)


def instance_chain(cards: int, failure_rate: float, restart_time: float, replace_time: float, resize: bool = True) -> InstanceChain:
    """Solve the Markov chain of one instance.

    Args:
        cards: cards per instance (EP).
        failure_rate: failures per card and second; 0 is allowed and gives an instance that never stops.
        restart_time: mean time from failure to serving again, seconds.
        replace_time: mean time until a dead card is replaced, seconds.
        resize: restart with the live cards; otherwise, and always with a single card, wait until the card has been replaced.

    Source: the rules of claim failure.blast_radius; the chain itself is ours.
    """
    _check(cards, failure_rate, restart_time, replace_time)
    resize = resize and cards > 1  # a single card has none to restart with
    most = min(MOST_MISSING, cards - 1) if resize else min(MOST_MISSING, cards)
    sizes = most + 1
    rates = np.zeros((2 * sizes, 2 * sizes))  # index: missing for up, sizes + missing for restarting
    for missing in range(sizes):
        up, down = missing, sizes + missing
        fails = (cards - missing) * failure_rate
        if missing < most:
            rates[up, down + 1] += fails
            rates[down, down + 1] += fails
        if resize or missing == 0:
            rates[down, up] += 1 / restart_time
        if missing:
            # a replaced card comes back through a planned restart
            rates[up, down - 1] += missing / replace_time
            rates[down, down - 1] += missing / replace_time
    stationary = _stationary(rates)
    return InstanceChain(int(cards), stationary[:sizes], stationary[sizes:])


def _check(cards: Any, failure_rate: Any, restart_time: Any, replace_time: Any) -> None:
    """What chain and simulation ask of their inputs."""
    require(np.asarray(require_positive("cards", cards)) % 1 == 0, "cards", cards, "a whole number of at least 1")
    require_not_negative("failure_rate", failure_rate)
    require_positive("restart_time", restart_time)
    require_positive("replace_time", replace_time)


def _check_instances(needed: Any, spares: Any) -> None:
    require(np.asarray(require_positive("needed", needed)) % 1 == 0, "needed", needed, "a whole number of at least 1")
    require(np.asarray(require_not_negative("spares", spares)) % 1 == 0, "spares", spares, "whole numbers of at least 0")


def _stationary(rates: np.ndarray) -> np.ndarray:
    """Stationary distribution of a chain with one closed class, from its off-diagonal rates."""
    generator = rates - np.diag(rates.sum(axis=1))
    system = np.vstack([generator.T, np.ones(len(rates))])
    right = np.append(np.zeros(len(rates)), 1.0)
    solution = np.linalg.lstsq(system, right, rcond=None)[0]
    return np.clip(solution, 0, None) / np.clip(solution, 0, None).sum()


def service_availability(chain: InstanceChain, needed: int, spares: Any) -> np.ndarray:
    """Probability that at least ``needed`` of ``needed + spares`` instances serve; ``spares`` may be an array, 0 allowed."""
    from scipy import stats  # late: scipy takes half a second to import
    _check_instances(needed, spares)
    return stats.binom.sf(needed - 1, needed + np.asarray(spares), chain.availability)


def served_share(chain: InstanceChain, needed: int, spares: int) -> float:
    """Mean share of the needed capacity that is served, counting shrunken instances at their size."""
    _check_instances(needed, spares)
    one = np.zeros(chain.cards + 1)
    one[chain.cards - np.arange(len(chain.up))] += chain.up
    one[0] += chain.restarting.sum()
    total = np.array([1.0])
    for _ in range(int(needed + spares)):
        total = np.convolve(total, one)
    wanted = int(needed) * chain.cards
    return float(total @ np.minimum(np.arange(len(total)), wanted) / wanted)


@derived(label="failures of an instance per day", unit="1/day", formula="ep * card_failure_rate * 24", uses={
    "card_failure_rate": "failure.card_rate"})
def instance_failures_per_day(ep: Any, card_failure_rate: Any) -> Any:
    """One dead card stops the instance, so its rate is the sum of its cards' rates (rate per hour)."""
    return require_positive("ep", ep) * require_not_negative("failure.card_rate", card_failure_rate) \
        * SECONDS_PER_DAY / SECONDS_PER_HOUR


@derived(label="sequences that one dead card interrupts", unit="sequence", formula="ep * batch")
def sequences_lost_per_failure(ep: Any, batch: Any) -> Any:
    """Every sequence of the instance has to be sent to another one."""
    return require_positive("ep", ep) * require_positive("batch", batch)


@derived(label="share of output generated twice, if all outputs are equally long", unit="ratio",
         formula="2 * instance_failures_per_day * output_tokens_per_request / 2 / (86400 * decode_throughput / batch)")
def output_lost_share(instance_failures_per_day: Any, output_tokens_per_request: Any, decode_throughput: Any, batch: Any) -> Any:
    """Tokens of interrupted sequences over all tokens; both restarts of a failure interrupt, each half an output on average.

    Long outputs are caught more often, so in general it is E[L^2] / (2 E[L]) per sequence: half only if all are equally long, a whole
    mean output if lengths are exponential. Prompts come back from the KV store; the time until the router notices is not counted.
    """
    per_sequence_day = SECONDS_PER_DAY * require_positive("decode_throughput", decode_throughput) / require_positive("batch", batch)
    return RESTARTS * instance_failures_per_day * output_tokens_per_request / 2 / per_sequence_day


@dataclass(frozen=True)
class SimulatedAvailability:
    """Simulated share of time an instance serves, with the standard error over independent histories."""

    mean: float
    standard_error: float


def simulate_availability(cards: int, failure_rate: float, restart_time: float, replace_time: float, *, days: float = 20_000,
                          histories: int = 200, resize: bool = True, seed: int = 0) -> SimulatedAvailability:
    """The same instance by simulation of its events, all histories at once; starts whole and serving.

    The first tenth of every history is left out, so that the start does not count.
    """
    _check(cards, require_positive("failure_rate", failure_rate), restart_time, replace_time)
    require_positive("days", days)
    require(histories >= 2 and histories % 1 == 0, "histories", histories, "a whole number of at least 2")
    resize = resize and cards > 1
    rng = np.random.default_rng(seed)
    most = min(MOST_MISSING, cards - 1) if resize else min(MOST_MISSING, cards)
    end, start = days * SECONDS_PER_DAY, days * SECONDS_PER_DAY / 10
    clock, served = np.zeros(histories), np.zeros(histories)
    missing, up = np.zeros(histories, dtype=int), np.ones(histories, dtype=bool)
    while (clock < end).any():
        fails = np.where(missing < most, (cards - missing) * failure_rate, 0.0)
        back = missing / replace_time
        ready = np.where(~up & (resize | (missing == 0)), 1 / restart_time, 0.0)
        total = fails + back + ready
        step = rng.exponential(1 / total)
        until = np.minimum(clock + step, end)
        served += np.where(up, np.clip(until - np.maximum(clock, start), 0, None), 0.0)
        which = rng.random(histories) * total
        failed, replaced = which < fails, (which >= fails) & (which < fails + back)
        missing += failed.astype(int) - replaced.astype(int)
        up = np.where(failed | replaced, False, True)
        clock = clock + step
    share = served / (end - start)
    return SimulatedAvailability(float(share.mean()), float(share.std(ddof=1) / np.sqrt(histories)))
