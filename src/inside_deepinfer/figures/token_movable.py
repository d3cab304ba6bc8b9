"""The figure that chapter 6 lets the reader move: the context of one sequence, from a thousand tokens to a million."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.model.flops import decode_flops_by_class
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.studies.machine_world import CONTEXTS

SOURCES = ("v41-config", "deepinfer-sdist", "inside-deepinfer")
GIGA, MB = 1e9, 1e6
MOVING = ("attention over entries", "index scores")
READS = {"entry_read_bytes": "KV entries", "index_read_bytes": "index keys", "window_read_bytes": "sliding windows"}


def work_and_reads(scenario: Scenario, preset: str = "published") -> go.Figure:
    """FLOP of one decode row and bytes that its sequence reads in a step, with a slider over the context."""
    shape = load_shape(scenario.model)
    own = min(int(scenario.context), shape.body.max_context)
    contexts = sorted({own, *(context for context in CONTEXTS if context <= shape.body.max_context)})
    steps = [_step(scenario, preset, context, contexts[-1]) for context in contexts]
    return movable(steps, [f"{context:,}" for context in contexts], "context (token)", start=contexts.index(own))


def _numbers(scenario: Scenario, preset: str, context: int) -> tuple[dict[str, float], dict[str, float], float]:
    """Work by part in GFLOP, reads by part in MB, and the bytes that the sequence keeps."""
    shape = load_shape(scenario.model)
    classes = {name: float(value) for name, value in decode_flops_by_class(shape, context).items()}
    work = {"matrix products": sum(value for name, value in classes.items() if name not in MOVING),
            **{name: classes[name] for name in MOVING}}
    found = catalogue.evaluate([*READS, "kv_bytes_per_sequence"], scenario, preset, batch=1, context=context)
    return ({name: value / GIGA for name, value in work.items()},
            {label: float(found[name].value) / MB for name, label in READS.items()},
            float(found["kv_bytes_per_sequence"].value) / MB)


def _step(scenario: Scenario, preset: str, context: int, last: int) -> go.Figure:
    work, reads, kept = _numbers(scenario, preset, context)
    most_work, most_reads, _ = _numbers(scenario, preset, last)
    panels = [_bars(work, "blue", "", "%{y}: %{x:.2f} GFLOP"), _bars(reads, "green", "/", "%{y}: %{x:.2f} MB")]
    panels[1].update(xaxis="x2", yaxis="y2")
    figure = go.Figure(panels, dict(
        yaxis=dict(domain=[0.63, 1.0], autorange="reversed"), xaxis=dict(anchor="y", range=[0, 1.3 * max(most_work.values())]),
        yaxis2=dict(domain=[0.0, 0.37], autorange="reversed", anchor="x2"),
        xaxis2=dict(anchor="y2", range=[0, 1.3 * max(most_reads.values())],
                    title=dict(text="read per step (MB)"))))
    table = pd.DataFrame({"part": [*work, *reads], "FP8-equivalent (GFLOP per row)": [*work.values(), *[np.nan] * len(reads)],
                          "read per sequence and step (MB)": [*[np.nan] * len(work), *reads.values()]})
    alt = (f"At a context of {context:,} tokens one decode row costs {digits(sum(work.values()), 3)} GFLOP, "
           f"{digits(work['matrix products'], 3)} of them in matrix products; its sequence keeps {digits(kept, 3)} MB of KV and "
           f"reads {digits(sum(reads.values()), 3)} MB per step.")
    return finish(figure, name="token-work-and-reads", alt=alt, table=table, x="work per row (GFLOP)", height=400,
                  sources=SOURCES)


def _bars(sizes: dict[str, float], role: str, shape: str, hover: str) -> go.Bar:
    return go.Bar(y=list(sizes), x=list(sizes.values()), orientation="h", text=[f"{size:.2f}" for size in sizes.values()],
                  textposition="outside", cliponaxis=False, constraintext="none", showlegend=False,
                  marker=dict(color=colour(role), pattern=dict(shape=shape)), hovertemplate=hover + "<extra></extra>")
