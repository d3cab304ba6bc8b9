"""Figures of the five-minute rule: how long a token's KV is worth keeping, against SSD price, GPU price and reuse."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, load_facts, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.scenario import Scenario

SOURCES = ("gray-five-minute", "ssd-price-vdura", "mooncake-traces", "article-000", "article-001")
SSD_PRICES = np.logspace(1.3, 3.3, 61)  # USD/TB
GPU_FACTORS = (0.5, 1.0, 2.0)  # times the scenario's cost of a GPU-hour
REUSE = np.logspace(-3, 0, 61)
SLIDER_PRICES = (50.0, 75.0, 102.0, 150.0, 200.0, 300.0, 365.0, 500.0, 750.0, 1000.0)  # USD/TB
_BOTTOM, _TOP = 0.02, 3000.0  # days


def break_even(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Break-even retention against SSD price for three prices of a GPU-hour, and at the customer's list prices."""
    found = catalogue.evaluate(["break_even_days", "customer_break_even_days", "cost_per_gpu_hour"], scenario, preset)
    own, customer, cost = (float(quantity.value) for quantity in found.values())
    costs = [cost * factor for factor in GPU_FACTORS]
    paid = np.array([load_facts().number(name) for name in ("ssd.price_2025", "ssd.price")])
    # the whole cost is moved through one of its two parts
    moved = catalogue.evaluate(["break_even_days", "customer_break_even_days"], scenario, preset,
                               ssd_price=np.concatenate([SSD_PRICES, paid]), gpu_cost=0.0, infra_cost=np.array(costs)[:, None])
    all_days, listed = (np.asarray(quantity.value) for quantity in moved.values())
    curves, listed = all_days[:, :len(SSD_PRICES)], listed[:len(SSD_PRICES)]
    at = all_days[GPU_FACTORS.index(1.0), len(SSD_PRICES):]
    figure = go.Figure(
        [line(SSD_PRICES, curve, f"GPU-hour at {digits(part, 3)} USD", order)
         for order, (part, curve) in enumerate(zip(costs, curves, strict=True))]
        + [line(SSD_PRICES, listed, "list price, miss less hit", 3), *_kept(scenario, SSD_PRICES[[0, -1]]),
           points(paid, at, "drive prices of 2025 and 2026", "measured")],
        dict(xaxis=dict(type="log", dtick="D2"), yaxis=dict(type="log", dtick=1)))
    table = pd.DataFrame({"SSD price (USD/TB)": SSD_PRICES}
                         | {f"break-even at {digits(part, 3)} USD per GPU-hour (day)": curve
                            for part, curve in zip(costs, curves, strict=True)}
                         | {"break-even at list prices (day)": listed})
    alt = (f"Days on SSD that cost as much as computing a token again, if {percent(scenario.reuse_probability, 0)} of stored "
           f"tokens are read again: {digits(own, 3)} days at {digits(scenario.ssd_price, 3)} USD per TB and {digits(cost, 3)} USD per "
           f"GPU-hour, {digits(customer, 3)} days at list prices. Agents are kept {digits(scenario.retention_days)} days, chat "
           f"{digits(scenario.retention_chat_days)}.")
    return finish(figure, name="break-even-retention", alt=alt, table=table, x="SSD price (USD/TB)",
                  y="break-even retention (days)", height=440, sources=SOURCES)


def break_even_by_reuse(scenario: Scenario, preset: str = "published") -> go.Figure:
    """The same against the share of stored tokens that are read again, while the reader moves the SSD price."""
    prices = sorted({*SLIDER_PRICES, float(scenario.ssd_price)})
    return movable([_by_reuse(scenario, preset, price) for price in prices], [f"{price:g}" for price in prices], "SSD price",
                   start=prices.index(float(scenario.ssd_price)), suffix=" USD/TB")


def _by_reuse(scenario: Scenario, preset: str, price: float) -> go.Figure:
    reuse = np.r_[REUSE, scenario.reuse_probability]
    own, listed = (catalogue.value(name, scenario, preset, ssd_price=price, reuse_probability=reuse)
                   for name in ("break_even_days", "customer_break_even_days"))
    figure = go.Figure(
        [line(REUSE, own[:-1], "GPU time to compute again", 0), line(REUSE, listed[:-1], "list price, miss less hit", 1),
         *_kept(scenario, REUSE[[0, -1]]),
         points([scenario.reuse_probability], [own[-1]], "reuse in this scenario", "measured")],
        dict(xaxis=dict(type="log", tickformat=".1%", dtick=1),
             yaxis=dict(type="log", dtick=1, range=np.log10([_BOTTOM, _TOP]).tolist())))
    table = pd.DataFrame({"share of stored tokens read again": REUSE, "break-even, GPU time (day)": own[:-1],
                          "break-even, list price (day)": listed[:-1]})
    alt = (f"With SSD at {digits(price, 3)} USD per TB and {percent(scenario.reuse_probability, 0)} of stored tokens read again, "
           f"keeping pays for {digits(own[-1], 3)} days against GPU time and for {digits(listed[-1], 3)} days at list prices.")
    return finish(figure, name="break-even-by-reuse", alt=alt, table=table, x="share of stored tokens that are read again",
                  y="break-even retention (days)", height=440, sources=SOURCES)


def _kept(scenario: Scenario, ends: np.ndarray) -> list[go.Scatter]:
    """Two levels: how long agents and chat are kept."""
    return [line(ends, [days, days], f"{label} kept {digits(days)} days", order)
            for label, days, order in (("agents", scenario.retention_days, 4), ("chat", scenario.retention_chat_days, 5))]
