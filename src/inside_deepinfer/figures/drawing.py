"""``go`` for figure modules: plotly's classes, or plain dictionaries where a server draws for many visitors.

plotly checks every property of every trace, which costs 10 to 30 ms a figure (measured 2026-11-29, two cores); the same figure
as dictionaries costs about 1 ms. Book and tests use plotly's classes, so that a wrong property fails there; the dashboard draws
inside :func:`light`. A test compares the two for every figure of every page.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import plotly.colors
import plotly.graph_objects

_LIGHT: ContextVar[bool] = ContextVar("light_figures", default=False)

# property names of plotly that contain an underscore themselves; every other underscore separates levels
_WHOLE = frozenset(("paper_bgcolor", "plot_bgcolor", "error_x", "error_y", "copy_ystyle", "source_src"))
_AS_GIVEN = frozenset(("meta",))  # not plotly properties inside
_SHORT_ARRAY = 12  # below this a list is smaller on the wire than a typed array


@contextmanager
def light() -> Iterator[None]:
    """Within it ``go.Figure`` and the traces are plain dictionaries."""
    token = _LIGHT.set(True)
    try:
        yield
    finally:
        _LIGHT.reset(token)


class _Graph:
    """Stands for ``plotly.graph_objects``; figure modules import it as ``go``."""

    def __getattr__(self, name: str) -> Any:
        if not _LIGHT.get():
            return getattr(plotly.graph_objects, name)
        return LightFigure if name == "Figure" else _trace(name)


def _trace(name: str) -> Callable[..., Node]:
    def make(arg: Mapping[str, Any] | None = None, **properties: Any) -> Node:
        scale = properties.get("colorscale")
        if isinstance(scale, str):  # plotly.py writes the colours of a named scale out
            properties["colorscale"] = plotly.colors.get_colorscale(scale)
        return merge(Node(type=name.lower()), dict(arg or {}, **properties))

    return make


go = _Graph()


class Node(dict):  # type: ignore[type-arg]
    """A dictionary whose entries are attributes too: ``layout.xaxis.title.text = "x"``."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.setdefault(name, Node())

    def __setattr__(self, name: str, value: Any) -> None:
        merge(self, {name: value})


class LightFigure:
    """The few methods of ``go.Figure`` that our figures use, on dictionaries."""

    def __init__(self, data: Any = None, layout: Mapping[str, Any] | None = None):
        self.data: list[dict[str, Any]] = [] if data is None else [data] if isinstance(data, dict) else list(data)
        self.layout: Node = merge(Node(), layout or {})

    def add_trace(self, trace: dict[str, Any]) -> LightFigure:
        self.data.append(trace)
        return self

    def add_traces(self, traces: list[dict[str, Any]]) -> LightFigure:
        self.data.extend(traces)
        return self

    def add_annotation(self, **properties: Any) -> LightFigure:
        self.layout["annotations"] = [*self.layout.get("annotations", ()), merge(Node(), properties)]
        return self

    def add_shape(self, **properties: Any) -> LightFigure:
        self.layout["shapes"] = [*self.layout.get("shapes", ()), merge(Node(), properties)]
        return self

    def update_layout(self, arg: Mapping[str, Any] | None = None, **properties: Any) -> LightFigure:
        merge(self.layout, dict(arg or {}, **properties))
        return self

    def update_xaxes(self, **properties: Any) -> LightFigure:
        return self._axes("xaxis", properties)

    def update_yaxes(self, **properties: Any) -> LightFigure:
        return self._axes("yaxis", properties)

    def _axes(self, kind: str, properties: dict[str, Any]) -> LightFigure:
        for name in {kind, *(key for key in self.layout if re.fullmatch(kind + r"\d+", key))}:
            merge(self.layout.setdefault(name, Node()), properties)
        return self

    def to_plotly_json(self) -> dict[str, Any]:
        return {"data": wire(self.data), "layout": wire({k: v for k, v in self.layout.items() if k != "template"})}


def merge(target: Node, properties: Mapping[str, Any]) -> Node:
    """Write properties into ``target``; ``line_width`` and ``line=dict(width=...)`` mean the same; None removes nothing."""
    for key, value in properties.items():
        if value is None:
            continue
        head, _, rest = key.partition("_")
        if rest and key not in _WHOLE:
            merge(target.setdefault(head, Node()), {rest: value})
        elif isinstance(value, Mapping) and key not in _AS_GIVEN:
            merge(target.setdefault(key, Node()), value)
        else:
            target[key] = value
    return target


def wire(part: Any) -> Any:
    """The JSON form that plotly.js reads: long arrays as base64, short ones and text as lists, gaps as null."""
    if isinstance(part, dict):
        return {key: wire(value) for key, value in part.items() if not (isinstance(value, Node) and not value)}
    if isinstance(part, np.ndarray):
        if part.dtype.kind not in "fiu" or part.size < _SHORT_ARRAY:
            return wire(part.tolist())
        array = np.ascontiguousarray(part, dtype="f8")
        spec = {"dtype": "f8", "bdata": base64.b64encode(array.tobytes()).decode("ascii")}
        return spec if array.ndim == 1 else spec | {"shape": ", ".join(map(str, array.shape))}
    if isinstance(part, (list, tuple)):
        return [wire(item) for item in part]
    if isinstance(part, np.generic):
        part = part.item()
    return None if isinstance(part, float) and part != part else part


def draw(function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """The figure of ``function`` as a plain dict without template, drawn the cheap way where the figure allows it."""
    try:
        with light():
            figure = function(*arguments)
            if isinstance(figure, LightFigure):
                return figure.to_plotly_json()
    except (AttributeError, TypeError):  # a part of plotly that LightFigure lacks
        figure = function(*arguments)
    plain = figure.to_plotly_json()
    plain["layout"].pop("template", None)
    return plain
