"""Figures of the proof on DeepSeek's own production curves: throughput with residuals, and the verification budget against load."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer.facts import digits, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.serving.production import MODELS, mean_abs_error, predict

SOURCES = ("dspark-paper", "inside-deepinfer")


def throughput(model: str = "flash") -> go.Figure:
    """MTP-1 (fitted) and DSpark-5 (two more numbers fitted) against load, with the relative residuals below.

    Args:
        model: ``flash`` or ``pro``, the previews of V4.
    """
    run = predict(model)
    pairs = [("MTP-1, fitted", run.mtp, run.mtp_model, 0), ("DSpark-5, reproduced", run.dspark, run.dspark_model, 1)]
    traces, columns = [], {"sequences per GPU": run.sequences}
    for name, seen, said, order in pairs:
        residual = 100 * (said / seen - 1)
        role = ("blue", "orange")[order]
        mark = dict(symbol=("square", "diamond")[order], size=9, color=colour(role))
        traces += [line(run.sequences, said, name, order),
                   go.Scatter(x=run.sequences, y=seen, name=name.split(",")[0] + ", published", mode="markers", marker=mark),
                   go.Scatter(x=run.sequences, y=residual, mode="lines+markers", showlegend=False, xaxis="x2", yaxis="y2", marker=mark,
                              line=dict(color=colour(role), width=1), hovertemplate="%{x:.0f} sequences: %{y:+.1f} %<extra></extra>")]
        columns |= {f"{name.split(',')[0]} published (token/s)": seen, f"{name} (token/s)": said,
                    f"{name.split(',')[0]} residual (%)": residual}
    figure = go.Figure(traces, dict(
        yaxis=dict(domain=[0.38, 1.0], rangemode="tozero"), xaxis=dict(anchor="y"),
        yaxis2=dict(domain=[0.0, 0.24], anchor="x2", title=dict(text="residual (%)")), xaxis2=dict(anchor="y2", title=dict(
            text="concurrent requests per GPU"))))
    errors = [mean_abs_error(said, seen) for _, seen, said, _ in pairs]
    alt = (f"{MODELS[model]}: MTP-1 is fitted with a mean error of {percent(errors[0], 2)}; from it DSpark-5 is reproduced within "
           f"{percent(errors[1])} on average, with two numbers fitted here: acceptance of mean {digits(run.mean, 3)} and spread "
           f"{digits(run.spread, 3)}.")
    return finish(figure, name=f"production-{model}", alt=alt, table=pd.DataFrame(columns),
                  y="output per GPU (tokens per second)", height=520, sources=SOURCES)


def budget() -> go.Figure:
    """Rows verified per sequence against load, published and predicted, for both previews."""
    traces, tables, said = [], [], []
    for order, (model, name) in enumerate(MODELS.items()):
        run = predict(model)
        traces += [line(run.sequences, run.schedule.rows, f"{name}, predicted", order)]
        known = np.isfinite(run.budget)
        traces.append(go.Scatter(x=run.sequences[known], y=run.budget[known], name=f"{name}, published", mode="markers", marker=dict(
            symbol=("square", "diamond")[order], size=9, color=colour(("blue", "orange")[order]))))
        miss = float(np.mean(np.abs(run.schedule.rows - run.budget)[known]))
        said.append(f"{digits(miss, 2)} for {name}")
        tables.append(pd.DataFrame({"model": name, "concurrent requests per GPU": run.sequences, "published (rows)": run.budget,
                                    "predicted (rows)": run.schedule.rows}))
    alt = f"The verification budget, never shown to the fit, is predicted within this many rows on average: {', '.join(said)}."
    return finish(go.Figure(traces), name="production-budget", alt=alt, table=pd.concat(tables), x="concurrent requests per GPU",
                  y="rows verified per sequence and step", height=420, sources=SOURCES)
