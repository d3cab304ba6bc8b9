"""Figures of the decode frontier: the curve with its band and its limits, other layouts, a step's time, and who else measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import NotPossible, digits, load_facts, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving import third_party
from inside_deepinfer.serving.cards import get_card
from inside_deepinfer.serving.step_budget import PARTS
from inside_deepinfer.studies import decode_curves
from inside_deepinfer.studies.decode_curves import Frontier

MS = 1e-3
SPEED = "speed per user (tokens per second)"
PER_DECODE = "output per decode GPU (tokens per second)"
PER_CLUSTER = "output per GPU of the cluster (tokens per second)"
SOURCES = ("article-000", "article-004", "v41-config", "deepinfer-sdist", "inside-deepinfer")
OTHERS = ("inferencex-3176", "dynamo-recipe", "h100-report", "peer-runs")
LARGE_CARD = "gb300"


def operating_curve(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Throughput per decode GPU against speed per user: the curve, its band, the published points and the scenario's own."""
    curve = decode_curves.frontier(scenario, preset)
    facts = load_facts()
    there = facts.number("decode.benchmark"), facts.number("decode.throughput")
    speeds = there[0] / facts.number("decode.sequences"), facts.number("decode.user_speed")
    traces, said, lows, highs = [], "", np.full(curve.batch.size, np.nan), np.full(curve.batch.size, np.nan)
    try:
        band = decode_curves.band(scenario, preset, curve.batch)
        lows, highs = curve.batch * band.slow, curve.batch * band.fast
        traces.append(_between(band.fast, highs, band.slow, lows, "other plausible inputs, same point"))
    except NotPossible as reason:
        said = f" No band: {reason}."
    traces += [
        go.Scatter(x=curve.user_speed, y=curve.per_decode_gpu, name="model", mode="lines", hovertext=_budgets(scenario, curve),
                   hovertemplate="%{hovertext}<extra></extra>", line=dict(color=colour("blue"), width=2.5)),
        points([speeds[0]], [there[0]], "benchmark at the supposed 60 (fitted)", "reported"),
        _open_square(speeds[1], there[1], "as reported"), _end(curve)]
    here = None
    if scenario.batch <= curve.batch.max():
        place = int(np.searchsorted(curve.batch, scenario.batch))
        here = curve.user_speed[place], curve.per_decode_gpu[place]
        traces.append(points([here[0]], [here[1]], "this scenario", "choice"))
    apart = [row for row in third_party.dynamo() if not row.shared]
    traces.append(points([row.user_speed for row in apart], [row.per_decode_gpu for row in apart], "Dynamo, TP4, per decode GPU",
                         "measured", text=[row.at for row in apart], hovertemplate="%{text}<extra></extra>"))
    figure = go.Figure(traces, dict(xaxis=dict(rangemode="tozero"), yaxis=dict(rangemode="tozero")))
    table = pd.DataFrame({"sequences per GPU": curve.batch, SPEED: curve.user_speed, PER_DECODE: curve.per_decode_gpu,
                          "per GPU of the cluster (token/s)": curve.per_cluster_gpu, "step time (ms)": curve.step_time / MS,
                          "time between tokens (ms)": curve.latency / MS, "band low (token/s)": lows, "band high (token/s)": highs})
    place = f"At {scenario.batch:,} sequences per GPU the model gives {digits(here[1])} tokens per second and decode GPU and " \
            f"{digits(here[0], 3)} per user" if here else f"{scenario.batch:,} sequences per GPU do not fit"
    few = max(scenario.batch // 4, 1)
    ends = [digits(float(np.interp(few, curve.batch, side)), 3) for side in (lows, highs)] if np.isfinite(lows).all() else []
    width = f" Other plausible inputs through the same point give {ends[0]} to {ends[1]} at {few}." if ends else ""
    alt = (f"{place}; the benchmark is {digits(there[0])}, at {digits(speeds[0], 3)} with the sequences that are supposed; "
           f"reported are {digits(there[1])} at {digits(speeds[1], 3)}. The model gives no user more "
           f"than {digits(curve.user_speed.max(), 3)}, and no more than {curve.batch.max():,.0f} sequences are served.{width}"
           f"{' ' + curve.notice + '.' if curve.notice else ''}{said}")
    return finish(figure, name="decode-frontier", alt=alt, table=table, x=SPEED, y=PER_DECODE, height=460,
                  sources=(*SOURCES, "dynamo-recipe"))


def _open_square(x: float, y: float, name: str) -> go.Scatter:
    return go.Scatter(x=[x], y=[y], name=name, mode="markers",
                      marker=dict(symbol="square-open", size=11, color=colour("blue"), line=dict(width=2)))


def _between(x1: Any, y1: Any, x2: Any, y2: Any, name: str) -> go.Scatter:
    """The area between two curves."""
    return go.Scatter(x=np.r_[x1, x2[::-1]], y=np.r_[y1, y2[::-1]], name=name, mode="lines", fill="toself", opacity=0.3,
                      line=dict(width=0.5, color=colour("muted")), hoverinfo="skip")


def _end(curve: Frontier) -> go.Scatter:
    """Where the curve stops, and why."""
    reason = next(region.reason for region in curve.regions if region.kind == "memory")
    return go.Scatter(x=[curve.user_speed[-1]], y=[curve.per_decode_gpu[-1]], name="no more sequences fit", mode="markers",
                      hovertext=[reason], hovertemplate="%{hovertext}<extra></extra>",
                      marker=dict(symbol="x-thin-open", size=12, color=colour("muted"), line=dict(width=3)))


def _budgets(scenario: Scenario, curve: Frontier) -> list[str]:
    """The time budget of each point, as hover text."""
    rest = float(scenario.uncounted_time) / MS
    text = []
    columns = [(curve.parts[name] / MS).tolist() for name in PARTS]
    for number, (batch, speed, each, step) in enumerate(zip(curve.batch.tolist(), curve.user_speed.tolist(),
                                                            curve.per_decode_gpu.tolist(), curve.step_time.tolist(), strict=True)):
        lines = "".join(f"<br>{label}: {column[number]:.2f} ms" for (label, _), column in zip(PARTS.values(), columns, strict=True))
        text.append(f"{batch:,.0f} sequences: {each:,.0f} token/s per GPU, {speed:.0f} per user<br>step {step / MS:.2f} ms, parts "
                    f"partly at once{lines}<br>not counted: {rest:.2f} ms")
    return text


def variants(scenario: Scenario, preset: str = "published") -> go.Figure:
    """The same frontier with another group size, context or card, and without speculation."""
    other_ep = 128 if scenario.ep != 128 else 64
    most = load_shape(scenario.model).body.max_context
    cases: list[tuple[str, bool, Mapping[str, Any]]] = [
        (f"EP{scenario.ep}, as the scenario", True, {}),
        (f"EP{other_ep}", True, {"ep": other_ep}),
        ("without speculation", False, {}),
        (f"context of {most:,} tokens", True, {"context": float(most)}),
        (f"that context on {get_card(LARGE_CARD).name}", True, {"context": float(most), "card": LARGE_CARD})]
    traces, rows, said = [], [], []
    for order, (name, speculation, changes) in enumerate(cases):
        try:
            curve = decode_curves.frontier(scenario, preset, None, speculation, changes)
        except NotPossible as reason:
            said.append(f"{name}: {reason}")
            continue
        traces.append(line(curve.user_speed, curve.per_decode_gpu, name, order,
                           customdata=curve.batch, hovertemplate=name + ": %{y:,.0f} per GPU, %{x:.0f} per user, "
                           "%{customdata:,.0f} sequences<extra></extra>"))
        rows += [(name, n, x, y) for n, x, y in zip(curve.batch[::4].tolist(), curve.user_speed[::4].tolist(),
                                                    curve.per_decode_gpu[::4].tolist(), strict=True)]
        at = curve.at_speed(load_facts().number("decode.user_speed"))
        said.append(f"{name} {digits(at, 3) if at else 'none'}")
    if not traces:
        raise NotPossible("; ".join(said))
    table = pd.DataFrame(rows, columns=["case", "sequences per GPU", SPEED, PER_DECODE])
    alt = (f"Tokens per second and decode GPU at {load_facts().number('decode.user_speed'):.0f} per user: {'; '.join(said)}.")
    figure = go.Figure(traces, dict(xaxis=dict(rangemode="tozero"), yaxis=dict(rangemode="tozero")))
    return finish(figure, name="decode-variants", alt=alt, table=table, x=SPEED, y=PER_DECODE, height=440, sources=SOURCES)


def time_budget(scenario: Scenario, preset: str = "published") -> go.Figure:
    """A step taken apart: counted parts, what overlaps, what is not counted, and the whole."""
    names = (*PARTS, "counted_step_time", "uncounted_time", "decode_step_time")
    now = {name: float(quantity.value) / MS for name, quantity in catalogue.evaluate(names, scenario, preset).items()}
    sizes = [now[name] for name in PARTS]
    hidden = now["counted_step_time"] - sum(sizes)
    labels = [*(label for label, _ in PARTS.values()), "at the same time", "counted", "not counted", "step"]
    bars = [*sizes, hidden, now["counted_step_time"], now["uncounted_time"], now["decode_step_time"]]
    starts = [*np.cumsum([0.0, *sizes]).tolist(), 0.0, now["counted_step_time"], 0.0]
    whole = ("counted", "step")
    figure = go.Figure(
        [go.Bar(y=labels, x=bars, base=starts, orientation="h", text=[f"{bar:+.2f}" if bar < 0 else f"{bar:.2f}" for bar in bars],
                textposition="outside", cliponaxis=False, showlegend=False, constraintext="none",
                marker=dict(color=[colour("ink" if label in whole else "purple" if label == "not counted" else
                                          "orange" if bar < 0 else "blue") for label, bar in zip(labels, bars, strict=True)],
                            pattern=dict(shape=["/" if bar < 0 else "x" if label == "not counted" else "" for label, bar in
                                                zip(labels, bars, strict=True)])),
                hovertemplate="%{y}: %{text} ms<extra></extra>")],
        dict(yaxis=dict(autorange="reversed"), bargap=0.25, xaxis=dict(range=[0, 1.15 * max(sum(sizes), now["decode_step_time"])])))
    table = pd.DataFrame({"part": labels, "time (ms)": bars})
    alt = (f"A step at {scenario.batch:,} sequences per GPU takes {digits(now['decode_step_time'], 3)} ms: parts of "
           f"{digits(sum(sizes), 3)} ms, of which {digits(-hidden, 3)} ms run at the same time as others, and "
           f"{digits(now['uncounted_time'], 3)} ms that are not counted.")
    return finish(figure, name="decode-time-budget", alt=alt, table=table, x="time per step (ms)", height=400, sources=SOURCES)


def others(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Third parties on the axis they publish on: output per GPU of the whole cluster, each with the model's prediction."""
    curve = decode_curves.frontier(scenario, preset)
    measured = [*third_party.inferencex(), *third_party.dynamo(), *third_party.h100_points()]
    traces = [line(curve.user_speed, curve.per_cluster_gpu, f"model, DeepInfer EP{scenario.ep}", 0)]
    ties = [(value for row in measured for value in (row.user_speed, row.predicted, None)),
            (value for row in measured for value in (row.per_cluster_gpu, row.predicted_per_cluster_gpu, None))]
    traces.append(go.Scatter(x=list(ties[0]), y=list(ties[1]), mode="lines", name="from measured to predicted", hoverinfo="skip",
                             line=dict(color=colour("muted"), width=1, dash="dot")))
    for name, group, symbol in (("InferenceX, GB300 TP4", third_party.inferencex(), "diamond"),
                                ("Dynamo, B200 and GB200 TP4", third_party.dynamo(), "diamond-tall"),
                                ("H100 TP8, one request", third_party.h100_points(), "diamond-wide")):
        traces.append(go.Scatter(
            x=[row.user_speed for row in group], y=[row.per_cluster_gpu for row in group], name=name, mode="markers",
            text=[f"{row.at}: measured {row.user_speed:.0f} per user, predicted {row.predicted:.0f} ({row.error:+.0%})"
                  for row in group],
            hovertemplate="%{text}<extra></extra>", marker=dict(symbol=symbol, size=11, color=colour("green"))))
    traces.append(points([row.predicted for row in measured], [row.predicted_per_cluster_gpu for row in measured],
                         "model for their hardware", "estimate", hoverinfo="skip"))
    peer = load_facts().points("aiconfigurator-v4-flash")
    peer = peer[peer["drafts"] > 0]
    traces.append(line(peer["tok_s_user"], peer["tok_s_cluster_gpu"], "aiconfigurator, V4-Flash (another model)", 3))
    figure = go.Figure(traces, dict(yaxis=dict(type="log", dtick=1), xaxis=dict(rangemode="tozero")))
    table = pd.DataFrame({"point": [row.at for row in measured], "card": [get_card(row.card).name for row in measured],
                          "layout": [row.layout for row in measured], "decoding at once per worker": [row.sequences for row in measured],
                          "measured speed per user (token/s)": [row.user_speed for row in measured],
                          "predicted (token/s)": [row.predicted for row in measured], "error": [row.error for row in measured],
                          "output per cluster GPU (token/s)": [row.per_cluster_gpu for row in measured],
                          "output per decode GPU (token/s)": [row.per_decode_gpu for row in measured]})
    close = sum(abs(row.error) <= third_party.LARGE_MISS for row in measured)
    alt = (f"Of {len(measured)} third-party points the model predicts {close} within {percent(third_party.LARGE_MISS, 0)}, all with "
           f"few sequences at a time; the worst is {digits(1 + max(row.error for row in measured), 2)} times too fast, where prefill "
           "shares the cards.")
    return finish(figure, name="decode-others", alt=alt, table=table, x=SPEED, y=PER_CLUSTER, height=500, sources=(*SOURCES, *OTHERS))
