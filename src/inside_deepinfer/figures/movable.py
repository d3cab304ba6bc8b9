"""A figure the reader can move without a server: one frame per step, all drawn beforehand by the same function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

AT_ONCE = dict(mode="immediate", frame=dict(duration=0, redraw=True), transition=dict(duration=0))


def movable(steps: Sequence[go.Figure], labels: Sequence[str], slider: str, start: int, suffix: str = "") -> go.Figure:
    """Join figures that differ in their numbers only into one with a slider.

    Args:
        steps: one finished figure per step, each with the same traces in the same order.
        labels: what the slider shows at each step.
        slider: name of the slider, lower case.
        start: index of the step that is shown first; its text alternative and table stand for the figure.
        suffix: unit behind the label, e.g. " %".

    Returns:
        The figure at ``start`` with frames that hold only what changes, and the text alternative of each step.
    """
    if len(steps) != len(labels) or not 0 <= start < len(steps):
        raise ValueError(f"{len(steps)} steps, {len(labels)} labels, start {start}")
    plain = [step.to_plotly_json() for step in steps]
    shapes = {tuple(trace["type"] for trace in step["data"]) for step in plain}
    if len(shapes) != 1:
        raise ValueError(f"the steps of a movable figure differ in their traces: {shapes}")
    frames = [dict(name=f"step-{n}", data=_changing(n, plain), traces=list(range(len(step["data"]))), layout=_layout(n, plain))
              for n, step in enumerate(plain)]
    figure = go.Figure(data=plain[start]["data"], layout=plain[start]["layout"])
    figure.frames = [go.Frame(frame) for frame in frames]
    figure.layout.sliders = [dict(
        active=start, currentvalue=dict(prefix=f"{slider}: ", suffix=suffix), pad=dict(t=48),
        steps=[dict(label=label, method="animate", args=[[frame["name"]], AT_ONCE])
               for label, frame in zip(labels, frames, strict=True)])]
    return figure


def _changing(step: int, plain: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Traces of one step, reduced to the properties in which any two steps differ."""
    reduced = []
    for place, trace in enumerate(plain[step]["data"]):
        others = [other["data"][place] for other in plain]
        keys = [key for key in trace if any(not _same(trace[key], other.get(key)) for other in others)]
        reduced.append({"type": trace["type"]} | {key: trace[key] for key in keys})
    return reduced


def _layout(step: int, plain: list[dict[str, Any]]) -> dict[str, Any]:
    """What changes in the layout: annotations, shapes and the text alternative, never the axes."""
    layouts = [other["layout"] for other in plain]
    own = layouts[step]
    changed = {key: own[key] for key in ("annotations", "shapes") if key in own
               and any(not _same(own[key], other.get(key)) for other in layouts)}
    return changed | {"meta": {"alt": own["meta"]["alt"]}}


def _same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)
