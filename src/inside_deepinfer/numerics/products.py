"""Matrix products whose rows do, or do not, depend on the batch around them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inside_deepinfer.facts import require

Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


def library_product(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``x @ w`` as the installed BLAS computes it: tile sizes, and so the order of summation, may follow the batch."""
    return x @ w


def fixed_order_product(x: np.ndarray, w: np.ndarray, tile: int = 64) -> np.ndarray:
    """``x @ w`` with one order of summation for every batch.

    Each row is multiplied alone, in tiles of ``tile`` along the inner axis that are added in a fixed order, so that a row
    sees the same additions whatever stands beside it.

    Args:
        x: rows x inner, float32.
        w: inner x columns, float32.
    """
    require(x.ndim == 2 and w.ndim == 2 and x.shape[1] == w.shape[0], "x, w", (x.shape, w.shape), "rows x n and n x columns")
    require(tile >= 1, "tile", tile, "a whole number of at least 1")
    total = np.zeros((x.shape[0], w.shape[1]), dtype=np.result_type(x, w))
    for start in range(0, x.shape[1], tile):
        part = slice(start, start + tile)
        for row in range(x.shape[0]):
            total[row] += x[row, part] @ w[part]
    return total


def split_sum(values: np.ndarray, parts: int) -> np.float32:
    """Float32 sum of a vector in ``parts`` pieces, each summed left to right, then added up: what split-K does."""
    require(1 <= parts <= len(values), "parts", parts, f"1 to {len(values)}")
    total = np.float32(0)
    for piece in np.array_split(np.asarray(values, dtype=np.float32), parts):
        # cumsum adds left to right; np.sum would add pairwise
        total += np.cumsum(piece, dtype=np.float32)[-1]
    return total


def values_changed(product: Product, x: np.ndarray, w: np.ndarray, batches: list[int]) -> np.ndarray:
    """How many values of row 0 differ in their bits from the same row computed alone, for each batch size."""
    require(min(batches) >= 1 and max(batches) <= len(x), "batches", batches, f"sizes from 1 to {len(x)}")
    alone = product(x[:1], w)[0]
    return np.array([int(np.count_nonzero(product(x[:size], w)[0].view(np.uint32) != alone.view(np.uint32))) for size in batches])
