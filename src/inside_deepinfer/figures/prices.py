"""Figures of the money: effective input price, revenue per GPU-hour, what the workload does to it, what moves it."""

from __future__ import annotations

from textwrap import wrap

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, load_facts, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, pattern, points
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario, parameters
from inside_deepinfer.studies.swings import money_swings

SOURCES = ("article-000", "article-004", "price-deepseek-cny")
HIT_RATES = np.round(np.concatenate([np.linspace(0, 0.9, 46), np.linspace(0.905, 0.995, 37)]), 6)
PRINTED = (("price.effective_80", 0.80), ("price.effective_96", 0.96))  # claim, the hit rate it speaks of
PARTS = (("cached input", "blue", ""), ("new input", "orange", "/"), ("output", "green", "."))
RIDGE = "#e8452c"  # no role colour: it lies on the colour scale, which is the same on both pages
UNITS = ("prefill", "decode", "cluster,<br>pools full", "cluster,<br>this workload")


def effective_price_curve(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Effective input price against hit rate; our points at 80 %, 96 % and the scenario's hit rate, the article's beside."""
    marks = np.array([rate for _, rate in PRINTED])
    rates = np.concatenate([HIT_RATES, marks, [scenario.hit_rate]])
    price = catalogue.value("effective_input_price", scenario, preset, hit_rate=rates)
    curve, ours, here = price[:len(HIT_RATES)], price[len(HIT_RATES):-1], price[-1]
    currency = scenario.currency
    data = [line(HIT_RATES, curve, "effective input price", 0),
            points(marks, ours, "computed at 80 % and 96 %", "derived")]
    if preset == "published" and _list_is_published(scenario):
        data.append(points(marks, [load_facts().number(claim) for claim, _ in PRINTED], "as the article rounds it", "estimate"))
        data[-1].marker.size = 18  # a ring around our point, since the two nearly coincide
    if scenario.hit_rate not in marks:
        data.append(points([scenario.hit_rate], [here], "this scenario", "choice"))
    figure = go.Figure(data, dict(xaxis=dict(tickformat=".0%"), yaxis=dict(rangemode="tozero")))
    table = pd.DataFrame({"hit rate": np.r_[HIT_RATES, marks], f"effective input price ({currency}/Mtoken)": np.r_[curve, ours]})
    table = table.drop_duplicates().sort_values("hit rate")
    alt = (f"Effective input price against hit rate, a falling straight line. At {percent(marks[1], 0)} hits a million input "
           f"tokens cost {digits(ours[1], 3)} {currency}, at {percent(marks[0], 0)} they cost {digits(ours[0], 3)} {currency}.")
    return finish(figure, name="effective-price", alt=alt, table=table, x="cache hit rate",
                  y=f"effective input price ({currency}/Mtoken)", sources=SOURCES)


def revenue_parts(scenario: Scenario, preset: str = "published", **arrays: object) -> dict[str, np.ndarray]:
    """Revenue by part of the price list; each result has a last axis of hit, miss, output (USD per GPU-hour).

    The model is asked once with each of the three prices alone, so that the parts come from the same functions as the sum.
    """
    alone = np.eye(3) * np.array([scenario.price_hit, scenario.price_miss, scenario.price_output])
    wanted = ["revenue_per_prefill_gpu_hour", "revenue_per_decode_gpu_hour", "revenue_per_cluster_gpu_hour",
              "workload_revenue_per_cluster_gpu_hour"]
    found = catalogue.evaluate(wanted, scenario, preset, price_hit=alone[0], price_miss=alone[1], price_output=alone[2],
                               **{name: np.asarray(value)[..., None] for name, value in arrays.items()})
    return {name: np.asarray(found[name].value, dtype=float) for name in wanted}


def revenue_split(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Revenue per prefill, per decode and per GPU of the cluster, split into cached input, new input and output."""
    parts = np.stack(list(revenue_parts(scenario, preset).values()))
    published, totals = load_facts().number("fleet.revenue_per_gpu_hour"), parts.sum(axis=1)
    bars = [go.Bar(y=UNITS, x=parts[:, n], name=label, orientation="h", marker=pattern(role, shape),
                   hovertemplate="%{y}, " + label + ": %{x:.2f} USD<extra></extra>")
            for n, (label, role, shape) in enumerate(PARTS)]
    sums = go.Scatter(y=UNITS, x=totals, mode="text", text=[f" {total:.2f}" for total in totals], textposition="middle right",
                      showlegend=False, hoverinfo="skip", cliponaxis=False)
    stated = points([published], ["cluster,<br>as published"], "as published", "reported", showlegend=False,
                    mode="markers+text", text=[f"  {published:.0f}"], textposition="middle right")
    figure = go.Figure([*bars, sums, stated], dict(
        barmode="stack", bargap=0.35, legend=dict(traceorder="normal"), yaxis=dict(autorange="reversed"),
        xaxis=dict(range=[0, 1.15 * max(totals.max(), published)])))
    table = pd.DataFrame({"unit": ["per " + unit.replace("<br>", " ") for unit in UNITS]}
                         | {f"{label} (USD/h)": parts[:, n] for n, (label, *_) in enumerate(PARTS)} | {"sum (USD/h)": totals})
    alt = (f"List-price revenue per hour: {digits(totals[0])} USD per prefill GPU ({digits(parts[0, 0])} from cached and "
           f"{digits(parts[0, 1])} from new input), {digits(totals[1])} USD per decode GPU, {digits(totals[2])} USD per GPU of "
           f"the cluster with both pools full, {digits(totals[3])} USD for this workload; {digits(published)} USD is published.")
    return finish(figure, name="revenue-split", alt=alt, table=table, x="revenue (USD per GPU-hour)", y="per GPU of", height=380,
                  sources=SOURCES)


def revenue_surface(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Revenue per GPU-hour of the cluster over input tokens per output token and prefill GPUs per decode GPU."""
    inputs, cards = np.geomspace(5, 1000, 41), np.geomspace(0.1, 10, 41)
    surface = catalogue.value("workload_revenue_per_cluster_gpu_hour", scenario, preset,
                              input_output_ratio=inputs[None, :], pd_ratio=cards[:, None])
    ridge = catalogue.value("balanced_pd_ratio", scenario, preset, input_output_ratio=inputs)
    now = catalogue.evaluate(["workload_revenue_per_cluster_gpu_hour", "balanced_pd_ratio"], scenario, preset)
    here, best = (quantity.value for quantity in now.values())
    shown = (ridge >= cards[0]) & (ridge <= cards[-1])
    data = [go.Contour(x=inputs.round(3), y=cards.round(4), z=surface.round(3), colorscale="Cividis", ncontours=14,
                       colorbar=dict(title=dict(text="USD per<br>GPU-hour", font=dict(size=12)), thickness=12, outlinewidth=0),
                       contours=dict(showlines=False),
                       hovertemplate="%{x:.0f} in per out, %{y:.2f} P per D: %{z:.1f} USD/(GPU·h)<extra></extra>")]
    if shown.any():
        data.append(go.Scatter(x=inputs[shown], y=ridge[shown], mode="lines", name="both pools full",
                               line=dict(color=RIDGE, width=3, dash="dash")))
    data.append(points([scenario.input_output_ratio], [scenario.pd_ratio], "this scenario", "choice"))
    data[-1].marker.update(color=RIDGE, size=14, line=dict(color="white", width=1.5))
    ticks = dict(type="log", dtick=1, tickformat=",~g", minor=dict(dtick="D1", ticks="outside", showgrid=False))
    figure = go.Figure(data, dict(xaxis=dict(ticks, range=np.log10(inputs[[0, -1]]).tolist()),
                                  yaxis=dict(ticks, range=np.log10(cards[[0, -1]]).tolist())))
    columns = [0, 10, 20, 30, 40]
    table = pd.DataFrame({"prefill GPUs per decode GPU": cards[::5]}
                         | {f"{digits(inputs[c], 3)} in per out (USD/(GPU*h))": surface[::5, c] for c in columns})
    alt = (f"Revenue per GPU-hour of the cluster over the workload and the ratio of cards. It is {digits(here)} USD at "
           f"{digits(scenario.input_output_ratio)} input tokens per output token and a P:D ratio of {digits(scenario.pd_ratio)}; "
           f"for that workload the ridge, where neither pool waits, is at a P:D ratio of {digits(best, 3)}.")
    return finish(figure, name="revenue-surface", alt=alt, table=table, x="input tokens per output token",
                  y="prefill GPUs per decode GPU", height=420, sources=SOURCES)


def sensitivity(scenario: Scenario, preset: str = "published",
                result: str = "workload_revenue_per_cluster_gpu_hour") -> go.Figure:
    """Every input 10 % down and up, ranked by what it does to ``result``."""
    everything = money_swings(scenario, preset, result)
    ranked = [swing for swing in everything if swing.span > 1e-9 * abs(swing.base)][::-1] or everything[:1]
    entry, base = catalogue.CATALOGUE[result], ranked[0].base
    names = ["miss rate (1 - hit rate)" if swing.complement else str(parameters()[swing.name].label) for swing in ranked]
    # a share is moved by its complement, so "10 % less" of the misses is the high end of the hit rate
    less = np.array([swing.at_high if swing.complement else swing.at_low for swing in ranked])
    more = np.array([swing.at_low if swing.complement else swing.at_high for swing in ranked])
    wrapped = ["<br>".join(wrap(name, 20)) for name in names]  # half of a phone's width is left for the bars
    bars = [go.Bar(y=wrapped, x=(ends - base).round(6), base=base, orientation="h", name=label, customdata=ends,
                   hovertemplate="%{y}, " + label + ": %{customdata:.2f}<extra></extra>",
                   marker=pattern(role, shape))
            for label, ends, role, shape in (("10 % less", less, "orange", "/"), ("10 % more", more, "blue", ""))]
    figure = go.Figure(bars, dict(barmode="group", bargap=0.3, shapes=[dict(
        type="line", x0=base, x1=base, y0=0, y1=1, yref="paper", line=dict(color=colour("ink"), width=1.5))]))
    unit = entry.unit.replace("*", "·")
    table = pd.DataFrame({"input": names, f"10 % less ({unit})": less, f"10 % more ({unit})": more,
                          "elasticity over the step": [swing.elasticity for swing in ranked]})[::-1]
    top = names[-1]
    alt = (f"Inputs ranked by what 10 % of each does to the {entry.label} of {digits(base)} {unit}. First is {top}: "
           f"{digits(less[-1])} with 10 % less, {digits(more[-1])} with 10 % more. Last is {names[0]}.")
    return finish(figure, name="sensitivity", alt=alt, table=table, x=f"result ({unit})", height=130 + 42 * len(names),
                  sources=SOURCES)


def _list_is_published(scenario: Scenario) -> bool:
    facts = load_facts()
    return (scenario.price_hit, scenario.price_miss) == (facts.number("price.v41.cny.hit"), facts.number("price.v41.cny.miss"))
