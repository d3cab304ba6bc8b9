"""What one sequence keeps: compressed KV and index keys per token, and a fixed state of sliding windows."""

from __future__ import annotations

from math import ceil, lcm
from typing import Any

from inside_deepinfer.facts import derived, require_between
from inside_deepinfer.model.formats import bytes_per_value
from inside_deepinfer.model.shape import Shape, load_shape

ALIGNMENT = 32  # bytes; released engine, cache layout


def entry_values(shape: Shape) -> int:
    """Values of one cached entry: the latent (with its rotary part for V3)."""
    at = shape.attention
    return at.head_dim if at.design == "latent" else at.kv_rank + at.rope_dim


def kv_entry_bytes(shape: Shape) -> float:
    """One cached entry of one layer."""
    return entry_values(shape) * bytes_per_value(shape.formats.kv)


def index_entry_bytes(shape: Shape) -> float:
    """One index key; 0 for a model without sparse selection."""
    return shape.index.head_dim * bytes_per_value(shape.formats.index) if shape.index else 0.0


def window_entry_bytes(shape: Shape) -> float:
    """One sliding-window entry of one layer."""
    return shape.attention.head_dim * bytes_per_value(shape.formats.window) if shape.attention.window else 0.0


def window_layer_bytes(shape: Shape) -> float:
    """The ring of one layer and sequence."""
    return shape.attention.ring * window_entry_bytes(shape)


def compression_state_bytes(shape: Shape) -> float:
    """Unfinished groups of the compressors: latents and gates of the last ratio + drafts tokens."""
    if not shape.compression or not shape.formats.state:
        return 0.0
    drafts = shape.draft.tokens if shape.draft else 0
    pooled = [shape.ratios[layer] for layer in shape.kv_layers if shape.ratios[layer] > 1]
    return sum((ratio + drafts) * 2 * shape.attention.head_dim * bytes_per_value(shape.formats.state) for ratio in pooled)


@derived(label="KV bytes per token", unit="B/token", words=True,
         formula="sum over layers that own KV of (entry bytes + index key bytes) / compression ratio")
def kv_bytes_per_token(model: str) -> float:
    """Grows with the context. Derived from config and engine: 890 for V4.1-Flash; 70,272 for V3 in BF16.

    Index keys count in the layers that own them and not in every layer that searches.
    """
    shape = load_shape(model)
    keys = set(shape.index.key_layers) if shape.index else set()
    return sum((kv_entry_bytes(shape) + (index_entry_bytes(shape) if layer in keys else 0.0)) / shape.ratios[layer]
               for layer in shape.kv_layers)


@derived(label="stored state bytes per sequence", unit="B/sequence", words=True,
         formula="encoder layers * ring slots * bytes of a window entry")
def stored_state_bytes(model: str) -> float:
    """Sliding windows that go to the KV store. Reported: 20 x 134 x 528 = 1,415,040 for V4.1-Flash; 0 without windows."""
    shape = load_shape(model)
    return (shape.body.encoder_layers or shape.body.layers) * window_layer_bytes(shape)


@derived(label="full state bytes per sequence", unit="B/sequence", words=True,
         formula="rings of all trunk and draft layers + compressor state, aligned to the engine's blocks")
def full_state_bytes(model: str) -> float:
    """Fixed state of a live sequence in HBM. Derived from engine and config: 3,128,928 for V4.1-Flash."""
    shape = load_shape(model)
    if not shape.attention.window:
        return 0.0
    layers = shape.body.layers + (shape.draft.layers if shape.draft else 0)
    block = lcm(ALIGNMENT, ceil(window_entry_bytes(shape)))
    return float(ceil((layers * window_layer_bytes(shape) + compression_state_bytes(shape)) / block) * block)


@derived(label="KV bytes of one sequence", unit="B/sequence", words=True,
         formula="KV bytes per token * context, which the model must have been made for")
def kv_bytes_per_sequence(model: str, kv_bytes_per_token: Any, context: Any) -> Any:
    """Compressed KV and index keys of one sequence, without its fixed state; a context beyond the model's is an error."""
    return kv_bytes_per_token * require_between("context", context, 1, load_shape(model).body.max_context)
