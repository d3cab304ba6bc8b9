"""Live KV that one decode step reads from HBM on one GPU: selected entries, index keys, sliding windows.

Attention is data-parallel: a GPU reads the KV of its own sequences and of no others. Every layer reads for itself, also where
it shares another layer's entries, since the weights of a layer push them out of the L2 cache between two uses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import derived, require, require_between, require_positive
from inside_deepinfer.model.attention_work import KeyCount, attended, by_layer, scored
from inside_deepinfer.model.flops import check_context
from inside_deepinfer.model.kv import index_entry_bytes, kv_entry_bytes, window_entry_bytes
from inside_deepinfer.model.parts import parts
from inside_deepinfer.model.shape import load_shape


def selections(rows: Any, overlap: Any) -> Any:
    """How many rows' worth of selected entries a sequence reads: from all rows (overlap 0) down to one (overlap 1)."""
    require(np.asarray(rows, dtype=float) >= 1, "rows_per_sequence", rows, "at least 1")
    return 1 + (np.asarray(rows, dtype=float) - 1) * (1 - require_between("selection_overlap", overlap, 0.0, 1.0))


def distinct_entries(context: Any, count: Any) -> KeyCount:
    """Entries that the rows of a sequence read together: never more than there are."""
    return lambda ratio, most: np.minimum(np.floor(np.asarray(context, dtype=float) / ratio), most * count)


@derived(label="KV entry bytes read per step", unit="B/GPU", words=True,
         formula="batch * sum over layers of the entries that its rows attend to * bytes of an entry")
def entry_read_bytes(model: str, batch: Any, context: Any, rows_per_sequence: Any, selection_overlap: Any) -> Any:
    """Compressed entries chosen by the index (all entries where nothing chooses), in every layer that attends to them."""
    shape = load_shape(model)
    keys = distinct_entries(check_context(shape, context), selections(rows_per_sequence, selection_overlap))
    per_sequence = by_layer(attended, shape, range(shape.body.layers), keys) * kv_entry_bytes(shape)
    return require_positive("batch", batch) * per_sequence


@derived(label="index key bytes read per step", unit="B/GPU", words=True,
         formula="batch * sum over searching layers of the keys that they score * bytes of a key")
def index_read_bytes(model: str, batch: Any, context: Any, rows_per_sequence: Any, selection_overlap: Any) -> Any:
    """One scan per sequence serves all its rows; layers after the candidate layer scan candidates only. 0 without an index."""
    shape = load_shape(model)
    keys = distinct_entries(check_context(shape, context), selections(rows_per_sequence, selection_overlap))
    return require_positive("batch", batch) * by_layer(scored, shape, range(shape.body.layers), keys) * index_entry_bytes(shape)


@derived(label="sliding-window bytes read per step", unit="B/GPU", words=True,
         formula="batch * layers, draft layers included * window entries that the rows see * bytes of an entry")
def window_read_bytes(model: str, batch: Any, context: Any, rows_per_sequence: Any) -> Any:
    """The windows of neighbouring rows differ by one entry, so that all rows together see window + rows - 1."""
    shape = load_shape(model)
    layers = shape.body.layers + (shape.draft.layers if shape.draft else 0)
    seen = np.minimum(check_context(shape, context), shape.attention.window + np.asarray(rows_per_sequence, dtype=float) - 1)
    return require_positive("batch", batch) * seen * (layers * window_entry_bytes(shape))


@derived(label="live KV bytes read per step", unit="B/GPU", formula="entry_read_bytes + index_read_bytes + window_read_bytes")
def kv_read_bytes_per_step(entry_read_bytes: Any, index_read_bytes: Any, window_read_bytes: Any) -> Any:
    """What grows with batch and context. An upper bound while neighbouring rows are taken to select different entries."""
    return entry_read_bytes + index_read_bytes + window_read_bytes


@derived(label="head bytes read again for drafting", unit="B/GPU", words=True,
         formula="bytes of the head where a draft model shares it, else 0")
def head_reread_bytes(model: str) -> float:
    """The draft model turns its states into tokens with the trunk's head, in a pass of its own."""
    shape = load_shape(model)
    return sum(part.bytes for part in parts(shape) if part.name == "head") if shape.draft else 0.0


@derived(label="all bytes read from HBM per step", unit="B/GPU",
         formula="hbm_read_bytes_per_step + head_reread_bytes + kv_read_bytes_per_step")
def hbm_total_bytes_per_step(hbm_read_bytes_per_step: Any, head_reread_bytes: Any, kv_read_bytes_per_step: Any) -> Any:
    """Weights and live KV. Activations are left out: those of a decode step fit in the L2 cache."""
    return hbm_read_bytes_per_step + head_reread_bytes + kv_read_bytes_per_step


@derived(label="share of HBM bandwidth, live KV included", unit="ratio",
         formula="hbm_total_bytes_per_step / step_time / card_bandwidth")
def hbm_total_share(hbm_total_bytes_per_step: Any, step_time: Any, card_bandwidth: Any) -> Any:
    """Mean over the step."""
    return hbm_total_bytes_per_step / require_positive("step_time", step_time) / card_bandwidth
