"""Hit rate for every retention time at once: each reuse is a hit for all retentions that are at least its age.

A block is kept for the retention time after its last touch (refresh on touch), so the age of a reuse is the time since the
last touch, and one histogram of ages answers for every retention. An age equal to the retention still hits.
Times are whole microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

import numpy as np

from inside_deepinfer.cache.histogram import NEVER
from inside_deepinfer.facts import InputError
from inside_deepinfer.facts.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

MICRO = 1_000_000
# what a report states unless told otherwise: seconds
RETENTIONS: tuple[float, ...] = (10, 60, 120, 300, 600, 1200, 1800, 3000, SECONDS_PER_HOUR, 6 * SECONDS_PER_HOUR,
                                 SECONDS_PER_DAY, 3 * SECONDS_PER_DAY, 7 * SECONDS_PER_DAY)


def in_microseconds(retentions: Sequence[float]) -> np.ndarray:
    """Retention times as the largest age that still hits; 0 keeps nothing, infinity keeps everything."""
    limits = []
    for seconds in retentions:
        if not isinstance(seconds, (int, float)) or not seconds >= 0:
            raise InputError("retention", seconds, "0 or more seconds (inf keeps everything)")
        if seconds == 0:
            limits.append(-1)
        else:
            limits.append(int(NEVER) - 1 if isinf(seconds) or seconds * MICRO >= NEVER else int(round(seconds * MICRO)))
    return np.asarray(limits, dtype=np.int64)


class Clock:
    """Time of each request, found again from a position in the trace (16 bytes a request)."""

    def __init__(self) -> None:
        self.requests = 0
        self._first = np.zeros(1024, dtype=np.int64)
        self._time = np.zeros(1024, dtype=np.int64)

    def append(self, first_position: np.ndarray, time: np.ndarray) -> None:
        """Add requests with the position of their first block; positions and times ascend."""
        end = self.requests + len(time)
        if end > len(self._time):
            for column in (self._first, self._time):
                column.resize(end + end // 4 + 1024, refcheck=False)
        self._first[self.requests:end], self._time[self.requests:end] = first_position, time
        self.requests = end

    def request_at(self, position: np.ndarray) -> np.ndarray:
        """Number of the request that touched each position."""
        return np.searchsorted(self._first[:self.requests], position, side="right") - 1

    def time_of(self, request: np.ndarray) -> np.ndarray:
        """Time of each request."""
        return self._time[request]


class Growth:
    """Distinct blocks over time, in at most 2,048 equal steps whose width doubles as the trace goes on."""

    STEPS = 2048

    def __init__(self) -> None:
        self.width = MICRO  # microseconds
        self.new = np.zeros(self.STEPS, dtype=np.int64)

    def add(self, since_start: np.ndarray, new_blocks: np.ndarray) -> None:
        """Count blocks that were met for the first time, by time since the start of the trace."""
        while len(since_start) and since_start.max() >= self.width * self.STEPS:
            self._widen()
        self.new += np.bincount(since_start // self.width, weights=new_blocks, minlength=self.STEPS).astype(np.int64)

    def _widen(self) -> None:
        halved = self.new.reshape(-1, 2).sum(axis=1)
        self.new = np.concatenate([halved, np.zeros(self.STEPS // 2, dtype=np.int64)])
        self.width *= 2

    def merge(self, other: Growth) -> None:
        """Add another trace's blocks, both traces counted from their own start."""
        new, width = other.new.copy(), other.width
        while self.width < width:
            self._widen()
        grown = Growth()
        grown.width, grown.new = width, new
        while grown.width < self.width:
            grown._widen()
        self.new = self.new + grown.new

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Seconds since the start, and distinct blocks until then."""
        used = int(np.flatnonzero(self.new).max(initial=0)) + 1
        return (np.arange(used) + 1) * (self.width / MICRO), self.new[:used].cumsum()
