"""Figures of the prefill frontier: throughput against waiting, chunks, bursts, hit rate, and the H100 measurements as a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, load_facts, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving import third_party
from inside_deepinfer.serving.prefill_queue import Prefill
from inside_deepinfer.studies import prefill_curves
from inside_deepinfer.studies.prefill_curves import PrefillFrontier

MS, US = 1e-3, 1e-6
WAIT = "time to first token (ms)"
NEW = "new tokens per second and prefill GPU"
SOURCES = ("article-000", "article-004", "v41-config", "deepinfer-sdist", "inside-deepinfer")
CHUNKS = (2048, 4096, 8192, 16384, 32768)
LOG_TICKS = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]


def frontier(scenario: Scenario, preset: str = "published") -> go.Figure:
    """New tokens per second against mean and P99 time to first token, with the reported targets and the scenario's own load."""
    curve = prefill_curves.frontier(scenario, preset)
    queue = prefill_curves.queue_of(scenario, preset)
    alone_rate, alone_mean = prefill_curves.one_at_a_time(queue)
    mean, tail = prefill_curves.targets()
    traces = [line(curve.mean / MS, curve.per_gpu, "mean, simulated", 0, customdata=_budgets(curve, queue),
                   hovertemplate="mean %{x:.0f} ms, %{y:,.0f} new tokens/s<br>%{customdata}<extra></extra>"),
              line(curve.p99 / MS, curve.per_gpu, "99th percentile, simulated", 1, customdata=curve.load,
                   hovertemplate="load %{customdata:.2f}: P99 %{x:.0f} ms, %{y:,.0f} new tokens/s<extra></extra>"),
              line(alone_mean / MS, alone_rate, "mean, one prompt at a time (exact)", 2),
              *_targets(curve, mean, tail)]
    wanted = ["load_at_mean_target", "load_at_p99_target", "throughput_within_targets"]
    stable = scenario.prefill_load < min(1.0, float(catalogue.value("network_load", scenario, preset)))
    wanted += ["first_token_mean", "first_token_p99"] if stable else []
    found = {name: float(quantity.value) for name, quantity in catalogue.evaluate(wanted, scenario, preset).items()}
    if stable:
        here = [found["first_token_mean"] / MS, found["first_token_p99"] / MS]
        traces.append(points(here, [scenario.prefill_load * curve.capacity] * 2, "this scenario", "choice"))
        said = (f"At a load of {scenario.prefill_load:g} the first token comes after {digits(here[0], 3)} ms on average and "
                f"{digits(here[1], 3)} ms at the 99th percentile")
    else:
        said = f"At a load of {scenario.prefill_load:g} the queue is unstable and waiting has no end"
    table = pd.DataFrame({"load": curve.load, "new tokens per second and GPU": curve.per_gpu,
                          "with cached tokens (token/s)": curve.cached, "mean time to first token (ms)": curve.mean / MS,
                          "99th percentile (ms)": curve.p99 / MS})
    alt = (f"{said}. The reported mean of {mean / MS:.0f} ms is kept up to a load of {digits(found['load_at_mean_target'], 2)}, the "
           f"99th percentile of {tail / MS:,.0f} ms up to {digits(found['load_at_p99_target'], 2)}, so that "
           f"{digits(found['throughput_within_targets'])} of {digits(curve.capacity)} new tokens per second and GPU are within both.")
    return finish(go.Figure(traces, _layout()), name="prefill-frontier", alt=alt, table=table, x=WAIT, y=NEW, height=440,
                  sources=SOURCES)


def _budgets(curve: PrefillFrontier, queue: Prefill) -> list[str]:
    """Where the mean time to first token goes at each load: the steps of a mean prompt, reading its cached part, the rest."""
    steps = (queue.fixed * max(1.0, queue.new_tokens / queue.chunk) + queue.per_token * queue.new_tokens) / MS
    fetch = queue.fetch_per_token * queue.new_tokens / MS
    return [f"load {load:.2f}: own tokens {steps:.0f} ms, cached part {fetch:.0f} ms, others {max(0.0, mean / MS - steps - fetch):.0f} ms"
            for load, mean in zip(curve.load.tolist(), curve.mean.tolist(), strict=True)]


def _layout() -> dict[str, Any]:
    return dict(xaxis=dict(type="log", tickvals=LOG_TICKS, tickformat=",d"), yaxis=dict(rangemode="tozero"))


def _targets(curve: PrefillFrontier, mean: float, tail: float) -> list[go.Scatter]:
    """The two reported limits as vertical lines, told apart by dash."""
    return [go.Scatter(x=[limit / MS] * 2, y=[0, curve.capacity], mode="lines", name=f"reported {name}, {limit / MS:,.0f} ms",
                       line=dict(color=colour("muted"), width=1.5, dash=dash))
            for name, limit, dash in (("mean", mean, "dash"), ("P99", tail, "dot"))]


def chunks(scenario: Scenario, preset: str = "published") -> go.Figure:
    """P99 against throughput for chunk sizes from small to large."""
    return _compare(prefill_curves.by_chunk(scenario, preset, CHUNKS), "prefill-chunks", lambda chunk: f"chunk {chunk:,}", "chunk")


def bursts(scenario: Scenario, preset: str = "published") -> go.Figure:
    """P99 against throughput for a Poisson stream and for bursts."""
    values = (1.0, load_facts().number("prefill.burst_bursty"), 4 * load_facts().number("prefill.burst_bursty"))
    curves = [(burst, prefill_curves.frontier(scenario, preset, burst=burst)) for burst in values]
    return _compare(curves, "prefill-bursts", lambda burst: "Poisson" if burst == 1 else f"bursts of {burst:g}", "requests per burst")


def _compare(curves: Sequence[tuple[float, PrefillFrontier]], name: str, label: Any, column: str) -> go.Figure:
    mean, tail = prefill_curves.targets()
    traces = [line(curve.p99 / MS, curve.per_gpu, label(value), order, customdata=curve.mean / MS,
                   hovertemplate=f"{label(value)}: P99 %{{x:.0f}} ms, mean %{{customdata:.0f}} ms, %{{y:,.0f}}/s<extra></extra>")
              for order, (value, curve) in enumerate(curves)]
    top = max(curves, key=lambda pair: pair[1].capacity)[1]
    traces.append(_targets(top, mean, tail)[1])
    table = pd.concat([pd.DataFrame({column: value, "load": curve.load, "new tokens per second and GPU": curve.per_gpu,
                                     "mean (ms)": curve.mean / MS, "99th percentile (ms)": curve.p99 / MS})
                       for value, curve in curves])
    best = [(label(value), float(np.interp(tail, np.maximum.accumulate(curve.p99), curve.per_gpu, left=0.0))) for value, curve in curves]
    said = ", ".join(f"{digits(rate, 3)} with {what}" if rate else f"none with {what}" for what, rate in best)
    alt = f"New tokens per second and GPU with a 99th percentile of at most {tail / MS:,.0f} ms: {said}."
    return finish(go.Figure(traces, _layout()), name=name, alt=alt, table=table, x="P99 of the time to first token (ms)",
                  y=NEW, height=420, sources=SOURCES)


def hit_rates(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Input tokens per second with cached ones counted: the identity, the count, and the count without bounded replay."""
    found = prefill_curves.by_hit_rate(scenario, preset)
    rates = found["hit_rate"]
    facts = load_facts()
    published = facts.number("prefill.hit_rate"), facts.number("prefill.throughput_cached")
    traces = [line(rates, found["prefill_throughput_cached"], f"identity, {digits(scenario.prefill_throughput_new)} / (1 - h)", 0),
              line(rates, found["prefill_capacity_cached"], "counted", 1),
              line(rates, found["full_cached"], "counted, all layers for every new token", 2),
              points([published[0]], [published[1]], "as published", "reported")]
    if scenario.hit_rate < 1:
        here = float(catalogue.value("prefill_capacity_cached", scenario, preset))
        traces.append(points([scenario.hit_rate], [here], "this scenario", "choice"))
    table = pd.DataFrame({"hit rate": rates, "identity (token/s)": found["prefill_throughput_cached"],
                          "counted (token/s)": found["prefill_capacity_cached"], "without replay (token/s)": found["full_cached"]})
    gaps = np.abs(found["prefill_throughput_cached"] / found["prefill_capacity_cached"] - 1)
    close = rates <= published[0]
    alt = (f"Up to {percent(published[0], 0)} hits the identity is within {percent(float(gaps[close].max()), 0)} of the count; at "
           f"{percent(rates[-1])} it is {percent(float(gaps[-1]), 0)} off. At {percent(scenario.hit_rate)} hits the count gives "
           f"{digits(here, 3)} tokens per second and GPU, cached ones included. "
           f"From {percent(float(catalogue.value('network_hit_rate', scenario, preset)))} hits the network to the KV store binds.")
    return finish(go.Figure(traces, dict(yaxis=dict(type="log", dtick=1), xaxis=dict(tickformat=".0%"), margin=dict(r=32))),
                  name="prefill-hit-rate", alt=alt, table=table, x="cache hit rate",
                  y="input tokens per second and GPU", height=420, sources=SOURCES)


def h100_check() -> go.Figure:
    """Eight H100, one request at a time: time per prompt token and per output token, measured and predicted."""
    seen = third_party.h100()
    per_token = [seen.first_token / seen.input_tokens / US, seen.first_token_model / seen.input_tokens / US]
    traces = []
    for axis, measured, model in (("", *per_token), ("2", seen.token_time / MS, seen.token_time_model / MS)):
        where = dict(xaxis=f"x{axis}", yaxis=f"y{axis}", showlegend=not axis)
        traces += [points(seen.input_tokens, measured, "measured", "measured", **where),
                   line(seen.input_tokens, model, "model", 0, **where)]
    ticks = dict(type="log", tickvals=[1024, 8192, 65536, 262144], tickformat=",d")
    figure = go.Figure(traces, dict(
        yaxis=dict(domain=[0.58, 1.0], rangemode="tozero", title=dict(text="µs per prompt token")), xaxis=ticks | dict(anchor="y"),
        yaxis2=dict(domain=[0.0, 0.4], anchor="x2", rangemode="tozero", title=dict(text="ms per output token")),
        xaxis2=ticks | dict(anchor="y2", title=dict(text="prompt length (tokens)"))))
    table = pd.DataFrame({"prompt length": seen.input_tokens, "prompt token, measured (µs)": per_token[0],
                          "predicted (µs)": per_token[1], "output token, measured (ms)": seen.token_time / MS,
                          "output token, predicted (ms)": seen.token_time_model / MS})
    alt = (f"An output token takes {digits(seen.token_time[0] / MS, 3)} ms and is predicted at {digits(seen.token_time_model[0] / MS, 3)} "
           f"ms. A prompt token takes {digits(float(np.median(per_token[0] / per_token[1])), 2)} times as long as predicted, at nearly "
           "every length.")
    return finish(figure, name="prefill-h100", alt=alt, table=table, height=480, sources=("h100-report", "inside-deepinfer"))
