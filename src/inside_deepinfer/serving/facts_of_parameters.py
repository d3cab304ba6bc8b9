"""Which fact holds the published value of a scenario parameter, for modules below the scenario."""

from __future__ import annotations

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
