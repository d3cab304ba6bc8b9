"""Figures of HBM and experts: the bridge from the article's bytes to the counted ones, and which resource binds where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.step_budget import RESOURCES, binding_index
from inside_deepinfer.studies.bridge import weight_bridge

GB, MS = 1e9, 1e-3
SOURCES = ("article-000", "v41-config", "deepinfer-sdist", "aiconfigurator", "ml-engineering", "inside-deepinfer")
EP_VALUES = (2, 4, 8, 16, 32, 64, 128)
BATCHES = (1, 4, 16, 60, 128, 256, 512, 1024, 2048)
# resource -> (colour role, marker, short text): told apart by shape as well as colour
LOOK = {"HBM": ("blue", "square", "HBM"), "tensor cores": ("orange", "triangle-up", "cores"), "link": ("green", "circle", "link"),
        "launches": ("purple", "diamond", "launches")}
DOES_NOT_FIT = ("muted", "x-thin-open", "does not fit in HBM")


def waterfall(scenario: Scenario, preset: str = "published") -> go.Figure:
    """The article's bytes per step, what it leaves out, and what live KV adds."""
    steps = weight_bridge(scenario, preset)
    sizes = np.array([float(step.size) for step in steps]) / GB
    total = np.array([step.total for step in steps])
    ends = _levels(sizes, total)
    starts = np.where(total, 0.0, ends - sizes)
    names = [step.name for step in steps]
    roles = ["muted" if step is steps[0] else "ink" if step.total else "orange" if size < 0 else "blue"
             for step, size in zip(steps, sizes, strict=True)]
    shown = [f"{size:.2f}" if step.total else f"{size:+.2f}" for step, size in zip(steps, sizes, strict=True)]
    figure = go.Figure(
        [go.Bar(y=names, x=np.abs(ends - starts), base=np.minimum(starts, ends), orientation="h", text=shown,
                textposition="outside", cliponaxis=False, showlegend=False, constraintext="none",
                textfont=dict(size=12), customdata=[step.why for step in steps],
                marker=dict(color=[colour(role) for role in roles],
                            pattern=dict(shape=["" if step.total else "/" if size < 0 else "." if _live(step.name) else ""
                                                for step, size in zip(steps, sizes, strict=True)])),
                hovertemplate="%{y}: %{text} GB<br>%{customdata}<extra></extra>")],
        dict(yaxis=dict(autorange="reversed"), xaxis=dict(range=[0, 1.25 * float(ends.max())]), bargap=0.25))
    shares = catalogue.evaluate(["hbm_share", "hbm_total_share"], scenario, preset)
    first, counted, every = sizes[total][0], sizes[total][1], sizes[total][-1]
    table = pd.DataFrame({"step": names, "bytes (GB)": sizes, "level after it (GB)": ends,
                          "meaning": [step.why for step in steps]})
    alt = (f"The first estimate is {digits(first, 3)} GB per step and GPU. Scales, copies and weights that stand on every GPU "
           f"make it {digits(counted, 3)} GB, {percent(shares['hbm_share'].value, 0)} of HBM bandwidth; "
           f"with live KV {digits(every, 3)} GB, {percent(shares['hbm_total_share'].value, 0)}.")
    return finish(figure, name="hbm-waterfall", alt=alt, table=table, x="read per step and GPU (GB)", height=500,
                  sources=SOURCES)


def _levels(sizes: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Where each bar ends: totals at themselves, steps at the running sum since the last total."""
    ends, level = [], 0.0
    for size, is_total in zip(sizes.tolist(), total.tolist(), strict=True):
        level = size if is_total else level + size
        ends.append(level)
    return np.array(ends)


def _live(name: str) -> bool:
    return name in ("KV entries", "index keys", "sliding windows", "head again for drafts")


def ep_values(experts: int) -> list[int]:
    """The powers of two among the group sizes that divide the experts."""
    return [ep for ep in EP_VALUES if experts % ep == 0]


def binding_map(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Which resource is busy longest at each group size and batch, with the counted step time under each marker."""
    base = catalogue.evaluate(["routed_experts", "batch", "ep", "card_domain", "experts_per_gpu"], scenario, preset)
    eps = sorted({*ep_values(base["routed_experts"].value), base["ep"].value})
    batches = sorted({*BATCHES, int(base["batch"].value)})
    grid = {"ep": np.array(eps)[None, :], "batch": np.array(batches)[:, None]}
    wanted = ["time_weights", "time_kv", "time_gemm", "time_attention", "time_exchange", "time_launch"]
    found = catalogue.evaluate([*wanted, "counted_step_time", "memory_share"], scenario, preset, **grid)
    shape = (len(batches), len(eps))
    binds = np.broadcast_to(binding_index(*(found[name].value for name in wanted)), shape)
    step = np.broadcast_to(found["counted_step_time"].value / MS, shape)
    fits = np.broadcast_to(found["memory_share"].value <= 1.0, shape)
    where = {name: fits & (binds == number) for number, name in enumerate(RESOURCES)}
    traces = [_cells(name, LOOK[name], mask, eps, batches, step) for name, mask in where.items()]
    traces.append(_cells(DOES_NOT_FIT[2], DOES_NOT_FIT, ~fits, eps, batches, None))
    traces.append(go.Scatter(
        x=[str(base["ep"].value)], y=[f"{base['batch'].value:,}"], mode="markers", name="this scenario", hoverinfo="skip",
        marker=dict(symbol="circle-open", size=18, color=colour("red"), line=dict(width=2))))
    figure = go.Figure(traces, dict(
        xaxis=dict(type="category", categoryarray=[str(ep) for ep in eps], categoryorder="array"),
        yaxis=dict(type="category", categoryarray=[f"{batch:,}" for batch in batches], categoryorder="array"),
        legend=dict(title=dict(text="what binds (number: ms per step)", side="top"))))
    names = np.where(fits, np.asarray(RESOURCES)[binds], DOES_NOT_FIT[2])
    table = pd.DataFrame({"sequences per GPU": np.repeat(batches, len(eps)), "EP": np.tile(eps, len(batches)),
                          "resource that binds": names.ravel(), "counted step time (ms)": np.where(fits, step, np.nan).ravel()})
    here = names[batches.index(int(base["batch"].value)), eps.index(base["ep"].value)]
    domain = int(base["card_domain"].value)
    beyond = [str(ep) for ep in eps if ep > domain]
    link = f"EP {', '.join(beyond)} reach" if len(beyond) > 1 else f"EP {beyond[0]} reaches" if beyond else "no group reaches"
    alt = (f"At EP{base['ep'].value} and {base['batch'].value} sequences per GPU {clause(here)}. "
           f"{_counts(names)} of {names.size} combinations; {link} beyond the scale-up domain of {domain} GPUs.")
    return finish(figure, name="hbm-binding-map", alt=alt, table=table, x="expert parallelism (GPUs)", y="sequences per GPU",
                  height=560, sources=SOURCES)


def clause(here: str) -> str:
    """Which resource binds, as part of a sentence."""
    if here == DOES_NOT_FIT[2]:
        return "the scenario does not fit in HBM"
    return f"{here} {'bind' if here.endswith('s') else 'binds'}"


def _counts(names: np.ndarray) -> str:
    said = {name: int(np.sum(names == name)) for name in (*RESOURCES, DOES_NOT_FIT[2])}
    return ", ".join(f"{name}: {count}" for name, count in said.items() if count)


def _cells(name: str, look: tuple[str, str, str], mask: np.ndarray, eps: list[int], batches: list[int], step: Any) -> go.Scatter:
    """Markers of one kind of cell; the step time in milliseconds stands under each."""
    rows, columns = np.nonzero(mask)
    role, symbol, _ = look
    text = ["" if step is None else digits(step[row, column], 2) for row, column in zip(rows, columns, strict=True)]
    return go.Scatter(
        x=[str(eps[column]) for column in columns], y=[f"{batches[row]:,}" for row in rows], name=name, mode="markers+text",
        text=text, textposition="bottom center", textfont=dict(size=11, color=colour("ink")),
        marker=dict(symbol=symbol, size=13, color=colour(role), line=dict(width=2, color=colour(role))),
        hovertemplate=f"EP%{{x}}, %{{y}} sequences per GPU: {name}{'' if step is None else ', %{text} ms'}<extra></extra>")
