"""What a replayed trace says: hit rates with their definition, curves, reuse times, and the JSON form of all that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from inside_deepinfer.cache.histogram import Hits
from inside_deepinfer.cache.retention import MICRO, Growth
from inside_deepinfer.cache.sampling import WIDTH, Sample, horizontal_error, sampled_hit_rate, standard_error
from inside_deepinfer.facts import InputError, NotPossible
from inside_deepinfer.facts.units import GIB

if TYPE_CHECKING:
    from inside_deepinfer.cache.reuse import Definition
    from inside_deepinfer.cache.trace_format import Chunk, Damage

WEIGHTS = ("tokens", "blocks", "requests")
CAPACITIES: tuple[float, ...] = tuple(float(GIB * 2**power) for power in range(15))  # bytes: 1 GiB to 16 TiB
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


@dataclass
class Report:
    """Counts of one replayed trace (or of several, merged); all sums are whole numbers.

    Attributes:
        by_age, by_distance: hit weight by retention (microseconds) and by capacity (blocks), rows as in :data:`WEIGHTS`.
        reuse: block reuses by time since the last touch, the prefix rule left aside.
        looked_at: weight of the sampled references by random group, and of the heavy blocks kept whole, shape (3, groups + 1).
        totals: weight of all measured references.
        damage: what was wrong in the files; None for a trace made in memory.
    """

    definition: Definition
    sample: Sample
    block_tokens: int
    kv_bytes: float
    retentions: tuple[float, ...]
    capacities: tuple[float, ...]
    by_age: Hits
    by_distance: Hits
    reuse: Hits
    growth: Growth
    looked_at: np.ndarray
    requests_seen: int = 0
    measured_requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    references: int = 0
    distinct_blocks: int = 0
    seconds: float = 0.0
    totals: np.ndarray = field(default_factory=lambda: np.zeros(len(WEIGHTS), dtype=np.int64))
    damage: Damage | None = None
    _first_time: int | None = None

    def note(self, chunk: Chunk, measured: np.ndarray) -> None:
        """Add the plain sums of a chunk; ``measured`` says which requests count in the hit rate."""
        blocks = np.diff(chunk.starts)
        self.requests_seen += chunk.requests
        self.measured_requests += int(measured.sum())
        self.input_tokens += int(chunk.input_tokens.sum())
        self.output_tokens += int(chunk.output_tokens.sum())
        self.references += len(chunk.ids)
        self.totals += np.array([chunk.input_tokens[measured].sum(), blocks[measured].sum(), measured.sum()], dtype=np.int64)
        if self._first_time is None:
            self._first_time = int(chunk.time[0])
        self.seconds = (int(chunk.time[-1]) - self._first_time) / MICRO

    def merge(self, other: Report) -> None:
        """Add the report of another trace with its own cache, asked the same question."""
        if (self.block_tokens, self.kv_bytes) != (other.block_tokens, other.kv_bytes):
            raise InputError("block size", other.block_tokens, f"{self.block_tokens} tokens, as in the other files")
        for mine, theirs in ((self.by_age, other.by_age), (self.by_distance, other.by_distance), (self.reuse, other.reuse),
                             (self.growth, other.growth)):
            mine.merge(theirs)
        self.looked_at = self.looked_at + other.looked_at
        self.totals = self.totals + other.totals
        for name in ("requests_seen", "measured_requests", "input_tokens", "output_tokens", "references", "distinct_blocks"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds = max(self.seconds, other.seconds)
        if self.damage is not None and other.damage is not None:
            self.damage.merge(other.damage)

    # hit rates
    def _way(self, weight: str | None) -> int:
        return WEIGHTS.index(weight or self.definition.weight)

    def _share(self, hits: np.ndarray, way: int) -> np.ndarray:
        """Hits over what they are counted in, or the guess from a sample; the first axis of ``hits`` is that of ``Hits.total``."""
        if self.totals[way] == 0:
            raise NotPossible("no request is left to measure: the trace is empty, or all of it is warm-up")
        if self.sample.full:
            return hits[0] / self.totals[way]
        looked_at = np.array([self.looked_at[way][:-1].sum(), self.looked_at[way][-1]])
        return sampled_hit_rate(hits, looked_at, self.totals[way], self.sample.used_rate)

    def _spread(self, hits: Hits) -> np.ndarray:
        """Half width of the band that the sample's spread alone gives, at each asked distance."""
        way = self._way(None)
        misses = self.looked_at[way][:-1, None] - hits.by_stratum(way)[:-1]
        return WIDTH * standard_error(misses, self.totals[way], self.sample.used_rate)

    def hit_rate(self, weight: str | None = None) -> float:
        """Hit rate of a store without limits."""
        way = self._way(weight)
        return float(self._share(self.by_age.total(way), way))

    def at_retentions(self, weight: str | None = None) -> np.ndarray:
        """Hit rate at each of ``retentions``."""
        return self._share(self.by_age.at_asked(self._way(weight)), self._way(weight))

    def at_capacities(self, weight: str | None = None) -> np.ndarray:
        """Hit rate at each of ``capacities``."""
        return self._share(self.by_distance.at_asked(self._way(weight)), self._way(weight))

    def retention_curve(self, weight: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Seconds, and hit rate at that retention."""
        age, hits = self.by_age.curve(self._way(weight))
        return age / MICRO, self._share(hits, self._way(weight))

    def capacity_curve(self, weight: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Bytes, and hit rate at that capacity."""
        blocks, hits = self.by_distance.curve(self._way(weight))
        return blocks * self.block_bytes, self._share(hits, self._way(weight))

    # error of a sample
    def retention_error(self) -> np.ndarray:
        """Half width of the band around :meth:`at_retentions`; 0 without sampling."""
        return np.zeros(len(self.retentions)) if self.sample.full else self._spread(self.by_age)

    def capacity_error(self) -> np.ndarray:
        """Half width of the band around :meth:`at_capacities`, for the spread of the sample and of the capacity's own scale."""
        way = self._way(None)
        if self.sample.full:
            return np.zeros(len(self.capacities))
        spread = self._spread(self.by_distance)
        blocks, hits = self.by_distance.curve(way)
        if not len(blocks):
            return spread
        asked, share = self.by_distance.asked, self._share(np.concatenate([np.zeros((len(hits), 1)), hits], axis=1), way)
        shift = WIDTH * horizontal_error(asked, self.sample.used_rate)
        read = [share[np.searchsorted(blocks, asked * factor, side="right")] for factor in (1 + shift, np.maximum(1 - shift, 0))]
        return spread + np.maximum(read[0] - self.at_capacities(), self.at_capacities() - read[1])

    # other answers
    @property
    def block_bytes(self) -> float:
        return self.block_tokens * self.kv_bytes

    @property
    def mean_input_tokens(self) -> float:
        return self.input_tokens / self.requests_seen if self.requests_seen else 0.0

    def reuse_quantiles(self) -> dict[float, float]:
        """Share of block reuses -> seconds since the last touch within which they fall (to 0.1 %); empty without reuse."""
        age, count = self.reuse.curve(0)
        if not len(age):
            return {}
        count = count[0]
        return {share: float(age[np.searchsorted(count, share * count[-1])]) / MICRO for share in QUANTILES}

    def distinct_over_time(self) -> tuple[np.ndarray, np.ndarray]:
        """Seconds since the start, and distinct blocks until then (scaled up from a sample)."""
        seconds, blocks = self.growth.curve()
        return seconds, blocks / self.sample.used_rate

    def as_json(self) -> dict[str, Any]:
        """The answers as plain numbers; keys of ``retention`` are seconds, keys of ``capacity`` bytes."""
        bounds = {} if self.sample.full else {
            "retention": _keyed(self.retentions, self.retention_error()),
            "capacity": _keyed(self.capacities, self.capacity_error())}
        return {
            "requests": self.requests_seen,
            "measured_requests": self.measured_requests,
            "mean_input_tokens": self.mean_input_tokens,
            "mean_output_tokens": self.output_tokens / self.requests_seen if self.requests_seen else 0.0,
            "seconds": self.seconds,
            "hit_rate": self.hit_rate(),
            "hit_rate_by": {weight: self.hit_rate(weight) for weight in WEIGHTS},
            "retention": _keyed(self.retentions, self.at_retentions()),
            "capacity": _keyed(self.capacities, self.at_capacities()),
            "reuse_seconds": {f"{share:g}": seconds for share, seconds in self.reuse_quantiles().items()},
            "distinct_blocks": round(self.distinct_blocks / self.sample.used_rate),
            "block_references": self.references,
            "block_tokens": self.block_tokens,
            "kv_bytes_per_token": self.kv_bytes,
            "definition": str(self.definition),
            "sample": None if self.sample.full else {"rate": self.sample.used_rate, "error_bound": bounds},
            "damaged_lines": self.damage.lines if self.damage else 0,
            "damage": self.damage.as_json() if self.damage else {},
        }


def _keyed(keys: tuple[float, ...], values: np.ndarray) -> dict[str, float]:
    return {f"{key:.15g}": float(value) for key, value in zip(keys, values, strict=True)}
