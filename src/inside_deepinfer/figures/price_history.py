"""DeepSeek's list prices from V3 to V4.1, one figure per currency."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from inside_deepinfer.facts import InputError, load_facts
from inside_deepinfer.facts.records import Price
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish
from inside_deepinfer.figures.theme import DASHES, colour

# the model behind the API's default name at each time; R1 and V4-Pro are another product and stay in the table
DEFAULT_LINE = ("V3", "V3.1", "V3.2", "V4-Flash (preview)", "V4-Flash-0731", "V4.1-Flash")
PARTS = (("output", "output", "green", "diamond"), ("cache_miss", "uncached input", "orange", "circle"),
         ("cache_hit", "cached input", "blue", "square"))
NEWEST = "price-deepseek-usd"  # the source whose date is the day on which the newest list was read


def default_list(currency: str) -> list[Price]:
    """Rows of the default model in one currency, outside peak hours, oldest first.

    A night discount beside an all-day price is not the list price; off-peak rows count once the list knows a peak price.
    """
    rows = [row for row in load_facts().prices.values() if row.currency == currency and row.model in DEFAULT_LINE]
    if not rows:
        raise InputError("currency", currency, "CNY or USD")
    with_peak = {row.model for row in rows if row.window == "peak"}
    kept = [row for row in rows if row.window == "all" or (row.window == "off-peak" and row.model in with_peak)]
    return sorted(kept, key=lambda row: row.effective)


def steps(currency: str) -> list[tuple[str, Price | None]]:
    """Days on which the list in force changed, with its row; None where a new list is known in another currency only."""
    known = [(row.effective, row) for row in default_list(currency)]
    models = {row.model for _, row in known}
    other = [row for name in ("USD", "CNY") if name != currency for row in default_list(name)]
    gaps = [(row.effective, None) for row in other if row.model not in models and row.effective > known[0][0]]
    return sorted([*known, *gaps], key=lambda step: step[0]) + [(load_facts().sources[NEWEST].date, known[-1][1])]


def deepseek(currency: str) -> go.Figure:
    """List price of hit, miss and output over time, on a log axis; a step lasts until the next list, a gap is not known."""
    rows, changes = default_list(currency), steps(currency)
    data = []
    for order, (field, label, role, symbol) in enumerate(PARTS):
        data.append(go.Scatter(
            x=[day for day, _ in changes], y=[row and getattr(row, field) for _, row in changes], name=label,
            mode="lines+markers", connectgaps=False, line=dict(shape="hv", color=colour(role), width=2.5, dash=DASHES[order]),
            marker=dict(symbol=symbol, size=[9] * (len(changes) - 1) + [0], color=colour(role)),
            text=[row.model if row else "" for _, row in changes],
            hovertemplate="%{text}, from %{x}: %{y} " + currency + "<extra>" + label + "</extra>"))
    figure = go.Figure(data, dict(xaxis=dict(type="date"), yaxis=dict(type="log", dtick=1, tickformat="~g")))
    first, last = rows[0], rows[-1]
    alt = (f"List prices in {currency} per million tokens, log scale, from {first.model} ({first.effective}) to {last.model}: "
           f"cached input {first.cache_hit:g} to {last.cache_hit:g}, uncached input {first.cache_miss:g} to {last.cache_miss:g}, "
           f"output {first.output:g} to {last.output:g}. The price of a cached token falls furthest.")
    alt += "" if all(row for _, row in changes) else " A gap means that we found no list in this currency."
    return finish(figure, name=f"price-history-{currency.lower()}", alt=alt, table=_table(rows, currency),
                  y=f"list price ({currency}/Mtoken)", height=400, sources=tuple(dict.fromkeys(row.source for row in rows)))


def _table(rows: Sequence[Price], currency: str) -> pd.DataFrame:
    return pd.DataFrame([{
        "from": row.effective, "model": row.model, "window": row.window, f"cached ({currency}/Mtoken)": row.cache_hit,
        f"uncached ({currency}/Mtoken)": row.cache_miss, f"output ({currency}/Mtoken)": row.output,
        "uncached over cached": row.cache_miss / row.cache_hit if row.cache_hit and row.cache_miss else None,
    } for row in rows])
