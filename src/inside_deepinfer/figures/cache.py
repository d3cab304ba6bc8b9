"""Figures of a replayed trace: hit rate against retention and capacity, reuse times, distinct blocks over time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer.cache.report import Report
from inside_deepinfer.cache.retention import MICRO
from inside_deepinfer.facts import digits, percent, show
from inside_deepinfer.facts.units import GIB
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line
from inside_deepinfer.figures.theme import colour

POINTS = 400
SOURCES = ("mattson-1970",)


def trace_figures(report: Report) -> list[go.Figure]:
    """All figures of a trace that has any reuse; only the growth of blocks for one that has none."""
    figures = [distinct_blocks(report)]
    if report.by_age.total(0).any():
        figures = [retention_curve(report), capacity_curve(report), reuse_times(report), *figures]
    return figures


def retention_curve(report: Report) -> go.Figure:
    """Hit rate for every retention."""
    seconds, share = _thin(*report.retention_curve())
    half = float(seconds[np.searchsorted(share, share[-1] / 2)])
    return _curve(report, np.maximum(seconds, 1e-3), share, report.retentions, report.at_retentions(), report.retention_error(),
                  name="trace-retention", x_title="retention (s)",
                  alt=f"Hit rate against retention: {percent(share[-1])} without a limit, half of that at {show(half, 's')}.")


def capacity_curve(report: Report) -> go.Figure:
    """Hit rate for every capacity of an LRU cache."""
    size, share = _thin(*report.capacity_curve())
    half = float(size[np.searchsorted(share, share[-1] / 2)])
    return _curve(report, size / GIB, share, np.array(report.capacities) / GIB, report.at_capacities(), report.capacity_error(),
                  name="trace-capacity", x_title="capacity of an LRU cache (GiB)",
                  alt=f"Hit rate against capacity: {percent(share[-1])} without a limit, half of that at {show(half, 'B')} "
                      f"with {digits(report.kv_bytes)} B of KV per token.")


def reuse_times(report: Report) -> go.Figure:
    """How long after its last touch a block is used again."""
    age, counts = report.reuse.curve(0)
    count = counts[0]
    edges = np.logspace(-3, np.ceil(np.log10(max(age[-1] / MICRO, 1.0))), 61)
    upto = np.interp(edges, age / MICRO, count, left=0.0)
    within = np.diff(upto) / count[-1]
    first = upto[0] / count[-1]
    middle = np.sqrt(edges[:-1] * edges[1:])
    figure = go.Figure([go.Bar(x=middle, y=within, width=np.diff(edges) * 0.95, marker=dict(color=colour("blue")),
                               showlegend=False, hovertemplate="about %{x:.3g} s: %{y:.2%} of reuses<extra></extra>")],
                       dict(xaxis=dict(type="log"), yaxis=dict(tickformat=".1%")))
    times = report.reuse_quantiles()
    table = pd.DataFrame({"time since last touch, about (s)": middle, "share of block reuses": within})
    alt = (f"Time between two uses of a block: half of the reuses come within {show(times[0.5], 's')}, nine in ten within "
           f"{show(times[0.9], 's')}; {percent(first)} come at once.")
    return finish(figure, name="trace-reuse-times", alt=alt, table=table, x="time since the last use of a block (s)",
                  y="share of block reuses")


def distinct_blocks(report: Report) -> go.Figure:
    """Distinct blocks over time: what a store without limits holds."""
    seconds, blocks = _thin(*report.distinct_over_time())
    stored = blocks * report.block_bytes / GIB
    figure = go.Figure([line(seconds, blocks, "distinct blocks", showlegend=False, customdata=stored,
                             hovertemplate="%{x:,.0f} s: %{y:,.0f} blocks, %{customdata:,.1f} GiB<extra></extra>")],
                       dict(xaxis=dict(rangemode="tozero"), yaxis=dict(rangemode="tozero")))
    table = pd.DataFrame({"time (s)": seconds, "distinct blocks": blocks, "KV (GiB)": stored})
    alt = (f"Distinct blocks over time: {digits(blocks[-1])} after {show(seconds[-1], 's')}, "
           f"{show(stored[-1] * GIB, 'B')} of KV if nothing is ever dropped.")
    return finish(figure, name="trace-distinct-blocks", alt=alt, table=table, x="time since the start (s)", y="distinct blocks")


def _curve(report: Report, x: np.ndarray, share: np.ndarray, asked: np.ndarray | tuple[float, ...], rates: np.ndarray,
           errors: np.ndarray, *, name: str, x_title: str, alt: str) -> go.Figure:
    asked = np.asarray(asked, dtype=float)
    shown = (asked > 0) & (asked <= 2 * x[-1])  # beyond, nothing changes any more
    traces = [go.Scatter(x=x, y=share, name="hit rate", mode="lines", showlegend=False,
                         line=dict(color=colour("blue"), width=2.5, shape="hv"),  # between two reuses nothing changes
                         hovertemplate="%{x:.4g}: %{y:.2%}<extra></extra>")]
    if shown.any():
        traces.append(go.Scatter(x=asked[shown], y=rates[shown], mode="markers", name="stated values", showlegend=False,
                                 marker=dict(symbol="circle", color=colour("orange"), size=7),
                                 error_y=dict(type="data", array=errors[shown], visible=not report.sample.full),
                                 hovertemplate="%{x:.4g}: %{y:.2%}<extra></extra>"))
    figure = go.Figure(traces, dict(xaxis=dict(type="log", exponentformat="power"), yaxis=dict(tickformat=".0%", rangemode="tozero")))
    table = pd.DataFrame({x_title: asked[shown], "hit rate": rates[shown]})
    if not report.sample.full:
        table["error bound"] = errors[shown]
    if table.empty:
        table = pd.DataFrame({x_title: x, "hit rate": share})
    return finish(figure, name=name, alt=alt, table=table, x=x_title, y=f"hit {report.definition.weight}",
                  sources=SOURCES)


def _thin(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most :data:`POINTS` points of a rising curve, ends kept."""
    if len(x) <= POINTS:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, POINTS).astype(int))
    return x[kept], y[kept]
