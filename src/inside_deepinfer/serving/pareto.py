"""Which points of a trade-off are worth having."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible


def non_dominated(first: Any, second: Any) -> np.ndarray:
    """Mask of the points that no other point beats in one coordinate without losing in the other; larger is better.

    Equal points count once. Points with a coordinate that is not finite never belong to the frontier.

    Raises:
        NotPossible: no point is finite.
    """
    x, y = (np.asarray(values, dtype=float).ravel() for values in (first, second))
    candidates = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if candidates.size == 0:
        raise NotPossible("the frontier has no feasible point")
    order = candidates[np.lexsort((-y[candidates], -x[candidates]))]
    best_before = np.r_[-np.inf, np.maximum.accumulate(y[order])[:-1]]
    mask = np.zeros(x.size, dtype=bool)
    mask[order[y[order] > best_before]] = True
    return mask
