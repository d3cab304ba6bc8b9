"""Hit weight by distance: a histogram of fixed size that still gives exact answers where they were asked for.

Distances are whole numbers (microseconds or blocks), weights are whole numbers (tokens, blocks, requests), so sums are
exact and do not depend on how a trace was cut into chunks or over workers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

NEVER = np.int64(2**62)  # distance of a first use: no cache has it
FINE_BITS = 10
FINE = 1 << FINE_BITS  # buckets per factor of two of the curve: steps of at most 0.1 %
OCTAVES = 62
BUCKETS = 1 + OCTAVES * FINE


@lru_cache(maxsize=1)
def bucket_ends() -> np.ndarray:
    """The largest whole distance in each bucket; shape (BUCKETS,)."""
    octave, part = np.divmod(np.arange(OCTAVES * FINE, dtype=np.int64), FINE)
    following = np.ceil(np.ldexp(1.0 + (part + 1) / FINE, octave))  # first whole distance of the next bucket
    return np.concatenate([[0], following.astype(np.int64) - 1])


def bucket_of(distance: np.ndarray) -> np.ndarray:
    """Index of the bucket of each distance (0 for distance 0): exponent and leading bits of the floating-point number."""
    bits = distance.astype(np.float64).view(np.int64)
    index = (bits >> (52 - FINE_BITS)) - ((1023 << FINE_BITS) - 1)
    return np.maximum(index, 0, out=index)


@dataclass
class Hits:
    """Weight found at each distance, for several ways to count at once.

    Attributes:
        asked: distances (ascending) for which the answer is exact.
        ways: number of rows of weights.
        strata: 1, or with sampling the number of random groups and one more for what was not sampled but kept whole.
        exact: shape (ways, strata, len(asked) + 1).
        fine: shape (ways, 1 or 2, buckets): all, or sampled and kept whole.
    """

    asked: np.ndarray
    ways: int
    strata: int = 1
    exact: np.ndarray = field(init=False)
    fine: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.asked = np.asarray(self.asked, dtype=np.int64)
        self.exact = np.zeros((self.ways, self.strata, len(self.asked) + 1), dtype=np.int64)
        self.fine = np.zeros((self.ways, 1 if self.strata == 1 else 2, BUCKETS), dtype=np.int64)

    def add(self, distance: np.ndarray, weights: np.ndarray, stratum: np.ndarray | None = None) -> None:
        """Count hits.

        Args:
            distance: shape (n,), whole numbers; :data:`NEVER` and more count nowhere.
            weights: shape (ways, n).
            stratum: shape (n,), the stratum of each; the last one is what was kept whole.
        """
        seen = np.flatnonzero(distance < NEVER)
        if not len(seen):
            return
        distance = distance[seen]
        slot, bucket = np.searchsorted(self.asked, distance, side="left"), bucket_of(distance)
        if stratum is not None:
            slot = slot + self.exact.shape[2] * stratum[seen]
            bucket = bucket + BUCKETS * (stratum[seen] == self.strata - 1)
        for way in range(self.ways):
            weight = weights[way, seen]
            used = np.flatnonzero(weight)
            if 2 * len(used) < len(weight):  # one reference in a request counts for the request
                at, into, weight = slot[used], bucket[used], weight[used]
            else:
                at, into = slot, bucket
            self.exact[way] += _sums(at, weight, self.exact[way].size).reshape(self.exact[way].shape)
            self.fine[way] += _sums(into, weight, self.fine[way].size).reshape(self.fine[way].shape)

    def merge(self, other: Hits) -> None:
        """Add the counts of another trace that was asked the same."""
        self.exact += other.exact
        self.fine += other.fine

    def by_stratum(self, way: int) -> np.ndarray:
        """Weight within each asked distance; shape (strata, len(asked))."""
        return self.exact[way].cumsum(axis=1)[:, :-1]

    def at_asked(self, way: int) -> np.ndarray:
        """The same as rows of ``fine``: all, or sampled and kept whole."""
        split = self.by_stratum(way)
        return split if self.strata == 1 else np.stack([split[:-1].sum(axis=0), split[-1]])

    def total(self, way: int) -> np.ndarray:
        """Weight found at any distance: what an infinite cache hits; shape (1 or 2,)."""
        return self.fine[way].sum(axis=1)

    def curve(self, way: int) -> tuple[np.ndarray, np.ndarray]:
        """The whole curve as distances where it changes, shape (n,), and weight within them, shape (1 or 2, n)."""
        used = np.flatnonzero(self.fine[way].any(axis=0))
        return bucket_ends()[used], self.fine[way][:, used].cumsum(axis=1)


def _sums(index: np.ndarray, weight: np.ndarray, length: int) -> np.ndarray:
    # bincount adds in floating point: exact for whole numbers below 2**53, which one chunk never reaches
    if len(weight) and weight.min() == weight.max() == 1:
        return np.bincount(index, minlength=length)
    return np.bincount(index, weights=weight, minlength=length).astype(np.int64)
