"""One look for every figure, light and dark: colours that colour-blind readers can tell apart, shapes for kinds.

The palette is Okabe and Ito's (2008), darkened or lightened until each colour has contrast 3:1 on its page.
A figure stores role names, not colours: the page (book script, dashboard) applies the palette of its theme.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK JP', sans-serif"

# role -> (light page, dark page); series are told apart by dash and marker as well
PALETTE: dict[str, tuple[str, str]] = {
    "ink": ("#1f2933", "#e6e9ee"),
    "muted": ("#5b6673", "#a3adb8"),
    "grid": ("#d9dee4", "#3a424d"),
    "blue": ("#0067a8", "#56b4e9"),
    "orange": ("#b35900", "#f0a33a"),
    "green": ("#00735a", "#2cc79b"),
    "purple": ("#9b3d75", "#d98cbb"),
    "red": ("#b8381d", "#ff8a6b"),
    "yellow": ("#7d6a00", "#e8d94a"),
}
SERIES = ("blue", "orange", "green", "purple", "red", "yellow")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

# kinds of value look different by shape as well as colour, in every figure
KIND_MARK: dict[str, tuple[str, str]] = {
    "reported": ("square", "blue"),
    "measured": ("diamond", "green"),
    "experiment": ("diamond", "green"),
    "config": ("pentagon", "green"),
    "design": ("pentagon", "green"),
    "derived": ("circle", "orange"),
    "estimate": ("circle-open", "orange"),
    "assumption": ("triangle-up-open", "purple"),
    "choice": ("star", "red"),
}
VERDICT_MARK: dict[str, tuple[str, str]] = {
    "reproduced": ("circle", "green"),
    "consistent": ("circle-open", "green"),
    "conflict": ("x", "red"),
    "identity": ("square-open", "muted"),
    "unverifiable": ("line-ew-open", "muted"),
}


def colour(role: str, dark: bool = False) -> str:
    """The colour of a role on a light or dark page."""
    return PALETTE[role][dark]


def template(dark: bool = False) -> go.layout.Template:
    """The plotly template of one theme; the background is the page's own."""
    ink, muted, grid = (colour(role, dark) for role in ("ink", "muted", "grid"))
    axis = dict(gridcolor=grid, linecolor=muted, tickcolor=muted, zerolinecolor=grid, automargin=True, showline=True,
                ticks="outside", title=dict(standoff=8, font=dict(size=13)), tickfont=dict(size=12))
    return go.layout.Template(layout=dict(
        font=dict(family=FONT, size=13, color=ink), colorway=[colour(role, dark) for role in SERIES],
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", xaxis=axis, yaxis=axis,
        legend=dict(orientation="h", yanchor="bottom", y=1.02, x=0, font=dict(size=12)),
        margin=dict(l=56, r=16, t=40, b=48), hoverlabel=dict(font=dict(family=FONT)),
        colorscale=dict(sequential="Viridis"),
    ))


def recolour(figure: dict[str, Any], dark: bool) -> dict[str, Any]:
    """A figure dict with every role colour of one theme replaced by the other theme's."""
    swap = {pair[not dark].lower(): pair[dark] for pair in PALETTE.values()}

    def walk(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: walk(item) for key, item in part.items()}
        if isinstance(part, list):
            return [walk(item) for item in part]
        return swap.get(part.lower(), part) if isinstance(part, str) and part.startswith("#") else part

    return walk(figure)
