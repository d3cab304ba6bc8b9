"""Figures of a card that we measured: bandwidth, one expert, whole layers and gathered reads beside their predictions, launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from inside_deepinfer.facts import digits, load_facts, percent
from inside_deepinfer.facts.gpu_runs import gpu_run
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.serving import measured_card as mc

MB, GB, TB, US, MS = 1e6, 1e9, 1e12, 1e-6, 1e-3
SOURCES = ("gpu-runs", "aiconfigurator", "ml-engineering")
NAMES = {"bf16": "BF16", "fp8": "FP8"}
LOOK = {"bf16": ("blue", "diamond", "solid"), "fp8": ("orange", "square", "dash")}  # precision -> colour role, marker, dash
UPPER, LOWER = [0.58, 1.0], [0.0, 0.40]  # heights of two panels


def _axis(values: Any, form: str = "{:g}", **more: Any) -> dict[str, Any]:
    """A logarithmic axis with these ticks and no others."""
    return dict(type="log", tickvals=list(values), ticktext=[form.format(value) for value in values], **more)


def _signed(error: float) -> str:
    """An error as a short text under or above a mark."""
    return f"{100 * error:+.0f}%".replace("-", "−") if abs(error) >= 0.005 else "0%"


def _marks(x: Any, y: Any, name: str, role: str, symbol: str, second: bool = False, **more: Any) -> go.Scatter:
    """Measured points; those of a second run are small and open."""
    return go.Scatter(x=np.asarray(x), y=np.asarray(y), name=name, mode=more.pop("mode", "markers"), marker=dict(
        symbol=f"{symbol}-open" if second else symbol, size=6 if second else 9, color=colour(role),
        line=dict(width=1.5, color=colour(role))), **more)


def _curve(x: Any, y: Any, name: str, role: str, dash: str, **more: Any) -> go.Scatter:
    return go.Scatter(x=np.asarray(x), y=np.asarray(y), name=name, mode="lines", line=dict(color=colour(role), width=2, dash=dash),
                      **more)


def _rates(run: str, measurement: str, moved: str) -> pd.DataFrame:
    table = gpu_run(run, measurement).table()
    return table.assign(rate=table[moved] / table["seconds"])


def rates(run: str, again: str) -> go.Figure:
    """(a) HBM bandwidth against buffer size, (f) exchange between two cards against message size; both runs."""
    card = load_facts().cards[mc.card_of(run)]
    first, second = (_rates(name, "bandwidth", "bytes_moved") for name in (run, again))
    links = [_rates(name, "alltoall", "bytes_to_others") for name in (run, again)]
    fit = mc.link(run)
    traces, low = [], dict(xaxis="x2", yaxis="y2")
    for what, role, symbol in (("read", "blue", "diamond"), ("copy", "orange", "square")):
        for table, other in ((first, False), (second, True)):
            rows = table[table["what"] == what]
            traces.append(_marks(rows["bytes"] / MB, rows["rate"] / TB, what, role, symbol, other, showlegend=not other,
                                 mode="markers" if other else "lines+markers"))
    ends = [first["bytes"].min() / MB, first["bytes"].max() / MB]
    traces.append(_curve(ends, [card.hbm_bandwidth / TB] * 2, "datasheet", "muted", "dot"))
    for table, other in zip(links, (False, True), strict=True):
        traces.append(_marks(table["bytes_to_others"] / MB, table["rate"] / GB, "exchange", "green", "circle", other,
                             showlegend=not other, **low))
    sizes = np.geomspace(links[0]["bytes_to_others"].min(), links[0]["bytes_to_others"].max(), 60)
    traces.append(_curve(sizes / MB, sizes / fit.seconds(sizes) / GB, "fit: fixed time and rate", "green", "dash", **low))
    traces.append(_curve([sizes[0] / MB, sizes[-1] / MB], [card.scaleup_bandwidth / GB] * 2, "datasheet", "muted", "dot",
                         showlegend=False, **low))
    figure = go.Figure(traces, dict(
        xaxis=_axis([1, 10, 100, 1000, 10000], anchor="y"), yaxis=dict(domain=UPPER, rangemode="tozero"),
        xaxis2=_axis([0.01, 0.1, 1, 10, 100], anchor="y2", title=dict(text="sent to the other card (MB)")),
        yaxis2=dict(domain=LOWER, anchor="x2", rangemode="tozero", title=dict(text="exchange (GB/s)"))))
    size = pd.concat([first["bytes"], links[0]["bytes_to_others"]])
    table = pd.DataFrame({
        "what": [*first["what"], *["exchange"] * len(links[0])], "size (MB)": size.to_numpy() / MB,
        "first run (GB/s)": np.concatenate([first["rate"], links[0]["rate"]]) / GB,
        "second run (GB/s)": np.concatenate([second["rate"], links[1]["rate"]]) / GB})
    reached, rate = mc.read_bandwidth(run), fit.rate
    alt = (f"{gpu_run(run, 'bandwidth').machine.card}: reading the largest buffer reaches {reached / TB:.2f} of "
           f"{card.hbm_bandwidth / TB:.1f} TB/s, {percent(reached / card.hbm_bandwidth, 0)}; an exchange between two cards tends "
           f"to {rate / GB:.0f} of {card.scaleup_bandwidth / GB:.0f} GB/s, {percent(rate / card.scaleup_bandwidth, 0)}, after "
           f"{fit.latency / US:.0f} µs. Small open marks: second run.")
    return finish(figure, name="measured-rates", alt=alt, table=table, x="buffer (MB)", y="HBM (TB/s)", height=560, sources=SOURCES)


def experts(run: str, again: str) -> go.Figure:
    """(b) The three products of one expert against its tokens: measured, fitted curve, turning point; both runs."""
    table, other = (gpu_run(name, "experts").table() for name in (run, again))
    traces, said, fitted = [], [], np.empty(len(table))
    for precision, (role, symbol, dash) in LOOK.items():
        here, there = (rows[rows["precision"] == precision] for rows in (table, other))
        rate, weight, each = mc.expert_rate(run, precision), float(here["weight_bytes"].iloc[0]), mc.flop_per_token(run)
        tokens = np.geomspace(here["tokens"].min(), here["tokens"].max(), 80)
        turn, name = mc.turning_point(run, precision), NAMES[precision]
        traces += [_marks(here["tokens"], here["seconds"] / US, name, role, symbol),
                   _marks(there["tokens"], there["seconds"] / US, name, role, symbol, second=True, showlegend=False),
                   _curve(tokens, rate.seconds(tokens, weight, each) / US, f"{name}, fitted", role, dash),
                   go.Scatter(x=[turn], y=[float(rate.seconds(turn, weight, each)) / US], mode="markers", name="turning point",
                              showlegend=precision == "bf16", marker=dict(symbol="star", size=15, color=colour("red")),
                              hovertemplate=f"{name}: %{{x:.0f}} tokens per expert<extra></extra>")]
        said.append(f"{name} at {turn:.0f} tokens, up to there {rate.read_rate / TB:.1f} TB/s of weights, beyond it "
                    f"{rate.compute_rate / TB:.0f} TFLOP/s")
        fitted[(table["precision"] == precision).to_numpy()] = rate.seconds(here["tokens"].to_numpy(), weight, each)
    figure = go.Figure(traces, dict(xaxis=_axis([1, 4, 16, 64, 256, 1024, 4096]), yaxis=_axis([20, 50, 100, 200, 400])))
    seconds = table["seconds"].to_numpy()
    behind = pd.DataFrame({
        "precision": table["precision"].map(NAMES), "tokens per expert": table["tokens"], "time (µs)": seconds / US,
        "second run (µs)": other["seconds"].to_numpy() / US, "fitted (µs)": fitted / US, "fitted over measured − 1": fitted / seconds - 1,
        "TB/s": table["weight_bytes"].to_numpy() / seconds / TB, "TFLOP/s": table["flop"].to_numpy() / seconds / TB})
    alt = f"One expert turns from memory-bound to compute-bound in {'; in '.join(said)}. Small open marks: second run."
    return finish(figure, name="measured-experts", alt=alt, table=behind, x="tokens per expert", y="time of its three products (µs)",
                  height=440, sources=SOURCES)


def predictions(run: str, again: str) -> go.Figure:
    """(c) A layer's experts for each EP, (d) gathered and contiguous reads: measured against predicted, with the error."""
    layers, layers_again = mc.predict_layers(run), mc.predict_layers(again)
    traces = []
    for precision, (role, symbol, dash) in LOOK.items():
        rows, name = [entry for entry in layers if entry.precision == precision], NAMES[precision]
        eps = [str(entry.ep) for entry in rows]
        traces += [_curve(eps, [entry.predicted / US for entry in rows], f"{name}, predicted", role, dash),
                   _marks(eps, [entry.measured / US for entry in rows], f"{name}, measured", role, symbol, mode="markers+text",
                          text=[_signed(entry.error) for entry in rows], textfont=dict(size=11),
                          textposition="top center" if precision == "bf16" else "bottom center")]
    reads, low = mc.predict_gather(run), dict(xaxis="x2", yaxis="y2")
    for what, role, symbol in (("contiguous", "green", "circle-open"), ("gathered", "purple", "triangle-up")):
        mine = [entry for entry in reads if entry[0] == what]
        traces.append(_marks([entry[1] for entry in mine], [entry[2] / US for entry in mine], what, role, symbol, **low))
    predicted = [entry for entry in reads if entry[0] == "gathered"]
    traces.append(_curve([entry[1] for entry in predicted], [entry[3] / US for entry in predicted], "predicted from bandwidth", "muted",
                         "dot", **low))
    traces.append(go.Scatter(x=[entry[1] for entry in predicted], y=[entry[2] / US for entry in predicted], mode="text",
                             showlegend=False, hoverinfo="skip", textposition="top center", textfont=dict(size=11),
                             text=[_signed(entry[3] / entry[2] - 1) for entry in predicted], **low))
    queries = sorted({entry[1] for entry in reads})
    figure = go.Figure(traces, dict(
        xaxis=dict(type="category", anchor="y"), yaxis=_axis([100, 300, 1000, 3000], domain=UPPER, range=[1.75, 4.05]),
        xaxis2=_axis(queries, form="{:,}", anchor="y2", title=dict(text="queries, 512 entries of 288 B each")),
        yaxis2=_axis([1, 10, 100], range=[0, 2.75], domain=LOWER, anchor="x2", title=dict(text="reads (µs)"))))
    again_reads = mc.predict_gather(again)
    table = pd.DataFrame({
        "what": [*(f"experts of a layer, {NAMES[entry.precision]}, EP{entry.ep}" for entry in layers),
                 *(f"{entry[0]} reads, {entry[1]:,} queries" for entry in reads)],
        "measured (µs)": [*(entry.measured / US for entry in layers), *(entry[2] / US for entry in reads)],
        "second run (µs)": [*(entry.measured / US for entry in layers_again), *(entry[2] / US for entry in again_reads)],
        "predicted (µs)": [*(entry.predicted / US for entry in layers), *(entry[3] / US for entry in reads)],
        "predicted over measured − 1": [*(entry.error for entry in layers), *(entry[3] / entry[2] - 1 for entry in reads)]})
    worst, gap = mc.worst(layers), max(mc.gather_penalty(run).values())
    alt = (f"Median error of the predicted expert layers {percent(mc.median_error(layers))}; worst {NAMES[worst.precision]} at "
           f"EP{worst.ep}, {percent(worst.error, 0)}. Gathered reads take at most {percent(gap, 0)} longer than contiguous ones, "
           f"but both take {digits(reads[0][2] / reads[0][3], 2)} times the predicted time with {queries[0]} queries and "
           f"{digits(predicted[-1][2] / predicted[-1][3], 2)} times with {queries[-1]:,}.")
    return finish(figure, name="measured-predictions", alt=alt, table=table, x="expert parallelism (GPUs)", y="experts of a layer (µs)",
                  height=620, sources=SOURCES)


def launches(run: str, again: str) -> go.Figure:
    """(e) A step of tiny kernels, launched one by one and replayed as a graph, against the number of kernels; both runs."""
    table, other = (gpu_run(name, "launch").table() for name in (run, again))
    traces = []
    for what, name, role, symbol in (("eager", "one by one", "orange", "square"), ("graph", "graph replay", "blue", "diamond")):
        here, there = (rows[rows["what"] == what].sort_values("kernels") for rows in (table, other))
        traces += [_marks(here["kernels"], here["seconds"] / MS, name, role, symbol, mode="lines+markers"),
                   _marks(there["kernels"], there["seconds"] / MS, f"{name}, second run", role, symbol, second=True)]
    counts = sorted({int(count) for count in table["kernels"]})
    figure = go.Figure(traces, dict(xaxis=_axis(counts, form="{:,}"), yaxis=_axis([0.1, 0.3, 1, 3, 10])))
    kept = table["what"].isin(["eager", "graph"])
    behind = pd.DataFrame({"launched": table["what"][kept], "kernels per step": table["kernels"][kept],
                           "step (ms)": table["seconds"][kept] / MS, "second run (ms)": other["seconds"][kept].to_numpy() / MS})
    eager, graph = (mc.launch_time(run, how) for how in ("eager", "graph"))
    later = [mc.launch_time(again, how) / US for how in ("eager", "graph")]
    alt = (f"{gpu_run(run, 'launch').machine.card}: a kernel costs {eager / US:.1f} µs launched by itself and {graph / US:.2f} µs in a "
           f"replayed graph, {digits(eager / graph, 2)} times less; in a second run {later[0]:.1f} and {later[1]:.2f} µs.")
    return finish(figure, name="measured-launches", alt=alt, table=behind, x="kernels per step", y="step of tiny kernels (ms)",
                  height=380, sources=SOURCES)
