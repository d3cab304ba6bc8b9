"""Figures of the audit: how many claims in each verdict, and how far computed and printed numbers lie apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from inside_deepinfer.audit import Finding, audit
from inside_deepinfer.facts import CATALOGUE, digits
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, pattern
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.figures.theme import VERDICT_MARK, colour

ARTICLES = ("article-000", "article-001", "article-004")
VOICES = (  # who says it, of which kinds of claim (None: whatever is left), label, colour, pattern
    ("deepseek", "reported", "reported by DeepSeek", "blue", ""), ("deepseek", None, "design, as stated", "green", "."),
    ("author", "estimate", "an author's arithmetic", "orange", "/"), ("author", "experiment", "an author's experiment", "purple", "x"),
    ("author", None, "an author's statement", "yellow", "\\"), ("us", None, "our own sum", "red", "-"))
TOLERANCES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SMALLEST = 1e-4  # closer than this is drawn here: the axis is logarithmic


def verdict_counts(findings: Sequence[Finding] | None = None) -> go.Figure:
    """Claims in each verdict, split by who says them."""
    findings = audit() if findings is None else findings
    names = list(VERDICT_MARK)
    count = Counter((found.verdict, _voice(found)) for found in findings)
    bars = [go.Bar(y=names, x=[count[verdict, label] for verdict in names], name=label, orientation="h",
                   marker=pattern(role, shape), hovertemplate="%{y}, " + label + ": %{x}<extra></extra>")
            for _, _, label, role, shape in VOICES]
    totals = [sum(count[verdict, label] for _, _, label, *_ in VOICES) for verdict in names]
    sums = go.Scatter(y=names, x=totals, mode="text", text=[f" {total}" for total in totals], textposition="middle right",
                      showlegend=False, hoverinfo="skip", cliponaxis=False)
    figure = go.Figure([*bars, sums], dict(barmode="stack", bargap=0.35, legend=dict(traceorder="normal"),
                                           yaxis=dict(autorange="reversed"), xaxis=dict(range=[0, 1.12 * max(totals)])))
    table = pd.DataFrame({"verdict": names} | {label: [count[verdict, label] for verdict in names] for _, _, label, *_ in VOICES}
                         | {"claims": totals})
    parts = ", ".join(f"{total} {name}" for name, total in zip(names, totals, strict=True))
    return finish(figure, name="audit-verdicts", alt=f"Of {len(findings)} claims: {parts}.", table=table, x="claims", height=400,
                  sources=ARTICLES)


def _voice(found: Finding) -> str:
    """Label of the part of the figure that a claim belongs to."""
    claim = found.claim
    return next(label for speaker, kind, label, *_ in VOICES if speaker == claim.speaker and kind in (claim.kind, None))


def gaps(findings: Sequence[Finding] | None = None, start: float = 0.05) -> go.Figure:
    """Relative distance of computed and printed number for every claim that has both, while the reader moves a tolerance."""
    table = gap_table(audit() if findings is None else findings)
    steps = [_gap_step(table, tolerance) for tolerance in TOLERANCES]
    labels = [f"{100 * tolerance:g}" for tolerance in TOLERANCES]
    return movable(steps, labels, "call it equal within", TOLERANCES.index(start), " %")


def gap_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """One row per claim whose number was computed and held against the printed one, nearest first.

    Bounds ("at most") and identities are left out: a distance to them means nothing. So is a check against another computed
    number, since neither side of it is printed.
    """
    rows = []
    for found in findings:
        check = found.claim.check
        if check is None or check.relation != "equals" or check.route == "by_construction" or check.against in CATALOGUE:
            continue
        pairs = [(item.computed, item.target) for item in found.comparisons if item.target]
        if pairs:
            computed, printed = max(pairs, key=lambda pair: abs(pair[0] / pair[1] - 1))
            rows.append((found.id, found.verdict, printed, computed, abs(computed / printed - 1)))
    table = pd.DataFrame(rows, columns=["claim", "verdict", "printed", "computed", "relative distance"])
    return table.sort_values("relative distance", ignore_index=True)


def _gap_step(table: pd.DataFrame, tolerance: float) -> go.Figure:
    distance = np.maximum(table["relative distance"].to_numpy(), SMALLEST)
    rank = np.arange(1, len(table) + 1)
    text = [f"{row.claim}: printed {digits(row.printed)}, computed {digits(row.computed)}" for row in table.itertuples()]
    within = distance <= tolerance
    data = []
    for verdict, (symbol, role) in VERDICT_MARK.items():  # the row's own verdict: the tolerance moves no verdict
        chosen = (table["verdict"] == verdict).to_numpy()
        if chosen.any():
            data.append(go.Scatter(
                x=np.where(chosen, distance, np.nan), y=rank, mode="markers", name=verdict, text=text,
                marker=dict(symbol=symbol, color=colour(role), size=8), hovertemplate="%{text}<extra></extra>"))
    edge = dict(type="line", x0=tolerance, x1=tolerance, y0=0, y1=1, yref="paper",
                line=dict(color=colour("ink"), width=1.5, dash="dot"))
    figure = go.Figure(data, dict(shapes=[edge], xaxis=dict(type="log", range=[np.log10(0.8 * SMALLEST), np.log10(12)], dtick=1,
                                                           tickformat=".2~%")))
    alt = (f"{int(within.sum())} of {len(table)} computed numbers lie within {100 * tolerance:g} % of the printed one, "
           f"{int((~within).sum())} beyond; the farthest is {table['claim'].iloc[-1]}.")
    return finish(figure, name="audit-gaps", alt=alt, table=table, x="distance of computed and printed number",
                  y="claims, nearest first", height=400, sources=ARTICLES)
