"""The figure that chapter 1 lets the reader move: the share of benchmark speed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish
from inside_deepinfer.figures.fleet import ROUTES, SOURCES
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.reconcile import gpus_at_utilisation, revenue_at_utilisation

SHARES = np.round(np.r_[np.arange(0.20, 0.30, 0.02), np.arange(0.30, 0.34, 0.01), np.arange(0.35, 1.051, 0.05)], 2)


def routes_at_speed(scenario: Scenario, preset: str = "published") -> go.Figure:
    """The three counts while the reader moves the share of benchmark speed at which every GPU runs."""
    wanted = [name for name, *_ in ROUTES] + ["revenue_per_cluster_gpu_hour"]
    full, earned, stored, revenue = (quantity.value for quantity in catalogue.evaluate(wanted, scenario, preset).values())
    steps = [_step(share, gpus_at_utilisation(full, share), earned, stored, revenue_at_utilisation(revenue, share))
             for share in SHARES]
    return movable(steps, [f"{100 * share:.0f}" for share in SHARES], "share of benchmark speed",
                   start=int(np.argmax(SHARES == 1.0)), suffix=" %")


def _step(share: float, needed: float, earned: float, stored: float, revenue: float) -> go.Figure:
    counts = np.array([needed, earned, stored])
    names = [route for _, route, _ in ROUTES]
    labels = [f"{digits(count)} GPU" for count in counts]
    labels[0] += f"<br>{revenue:.2f} USD per GPU-hour"
    figure = go.Figure(
        [go.Bar(y=names, x=counts, orientation="h", text=labels, showlegend=False, constraintext="none", cliponaxis=False,
                textposition=["inside" if count > 6000 else "outside" for count in counts], insidetextanchor="end",
                marker=dict(color=[colour(role) for *_, role in ROUTES]), hovertemplate="%{y}: %{x:,.0f} GPU<extra></extra>")],
        dict(margin=dict(t=16), yaxis=dict(autorange="reversed"), xaxis=dict(range=[0, 12_500])))
    table = pd.DataFrame({"route": names, "GPUs of the cluster": counts})
    alt = (f"At {percent(share, 0)} of benchmark speed the day needs {digits(needed)} GPUs, each earning {digits(revenue)} USD "
           f"an hour; storage counts {digits(stored)} GPUs, revenue {digits(earned)}.")
    return finish(figure, name="fleet-routes-at-speed", alt=alt, table=table, x="GPUs of the cluster", y="counted from",
                  height=300, sources=SOURCES)
