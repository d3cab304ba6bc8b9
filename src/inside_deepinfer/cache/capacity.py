"""Hit rate for every capacity at once: LRU stack distances (Mattson et al. 1970) of a whole trace in one pass.

A block is in an LRU cache of C blocks exactly if fewer than C other blocks were touched after it. That number, its stack
distance, is counted here for batches of requests with NumPy, O(log n) per run of blocks.

Why not a library: libCacheSim 0.3.5 (well kept, C++) counts single objects; its Python binding has neither the prefix rule nor
the batch look-up of a prompt, and loops over references in Python. pymimircache has had no release since 2018.

Rules: a request looks up all its blocks first and then touches them, the last block first, so that the beginning of a
prompt, which everything else hangs on, is evicted last (kvcache-simulator's tree LRU does the same and gives equal hits).
A block counts as a whole one, the partly filled last block too.
"""

from __future__ import annotations

import numpy as np


def earlier_greater(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """For each i the sum of ``weights[j]`` over j < i with ``values[j] > values[i]``; values are distinct whole numbers.

    A wavelet tree read from the top: at each bit of the rank, elements with a 0 count the elements with a 1 before them.
    """
    count = len(values)
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(count)
    here, carried, found = rank.copy(), weights.astype(np.int64), np.zeros(count, dtype=np.int64)
    index = np.arange(count)
    for bit in range(max(count - 1, 0).bit_length() - 1, -1, -1):
        one = (here >> bit) & 1
        node = (here >> (bit + 1)) << (bit + 1)  # ranks are 0..count-1, so this is also where the node starts
        ones, heavier = np.cumsum(one) - one, np.cumsum(carried * one) - carried * one
        found += np.where(one, 0, heavier - heavier[node])
        ones -= ones[node]
        target = ((here >> bit) << bit) + np.where(one, ones, index - node - ones)
        moved = np.empty((3, count), dtype=np.int64)
        moved[:, target] = here, carried, found
        here, carried, found = moved
    return found[rank]


class Recency:
    """The order of last touches, as one bit per position of the trace (1 = still the last touch of its block)."""

    def __init__(self) -> None:
        self.next_position = 0
        self._words = np.zeros(1024, dtype=np.uint64)

    def stack_distances(self, previous: np.ndarray, length: np.ndarray, request: np.ndarray, base: np.ndarray) -> np.ndarray:
        """Stack distance of the first block of each run of blocks.

        Args:
            previous: position where the run's first block was touched last (its other blocks: one position less each);
                runs of one request must not overlap.
            length: blocks per run.
            request: which request of the batch the run belongs to, ascending.
            base: first position of that request in the trace.

        Returns:
            How many blocks, itself included, were touched since; the k-th block of a run has k more.
        """
        start = self.next_position
        order = np.lexsort((previous, request))  # runs of one request in ascending position: they do not count each other
        moved = np.empty(len(previous), dtype=np.int64)
        moved[order] = earlier_greater(previous[order], length[order])
        within = base - np.maximum(previous + 1, start)  # positions of this batch that lie after the last touch
        return self._after(previous) + within - moved + 1

    def _after(self, position: np.ndarray) -> np.ndarray:
        """Last touches after each position, as the batch found them; 0 for positions of the batch itself."""
        words = (self.next_position + 63) // 64
        upto = np.concatenate([[0], np.cumsum(np.bitwise_count(self._words[:words]), dtype=np.int64)])
        old = position < self.next_position
        word, bit = np.where(old, position, 0) // 64, (np.where(old, position, 0) % 64).astype(np.uint64)
        low = self._words[word] & (np.uint64(2**64 - 1) >> (np.uint64(63) - bit))
        rank = upto[word] + np.bitwise_count(low).astype(np.int64)
        return np.where(old, upto[-1] - rank, 0)

    def move(self, left: np.ndarray, taken: np.ndarray, end: int) -> None:
        """Clear the positions that blocks left, set those they took, and go on from ``end``; each position at most once."""
        if end > 64 * len(self._words):
            self._words.resize(end // 64 + end // 256 + 1024, refcheck=False)
        one = np.uint64(1)
        np.subtract.at(self._words, left // 64, one << (left % 64).astype(np.uint64))
        np.add.at(self._words, taken // 64, one << (taken % 64).astype(np.uint64))
        self.next_position = end


def blocks_in(capacity_bytes: np.ndarray | float, block_bytes: float) -> np.ndarray:
    """Whole blocks that fit into each capacity."""
    return np.floor(np.asarray(capacity_bytes, dtype=float) / block_bytes).astype(np.int64)


def running_maximum(distance: np.ndarray, request: np.ndarray) -> np.ndarray:
    """Largest distance so far within each request: a block hits only if every earlier block of the request hits.

    With ids that stand for prefixes a later block is never nearer than an earlier one, so this seldom changes anything.
    """
    same = request[1:] == request[:-1]
    if not np.any(same & (distance[1:] < distance[:-1])):
        return distance
    by_rank = np.argsort(distance, kind="stable")
    rank = np.empty(len(distance), dtype=np.int64)  # ranks, so that the offset cannot overflow
    rank[by_rank] = np.arange(len(distance))
    peak = np.maximum.accumulate(rank + request * len(distance)) - request * len(distance)
    return distance[by_rank][peak]
