"""What every figure of the book carries: a name, a text alternative, a data table, and a light base look."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.io as pio

from inside_deepinfer.figures.drawing import LightFigure, go
from inside_deepinfer.figures.theme import DASHES, KIND_MARK, SERIES, colour, template

MAX_TABLE_ROWS = 60

# every new figure starts with our light look; as plotly's default it is not validated again for each figure,
# which cost 10 of the 13 ms that a figure took (2026-11-29)
pio.templates["inside-deepinfer"] = template()
pio.templates.default = "inside-deepinfer"


def finish(figure: go.Figure, *, name: str, alt: str, table: pd.DataFrame, x: str = "", y: str = "",
           height: int = 380, sources: tuple[str, ...] = ()) -> go.Figure:
    """Give a figure its axis labels, its look and what stands behind it.

    Args:
        figure: traces in the light palette (``theme.colour(role)``); pages recolour them for dark.
        name: stable id, also the name of downloads, e.g. ``fleet-three-routes``.
        alt: the text alternative; states the finding with its numbers, not the kind of chart.
        table: the numbers behind the figure, column names with units.
        x, y: axis labels, lower case, with the unit in parentheses.
        sources: source ids the figure rests on.

    Returns:
        The same figure; ``layout.meta`` holds name, alt, table (columns, rows) and sources.
    """
    if not alt or table.empty:
        raise ValueError(f"figure {name} needs a text alternative and a table")
    layout = figure.layout
    layout.height = height
    later = isinstance(figure, LightFigure)  # then the table waits until somebody asks for it
    layout.meta = dict(name=name, alt=alt, table=table if later else plain_table(table), sources=list(sources))
    if x:
        layout.xaxis.title.text = x
    if y:
        layout.yaxis.title.text = y
    return figure


def plain_table(table: pd.DataFrame) -> dict[str, Any]:
    """The table behind a figure as columns and rows; a long one is thinned out evenly."""
    shown = table if len(table) <= MAX_TABLE_ROWS else table.iloc[np.linspace(0, len(table) - 1, MAX_TABLE_ROWS).astype(int)]
    columns = [shown.iloc[:, number].tolist() for number in range(shown.shape[1])]  # a quarter of the time of itertuples
    rows = [[_cell(cell) for cell in row] for row in zip(*columns, strict=True)]
    return dict(columns=[str(column) for column in table.columns], rows=rows)


def line(x: Any, y: Any, name: str, order: int = 0, **more: Any) -> go.Scatter:
    """A model curve: colour and dash by its order in the figure."""
    role = SERIES[order % len(SERIES)]
    return go.Scatter(x=np.asarray(x), y=np.asarray(y), name=name, mode="lines",
                      line=dict(color=colour(role), width=2.5, dash=DASHES[order % len(DASHES)]), **more)


def points(x: Any, y: Any, name: str, kind: str, **more: Any) -> go.Scatter:
    """Points of one kind of value: shape and colour say which."""
    symbol, role = KIND_MARK[kind]
    return go.Scatter(x=np.atleast_1d(x), y=np.atleast_1d(y), name=name, mode=more.pop("mode", "markers"),
                      marker=dict(symbol=symbol, color=colour(role), size=11, line=dict(width=2, color=colour(role))), **more)


def pattern(role: str, shape: str) -> dict[str, Any]:
    """Fill of a bar: colour and, beside it, a pattern, so that parts differ without colour too."""
    return dict(color=colour(role), pattern=dict(shape=shape, fillmode="overlay", fgcolor="rgba(255,255,255,0.7)", size=7))


def as_dict(figure: go.Figure) -> dict[str, Any]:
    """Figure as a plain dict without template (small on the wire; the page brings the template)."""
    plain = figure.to_plotly_json()
    plain["layout"].pop("template", None)
    return plain


def _cell(cell: Any) -> Any:
    if isinstance(cell, (float, np.floating)):
        return None if np.isnan(cell) else float(f"{cell:.6g}")
    return cell.item() if isinstance(cell, np.generic) else cell
