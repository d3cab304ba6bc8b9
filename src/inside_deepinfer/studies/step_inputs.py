"""Inputs of the step budget beside model, card and scenario: what a table must show so that a reader sees which are assumed."""

from __future__ import annotations

from dataclasses import replace

from inside_deepinfer import catalogue
from inside_deepinfer.facts import Quantity
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.cards import get_card
from inside_deepinfer.serving.efficiencies import MEASURED

EXCHANGE = ("dispatch_format", "combine_format", "card_link_bandwidth", "card_domain", "scaleout_bandwidth", "crossing",
            "efficiency.link", "link.latency", "link.exchanges_per_layer")
STEP = ("hardware.hbm_efficiency", "efficiency.gemm", "efficiency.attention", "launch.per_kernel", "launch.kernels_per_layer",
        "overlap", "rows_per_sequence", "selection_overlap")


# assumed input -> derived numbers that stand for it where measured efficiencies are chosen, each with its measurement
SWITCHED = {"hardware.hbm_efficiency": {"weight_read_efficiency": "experts", "kv_read_efficiency": "bandwidth"},
            "efficiency.gemm": {"product_efficiency": "experts"}, "efficiency.link": {"exchange_efficiency": "alltoall"},
            "launch.per_kernel": {"kernel_time": "launch"}}


def step_inputs(scenario: Scenario, preset: str = "published", names: tuple[str, ...] = (*EXCHANGE, *STEP)) -> list[Quantity]:
    """The named inputs with kind and sources; a card's own numbers take both from its entry in data/hardware.

    Measured efficiencies are measured on the scenario's own card, or assumed to be those of the card that was measured.
    """
    stated, measured = tuple(get_card(scenario.card).source), scenario.efficiencies == MEASURED
    wanted = [node for name in names for node in (SWITCHED.get(name, (name,)) if measured else (name,))]
    found = catalogue.evaluate(wanted, scenario, preset)
    return [_with_source(scenario, quantity, name, stated) for name, quantity in found.items()]


def _with_source(scenario: Scenario, quantity: Quantity, name: str, stated: tuple[str, ...]) -> Quantity:
    if name == "card_domain" and scenario.scaleup_domain:
        return replace(quantity, kind="choice", sources=())
    if name.startswith("card_"):
        return replace(quantity, kind="reported", sources=stated)
    measurement = next((nodes[name] for nodes in SWITCHED.values() if name in nodes), "")
    if not measurement:
        return quantity
    from inside_deepinfer.studies.measured import is_own  # imports pandas

    return replace(quantity, kind="measured" if is_own(scenario, measurement) else "assumption", sources=("gpu-runs",))
