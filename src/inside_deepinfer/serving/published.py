"""The published operating point as inputs of the derived numbers, for calculations below the scenario."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from inside_deepinfer.facts import Quantity, load_facts, resolve
from inside_deepinfer.serving.facts_of_parameters import FACT_OF

# modules whose derived numbers are asked for; importing them registers the numbers
for _module in ("model.counts", "model.weights", "model.kv", "model.flops", "serving.cards", "serving.efficiencies", "serving.hbm",
                "serving.kv_reads", "serving.links", "serving.step_budget", "serving.capacity", "serving.fleet", "serving.article",
                "serving.decode_frontier", "serving.prefill_frontier", "serving.speculation"):
    importlib.import_module(f"inside_deepinfer.{_module}")


def at_published(wanted: Iterable[str], **changes: Any) -> dict[str, Any]:
    """Values of derived numbers at the published point.

    Args:
        wanted: names of derived numbers.
        changes: scenario parameters, derived numbers or facts (dots written as ``__``) to replace, also by arrays.
    """
    facts = load_facts()
    given = {name: facts.quantity(fact) for name, fact in FACT_OF.items()}
    for key, value in changes.items():
        name = key.replace("__", ".")
        given[name] = Quantity(name, value, "", "choice")
    return {name: quantity.value for name, quantity in resolve(list(wanted), given).items()}
