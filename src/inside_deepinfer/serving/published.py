"""The published operating point as inputs of the derived numbers, for calculations below the scenario."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from inside_deepinfer.facts import Quantity, load_facts, resolve

# scenario parameter -> fact of its published value (the same facts that scenario.py declares)
FACT_OF = {
    "model": "scenario.model", "card": "scenario.card", "ep": "scenario.ep", "redundant_experts": "scenario.redundant_experts",
    "context": "scenario.context", "batch": "decode.sequences", "rows_per_sequence": "decode.rows_per_sequence",
    "overlap": "step.overlap", "selection_overlap": "decode.selection_overlap", "tokens_per_step": "article.tokens_per_step",
    "dispatch_format": "link.dispatch_format", "combine_format": "link.combine_format", "scaleup_domain": "link.scaleup_domain",
    "scaleout_bandwidth": "link.scaleout_bandwidth", "crossing": "link.crossing", "efficiencies": "scenario.efficiencies",
    "uncounted_time": "decode.uncounted_time", "acceptance_mean": "spec.acceptance_mean",
    "acceptance_spread": "spec.acceptance_spread", "hit_rate": "prefill.hit_rate", "input_tokens": "prefill.input_mean",
    "prefill_chunk": "prefill.chunk", "prefill_load": "prefill.load", "burst": "prefill.burst",
    "input_sigma": "prefill.input_sigma", "prefill_throughput_new": "prefill.throughput_new",
}
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
