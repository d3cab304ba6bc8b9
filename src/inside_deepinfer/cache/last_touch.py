"""Where each block was touched last: one number per distinct block, and a table only where ids are hashes.

Memory: 4 bytes per id for ids that are numbered in the order in which they appear, as Mooncake numbers them; 20 to 40 bytes more
per distinct block where ids are hashes, and half as much again while the table grows.
"""

from __future__ import annotations

import numpy as np

UNKNOWN = np.int64(-1)
_DENSE_SLACK = 1 << 22  # ids up to this, or up to 8 times the references seen, count as numbered as they appear
_FILL = 0.6
_SLICE = 1 << 20


def mix(ids: np.ndarray) -> np.ndarray:
    """A well-mixed 64-bit hash of each id (splitmix64 finaliser, Steele et al. 2014); uint64."""
    x = ids.astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class IdTable:
    """Hash id -> number from zero, by open addressing in NumPy arrays (12 bytes a slot)."""

    def __init__(self) -> None:
        self.count = 0
        self._allocate(1 << 16)

    def _allocate(self, slots: int) -> None:
        self.keys = np.zeros(slots, dtype=np.int64)
        self.values = np.zeros(slots, dtype=np.uint32)  # number + 1; 0 is an empty slot

    def numbers(self, ids: np.ndarray) -> np.ndarray:
        """Numbers of the ids, new ones for those not met before; ``ids`` must be distinct."""
        if self.count + len(ids) > _FILL * len(self.keys):
            self._grow(self.count + len(ids))
        found = self._place(ids, None)
        return found

    def _grow(self, wanted: int) -> None:
        keys, values = self.keys, self.values
        slots = len(keys)
        while wanted > _FILL * slots:
            slots *= 2
        self._allocate(slots)
        for start in range(0, len(keys), _SLICE):  # slice by slice: no second copy of everything
            part = slice(start, start + _SLICE)
            used = values[part] > 0
            self._place(keys[part][used], values[part][used])

    def _place(self, ids: np.ndarray, values: np.ndarray | None) -> np.ndarray:
        mask = np.uint64(len(self.keys) - 1)
        slot = (mix(ids) & mask).astype(np.int64)
        found = np.zeros(len(ids), dtype=np.int64)
        todo = np.arange(len(ids))
        while todo.size:
            here = slot[todo]
            empty = self.values[here] == 0
            if empty.any():  # several may want one slot: the last writer gets it, the others look again
                want = todo[empty]
                self.keys[slot[want]] = ids[want]
                won = want[self.keys[slot[want]] == ids[want]]
                given = np.arange(self.count + 1, self.count + 1 + len(won)) if values is None else values[won]
                self.values[slot[won]] = given
                if values is None:
                    self.count += len(won)
            match = (self.values[slot[todo]] > 0) & (self.keys[slot[todo]] == ids[todo])
            found[todo[match]] = self.values[slot[todo[match]]].astype(np.int64) - 1
            todo = todo[~match]
            slot[todo] = (slot[todo] + 1) & int(mask)
        return found


class LastTouch:
    """Last position of every block, over a whole trace."""

    def __init__(self) -> None:
        self._last = np.zeros(0, dtype=np.uint32)  # position + 1 by number; 0 is never
        self._table: IdTable | None = None
        self._references = 0
        self.distinct = 0

    def exchange(self, ids: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Note that ``ids`` are touched at ``positions`` (in this order), and say where they were before.

        Returns:
            previous position of each reference (or :data:`UNKNOWN`), whether that lies in this very batch, and
            whether the reference is the last one to its block in this batch.
        """
        self._references += len(ids)
        if len(ids) == 0:
            return positions, np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
        order = np.argsort(ids, kind="stable")
        ranked, places = ids[order], positions[order]
        first = np.concatenate([[True], ranked[1:] != ranked[:-1]])
        last = np.concatenate([first[1:], [True]])
        number = self._numbers(ranked[first])
        before = np.empty(len(ids), dtype=np.int64)
        before[~first] = places[:-1][~first[1:]]
        known = self._last[number].astype(np.int64) - 1
        before[first] = known
        self.distinct += int((known < 0).sum())
        if int(positions.max()) + 1 >= np.iinfo(self._last.dtype).max:
            self._last = self._last.astype(np.int64)
        self._last[number] = places[last] + 1
        previous = np.empty_like(before)
        inside, final = np.empty(len(ids), dtype=bool), np.empty(len(ids), dtype=bool)
        previous[order], inside[order], final[order] = before, ~first, last
        return previous, inside, final

    def _numbers(self, ids: np.ndarray) -> np.ndarray:
        """Index into the array of last positions for distinct, ascending ids."""
        if self._table is None and (ids[0] < 0 or ids[-1] > max(_DENSE_SLACK, 8 * self._references)):
            self._table, used = IdTable(), np.flatnonzero(self._last)
            kept = self._last[used]
            self._last = np.zeros(len(used), dtype=self._last.dtype)
            self._last[self._table.numbers(used)] = kept
        number = ids if self._table is None else self._table.numbers(ids)
        need = (int(ids[-1]) if self._table is None else self._table.count - 1) + 1
        if need > len(self._last):  # in-place growth: no second copy of a large array
            self._last.resize(int(1.25 * need) + 1024, refcheck=False)
        return number
