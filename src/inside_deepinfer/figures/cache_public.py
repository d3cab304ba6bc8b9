"""Figure of the two public traces: hit rate against retention, kept since the last use and since writing."""

from __future__ import annotations

import pandas as pd

from inside_deepinfer.facts import load_facts, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points

SOURCES = ("mooncake-traces", "peer-runs")
TRACES = ("conversation", "synthetic")
TICKS = (10, 60, 300, 600, 1800, 3000)


def public_retention() -> go.Figure:
    """Counted hit rates of two public traces of less than an hour."""
    counted = load_facts().points("mooncake-retention")
    traces = []
    for order, trace in enumerate(TRACES):
        written = counted.dropna(subset=[f"{trace}_from_write"])
        traces += [line(counted.retention, counted[trace], f"{trace}, since last use", order, marker=dict(size=7)),
                   points(written.retention, written[f"{trace}_from_write"], f"{trace}, since writing", "measured")]
        traces[-2].mode = "lines+markers"
        traces[-1].marker.symbol = ("diamond", "diamond-open")[order]
    labels = [f"{tick} s" if tick < 60 else f"{tick // 60} min" for tick in TICKS]
    figure = go.Figure(traces, dict(xaxis=dict(type="log", tickvals=TICKS, ticktext=labels),
                                    yaxis=dict(tickformat=".0%", rangemode="tozero")))
    table = pd.DataFrame({"retention (s)": counted.retention} | {
        f"{trace}, {title}": counted[f"{trace}{end}"].astype(object).where(counted[f"{trace}{end}"].notna(), None)
        for trace in TRACES for title, end in (("since last use", ""), ("since writing", "_from_write"))})
    ten = counted.set_index("retention").loc[600]
    last = counted.iloc[-1]
    alt = ("Hit rate of two public traces against retention. Ten minutes give "
           + " and ".join(f"{percent(ten[trace])} of the input tokens of the {trace} trace, of {percent(last[trace])} at the end"
                          for trace in TRACES) + ". Keeping since writing instead of since the last use costs a few points.")
    return finish(figure, name="public-retention", alt=alt, table=table, x="retention", y="hit rate in tokens", sources=SOURCES)
