"""Weight bytes that one decode step reads from HBM on one GPU, counted from the model's shape.

Which experts are read: in each layer the rows of the whole EP group are routed together, so an expert is read unless no row
of any GPU chose it. With B = batch * rows per sequence * EP rows and k of N experts per row, N (1 - (1 - k/N)^B) experts are
touched (rows taken as independent and experts as equally popular; skew touches fewer). A copy of an expert takes an even
share of its rows, so a slot of an expert with c copies is read with probability 1 - (1 - k/(N c))^B.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import derived, require_positive
from inside_deepinfer.model.parts import parts
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.model.weights import check_ep, check_redundant


def touched_share(active: Any, slots: Any, rows: Any) -> Any:
    """Probability that at least one of ``rows`` rows falls on a given slot, where a row picks ``active`` of ``slots``."""
    with np.errstate(divide="ignore"):
        return -np.expm1(rows * np.log1p(-np.asarray(active, dtype=float) / slots))


def slots_read(experts: int, active: int, slots: Any, rows: Any) -> Any:
    """Expected slots of a layer that a step reads, where ``slots`` >= ``experts`` hold every expert at least once.

    Copies are spread as evenly as possible: some experts have one copy more than the others.
    """
    copies = np.floor(np.asarray(slots, dtype=float) / experts)
    more = slots - copies * experts
    few = (experts - more) * copies * touched_share(active, experts * copies, rows)
    return few + more * (copies + 1) * touched_share(active, experts * (copies + 1), rows)


@derived(label="rows that a layer routes per step, whole EP group", unit="token", formula="batch * rows_per_sequence * ep")
def routed_rows(batch: Any, rows_per_sequence: Any, ep: Any) -> Any:
    """Rows of all GPUs of an instance; each of them may hit an expert of this GPU."""
    return require_positive("batch", batch) * require_positive("rows_per_sequence", rows_per_sequence) * require_positive("ep", ep)


@derived(label="distinct experts touched per layer and step", unit="expert/layer",
         formula="routed_experts * (1 - (1 - active_experts / routed_experts) ** routed_rows)")
def distinct_experts(routed_experts: Any, active_experts: Any, routed_rows: Any) -> Any:
    """Expected number of experts that at least one row chose; below the smaller of all experts and rows times choices."""
    return routed_experts * touched_share(active_experts, routed_experts, routed_rows)


@derived(label="expert slots read per GPU and layer", unit="expert/GPU", words=True,
         formula="distinct_experts / ep, with a copied expert's rows shared by its copies")
def expert_slots_read(routed_experts: Any, active_experts: Any, routed_rows: Any, ep: Any, redundant_experts: Any) -> Any:
    """Expected slots of one GPU that a step reads in one layer, at most ``experts_per_gpu``."""
    check_ep(int(routed_experts), ep)
    slots = routed_experts + check_redundant(redundant_experts) * np.asarray(ep, dtype=float)
    return slots_read(int(routed_experts), active_experts, slots, routed_rows) / ep


@derived(label="routed expert bytes read per step", unit="B/GPU", formula="expert_slots_read * moe_layers * expert_bytes")
def routed_read_bytes(expert_slots_read: Any, moe_layers: Any, expert_bytes: Any) -> Any:
    """Experts of the trunk, each touched slot once per step."""
    return expert_slots_read * moe_layers * expert_bytes


@derived(label="replicated weight bytes read per step", unit="B/GPU", words=True,
         formula="replicated_weight_bytes less the embedding table, of which only rows are fetched")
def replicated_read_bytes(model: str) -> float:
    """Attention, shared expert, head, projections and the rest of the trunk, once per step."""
    return sum(part.bytes for part in parts(load_shape(model)) if part.stage == "backbone" and not part.routed and part.read)


@derived(label="draft weight bytes read per step", unit="B/GPU", words=True,
         formula="draft_replicated_bytes + touched draft experts, with one row per draft")
def draft_read_bytes(model: str, batch: Any, ep: Any, redundant_experts: Any, draft_replicated_bytes: Any,
                     expert_bytes: Any) -> Any:
    """One parallel pass of the draft model; 0 for a model without."""
    draft = load_shape(model).draft
    if not draft:
        return 0.0 * np.asarray(batch, dtype=float) * ep
    rows = require_positive("batch", batch) * draft.tokens * np.asarray(ep, dtype=float)
    slots = np.ceil(draft.experts / np.asarray(ep, dtype=float)) * ep + check_redundant(redundant_experts) * np.asarray(ep)
    read = slots_read(draft.experts, draft.active, slots, rows) / ep
    return draft_replicated_bytes + read * (draft.layers * expert_bytes)


@derived(label="weight bytes read from HBM per step", unit="B/GPU",
         formula="routed_read_bytes + replicated_read_bytes + draft_read_bytes")
def hbm_read_bytes_per_step(routed_read_bytes: Any, replicated_read_bytes: Any, draft_read_bytes: Any) -> Any:
    """The quantity that article 000 estimates as 4.31 GB, counted: every weight that the step needs, once.

    Live KV, index keys and windows come on top (``kv_read_bytes_per_step``): the article's sum leaves them out.
    """
    return routed_read_bytes + replicated_read_bytes + draft_read_bytes


@derived(label="mean bandwidth of weight reads", unit="B/s", formula="hbm_read_bytes_per_step / step_time")
def hbm_read_bandwidth(hbm_read_bytes_per_step: Any, step_time: Any) -> Any:
    """Weight bytes of a step spread over its whole duration."""
    return hbm_read_bytes_per_step / require_positive("step_time", step_time)


@derived(label="share of HBM bandwidth for weights", unit="ratio", formula="hbm_read_bandwidth / card_bandwidth")
def hbm_share(hbm_read_bandwidth: Any, card_bandwidth: Any) -> Any:
    """Mean over the step. Article 000: 4 %; counted: 14 %."""
    return hbm_read_bandwidth / card_bandwidth
