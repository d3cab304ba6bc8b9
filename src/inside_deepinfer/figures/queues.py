"""Figures of prefill and decode apart: the right ratio of cards, what a wrong one leaves idle, and waiting times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.figures.theme import DASHES, SERIES, colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving import queueing
from inside_deepinfer.serving.pd_simulation import Outcome

SOURCES = ("article-001", "inside-deepinfer")
HITS = (0.80, 0.90, 0.96, 0.98)
SLIDER_HITS = (0.0, 0.5, 0.8, 0.9, 0.94, 0.96, 0.98, 0.99)
RATIOS = np.geomspace(5, 2000, 60)
MS = 1e3


def balance(scenario: Scenario, simulated: Sequence[tuple[float, float, float]] = (), preset: str = "published") -> go.Figure:
    """Prefill GPUs per decode GPU against input over output, one line per hit rate.

    Args:
        simulated: (hit rate, input over output, simulated ratio) to draw beside the closed form.
    """
    curves = {hit: catalogue.value("balanced_pd_ratio", scenario, preset, hit_rate=hit, input_output_ratio=RATIOS) for hit in HITS}
    traces = [line(RATIOS, curve, f"{percent(hit, 0)} hits", order=order) for order, (hit, curve) in enumerate(curves.items())]
    if simulated:
        traces.append(points([io for _, io, _ in simulated], [ratio for *_, ratio in simulated], "simulated", kind="derived"))
    here = float(catalogue.value("balanced_pd_ratio", scenario, preset))
    traces.append(points([scenario.input_output_ratio], [here], "this scenario", kind="choice"))
    figure = go.Figure(traces, dict(
        xaxis=dict(type="log", tickvals=[10, 30, 100, 300, 1000]), yaxis=dict(type="log", tickvals=[0.1, 0.3, 1, 3, 10]),
        shapes=[dict(type="line", xref="paper", x0=0, x1=1, y0=1, y1=1, line=dict(color=colour("muted"), dash="dot"))]))
    table = pd.DataFrame({"input over output": RATIOS} | {f"{percent(hit, 0)} hits": curve for hit, curve in curves.items()})
    errors = [ratio / float(catalogue.value("balanced_pd_ratio", scenario, preset, hit_rate=hit, input_output_ratio=io)) - 1
              for hit, io, ratio in simulated]
    said = f" Simulated points lie within {percent(max(map(abs, errors)), 0)} of the lines." if simulated else ""
    alt = (f"At {percent(scenario.hit_rate, 0)} hits and {digits(scenario.input_output_ratio)} input tokens per output token neither pool "
           f"waits at {digits(here, 3)} prefill GPUs per decode GPU; the ratio rises with input and with misses.{said}")
    return finish(figure, name="queues-balance", alt=alt, table=table, x="input tokens per output token",
                  y="prefill GPUs per decode GPU", height=420, sources=SOURCES)


def use_by_hit_rate(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Share of the cards that 1:1 and two other ratios keep busy, with a slider over the hit rate."""
    steps = []
    for hit in SLIDER_HITS:
        use = {ratio: catalogue.value("pool_use", scenario, preset, hit_rate=hit, input_output_ratio=RATIOS, pd_ratio=ratio)
               for ratio in (0.5, 1.0, 2.0)}
        # the balanced ratio is proportional to input over output, so one value says where it is 1
        right = float(RATIOS[0] / catalogue.value("balanced_pd_ratio", scenario, preset, hit_rate=hit, input_output_ratio=RATIOS[0]))
        wrong = float(catalogue.value("pool_use", scenario, preset, hit_rate=hit, input_output_ratio=4 * right, pd_ratio=1.0))
        figure = go.Figure([line(RATIOS, 100 * curve, f"{digits(ratio)}:1", order=order)
                            for order, (ratio, curve) in zip((1, 0, 2), use.items(), strict=True)],
                           dict(xaxis=dict(type="log", tickvals=[10, 30, 100, 300, 1000]), yaxis=dict(range=[0, 104])))
        table = pd.DataFrame({"input over output": RATIOS} | {f"{digits(ratio)}:1 (%)": 100 * curve for ratio, curve in use.items()})
        alt = (f"At {percent(hit, 0)} hits 1:1 keeps all cards busy at about {digits(right, 2)} input tokens per output token, and "
               f"{wrong:.0%} of them at four times as many.")
        steps.append(finish(figure, name="queues-use", alt=alt, table=table, x="input tokens per output token", y="cards kept busy (%)",
                            sources=SOURCES))
    return movable(steps, [f"{100 * hit:.0f}" for hit in SLIDER_HITS], "cache hit rate", start=SLIDER_HITS.index(0.96), suffix=" %")


def times(runs: Mapping[float, Mapping[str, Outcome]], start: float) -> go.Figure:
    """Share of requests against time to first token (above) and against their longest gap (below), with a slider over the load.

    A way that is missing at a load was overloaded there; its lines are empty and the text says so.
    """
    share = np.linspace(0.01, 0.99, 50)
    widest = [max(float(np.quantile(getattr(one, name), 0.99)) for run in runs.values() for one in run.values()) * MS
              for name in ("ttft", "worst_gap")]
    steps, ways = [], list(dict.fromkeys(name for run in runs.values() for name in run))
    for load, run in runs.items():
        traces, rows = [], []
        for order, name in enumerate(ways):
            seen = run.get(name)
            first, gap = (MS * np.quantile(part, share) for part in (seen.ttft, seen.worst_gap)) if seen else ([], [])
            look = dict(line=dict(color=colour(SERIES[order]), width=2.5, dash=DASHES[order]), mode="lines", name=name)
            traces.append(go.Scatter(x=first, y=100 * share, legendgroup=name, **look))
            traces.append(go.Scatter(x=gap, y=100 * share, xaxis="x2", yaxis="y2", legendgroup=name, showlegend=False, **look))
            if seen is None:
                continue
            rows.append((name, *(MS * np.quantile(seen.ttft, (0.5, 0.99))), MS * np.median(seen.token_gap),
                         *(MS * np.quantile(seen.worst_gap, (0.5, 0.99)))))
        figure = go.Figure(traces, dict(
            yaxis=dict(domain=[0.58, 1], range=[0, 100]), xaxis=dict(anchor="y", range=[0, 1.05 * widest[0]]),
            yaxis2=dict(domain=[0, 0.42], range=[0, 100], anchor="x2", title=dict(text="requests (%)")),
            xaxis2=dict(anchor="y2", range=[0, 1.05 * widest[1]], title=dict(text="longest gap between two tokens (ms)"))))
        columns = ["way", "TTFT, median (ms)", "TTFT, 99 % (ms)", "time per token, median (ms)", "longest gap, median (ms)",
                   "longest gap, 99 % (ms)"]
        table = pd.DataFrame(rows, columns=columns).set_index("way")
        gaps = table["longest gap, 99 % (ms)"]
        alt = (f"At {percent(load, 0)} load 99 % of the requests see no gap above {digits(gaps['apart'], 2)} ms where prefill and decode "
               f"are apart and none above {digits(gaps['together'], 2)} ms where they share cards.")
        alt += "".join(f" The way “{name}” is left out: it would be overloaded." for name in ways if name not in run)
        steps.append(finish(figure, name="queues-times", alt=alt, table=table.reset_index(), x="time to first token (ms)",
                            y="requests (%)", height=520, sources=SOURCES))
    return movable(steps, [f"{100 * load:.0f}" for load in runs], "load of the busier pool", start=list(runs).index(start), suffix=" %")


def waiting(service: float, simulated: Sequence[tuple[float, float, float]] = ()) -> go.Figure:
    """Mean wait in line against the load, by closed form, for fixed and for exponential work.

    Args:
        service: mean work of a request, s.
        simulated: (load, mean wait, standard error) of simulated lines with fixed work.
    """
    load = np.linspace(0.02, 0.95, 60)
    fixed, spread = (queueing.mean_wait(load / service, service, variation) for variation in (0.0, 1.0))
    traces = [line(load, MS * spread, "work varies (M/M/1)", order=1), line(load, MS * fixed, "every request the same (M/D/1)", order=0)]
    if simulated:
        at, mean, error = (np.array(part) for part in zip(*simulated, strict=True))
        green = colour("green")
        traces.append(go.Scatter(x=at, y=MS * mean, name="simulated, 2 standard errors", mode="markers",
                                 marker=dict(symbol="circle-open", size=10, color=green, line=dict(width=2, color=green)),
                                 error_y=dict(type="data", array=2 * MS * error, color=green)))
    figure = go.Figure(traces, dict(yaxis=dict(range=[0, 12 * MS * service])))
    table = pd.DataFrame({"load": load, "M/D/1 (ms)": MS * fixed, "M/M/1 (ms)": MS * spread})
    half, high = (MS * float(np.interp(at, load, fixed)) for at in (0.5, 0.9))
    alt = (f"With {MS * service:.0f} ms of work the mean wait is {half:.0f} ms at half load and {high:.0f} ms at 90 % for equal "
           "requests, twice as long where work varies, and has no end at 1.")
    return finish(figure, name="queues-waiting", alt=alt, table=table, x="load of one prefill GPU", y="mean wait in line (ms)",
                  sources=SOURCES)
