"""How many keys each layer scores and attends to: at one position, and summed over a range of prompt positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from inside_deepinfer.model.shape import Shape

KeyCount = Callable[[int, float], Any]  # (compression ratio, most keys a layer uses) -> keys


def entries_at(context: Any) -> KeyCount:
    """Keys at one position that sees ``context`` tokens, itself included."""
    return lambda ratio, most: np.minimum(np.floor(np.asarray(context, dtype=float) / ratio), most)


def entries_between(start: Any, end: Any) -> KeyCount:
    """Keys summed over the positions start + 1 to end; closed form, so that no loop over tokens is needed."""
    return lambda ratio, most: _up_to(end, ratio, most) - _up_to(start, ratio, most)


def _up_to(last: Any, ratio: int, most: float) -> Any:
    """Sum over p = 1..last of min(floor(p / ratio), most)."""
    last = np.asarray(last, dtype=float)
    groups = np.minimum(np.floor(last / ratio), most)
    return ratio * groups * (groups - 1) / 2 + groups * (last - ratio * groups + 1)


def selects(shape: Shape, layer: int) -> bool:
    """Whether ``layer`` attends to selected entries only: some index layer at or before it searches the same KV."""
    if not shape.index or not shape.ratios[layer]:
        return False
    return any(other <= layer and shape.kv_source(other) == shape.kv_source(layer) for other in shape.index.layers)


def attended(shape: Shape, layer: int, keys: KeyCount) -> Any:
    """Compressed (or, for V3, plain) entries that the layer attends to; the sliding window comes on top."""
    ratio = shape.ratios[layer]
    if not ratio:
        return 0.0
    return keys(ratio, shape.index.top if selects(shape, layer) else np.inf)


def scored(shape: Shape, layer: int, keys: KeyCount) -> Any:
    """Index keys that the layer scores; after the candidate layer only the chosen candidates."""
    if not shape.index or layer not in shape.index.layers:
        return 0.0
    late = shape.index.candidate_layer is not None and layer > shape.index.candidate_layer
    return keys(shape.ratios[layer], shape.index.candidates if late else np.inf)


@lru_cache(maxsize=64)
def layer_kinds(shape: Shape, layers: range) -> tuple[tuple[int, int], ...]:
    """One layer of each kind among ``layers``, and how many there are of it; layers of a kind do the same work."""
    kinds: dict[tuple[int, bool, bool, bool], list[int]] = {}
    index = shape.index
    for layer in layers:
        searches = bool(index) and layer in index.layers
        late = bool(index) and index.candidate_layer is not None and layer > index.candidate_layer
        kinds.setdefault((shape.ratios[layer], selects(shape, layer), searches, late), []).append(layer)
    return tuple((members[0], len(members)) for members in kinds.values())


def by_layer(count: Callable[[Shape, int, KeyCount], Any], shape: Shape, layers: range, keys: KeyCount) -> Any:
    """Sum of ``attended`` or ``scored`` over ``layers``."""
    total: Any = 0.0
    for layer, members in layer_kinds(shape, layers):
        total = total + members * count(shape, layer, keys)
    return total
