"""The figure that chapter 7 lets the reader move: expert parallelism from 2 to 128."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish
from inside_deepinfer.figures.hbm import GB, LOOK, MS, SOURCES, clause, ep_values
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.capacity import fit_notice
from inside_deepinfer.serving.step_budget import PARTS

BYTES = {"routed_read_bytes": "routed experts", "replicated_read_bytes": "weights on every GPU",
         "draft_read_bytes": "draft model", "head_reread_bytes": "head again for drafts", "kv_read_bytes_per_step": "live KV"}
WANTED = (*BYTES, *PARTS, "hbm_read_bytes_per_step", "hbm_total_bytes_per_step", "counted_step_time", "binding_resource",
          "experts_per_gpu", "resident_bytes", "usable_memory", "memory_needed", "largest_batch")


def bytes_and_time(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Bytes read and time spent per step at the scenario's own EP: the dashboard's view."""
    return _at(scenario, preset, int(scenario.ep), None, None)


def bytes_and_time_by_ep(scenario: Scenario, preset: str = "published") -> go.Figure:
    """The same with a slider over EP, at the scenario's card, batch and context."""
    eps = ep_values(catalogue.value("routed_experts", scenario, preset))
    found = catalogue.evaluate([*BYTES, *PARTS], scenario, preset, ep=np.array(eps))
    widest = max(float(np.max(found[name].value)) for name in BYTES) / GB
    longest = max(float(np.max(found[name].value)) for name in PARTS) / MS
    steps = [_at(scenario, preset, ep, widest, longest) for ep in eps]
    start = eps.index(scenario.ep) if scenario.ep in eps else len(eps) - 1
    return movable(steps, [str(ep) for ep in eps], "expert parallelism (GPUs)", start=start)


def _at(scenario: Scenario, preset: str, ep: int, widest: float | None, longest: float | None) -> go.Figure:
    """Both panels at one EP; the axes are fixed by the caller where the figure moves."""
    now = {name: quantity.value for name, quantity in catalogue.evaluate(WANTED, scenario, preset, ep=ep).items()}
    sizes = np.array([float(now[name]) for name in BYTES]) / GB
    times = np.array([float(now[name]) for name in PARTS]) / MS
    owners = [owner for _, owner in PARTS.values()]
    binds = str(now["binding_resource"])
    notice = fit_notice(scenario.model, scenario.card, *(float(now[name]) for name in (
        "resident_bytes", "usable_memory", "memory_needed", "largest_batch")))
    said = (f"EP{ep}: {digits(now['experts_per_gpu'])} experts per GPU and layer, {digits(sizes.sum(), 3)} GB read, "
            f"{digits(now['counted_step_time'] / MS, 3)} ms counted, {clause(binds)}")
    panels = [
        go.Bar(y=list(BYTES.values()), x=sizes, orientation="h", text=[f"{size:.2f}" for size in sizes], showlegend=False,
               textposition="outside", cliponaxis=False, constraintext="none", marker=dict(color=colour("blue")),
               hovertemplate="%{y}: %{x:.2f} GB<extra></extra>"),
        go.Bar(y=[label for label, _ in PARTS.values()], x=times, orientation="h", xaxis="x2", yaxis="y2", showlegend=False,
               text=[f"{time:.2f}" + (" (binds)" if owner == binds else "") for time, owner in zip(times, owners, strict=True)],
               textposition="outside", cliponaxis=False, constraintext="none", customdata=owners,
               marker=dict(color=[colour(LOOK[owner][0]) for owner in owners],
                           pattern=dict(shape=["" if owner == binds else "/" for owner in owners])),
               hovertemplate="%{y}: %{x:.2f} ms on %{customdata}<extra></extra>"),
    ]
    figure = go.Figure(panels, dict(
        yaxis=dict(domain=[0.60, 1.0], autorange="reversed"), xaxis=dict(anchor="y", range=[0, 1.3 * (widest or sizes.max())]),
        yaxis2=dict(domain=[0.0, 0.42], autorange="reversed", anchor="x2"),
        xaxis2=dict(anchor="y2", range=[0, 1.6 * (longest or times.max())], title=dict(text="time per step (ms)"))))
    table = pd.DataFrame({"part": [*BYTES.values(), *(label for label, _ in PARTS.values())],
                          "bytes read (GB)": [*sizes, *[np.nan] * len(times)], "time (ms)": [*[np.nan] * len(sizes), *times],
                          "resource": ["HBM"] * len(sizes) + owners})
    return finish(figure, name="hbm-bytes-and-time", alt=said + (f"; {notice}." if notice else "."), table=table,
                  x="read per step and GPU (GB)", height=500, sources=SOURCES)

