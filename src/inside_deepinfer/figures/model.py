"""Figures of what one token costs: where the parameters are, and FLOPs against context."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.model.counts import prompt_share
from inside_deepinfer.model.flops import decode_flops_by_class
from inside_deepinfer.model.parts import parts
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.scenario import Scenario

SOURCES = ("v41-config", "v4-config", "v3-config", "deepinfer-sdist")
BILLION, GIGA = 1e9, 1e9


def parameter_classes(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Parameters of each class, and how many of them one decoded and one prompt token use (a log scale: dots, no bars)."""
    shape = load_shape(scenario.model)
    rows: dict[str, list[float]] = {}
    for part in parts(shape):
        decode = part.parameters * part.share_per_token if part.stage == "backbone" else 0.0
        held = rows.setdefault(part.name, [0.0, 0.0, 0.0])
        for place, value in enumerate((part.parameters, decode, decode * prompt_share(shape, part))):
            held[place] += value
    ordered = sorted(rows.items(), key=lambda row: -row[1][0])
    names, values = [name for name, _ in ordered], np.array([row for _, row in ordered]) / BILLION
    looks = (("all", "square-open", "muted", 12), ("per decoded token", "circle", "blue", 9),
             ("per prompt token", "diamond", "orange", 8))
    traces = []
    for column, (label, symbol, role, size) in enumerate(looks):
        used = np.flatnonzero(values[:, column] > 0)
        traces.append(go.Scatter(
            x=values[used, column], y=[names[row] for row in used], mode="markers", name=label,
            marker=dict(symbol=symbol, size=size, color=colour(role), line=dict(width=2)),
            hovertemplate="%{y}: %{x:.3g} billion<extra>" + label + "</extra>"))
    figure = go.Figure(traces, dict(
        xaxis=dict(type="log", tickvals=[1e-3, 0.1, 10, 1000], ticktext=["0.001", "0.1", "10", "1,000"], range=[-4, 3.2]),
        yaxis=dict(type="category", categoryorder="array", categoryarray=names[::-1])))
    table = pd.DataFrame({"class": names, "parameters (billion)": values[:, 0], "per decoded token (billion)": values[:, 1],
                          "per prompt token (billion)": values[:, 2]})
    found = catalogue.evaluate(["backbone_parameters", "active_parameters_decode", "active_parameters_prefill"], scenario, preset)
    total, decode, prefill = (quantity.value / BILLION for quantity in found.values())
    alt = (f"{shape.name} has {digits(total)} billion parameters without lookup tables and draft model; a decoded token uses "
           f"{digits(decode)} billion of them ({percent(decode / total)}), a prompt token {digits(prefill, 3)} billion.")
    return finish(figure, name="model-parameter-classes", alt=alt, table=table, x="parameters (billion)", height=520,
                  sources=SOURCES)


def flops_by_context(scenario: Scenario, preset: str = "published") -> go.Figure:
    """FLOPs of one decode row against context: matrix products do not move, attention and index scores do."""
    shape = load_shape(scenario.model)
    most = shape.body.max_context
    contexts = np.unique(np.r_[np.geomspace(1, most, 60).astype(int), min(int(scenario.context), most)])
    classes = decode_flops_by_class(shape, contexts)
    moving = ("attention over entries", "index scores")
    fixed = sum(value for name, value in classes.items() if name not in moving) + np.zeros(contexts.size)
    attention, scores = (classes[name] + np.zeros(contexts.size) for name in moving)
    total, plain = fixed + attention + scores, sum(decode_flops_by_class(shape, contexts, plain=True).values())
    here = int(np.searchsorted(contexts, min(int(scenario.context), most)))
    figure = go.Figure(
        [line(contexts, total / GIGA, "all, FP8-equivalent", 0),
         line(contexts, (fixed + attention) / GIGA, "without index scores", 1),
         line(contexts, fixed / GIGA, "matrix products alone", 2), line(contexts, plain / GIGA, "all, 2 per multiply-add", 3),
         points([contexts[here]], [total[here] / GIGA], "this scenario", "choice")],
        dict(xaxis=dict(type="log", tickformat="~s"), yaxis=dict(rangemode="tozero")))
    table = pd.DataFrame({"context (token)": contexts, "FP8-equivalent (GFLOP)": total / GIGA, "matrix products": fixed / GIGA,
                          "attention": attention / GIGA, "index scores": scores / GIGA, "plain (GFLOP)": plain / GIGA})
    alt = (f"One decode row of {shape.name} costs {digits(total[here] / GIGA, 3)} GFLOP (FP8-equivalent) at a context of "
           f"{digits(contexts[here], 7)} tokens and {digits(total[-1] / GIGA, 3)} at {digits(most, 7)}; "
           f"{digits(fixed[0] / GIGA, 3)} of them do not depend on the context.")
    return finish(figure, name="model-flops-by-context", alt=alt, table=table, x="context (token)", y="GFLOP per row",
                  sources=SOURCES)
