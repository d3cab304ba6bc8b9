"""Figures of the fleet: three routes to a number of GPUs, and what would make them agree."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.reconcile import gpus_at_utilisation

SOURCES = ("article-000", "article-001", "article-004")
ROUTES = (  # derived number, what the reader calls the route, colour
    ("cluster_gpus_from_throughput", "throughput", "blue"),
    ("cluster_gpus_from_revenue", "revenue", "green"),
    ("cluster_gpus_from_storage", "storage", "orange"),
)


def three_routes(scenario: Scenario, preset: str = "published") -> go.Figure:
    """GPUs of the cluster by throughput, by revenue and by storage, each with the utilisation at which it serves the day."""
    found = catalogue.evaluate([name for name, *_ in ROUTES], scenario, preset)
    gpus = np.array([found[name].value for name, *_ in ROUTES])
    busy = found["cluster_gpus_from_throughput"].value / gpus
    labels = [f"{digits(count)} GPU<br>at {percent(share, 0)} of speed" for count, share in zip(gpus, busy, strict=True)]
    inside = gpus > 0.5 * gpus.max()  # a long bar carries its label, a short one has it beside
    figure = go.Figure(
        [go.Bar(y=[label for _, label, _ in ROUTES], x=gpus, orientation="h", text=labels, showlegend=False,
                textposition=["inside" if wide else "outside" for wide in inside], insidetextanchor="end",
                textfont=dict(size=12), constraintext="none", cliponaxis=False,
                marker=dict(color=[colour(role) for *_, role in ROUTES]), customdata=busy,
                hovertemplate="%{y}: %{x:,.0f} GPU serve the day at %{customdata:.0%} of benchmark speed<extra></extra>")],
        dict(margin=dict(t=16), yaxis=dict(autorange="reversed"), xaxis=dict(rangemode="tozero")))
    table = pd.DataFrame({"route": [label for _, label, _ in ROUTES], "GPUs of the cluster": gpus,
                          "share of benchmark speed that serves the day": busy})
    alt = (f"GPUs of the cluster by three routes: {digits(gpus[0])} from throughput, {digits(gpus[1])} from revenue, "
           f"{digits(gpus[2])} from storage. Storage and throughput agree if each GPU runs at {percent(busy[2], 0)} "
           "of benchmark speed.")
    return finish(figure, name="fleet-three-routes", alt=alt, table=table, x="GPUs of the cluster", y="counted from",
                  height=300, sources=SOURCES)


def reconcile(scenario: Scenario, preset: str = "published") -> go.Figure:
    """GPUs that serve the day against utilisation, with the counts from storage and from revenue as levels."""
    wanted = ["cluster_gpus_from_throughput", "cluster_gpus_from_storage", "cluster_gpus_from_revenue",
              "reconciling_utilisation", "revenue_at_reconciling_utilisation"]
    found = {name: quantity.value for name, quantity in catalogue.evaluate(wanted, scenario, preset).items()}
    full, stored, earned = (found[name] for name in wanted[:3])
    meet_store, meet_revenue = found["reconciling_utilisation"], full / earned  # where the curve has the height of each level
    share = np.linspace(min(0.1, 0.8 * meet_store), max(1.1, 1.05 * meet_revenue), 120)
    needed = gpus_at_utilisation(full, share)
    ends = share[[0, -1]]
    crossing = points([meet_store], [stored], "storage and throughput agree", "derived", showlegend=False,
                      hovertemplate="%{x:.1%}: %{y:,.0f} GPU<extra>storage and throughput agree</extra>")
    figure = go.Figure(
        [line(share, needed, "needed for the day's tokens", 0), line(ends, [stored, stored], "counted from storage", 1),
         line(ends, [earned, earned], "counted from revenue", 2), crossing],
        dict(xaxis=dict(tickformat=".0%"), yaxis=dict(type="log", dtick="D2", tickformat=",.0f"),
             annotations=[dict(x=meet_store, y=float(np.log10(stored)), text=f"agree at {percent(meet_store, 0)}", ax=60, ay=-28,
                               showarrow=True, arrowcolor=colour("muted"), font=dict(size=12))]))
    table = pd.DataFrame({"share of benchmark speed": share, "GPUs needed for the day": needed,
                          "GPUs from storage": stored, "GPUs from revenue": earned})
    slow = digits(found["revenue_at_reconciling_utilisation"])
    alt = (f"GPUs needed for the day's tokens against the share of benchmark speed at which they run. The curve meets the "
           f"{digits(stored)} GPUs of the storage route at {percent(meet_store, 0)}; spread over them the day brings {slow} USD per "
           f"GPU-hour. "
           f"It meets the {digits(earned)} GPUs of the revenue route near {percent(meet_revenue, 0)}.")
    return finish(figure, name="fleet-reconcile", alt=alt, table=table, x="share of benchmark speed",
                  y="GPUs of the cluster", sources=SOURCES)
