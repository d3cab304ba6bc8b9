"""Verification policies of a scenario against load, and what wrong confidences cost there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.facts import load_facts
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.acceptance import (
    Schedule,
    Survivals,
    above_threshold,
    believed_budget,
    best_budget,
    fixed_length,
    rejection_sample,
    speculate,
    staircase,
)
from inside_deepinfer.serving.decode_frontier import COUNTED_INPUTS
from inside_deepinfer.serving.speculation import distorted, kept_cost, rate, survivals, temperature_for

LOADS = np.array([1.0, 2, 4, 8, 15, 30, 60, 100, 150, 250, 400, 700, 1000])


@dataclass(frozen=True)
class Policies:
    """What each policy does at each load.

    Attributes:
        loads: sequences per GPU.
        best: the released rule; ``every``: all drafts verified.
        others: policies by name, ``every`` among them.
    """

    loads: np.ndarray
    best: Schedule
    every: Schedule
    others: dict[str, Schedule] = field(default_factory=dict)

    @staticmethod
    def rate(schedule: Schedule) -> np.ndarray:
        """Tokens per second and sequence."""
        return rate(schedule)


def _inputs(scenario: Scenario) -> tuple[Any, ...]:
    return tuple(getattr(scenario, name) for name in COUNTED_INPUTS)


def truth(scenario: Scenario) -> Survivals:
    """Survivals of the drafts at the scenario's acceptance."""
    length = int(load_facts().number("spec.draft_length"))
    return survivals(float(scenario.acceptance_mean), float(scenario.acceptance_spread), length)


def by_load(scenario: Scenario, preset: str = "published") -> Policies:
    """Optimum, fixed lengths and a threshold at loads from 1 to 1,000 sequences per GPU that fit, the scenario's own among them."""
    given = (float(scenario.uncounted_time), _inputs(scenario), float(scenario.acceptance_mean), float(scenario.acceptance_spread))
    run, own = _policies(tuple(LOADS.tolist()), *given), float(scenario.batch)
    # the curve stays while a reader moves the batch; only the point there is new
    run = run if own in LOADS else _with(run, _policies((own,), *given))
    return _kept(run, run.loads <= max(float(catalogue.value("largest_batch", scenario, preset)), own))


def _kept(run: Policies, keep: np.ndarray) -> Policies:
    """The loads where ``keep``."""
    def cut(one: Schedule) -> Schedule:
        return Schedule(one.rows[keep], one.tokens[keep], one.time[keep])

    return Policies(run.loads[keep], cut(run.best), cut(run.every), {name: cut(schedule) for name, schedule in run.others.items()})


def _with(run: Policies, more: Policies) -> Policies:
    """Both runs in one, loads rising."""
    place = int(np.searchsorted(run.loads, more.loads[0]))

    def join(one: Schedule, other: Schedule) -> Schedule:
        return Schedule(*(np.insert(getattr(one, name), place, getattr(other, name)) for name in ("rows", "tokens", "time")))

    others = {name: join(schedule, more.others[name]) for name, schedule in run.others.items()}
    return Policies(np.insert(run.loads, place, more.loads), join(run.best, more.best), next(iter(others.values())), others)


@lru_cache(maxsize=32)
def _policies(loads: tuple[float, ...], uncounted: float, inputs: tuple[Any, ...], mean: float, spread: float) -> Policies:
    facts = load_facts()
    length, threshold = int(facts.number("spec.draft_length")), facts.number("spec.threshold")
    n, cost, chance = np.array(loads), kept_cost(loads, uncounted, *inputs), survivals(mean, spread, length)
    every = fixed_length(chance, n, cost, length)
    others = {f"all {length} drafts": every, "3 drafts": fixed_length(chance, n, cost, min(3, length)),
              "1 draft": fixed_length(chance, n, cost, 1), f"threshold {threshold:g}": above_threshold(chance, n, cost, threshold)}
    return Policies(n, best_budget(chance, n, cost), every, others)


def miscalibration(scenario: Scenario, preset: str = "published", loads: tuple[float, ...] = (20.0, 60.0, 200.0)
                   ) -> tuple[np.ndarray, dict[float, np.ndarray]]:
    """Calibration errors, and for each load the share of throughput lost by overconfident drafts."""
    errors = np.array([0.0, 0.01, 0.02, 0.04, 0.06, 0.08, 0.10])
    length = int(load_facts().number("spec.draft_length"))
    mean, spread, chance = float(scenario.acceptance_mean), float(scenario.acceptance_spread), truth(scenario)
    n, cost = np.array(loads), kept_cost(loads, float(scenario.uncounted_time), *_inputs(scenario))
    best = rate(best_budget(chance, n, cost))
    rows = [np.zeros(n.size)]
    for error in errors[1:]:
        belief = distorted(chance, temperature_for(float(error), mean, spread, length))
        rows.append(1 - rate(believed_budget(chance, belief, n, cost)) / best)
    return errors, dict(zip(loads, np.array(rows).T, strict=True))


def gain(scenario: Scenario, preset: str = "published") -> float:
    """Throughput gained over verifying all drafts at the scenario's batch."""
    return float(catalogue.value("schedule_gain", scenario, preset))


@dataclass(frozen=True)
class Objective:
    """Tokens and time of a step against rows per sequence, at one load.

    Attributes:
        rows: from 1 to all drafts and the row of the last token.
        tokens: per sequence and step. ``time``: s. ``padded``: s, with rows padded to the next captured graph size.
    """

    rows: np.ndarray
    tokens: np.ndarray
    time: np.ndarray
    padded: np.ndarray

    @property
    def best(self) -> int:
        """Where tokens per second are most."""
        return int(np.argmax(self.tokens / self.time))


def objective(scenario: Scenario, preset: str = "published") -> Objective:
    """What the released rule looks at, on a grid of 101 numbers of rows and the best of all."""
    chance, batch = truth(scenario), float(scenario.batch)
    rows, tokens = chance.curve()
    cost = kept_cost((batch,), float(scenario.uncounted_time), *_inputs(scenario))
    best = int(np.argmax(tokens / cost(batch * rows[None, :])[0]))
    pick = np.unique(np.r_[np.linspace(0, len(rows) - 1, 101).astype(int), best])
    rows, tokens = rows[pick], tokens[pick]
    padded = staircase(cost, int(load_facts().number("spec.graph_interval")))
    return Objective(rows, tokens, cost(batch * rows[None, :])[0], padded(batch * rows[None, :])[0])


def on_a_staircase(scenario: Scenario, intervals: tuple[int, ...], preset: str = "published") -> dict[int, Schedule]:
    """The best number of rows where a step is padded to a multiple of each interval (rows per GPU)."""
    chance, n = truth(scenario), np.array([float(scenario.batch)])
    cost = kept_cost((float(scenario.batch),), float(scenario.uncounted_time), *_inputs(scenario))
    return {interval: best_budget(chance, n, staircase(cost, interval)) for interval in intervals}


def surplus(seen: np.ndarray, expected: np.ndarray) -> float:
    """How far counts are from what is expected, in standard deviations of chi-squared; a few at most if only chance is at work."""
    chi = float(((seen - expected) ** 2 / expected).sum())
    freedom = seen.shape[-1] - 1 if seen.ndim == 1 else seen.shape[0] * (seen.shape[1] - 1)
    return float((chi - freedom) / np.sqrt(2 * freedom))


@lru_cache(maxsize=4)
def law_of_one(pairs: int = 200, count: int = 5000, vocabulary: int = 6, seed: int = 0) -> dict[str, float]:
    """Surplus against the target's law over random pairs of laws: by draft and correction, and by a correction from all of the target."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(vocabulary, 2.0), size=(pairs, 2))
    right, wrong = [], []
    for target, draft in laws:
        drawn, _ = rejection_sample(target, draft, rng, count)
        right.append(np.bincount(drawn, minlength=vocabulary))
        kept = np.minimum(target, draft)
        wrong.append(rng.multinomial(count, kept + (1 - kept.sum()) * target))
    expected = count * laws[:, 0]
    return {"draft and correction": surplus(np.array(right), expected),
            "correction from the whole target": surplus(np.array(wrong), expected)}


@lru_cache(maxsize=4)
def law_of_four(count: int = 200_000, seed: int = 0) -> dict[str, float]:
    """Surplus of the joint law of four tokens, three guesses per round, vocabulary of three; against the target's law and the draft's."""
    rng = np.random.default_rng(seed)
    target, draft = rng.dirichlet(np.full(3, 2.0), size=(2, 3))
    written = speculate(target, draft, 3, 4, count, rng)
    seen = np.bincount(written @ 3 ** np.arange(3, -1, -1), minlength=81)
    return {name: surplus(seen, count * _joint(law, 4)) for name, law in (("target", target), ("draft", draft))}


def _joint(law: np.ndarray, tokens: int) -> np.ndarray:
    """Probability of every sequence of that many tokens, the first token the slowest to change."""
    joint = law[0]
    for _ in range(tokens - 1):
        joint = (joint[:, None] * law[np.arange(joint.size) % len(law)]).ravel()
    return joint
