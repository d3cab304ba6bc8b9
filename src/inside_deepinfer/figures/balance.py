"""Figures of expert balance: experts on GPUs as a heat map, the ratio over a replay, held-out ratios, chance, and the cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from plotly.colors import get_colorscale

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, load_facts, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.studies import routing

SOURCES = ("esft", "deepinfer-sdist", "article-001", "inside-deepinfer")
MANY_GPUS = 16  # beyond this the cells are too small for text
FIELD = "texts"
GROUPS = (8, 16, 32)
RESULTS = {"balance_before": ("initial layout", "x-thin", "muted"),
           "balance_other_task": ("balanced for another task", "triangle-up", "red"),
           "balance_held_out": ("later steps of the same task", "circle", "blue"),
           "balance_in_sample": ("the steps it was fitted on", "circle-open", "green"),
           "replay_chance": ("chance alone", "line-ns", "ink")}


def heat_map(scenario: Scenario, preset: str = "published", fields: Mapping[str, str] | None = None) -> go.Figure:
    """Tokens of each slot at the scenario's step: the initial layout above, the balancer's below."""
    return heat_at(scenario, int(scenario.balance_step), _texts(fields))


def heat_at(scenario: Scenario, step: int, name: str, top: float | None = None) -> go.Figure:
    """The heat map of one step; ``top`` fixes the colour scale where the figure moves."""
    run = routing.run(name, scenario)
    gpus = run.placements[0][1].gpus
    panels = [routing.slots(run.loads[step], placement) for placement in (run.placements[0][1], run.serving(step))]
    mean = run.loads[step][routing.SHOWN_LAYER].sum() / gpus
    top = top or max(float(loads.max()) for loads, _, _ in panels)
    totals = [loads.sum(axis=0) / mean for loads, _, _ in panels]
    traces = []
    for number, ((loads, experts, copies), total) in enumerate(zip(panels, totals, strict=True)):
        axis = "" if number == 0 else "2"
        marks = np.where(copies > 1, np.char.add("×", copies.astype(str)), "")
        traces.append(go.Heatmap(
            x=np.arange(gpus), y=np.arange(1, len(loads) + 1), z=np.round(loads, 1), zmin=0, zmax=top, xaxis=f"x{axis}",
            yaxis=f"y{axis}", coloraxis="coloraxis", text=marks.tolist() if gpus <= MANY_GPUS else None, texttemplate="%{text}",
            customdata=experts, xgap=1, ygap=1,
            hovertemplate="GPU %{x}, expert %{customdata}: %{z} tokens %{text}<extra></extra>"))
        traces.append(go.Scatter(
            x=np.arange(gpus), y=np.full(gpus, 0.0), xaxis=f"x{axis}", yaxis=f"y{axis}", mode="text", showlegend=False,
            text=[f"{share:.1f}" if gpus <= MANY_GPUS else "▼" if share == total.max() else "" for share in total],
            textfont=dict(size=11, color=colour("ink")), hovertemplate="GPU %{x}: %{text} of the mean<extra></extra>"))
    most = len(panels[0][0])
    rows = dict(range=[most + 0.5, -0.6], showgrid=False, zeroline=False, tickvals=[1, most], title=dict(text="slots"))
    columns = dict(showgrid=False, zeroline=False, tickvals=np.arange(0, gpus, 1 if gpus <= MANY_GPUS else 8).tolist())
    figure = go.Figure(traces, dict(
        coloraxis=dict(cmin=0, cmax=top, colorscale=get_colorscale("Viridis"),
                       colorbar=dict(title=dict(text="tokens", side="top"), thickness=12, len=0.9)),
        xaxis=dict(anchor="y", **columns), yaxis=dict(domain=[0.56, 1.0], **rows),
        xaxis2=dict(anchor="y2", title=dict(text="GPU (below: balanced)"), **columns), yaxis2=dict(domain=[0.0, 0.44], **rows)))
    table = pd.DataFrame({"GPU": np.arange(gpus), "initial layout, over the mean": totals[0], "balanced, over the mean": totals[1]})
    served = [start for start in run.moves if start <= step]
    state = f"last moved before step {served[-1]}" if served else "not moved yet"
    alt = (f"Step {step} of {name if name != routing.IN_TURN else 'all four tasks in turn'}, one layer: the busiest GPU has "
           f"{totals[0].max():.2f} times the mean in the initial layout and {totals[1].max():.2f} times with the balancer, {state}.")
    return finish(figure, name="balance-heat-map", alt=alt, table=table, x="GPU (above: initial layout)", height=520, sources=SOURCES)


def replay(scenario: Scenario, preset: str = "published", fields: Mapping[str, str] | None = None) -> go.Figure:
    """Slowest over mean of every step, with and without the balancer, and when weights moved."""
    name, step = _texts(fields), int(scenario.balance_step)
    run = routing.run(name, scenario)
    steps = np.arange(len(run.after))
    figure = go.Figure(
        [line(steps, run.before, "initial layout", order=1), line(steps, run.after, "balanced", order=0),
         points([step], [run.after[step]], "step of the heat map", kind="choice")],
        dict(shapes=[dict(type="line", x0=at - 0.5, x1=at - 0.5, y0=0, y1=1, yref="paper", line=dict(color=colour("muted"), dash="dot"))
                     for at in run.moves]))
    table = pd.DataFrame({"step": steps, "initial layout": run.before, "balanced": run.after})
    first = run.moves[0]
    alt = (f"Slowest over mean, five layers together: {run.before.mean():.2f} on average with the initial layout; with the balancer "
           f"{run.after[first:].mean():.2f} after its first move before step {first}. Weights move {len(run.moves)} times "
           "(dotted lines).")
    return finish(figure, name="balance-replay", alt=alt, table=table, x="step (256 tokens each)", y="slowest over mean", sources=SOURCES)


def held_out(scenario: Scenario, preset: str = "published") -> go.Figure:
    """The same placement looked at on the steps it was fitted on, on later steps, and on other tasks, beside chance."""
    groups = np.array(GROUPS)
    found = catalogue.evaluate(list(RESULTS), scenario, preset, balance_gpus=groups)
    names = [f"{gpus} GPUs" for gpus in GROUPS]
    traces = [go.Scatter(x=found[key].value, y=names, name=label, mode="markers",
                         marker=dict(symbol=symbol, size=13, color=colour(role), line=dict(width=2, color=colour(role))),
                         hovertemplate=f"%{{y}}, {label}: %{{x:.3f}}<extra></extra>")
              for key, (label, symbol, role) in RESULTS.items()]
    figure = go.Figure(traces, dict(yaxis=dict(autorange="reversed"), xaxis=dict(rangemode="normal")))
    table = pd.DataFrame({"GPUs": groups} | {label: found[key].value for key, (label, *_) in RESULTS.items()})
    own, other, chance_alone = (found[key].value for key in ("balance_held_out", "balance_other_task", "replay_chance"))
    alt = (f"On later steps of the same task the balanced layout reaches {own[0]:.2f} at 8 GPUs and {own[-1]:.2f} at 32; on other tasks "
           f"it is {other[0]:.2f} and {other[-1]:.2f}, near the initial layout. Chance alone would leave {chance_alone[0]:.2f} and "
           f"{chance_alone[-1]:.2f}.")
    return finish(figure, name="balance-held-out", alt=alt, table=table, x="slowest over mean", height=300, sources=SOURCES)


def chance(scenario: Scenario, preset: str = "published") -> go.Figure:
    """What chance alone leaves uneven, against sequences per GPU, beside the reported ratio."""
    batches = np.unique(np.round(np.geomspace(4, 1024, 60)).astype(int))
    found = catalogue.evaluate(["chance_imbalance", "chance_imbalance_alike"], scenario, preset, batch=batches)
    alone, alike = (quantity.value for quantity in found.values())
    reported, at = load_facts().number("eplb.decode_ratio"), load_facts().number("decode.sequences")
    figure = go.Figure(
        [line(batches, alone, "every row chooses on its own", order=0), line(batches, alike, "rows of a sequence choose alike", order=1),
         points([at], [reported], "reported for decode", kind="reported")],
        dict(xaxis=dict(type="log", range=[np.log10(4), np.log10(1024)], tickvals=[4, 16, 60, 256, 1024]), yaxis=dict(range=[1, 1.8])))
    table = pd.DataFrame({"sequences per GPU": batches, "rows on their own": alone, "rows of a sequence alike": alike})
    low, high = (float(np.interp(at, batches, curve)) for curve in (alone, alike))
    alt = (f"EP{scenario.ep}: with equally popular experts and {digits(at)} sequences per GPU chance alone makes the busiest GPU "
           f"{low:.3f} to {high:.3f} times the mean; {reported:.2f} is reported.")
    return finish(figure, name="balance-chance", alt=alt, table=table, x="sequences per GPU", y="slowest over mean", sources=SOURCES)


def cost(scenario: Scenario, preset: str = "published", fields: Mapping[str, str] | None = None) -> go.Figure:
    """How much longer the counted step becomes, against the ratio, beside a step that would follow it whole."""
    ratio = np.linspace(1.0, 2.0, 41)
    longer = catalogue.value("imbalance_cost", scenario, preset, imbalance=ratio)
    here = float(catalogue.value("imbalance_cost", scenario, preset))
    figure = go.Figure(
        [line(ratio, 100 * longer, "counted step", order=0), line(ratio, 100 * (ratio - 1), "if the whole step followed", order=1),
         points([scenario.imbalance], [100 * here], "this scenario", kind="choice")], dict(xaxis=dict(range=[1, 2])))
    table = pd.DataFrame({"slowest over mean": ratio, "longer step (%)": 100 * longer, "if the whole step followed (%)": 100 * (ratio - 1)})
    alt = (f"A ratio of {scenario.imbalance:.3g} makes the counted step {percent(here)} longer; it would be "
           f"{percent(scenario.imbalance - 1)} if every part of the step followed the busiest GPU.")
    return finish(figure, name="balance-cost", alt=alt, table=table, x="slowest GPU over mean", y="longer step (%)", sources=SOURCES)


def _texts(fields: Mapping[str, str] | None) -> str:
    return (fields or {}).get(FIELD, routing.IN_TURN)

