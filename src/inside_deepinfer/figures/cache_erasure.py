"""Figures of the store's failures: what parity buys, and what silent servers cost in reads and in prefill."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.cache.erasure import extra_prefill_with_parity, extra_prefill_without_parity, prefix_lost, unreadable_share
from inside_deepinfer.facts import digits, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.scenario import Scenario

SOURCES = ("article-001", "backblaze-ssd-2023", "inside-deepinfer")
_FLOOR = 1e-18  # below this a chance is drawn at the edge
DOWN = np.logspace(-4, np.log10(0.2), 61)


def loss_by_parity(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Chance per year that the store loses some stripe, against the number of parity shards."""
    parity = np.arange(0, 6)
    chance = np.asarray(catalogue.value("store_loss_per_year", scenario, preset, ps=parity))
    found = catalogue.evaluate(["store_loss_per_year", "erasure_overhead"], scenario, preset)
    now, overhead = float(found["store_loss_per_year"].value), found["erasure_overhead"].value
    code = f"{scenario.data_shards}+{scenario.parity_shards}"
    figure = go.Figure([line(parity, np.maximum(chance, _FLOOR), "loss per year", 0),
                        points([scenario.parity_shards], [max(now, _FLOOR)], "this scenario", "derived")],
                       dict(xaxis=dict(dtick=1), yaxis=dict(type="log", dtick=3, exponentformat="power")))
    table = pd.DataFrame({"parity shards": parity, "chance of a loss per year": chance,
                          "raw bytes per stored byte": (scenario.data_shards + parity) / scenario.data_shards})
    alt = (f"Some stripe loses more shards than its parity {_how_often(now)} with {code}, at {digits(overhead)} raw bytes per stored byte; "
           f"{_how_often(chance[1])} with one parity shard, {_how_often(chance[0])} with none. Stripes lie over all servers, and "
           "failures are independent here.")
    return finish(figure, name="loss-by-parity", alt=alt, table=table, x="parity shards", y="chance of a loss per year",
                  sources=SOURCES)


def _how_often(chance: float) -> str:
    """A chance per year in words."""
    if chance > 0.9:
        return "practically every year"
    return f"with a chance of {percent(chance, 0)} a year" if chance > 0.1 else f"once in {digits(1 / max(chance, _FLOOR), 2)} years"


def silent_servers(scenario: Scenario, preset: str = "published") -> go.Figure:
    """More prefill work when a share of the store's servers does not answer, without and with parity."""
    hit = scenario.hit_rate
    blocks = float(catalogue.value("hit_blocks", scenario, preset))
    without = np.asarray(extra_prefill_without_parity(prefix_lost(DOWN, blocks), hit))
    unreadable = unreadable_share(scenario.data_shards, scenario.parity_shards, DOWN)
    parity = np.asarray(extra_prefill_with_parity(prefix_lost(unreadable, blocks), hit))
    found = catalogue.evaluate(["extra_prefill_without_parity", "extra_prefill_with_parity", "read_amplification",
                                "storage.server_down"], scenario, preset)
    plain, coded, read, down = (float(quantity.value) for quantity in found.values())
    code = f"{scenario.data_shards}+{scenario.parity_shards}"
    figure = go.Figure(
        [line(DOWN, without, "no parity", 0), line(DOWN, np.maximum(parity, 1e-12), code, 1),
         points([down, down], [plain, coded], "assumed share of silent servers", "assumption")],
        dict(xaxis=dict(type="log", tickformat=".2~%", dtick=1), yaxis=dict(type="log", dtick=2, exponentformat="power")))
    table = pd.DataFrame({"share of servers that do not answer": DOWN, "more prefill without parity": without,
                          "more prefill with parity": parity})
    alt = (f"With {percent(down)} of the store's servers silent, prefill work without parity grows by {digits(plain, 3)} times its usual "
           f"amount; with {code} it grows by {percent(coded, 1)}, and {digits(read)} bytes are read per byte wanted. A hit ends at the "
           "first block that cannot be read.")
    return finish(figure, name="silent-servers", alt=alt, table=table, x="share of servers that do not answer",
                  y="more prefill work (ratio)", sources=SOURCES)
