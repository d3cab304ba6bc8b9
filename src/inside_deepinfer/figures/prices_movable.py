"""The figures that chapters 3 and 4 let the reader move: price ratio, hit rate across vendors, ratio of cards."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import NotPossible, digits, load_facts, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.figures.prices import SOURCES
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.prices import effective_input_price

RATIOS = (1.0, 2.0, 4.0, 5.0, 10.0, 20.0, 30.0, 50.0, 120.0)  # miss over hit; what DeepSeek and others have listed lies within
RATES = np.round(np.r_[np.linspace(0.5, 0.9, 21), np.linspace(0.905, 0.995, 19)], 6)
CARDS = (0.25, 0.33, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
VENDOR_RATES = (0.0, 0.25, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0)


def price_ratio(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Effective input price and its two parts against hit rate, while the reader moves the price of a miss over a hit."""
    if not scenario.price_hit > 0:
        raise NotPossible("where a cached token is free, no miss costs so many times as much")
    start = int(np.argmin(np.abs(np.array(RATIOS) - catalogue.value("miss_over_hit", scenario, preset))))
    return movable([_parts(scenario, preset, ratio) for ratio in RATIOS], [f"{ratio:g}" for ratio in RATIOS],
                   "price of a miss over a hit", start)


def _parts(scenario: Scenario, preset: str, ratio: float) -> go.Figure:
    hit, miss = scenario.price_miss / ratio, scenario.price_miss
    rates = np.r_[RATES, scenario.hit_rate]
    total = catalogue.value("effective_input_price", scenario, preset, hit_rate=rates, price_hit=hit)
    # the same function with the other price at zero gives one part of the sum
    hits = catalogue.value("effective_input_price", scenario, preset, hit_rate=rates, price_hit=hit, price_miss=0.0)
    misses = catalogue.value("effective_input_price", scenario, preset, hit_rate=rates, price_hit=0.0)
    balance = catalogue.value("balancing_hit_rate", scenario, preset, price_hit=hit)
    level = catalogue.value("effective_input_price", scenario, preset, hit_rate=balance, price_hit=hit, price_miss=0.0)
    here = total[-1]
    figure = go.Figure([
        line(RATES, total[:-1], "effective input price", 0), line(RATES, misses[:-1], "paid for misses", 1),
        line(RATES, hits[:-1], "paid for hits", 2), points([balance], [level], "both halves equal", "derived"),
        points([scenario.hit_rate], [here], "reported hit rate", "reported")],
        dict(margin=dict(r=32), xaxis=dict(tickformat=".0%", range=[0.5, 1.0]),
             yaxis=dict(type="log", range=np.log10([0.004 * miss, 1.2 * miss]).tolist(), dtick="D2", tickformat="~g")))
    unit = f"{scenario.currency}/Mtoken"
    table = pd.DataFrame({"hit rate": RATES, f"effective input price ({unit})": total[:-1],
                          f"paid for misses ({unit})": misses[:-1], f"paid for hits ({unit})": hits[:-1]})
    alt = (f"With a miss at {ratio:g} times the price of a hit, an input token costs {digits(here, 3)} {unit} at "
           f"{percent(scenario.hit_rate, 0)} hits; hits and misses bring the same at {percent(balance, 2)}.")
    return finish(figure, name="price-ratio", alt=alt, table=table, x="cache hit rate", y=f"price of an input token ({unit})",
                  height=400, sources=SOURCES)


def vendors(start: float = 0.96) -> go.Figure:
    """What an input token costs on average, as a share of its uncached price, by vendor, while the reader moves the hit rate."""
    listed = [row for row in load_facts().vendor_prices.values() if row.cache_read is not None]
    listed.sort(key=lambda row: (row.cache_read or 0) / row.input)
    read = np.array([row.cache_read for row in listed]) / np.array([row.input for row in listed])
    names = [row.model for row in listed]
    figures = []
    for rate in VENDOR_RATES:
        share = effective_input_price(rate, read, np.ones_like(read))
        figure = go.Figure(
            [go.Bar(y=names, x=share, orientation="h", text=[percent(part) for part in share], textposition="outside",
                    cliponaxis=False, showlegend=False, hovertemplate="%{y}: %{x:.1%}<extra></extra>",
                    marker=dict(color=[colour("orange" if name.startswith("V4.1") else "blue") for name in names]))],
            dict(margin=dict(t=16), xaxis=dict(tickformat=".0%", range=[0, 1.12]), yaxis=dict(autorange="reversed")))
        table = pd.DataFrame({"vendor": [row.vendor for row in listed], "model": names, "cached over uncached price": read,
                              f"mean price over uncached price at {percent(rate, 0)} hits": share,
                              "uncached input (USD/Mtoken)": [row.input for row in listed],
                              "listed on": [row.date for row in listed]})
        alt = (f"At {percent(rate, 0)} hits an input token costs {percent(share[0])} of its uncached price at {names[0]} and "
               f"{percent(share[-1])} at {names[-1]}.")
        figures.append(finish(figure, name="vendor-discount", alt=alt, table=table, x="share of the uncached price",
                              height=130 + 27 * len(names), sources=tuple(dict.fromkeys(row.source for row in listed))))
    return movable(figures, [f"{100 * rate:.0f}" for rate in VENDOR_RATES], "cache hit rate", VENDOR_RATES.index(start), " %")


def cards_ratio(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Revenue per GPU-hour of the cluster against hit rate, by both formulas, while the reader moves the ratio of cards."""
    start = int(np.argmin(np.abs(np.array(CARDS) - scenario.pd_ratio)))
    wanted = ["revenue_per_cluster_gpu_hour", "workload_revenue_per_cluster_gpu_hour"]
    rates = np.r_[RATES, scenario.hit_rate]
    found = catalogue.evaluate(wanted, scenario, preset, hit_rate=rates[None, :], pd_ratio=np.array(CARDS)[:, None])
    full, served = (found[name].value for name in wanted)
    top = 1.05 * float(full[:, rates <= 0.98].max())
    published = load_facts().number("fleet.revenue_per_gpu_hour")
    steps = []
    for place, cards in enumerate(CARDS):
        figure = go.Figure([
            line(RATES, full[place, :-1], "both pools full", 0), line(RATES, served[place, :-1], "this workload", 1),
            points([scenario.hit_rate], [published], "as published", "reported")],
            dict(margin=dict(r=32), xaxis=dict(tickformat=".0%", range=[0.5, 1.0]), yaxis=dict(range=[0, min(top, 90)])))
        table = pd.DataFrame({"hit rate": RATES, "both pools full (USD/(GPU*h))": full[place, :-1],
                              "this workload (USD/(GPU*h))": served[place, :-1]})
        alt = (f"With {cards:g} prefill GPUs per decode GPU and {percent(scenario.hit_rate, 0)} hits a GPU of the cluster brings "
               f"{digits(full[place, -1])} USD an hour if both pools are full and {digits(served[place, -1])} USD for "
               f"{digits(scenario.input_output_ratio)} input tokens per output token.")
        steps.append(finish(figure, name="revenue-cards", alt=alt, table=table, x="cache hit rate",
                            y="revenue (USD per GPU-hour)", sources=SOURCES))
    return movable(steps, [f"{cards:g}" for cards in CARDS], "prefill GPUs per decode GPU", start)
