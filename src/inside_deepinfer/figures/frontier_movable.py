"""The figures that chapters 8 to 10 let the reader move: a step's time and the value of a row over the batch, prefill over the hit rate."""

from __future__ import annotations

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.figures import decode_frontier, prefill_frontier, speculation
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.scenario import Scenario, make_scenario, parameters

BATCHES = (1, 4, 15, 30, 60, 90, 120, 150, 180, 210, 240)  # more would make the bars of the published point too short to read
OBJECTIVE_BATCHES = (1, 8, 15, 30, 60, 120, 250, 500, 1000)
HIT_RATES = (0.5, 0.8, 0.9, 0.94, 0.96, 0.98)


def _with(scenario: Scenario, **changes: float) -> Scenario:
    values = {name: getattr(scenario, name) for name in parameters()}
    return make_scenario("published", values | changes)


def time_budget_by_batch(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Where the time of a step goes, while the reader moves the sequences per GPU."""
    most = float(catalogue.value("largest_batch", scenario, preset))
    batches = [batch for batch in BATCHES if batch <= most] or [1]
    steps = [decode_frontier.time_budget(_with(scenario, batch=batch), preset) for batch in batches]
    widest = max(step.layout.xaxis.range[1] for step in steps)
    for step in steps:
        step.layout.xaxis.range = [0, widest]
    start = int(np.argmin(np.abs(np.log(np.array(batches) / scenario.batch))))
    return movable(steps, [str(batch) for batch in batches], "sequences per GPU", start)


def frontier_by_hit_rate(scenario: Scenario, preset: str = "published") -> go.Figure:
    """The prefill frontier, while the reader moves the hit rate."""
    steps = [prefill_frontier.frontier(_with(scenario, hit_rate=rate), preset) for rate in HIT_RATES]
    top = max(float(np.max(trace.y)) for step in steps for trace in step.data)
    for step in steps:
        step.layout.xaxis.range = [np.log10(30), np.log10(20_000)]
        step.layout.yaxis.range = [0, 1.05 * top]
    start = int(np.argmin(np.abs(np.array(HIT_RATES) - scenario.hit_rate)))
    return movable(steps, [f"{100 * rate:g}" for rate in HIT_RATES], "cache hit rate", start, " %")


def objective_by_batch(scenario: Scenario, preset: str = "published") -> go.Figure:
    """What another row is worth, while the reader moves the sequences per GPU."""
    steps = [speculation.objective(_with(scenario, batch=batch), preset) for batch in OBJECTIVE_BATCHES]
    top = max(float(np.max(trace.y)) for step in steps for trace in step.data)
    for step in steps:
        step.layout.yaxis.range = [0, 1.05 * top]
    start = int(np.argmin(np.abs(np.log(np.array(OBJECTIVE_BATCHES) / scenario.batch))))
    return movable(steps, [str(batch) for batch in OBJECTIVE_BATCHES], "sequences per GPU", start)
