"""The figures that chapter 11 lets the reader move: experts on GPUs step by step, and what chance makes uneven at each EP."""

from __future__ import annotations

import plotly.graph_objects as go

from inside_deepinfer.figures.balance import chance, heat_at
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.scenario import Scenario, make_scenario
from inside_deepinfer.studies import routing

EVERY = 2  # steps between two positions of the slider
EPS = (8, 16, 32, 64, 128)


def heat_by_step(scenario: Scenario, name: str = routing.IN_TURN) -> go.Figure:
    """The heat map of every second step of the replay."""
    shown = range(0, routing.STEPS, EVERY)
    run = routing.run(name, scenario)
    top = max(float(routing.slots(run.loads[step], placement)[0].max())
              for step in shown for placement in (run.placements[0][1], run.serving(step)))
    steps = [heat_at(scenario, step, name, top) for step in shown]
    return movable(steps, [str(step) for step in shown], "step of the replay", start=int(scenario.balance_step) // EVERY)


def chance_by_ep(scenario: Scenario, preset: str = "published") -> go.Figure:
    """The two curves of chance at each size of the group, everything else as in the scenario."""
    changed = [make_scenario(preset, {name: getattr(scenario, name) for name in ("batch", "rows_per_sequence", "model")} | {"ep": ep})
               for ep in EPS]
    steps = [chance(one, preset) for one in changed]
    return movable(steps, [str(ep) for ep in EPS], "expert parallelism (GPUs)", start=EPS.index(64))
