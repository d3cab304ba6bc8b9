"""Figure of the store's size: servers that capacity, retention, reads and writes ask for."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, pattern
from inside_deepinfer.scenario import Scenario

SOURCES = ("article-001", "article-000", "inside-deepinfer")
NAMES = ("store_servers", "store_servers_for_retention", "store_servers_for_reads", "store_servers_for_writes")
LABELS = ("stated capacity", "what is kept", "mean reads", "mean writes")


def mixed_days(scenario: Scenario) -> float:
    """Days from writing to dropping a token of the generated traffic, agents and chat each kept for the scenario's retention."""
    return float(catalogue.value("mixed_life_days", scenario))


def servers(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Store servers that each demand asks for; the longest bar is the number that is needed."""
    days = mixed_days(scenario)
    found = catalogue.evaluate([*NAMES, "store_binding"], scenario, preset, retention_days=days)
    *asked, binds = (quantity.value for quantity in found.values())
    needed = np.array(asked, dtype=float)
    rows = list(LABELS)
    figure = go.Figure(
        [go.Bar(y=rows, x=needed, orientation="h", text=[digits(one, 3) for one in needed], textposition="outside", cliponaxis=False,
                showlegend=False, marker=pattern("blue", ""), hovertemplate="%{y}: %{x:,.1f} servers<extra></extra>")],
        dict(yaxis=dict(autorange="reversed", ticksuffix="  "), xaxis=dict(range=[0, 1.15 * float(needed.max())])))
    table = pd.DataFrame({"what asks": rows, "servers": needed})
    store, kept, read, write = (digits(one, 3) for one in needed)
    bind = "capacity binds" if binds == "capacity" else f"{binds} bind"
    alt = (f"Store servers: {store} hold the stated capacity with its parity, {kept} what one cluster writes in {digits(days, 3)} days, "
           f"{read} deliver the mean reads and {write} take the mean writes. Of capacity, reads and writes, {bind}.")
    return finish(figure, name="store-servers", alt=alt, table=table, x="store servers", height=300, sources=SOURCES)
