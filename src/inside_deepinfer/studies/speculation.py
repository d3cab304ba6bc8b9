"""Verification policies of a scenario against load, and what wrong confidences cost there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.facts import load_facts
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.acceptance import Schedule, Survivals, above_threshold, believed_budget, best_budget, fixed_length
from inside_deepinfer.serving.speculation import CountedCost, counted_cost, distorted, rate, survivals, temperature_for

LOADS = np.array([1.0, 2, 4, 8, 15, 30, 60, 100, 150, 250, 400, 700, 1000])
INPUTS = ("model", "card", "ep", "redundant_experts", "context", "overlap", "selection_overlap")


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
    return tuple(getattr(scenario, name) for name in INPUTS)


@lru_cache(maxsize=32)
def _cost(loads: tuple[float, ...], uncounted: float, inputs: tuple[Any, ...]) -> CountedCost:
    return counted_cost(np.array(loads), uncounted, **dict(zip(INPUTS, inputs, strict=True)))


def truth(scenario: Scenario) -> Survivals:
    """Survivals of the drafts at the scenario's acceptance."""
    length = int(load_facts().number("spec.draft_length"))
    return survivals(float(scenario.acceptance_mean), float(scenario.acceptance_spread), length)


def by_load(scenario: Scenario, preset: str = "published") -> Policies:
    """Optimum, fixed lengths and a threshold at loads from 1 to 1,000 sequences per GPU, the scenario's own among them."""
    loads = np.unique(np.r_[LOADS, float(scenario.batch)])
    return _policies(tuple(loads.tolist()), float(scenario.uncounted_time), _inputs(scenario), float(scenario.acceptance_mean),
                     float(scenario.acceptance_spread))


@lru_cache(maxsize=32)
def _policies(loads: tuple[float, ...], uncounted: float, inputs: tuple[Any, ...], mean: float, spread: float) -> Policies:
    facts = load_facts()
    length, threshold = int(facts.number("spec.draft_length")), facts.number("spec.threshold")
    n, cost, chance = np.array(loads), _cost(loads, uncounted, inputs), survivals(mean, spread, length)
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
    n, cost = np.array(loads), _cost(loads, float(scenario.uncounted_time), _inputs(scenario))
    best = rate(best_budget(chance, n, cost))
    rows = [np.zeros(n.size)]
    for error in errors[1:]:
        belief = distorted(chance, temperature_for(float(error), mean, spread, length))
        rows.append(1 - rate(believed_budget(chance, belief, n, cost)) / best)
    return errors, dict(zip(loads, np.array(rows).T, strict=True))


def gain(scenario: Scenario, preset: str = "published") -> float:
    """Throughput gained over verifying all drafts at the scenario's batch."""
    return float(catalogue.value("schedule_gain", scenario, preset))
