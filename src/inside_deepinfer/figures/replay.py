"""Figures of bounded replay: which rows pass which layers, the error, rings that are too short, and what is saved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.numerics.replay_numbers import BOUNDED, DROPPED, FULL, work_map
from inside_deepinfer.numerics.rings import corrupted_reads
from inside_deepinfer.scenario import Scenario

SOURCES = ("deepinfer-sdist", "v41-config", "inside-deepinfer")
MODES = {"exact": "exact", "mask": "mask", "compact": "compact"}
MARKS = {FULL: ("●", "computed, whole window"), BOUNDED: ("◐", "computed, window cut at the kept suffix"), DROPPED: ("", "left out")}
RINGS = 400  # decode steps that a ring is tried for


def rows_and_layers(count: int = 24, layers: int = 8, keep: int = 8, window: int = 4) -> go.Figure:
    """Three small maps, one per mode: positions against layers."""
    traces, layout, counts = [], {}, {}
    for number, mode in enumerate(MODES):
        axis = "" if number == 0 else str(number + 1)
        done = work_map(count, layers, keep, window, mode)
        counts[mode] = [int((done == kind).sum()) for kind in MARKS]
        traces.append(go.Heatmap(
            x=np.arange(count), y=np.arange(layers), z=done, zmin=0, zmax=2, showscale=False, xgap=1, ygap=1, xaxis=f"x{axis}",
            yaxis=f"y{axis}", text=[[MARKS[kind][0] for kind in row] for row in done.tolist()], texttemplate="%{text}",
            textfont=dict(size=9), customdata=[[MARKS[kind][1] for kind in row] for row in done.tolist()],
            colorscale=[[0, "rgba(128,128,128,0.12)"], [0.5, colour("orange")], [1, colour("blue")]],
            hovertemplate=f"{mode}: position %{{x}}, layer %{{y}}: %{{customdata}}<extra></extra>"))
        low = 0.72 - 0.36 * number
        layout[f"yaxis{axis}"] = dict(domain=[low, low + 0.28], title=dict(text=mode), tickvals=[0, layers - 1], showgrid=False)
        layout[f"xaxis{axis}"] = dict(anchor=f"y{axis}", showgrid=False, showticklabels=number == 2)
    layout["xaxis3"]["title"] = dict(text="position in the prompt")
    table = pd.DataFrame(counts, index=[meaning for _, meaning in MARKS.values()]).T.rename_axis("mode").reset_index()
    alt = (f"A toy of {layers} layers, upper half decoder, {count} positions, the last {keep} kept: exact and mask compute every row in "
           f"every layer; compact leaves {counts['compact'][2]} of {count * layers} out "
           "(full dot: whole window; half dot: window cut at the kept rows; empty: left out).")
    return finish(go.Figure(traces, layout), name="replay-rows", alt=alt, table=table, height=460, sources=SOURCES)


def error_by_depth(curves: dict[int, dict[int, np.ndarray]], keeps: Sequence[float]) -> go.Figure:
    """Error of the last position against kept tokens, with a slider over the depth.

    Args:
        curves: layers -> window -> error at each of ``keeps`` (kept tokens over the window); 0 where nothing differs.
    """
    lowest = min(float(error[error > 0].min()) for part in curves.values() for error in part.values() if (error > 0).any())
    floor = 10.0 ** np.floor(np.log10(lowest) - 0.5)
    steps = []
    for layers, part in curves.items():
        traces, first = [], {}
        for order, (window, error) in enumerate(part.items()):
            traces.append(line(keeps, np.maximum(error, floor), f"window {window}", order=order))
            traces.append(go.Scatter(x=np.asarray(keeps), y=np.maximum(error, floor), mode="markers", showlegend=False,
                                     marker=dict(size=8, color=colour(("blue", "orange", "green")[order]),
                                                 symbol=["circle-open" if value == 0 else "circle" for value in error])))
            first[window] = next((keep for keep, value in zip(keeps, error, strict=True) if value == 0), None)
        figure = go.Figure(traces, dict(yaxis=dict(type="log", range=[np.log10(floor) - 0.2, 0.3], exponentformat="power", dtick=1)))
        table = pd.DataFrame({"kept over window": list(keeps)} | {f"window {window}": error for window, error in part.items()})
        at_one = list(keeps).index(1.0)
        exact = "; ".join(f"window {window}: exact " + (f"from {digits(keep, 2)} windows on" if keep else "nowhere in this range")
                          for window, keep in first.items())
        alt = (f"{layers} layers, half of them decoder: with one window kept the last position is off by "
               f"{max(error[at_one] for error in part.values()):.2g} of its size at most; {exact} (open circles: no bit differs).")
        steps.append(finish(figure, name="replay-error", alt=alt, table=table, x="kept tokens over the window",
                            y="error of the last position (relative)", sources=SOURCES))
    return movable(steps, [str(layers) for layers in curves], "layers", start=len(curves) - 1)


def rings(window: int, drafts: Sequence[int] = (1, 2, 3, 5, 7), start: int = 5) -> go.Figure:
    """Wrong window reads per step against the length of the ring, with a slider over the number of drafts."""
    lengths = np.arange(window, window + max(drafts) + 3)
    steps, most = [], max(drafts)
    for draft in drafts:
        wrong = np.array([corrupted_reads(int(ring), window, draft, RINGS) for ring in lengths]) / RINGS
        total = wrong.sum(axis=1)
        figure = go.Figure(
            [go.Bar(x=lengths, y=total, showlegend=False, text=[f"{value:.0f}" for value in total],
                    textposition="outside", cliponaxis=False, constraintext="none",
                    marker=dict(color=[colour("blue" if value == 0 else "red") for value in total]),
                    hovertemplate="ring of %{x}: %{y:.1f} wrong reads a step<extra></extra>")],
            dict(yaxis=dict(range=[0, 1.15 * most * (most + 1) / 2]), xaxis=dict(tickvals=lengths)))
        table = pd.DataFrame({"ring (tokens)": lengths, "wrong reads per step": total})
        clean = int(lengths[total == 0][0])
        alt = (f"Window {window}, {draft} draft{'s' if draft > 1 else ''}: a ring of {clean - 1} gives wrong reads, {clean} is the "
               f"shortest clean one.")
        steps.append(finish(figure, name="replay-rings", alt=alt, table=table, x="length of the ring (tokens)",
                            y="wrong reads per step", height=340, sources=SOURCES))
    return movable(steps, [str(draft) for draft in drafts], "drafts per step", start=list(drafts).index(start))


def saving(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Prefill work with bounded replay over without, against newly computed tokens: from nothing, and at the scenario's prompt."""
    new = np.unique(np.round(np.geomspace(140, 131_072, 50)))
    length = max(float(scenario.input_tokens), 256.0)
    warm = new[new < length]
    names = ["prefill_flops_ratio_replay", "prefill_ratio_exact_least", "prefill_ratio_exact"]
    cold = catalogue.value(names[0], scenario, preset, input_tokens=new, hit_rate=0.0)
    hot = [quantity.value for quantity in catalogue.evaluate(names, scenario, preset, hit_rate=1 - warm / length).values()]
    here = catalogue.evaluate([*names, "computed_prompt_tokens"], scenario, preset)
    ratio, least, exact, tokens = (float(quantity.value) for quantity in here.values())
    labels = [f"bounded, end of {digits(length)} tokens", "exact decoder half, rows dropped on the way", "exact decoder half, all its rows"]
    figure = go.Figure(
        [line(new, cold, "bounded, prompt from nothing", order=0),
         *(line(warm, values, label, order=order) for order, (label, values) in enumerate(zip(labels, hot, strict=True), 1)),
         points([tokens], [ratio], "this scenario", kind="choice")],
        dict(xaxis=dict(type="log", tickvals=[140, 1000, 10_000, 100_000]), yaxis=dict(range=[0.4, 1.05])))
    # one length has fewer points than the other, so the lines stand below each other
    table = pd.concat([pd.DataFrame({"line": label, "new tokens": at, "work over that of all layers": values}) for label, at, values in (
        ("bounded, prompt from nothing", new, cold), *zip(labels, [warm] * len(hot), hot, strict=True))])
    alt = (f"For {digits(tokens)} new tokens of {digits(length)} bounded replay needs {ratio:.3f} of the work of all layers, an exact "
           f"decoder half {least:.3f} if its layers drop what is not read again, and {exact:.3f} if not; with few new tokens bounded "
           "replay saves nothing.")
    return finish(figure, name="replay-saving", alt=alt, table=table, x="newly computed tokens", y="work over that of all layers",
                  sources=SOURCES)
