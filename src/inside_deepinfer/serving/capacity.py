"""Does it fit? Weights, lookup-table scales and live sequences against the HBM of a card."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require_between, require_positive
from inside_deepinfer.model.formats import scale_bytes_per_value
from inside_deepinfer.model.parts import parts
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.serving.cards import get_card


@derived(label="Engram scale bytes per GPU", unit="B/GPU", words=True,
         formula="Engram parameters / values per scale * bytes of a scale")
def engram_scale_bytes(model: str) -> float:
    """Every GPU holds the scales of all rows; the rows themselves stay in host memory. 6.14 GB for V4.1-Flash."""
    tables = (part for part in parts(load_shape(model)) if part.stage == "tables")
    return sum((part.parameters * scale_bytes_per_value(part.format) for part in tables), 0.0)


@derived(label="Engram table bytes kept out of HBM", unit="B", words=True, formula="Engram parameters as stored, scales included")
def engram_table_bytes(model: str) -> float:
    """Sharded over the hosts of the instance. Public checkpoints: 203 GB for V4.1-Flash."""
    return sum((part.bytes for part in parts(load_shape(model)) if part.stage == "tables"), 0.0)


@derived(label="image encoder bytes per GPU", unit="B/GPU", formula="the entry in the model's shape", words=True)
def vision_bytes(model: str) -> float:
    """An estimate; 0 for a model without."""
    vision = load_shape(model).vision
    return float(vision.bytes) if vision else 0.0


@derived(label="resident bytes per GPU", unit="B/GPU", formula="weight_bytes_per_gpu + engram_scale_bytes + vision_bytes")
def resident_bytes(weight_bytes_per_gpu: Any, engram_scale_bytes: Any, vision_bytes: Any) -> Any:
    """What stands in HBM before the first sequence."""
    return weight_bytes_per_gpu + engram_scale_bytes + vision_bytes


@derived(label="weight bytes per prefill GPU", unit="B/GPU", formula="weight_bytes_per_gpu - draft_expert_bytes_per_gpu")
def prefill_weight_bytes_per_gpu(weight_bytes_per_gpu: Any, draft_expert_bytes_per_gpu: Any) -> Any:
    """A prefill engine drops the experts of the draft model."""
    return weight_bytes_per_gpu - draft_expert_bytes_per_gpu


@derived(label="draft probability bytes per sequence", unit="B/sequence", words=True,
         uses={"size": "engine.draft_probability_bytes"}, formula="drafts * vocabulary * bytes of a probability")
def draft_probability_bytes(model: str, size: Any) -> Any:
    """Kept on the GPU from drafting to rejection sampling."""
    shape = load_shape(model)
    return (shape.draft.tokens if shape.draft else 0) * shape.body.vocabulary * size


@derived(label="HBM bytes of a live sequence", unit="B/sequence",
         uses={"slots": "engine.state_slots_ratio", "reserve": "engine.state_pool_reserve"},
         formula="kv_bytes_per_sequence + slots * reserve * full_state_bytes + draft_probability_bytes")
def live_sequence_bytes(kv_bytes_per_sequence: Any, slots: Any, reserve: Any, full_state_bytes: Any,
                        draft_probability_bytes: Any) -> Any:
    """KV at its full context, its share of the state pool as the engine reserves it, and its draft probabilities."""
    return kv_bytes_per_sequence + slots * reserve * full_state_bytes + draft_probability_bytes


@derived(label="HBM that the engine may fill", unit="B", formula="card_memory * utilisation",
         uses={"utilisation": "engine.hbm_utilisation"})
def usable_memory(card_memory: Any, utilisation: Any) -> Any:
    """The rest is left to activations and the runtime."""
    return card_memory * require_between("hbm utilisation", utilisation, 0.0, 1.0)


@derived(label="HBM needed", unit="B/GPU", formula="resident_bytes + batch * live_sequence_bytes")
def memory_needed(resident_bytes: Any, batch: Any, live_sequence_bytes: Any) -> Any:
    """Everything at the scenario's batch and context."""
    return resident_bytes + require_positive("batch", batch) * live_sequence_bytes


@derived(label="HBM needed over HBM that may be filled", unit="ratio", formula="memory_needed / usable_memory")
def memory_share(memory_needed: Any, usable_memory: Any) -> Any:
    """Fits up to 1."""
    return memory_needed / require_positive("usable_memory", usable_memory)


@derived(label="largest batch that fits", unit="sequence/GPU", words=True,
         formula="(usable_memory - resident_bytes) / live_sequence_bytes, rounded down; 0 where the weights alone do not fit")
def largest_batch(usable_memory: Any, resident_bytes: Any, live_sequence_bytes: Any) -> Any:
    """Sequences per GPU at the scenario's context."""
    free = np.asarray(usable_memory - resident_bytes)
    return np.maximum(np.floor(free / require_positive("live_sequence_bytes", live_sequence_bytes)), 0.0)


def fit_notice(model: str, card: str, resident: float, usable: float, needed: float, most: float) -> str:
    """Why a scenario does not fit, as a sentence; empty where it does.

    Args:
        resident, usable, needed, most: values of resident_bytes, usable_memory, memory_needed and largest_batch.
    """
    name, shape = get_card(card).name, load_shape(model)
    if resident > usable:
        return (f"not possible: what {shape.name} keeps on every GPU is {resident / 1e9:.1f} GB before the first sequence, and "
                f"{name} leaves {usable / 1e9:.1f} GB; spread the experts over more GPUs")
    if needed > usable:
        return (f"not possible: {needed / 1e9:.1f} GB are needed and {name} leaves {usable / 1e9:.1f} GB; "
                f"at most {most:,.0f} sequences per GPU fit at this context")
    return ""


def check_fits(model: str, card: str, resident: float, usable: float, needed: float, most: float) -> None:
    """Raise :class:`NotPossible` with the reason of ``fit_notice``; pages put "not possible, because" before it."""
    reason = fit_notice(model, card, resident, usable, needed, most)
    if reason:
        raise NotPossible(reason.removeprefix("not possible: "))


@derived(label="sequences per GPU, if they fit in HBM", unit="sequence/GPU", formula="batch", words=True, listed=False)
def fitting_batch(batch: Any, model: str, card: Any, resident_bytes: Any, usable_memory: Any, memory_needed: Any, largest_batch: Any
                  ) -> Any:
    """What does not fit has no schedule: the reason, not a number."""
    cards, *parts = (np.atleast_1d(part) for part in np.broadcast_arrays(
        np.asarray(card), resident_bytes, usable_memory, memory_needed, largest_batch))
    worst = np.unravel_index(np.argmax(parts[2] / parts[1]), cards.shape)
    check_fits(model, str(cards[worst]), *(float(part[worst]) for part in parts))
    return batch
