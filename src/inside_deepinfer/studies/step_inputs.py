"""Inputs of the step budget beside model, card and scenario: what a table must show so that a reader sees which are assumed."""

from __future__ import annotations

from dataclasses import replace

from inside_deepinfer import catalogue
from inside_deepinfer.facts import Quantity
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.cards import get_card

EXCHANGE = ("link.dispatch_format", "link.combine_format", "card_link_bandwidth", "card_domain", "link.scaleout_bandwidth",
            "efficiency.link", "link.latency", "link.exchanges_per_layer")
STEP = ("hardware.hbm_efficiency", "efficiency.gemm", "efficiency.attention", "launch.per_kernel", "launch.kernels_per_layer",
        "overlap", "rows_per_sequence", "selection_overlap")


def step_inputs(scenario: Scenario, preset: str = "published", names: tuple[str, ...] = (*EXCHANGE, *STEP)) -> list[Quantity]:
    """The named inputs with kind and sources; a card's own numbers take both from its entry in data/hardware."""
    stated = tuple(get_card(scenario.card).source)
    return [replace(found, kind="reported", sources=stated) if name.startswith("card_") else found
            for name, found in catalogue.evaluate(names, scenario, preset).items()]
