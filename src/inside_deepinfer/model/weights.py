"""Weights on one GPU: routed experts are spread over the EP group, everything else stands on every GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import InputError, derived, require_not_negative
from inside_deepinfer.model.parts import parts
from inside_deepinfer.model.shape import Shape, load_shape


def check_ep(experts: int, ep: Any) -> Any:
    """``ep`` as given, a number or an array of numbers, if each is a whole number that divides ``experts``."""
    fits = False
    if not isinstance(ep, (str, bytes)) and ep is not None:
        try:
            numbers = np.asarray(ep, dtype=float)
            whole = np.isfinite(numbers) & (numbers >= 1) & (numbers <= experts) & (numbers == np.floor(numbers))
            fits = bool(np.all(whole)) and not np.any(experts % numbers.astype(int))
        except (TypeError, ValueError):
            fits = False
    if not fits:
        divisors = [str(number) for number in range(1, experts + 1) if experts % number == 0]
        raise InputError("ep", ep, f"a divisor of the {experts} routed experts: {', '.join(divisors)}")
    return ep


def check_redundant(redundant: Any) -> Any:
    """``redundant`` as given, if each element is a whole number of at least 0."""
    require_not_negative("redundant_experts", redundant)
    if np.any(np.asarray(redundant, dtype=float) % 1):
        raise InputError("redundant_experts", redundant, "a whole number of copies per GPU and layer")
    return redundant


def redundant_per_gpu(total: int, ep: int) -> int:
    """Copies per GPU from a total over the group, as the engine's setting counts them; the total must divide by ``ep``."""
    if total < 0 or total != int(total) or total % ep:
        raise InputError("redundant experts in total", total, f"a multiple of ep = {ep}")
    return int(total // ep)


def bytes_by_class(shape: Shape, ep: int, redundant: int) -> dict[str, float]:
    """Weight bytes on one GPU by class; they sum to ``weight_bytes_per_gpu``. Engram tables stay in host memory."""
    found: dict[str, float] = {}
    for part in parts(shape):
        if part.stage == "tables":
            continue
        held = 1.0
        if part.routed:
            held = (experts_on_gpu(part.routed, ep, redundant) if part.stage == "draft"
                    else check_ep(part.routed, ep) and part.routed // ep + check_redundant(redundant)) / part.routed
        found[part.name] = found.get(part.name, 0.0) + part.bytes * held
    return found


def experts_on_gpu(experts: int, ep: Any, redundant: Any) -> Any:
    """Expert slots per GPU and layer where ``ep`` need not divide: copies fill up the last places, as the engine does."""
    return np.ceil(experts / np.asarray(ep, dtype=float)) + redundant


@derived(label="expert slots per GPU and layer", unit="expert/GPU", formula="routed_experts / ep + redundant_experts")
def experts_per_gpu(routed_experts: Any, ep: Any, redundant_experts: Any) -> Any:
    """Routed experts that one GPU holds in each layer, copies included. Config: 6 (7 with one copy) for V4.1-Flash at EP64."""
    return routed_experts / check_ep(int(routed_experts), ep) + check_redundant(redundant_experts)


@derived(label="draft expert slots per GPU and layer", unit="expert/GPU", words=True,
         formula="draft experts / ep rounded up, + redundant_experts")
def draft_experts_per_gpu(model: str, ep: Any, redundant_experts: Any) -> Any:
    """The draft model's own experts are spread over the same group; 0 for a model without."""
    shape = load_shape(model)
    if not shape.draft:
        return 0.0 * np.asarray(ep)
    return experts_on_gpu(shape.draft.experts, check_ep(shape.experts.routed, ep), check_redundant(redundant_experts))


@derived(label="routed expert bytes per GPU", unit="B/GPU", formula="experts_per_gpu * moe_layers * expert_bytes")
def routed_expert_bytes_per_gpu(experts_per_gpu: Any, moe_layers: Any, expert_bytes: Any) -> Any:
    """Routed experts of the trunk on one GPU, copies included."""
    return experts_per_gpu * moe_layers * expert_bytes


@derived(label="draft expert bytes per GPU", unit="B/GPU", words=True,
         formula="draft_experts_per_gpu * draft layers * expert_bytes")
def draft_expert_bytes_per_gpu(draft_experts_per_gpu: Any, model: str, expert_bytes: Any) -> Any:
    """Routed experts of the draft model on one GPU; they have the trunk's width and format."""
    draft = load_shape(model).draft
    return draft_experts_per_gpu * ((draft.layers if draft else 0) * expert_bytes)


@derived(label="replicated weight bytes per GPU", unit="B/GPU", words=True,
         formula="every class outside the routed experts, as stored")
def replicated_weight_bytes(model: str) -> float:
    """Trunk weights that every GPU holds in full. Config: 9.85 GB for V4.1-Flash."""
    return sum(part.bytes for part in parts(load_shape(model)) if part.stage == "backbone" and not part.routed)


@derived(label="replicated draft weight bytes per GPU", unit="B/GPU", words=True,
         formula="the draft model outside its experts, as stored")
def draft_replicated_bytes(model: str) -> float:
    """Draft weights that every GPU holds in full."""
    return sum((part.bytes for part in parts(load_shape(model)) if part.stage == "draft" and not part.routed), 0.0)


@derived(label="weight bytes per GPU", unit="B/GPU",
         formula="routed_expert_bytes_per_gpu + replicated_weight_bytes + draft_expert_bytes_per_gpu + draft_replicated_bytes")
def weight_bytes_per_gpu(routed_expert_bytes_per_gpu: Any, replicated_weight_bytes: Any, draft_expert_bytes_per_gpu: Any,
                         draft_replicated_bytes: Any) -> Any:
    """Trunk and draft model on one GPU, without Engram scales and vision encoder."""
    return routed_expert_bytes_per_gpu + replicated_weight_bytes + draft_expert_bytes_per_gpu + draft_replicated_bytes
