"""Does it fit? Every card against every group size: the largest batch, or why there is none."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import load_facts
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish
from inside_deepinfer.figures.hbm import GB, ep_values
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.capacity import fit_notice

SOURCES = ("v41-config", "deepinfer-sdist", "aiconfigurator", "ml-engineering", "ascend-950-card", "inside-deepinfer")
WANTED = ("resident_bytes", "usable_memory", "memory_needed", "largest_batch")
GROUPS = (2, 4, 8, 64, 128)  # the group sizes that the articles name; all seven would be too narrow for a phone
# verdict -> (colour role, marker): told apart by shape as well as colour
LOOK = {"fits": ("green", "circle"), "only with fewer sequences": ("orange", "triangle-up"),
        "weights alone do not fit": ("muted", "x-thin-open")}


def capacity_map(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Largest batch at the scenario's context for each card and group size, and whether the scenario's own batch fits."""
    cards = load_facts().cards
    base = catalogue.evaluate(["routed_experts", "experts_per_gpu"], scenario, preset)  # refuses an EP that does not divide
    eps = sorted({*(ep for ep in ep_values(base["routed_experts"].value) if ep in GROUPS), int(scenario.ep)})
    found = catalogue.evaluate(WANTED, scenario, preset, card=np.array(list(cards))[:, None], ep=np.array(eps)[None, :])
    shape = (len(cards), len(eps))
    resident, usable, needed, most = (np.broadcast_to(found[name].value, shape) for name in WANTED)
    verdicts = np.select([needed <= usable, resident <= usable], list(LOOK)[:2], list(LOOK)[2])
    traces = [_cells(verdict, verdicts == verdict, [card.name for card in cards.values()], eps, most) for verdict in LOOK]
    own = cards[scenario.card].name
    traces.append(go.Scatter(x=[str(scenario.ep)], y=[own], mode="markers", name="this scenario", hoverinfo="skip",
                             marker=dict(symbol="circle-open", size=18, color=colour("red"), line=dict(width=2))))
    figure = go.Figure(traces, dict(
        xaxis=dict(type="category", categoryarray=[str(ep) for ep in eps], categoryorder="array"),
        yaxis=dict(type="category", categoryarray=[card.name for card in cards.values()][::-1], categoryorder="array"),
        legend=dict(title=dict(text="number: most sequences per GPU", side="top"))))
    notices = [fit_notice(scenario.model, card, resident[row, column], usable[row, column], needed[row, column],
                          most[row, column]) for row, card in enumerate(cards) for column in range(len(eps))]
    table = pd.DataFrame({
        "card": np.repeat([card.name for card in cards.values()], len(eps)), "EP": np.tile(eps, len(cards)),
        "before the first sequence (GB)": resident.ravel() / GB, "may be filled (GB)": usable.ravel() / GB,
        "most sequences per GPU": most.ravel(), "verdict": [notice or "fits" for notice in notices]})
    here = most[list(cards).index(scenario.card), eps.index(int(scenario.ep))]
    none = int(np.sum(verdicts == list(LOOK)[2]))
    alt = (f"At EP{scenario.ep} {own} holds at most {here:,.0f} sequences per GPU of the scenario's context. "
           f"In {none} of {verdicts.size} combinations of card and group size the weights alone do not fit.")
    return finish(figure, name="hbm-capacity", alt=alt, table=table, x="expert parallelism (GPUs)", y="card", height=520,
                  sources=SOURCES)


def _cells(verdict: str, mask: np.ndarray, cards: list[str], eps: list[int], most: np.ndarray) -> go.Scatter:
    """Markers of one verdict; the largest batch stands under each, where there is one."""
    rows, columns = np.nonzero(mask)
    role, symbol = LOOK[verdict]
    counts = [f"{most[row, column]:,.0f}" if most[row, column] else "" for row, column in zip(rows, columns, strict=True)]
    return go.Scatter(
        x=[str(eps[column]) for column in columns], y=[cards[row] for row in rows], name=verdict, mode="markers+text", text=counts,
        textposition="bottom center", textfont=dict(size=11, color=colour("ink")),
        marker=dict(symbol=symbol, size=12, color=colour(role), line=dict(width=2, color=colour(role))),
        hovertemplate=f"%{{y}}, EP%{{x}}: {verdict}<extra></extra>")
