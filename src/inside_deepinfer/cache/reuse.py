"""One pass over a trace: hit rates for every retention and every capacity, reuse times, distinct blocks over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from inside_deepinfer.cache.blocks import RULES, rule_function
from inside_deepinfer.cache.capacity import Recency, blocks_in, running_maximum
from inside_deepinfer.cache.histogram import NEVER, Hits
from inside_deepinfer.cache.last_touch import LastTouch
from inside_deepinfer.cache.report import CAPACITIES, WEIGHTS, Report
from inside_deepinfer.cache.retention import RETENTIONS, Clock, Growth, in_microseconds
from inside_deepinfer.cache.sampling import GROUPS, Heavy, Sample
from inside_deepinfer.cache.trace_format import Chunk
from inside_deepinfer.facts import InputError, require, require_positive


@dataclass(frozen=True)
class Definition:
    """What exactly is called the hit rate.

    Attributes:
        weight: ``tokens`` of the prompts, whole ``blocks``, or ``requests`` that find at least something.
        warm_up: share of the requests, from the start, that fill the cache but are not counted.
        rule: ``plain`` (all that is stored), ``v4.1`` (multiples of 128 up to L - 134), ``v4.1-state-missing`` (one block less).
    """

    weight: str = "tokens"
    warm_up: float = 0.0
    rule: str = "plain"

    def __post_init__(self) -> None:
        require(self.weight in WEIGHTS, "weight", self.weight, " or ".join(WEIGHTS))
        require(self.rule in RULES, "rule", self.rule, " or ".join(RULES))
        if not isinstance(self.warm_up, (int, float)) or not 0 <= self.warm_up < 1:
            raise InputError("warm_up", self.warm_up, "0 to below 1")

    def __str__(self) -> str:
        over = f"the last {100 * (1 - self.warm_up):g} % of the requests" if self.warm_up else "the whole trace"
        used = {"plain": "all that is stored counts",
                "v4.1": "multiples of 128 tokens up to L - 134 count",
                "v4.1-state-missing": "multiples of 128 tokens up to L - 134 count, less 128 for the missing window state"}
        counted = {"tokens": "hit tokens over input tokens", "blocks": "hit blocks over blocks",
                   "requests": "requests that find something over requests"}[self.weight]
        return (f"{counted}, {over}; a block hits only if every earlier block of the request "
                f"hits; touched blocks are kept anew; {used[self.rule]}")


WHOLE = Definition()
LAST_HALF = Definition(warm_up=0.5)  # what kvcache-simulator 0.1.3 prints


@dataclass(frozen=True)
class Question:
    """What is asked of a trace."""

    retentions: tuple[float, ...] = RETENTIONS  # seconds
    capacities: tuple[float, ...] = CAPACITIES  # bytes
    definition: Definition = WHOLE
    sample: Sample = Sample()


class Replay:
    """A trace played through caches of every size and every retention at once.

    Memory: 4 bytes per distinct block (more where ids are hashes, see ``last_touch``), 16 bytes per request, 1 bit per block
    reference, and about 200 bytes per reference of one chunk.
    """

    def __init__(self, question: Question, block_tokens: int, kv_bytes: float, measured_from: int = 0):
        """
        Args:
            block_tokens: tokens per block of the trace.
            kv_bytes: bytes of KV per token, to turn capacities into blocks.
            measured_from: number of the first request that counts.
        """
        require_positive("block_tokens", block_tokens)
        require_positive("kv_bytes", kv_bytes)
        for capacity in question.capacities:
            if not isinstance(capacity, (int, float)) or not 0 <= capacity < float("inf"):
                raise InputError("capacity", capacity, "0 or more bytes, finite")
        self.question, self.measured_from = question, measured_from
        self._rule = rule_function(question.definition.rule)
        self._touches, self._recency, self._clock = LastTouch(), Recency(), Clock()
        self._started: int | None = None
        strata = 1 if question.sample.full else GROUPS + 1
        self._heavy = Heavy()
        limits = np.sort(in_microseconds(question.retentions))
        sizes = np.sort(blocks_in(np.array(question.capacities), block_tokens * kv_bytes))
        ways = len(WEIGHTS)
        self.report = Report(
            definition=question.definition, sample=question.sample, block_tokens=block_tokens, kv_bytes=float(kv_bytes),
            retentions=tuple(sorted(question.retentions)), capacities=tuple(sorted(question.capacities)),
            by_age=Hits(limits, ways, strata), by_distance=Hits(sizes, ways, strata), reuse=Hits(limits, 1), growth=Growth(),
            looked_at=np.zeros((ways, strata), dtype=np.int64))

    def add(self, chunk: Chunk) -> None:
        """Play the next requests of the trace."""
        count, report = chunk.requests, self.report
        if count == 0:
            return
        if self._started is None:
            self._started = int(chunk.time[0])
        measured = np.arange(report.requests_seen, report.requests_seen + count) >= self.measured_from
        report.note(chunk, measured)
        request = np.repeat(np.arange(count), np.diff(chunk.starts))
        place = np.arange(len(chunk.ids)) - chunk.starts[:-1][request]
        weights = self._weights(place, chunk.input_tokens[request], measured[request])
        ids, stratum = chunk.ids, None
        if not self.question.sample.full:
            kept, group = self.question.sample.choose(ids)
            heavy = self._heavy.among(ids, count)
            stratum, kept = np.where(heavy, GROUPS, group), kept | heavy
            ids, request, weights, stratum = ids[kept], request[kept], weights[:, kept], stratum[kept]
            looked = [np.bincount(stratum, weights=row, minlength=GROUPS + 1) for row in weights]
            report.looked_at += np.asarray(looked, dtype=np.int64)
        self._look_up_and_touch(chunk, ids, request, weights, stratum, count)

    def _weights(self, place: np.ndarray, length: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """What each block reference is worth if it hits: tokens, blocks, requests; shape (3, references)."""
        block = self.report.block_tokens
        weights = np.ones((len(WEIGHTS), len(place)), dtype=np.int64)
        before = place * block
        if self.question.definition.rule == "plain":
            np.minimum(length - before, block, out=weights[0])
            weights[2] = place == 0
        else:
            after = self._rule(np.minimum(before + block, length), length)
            before = self._rule(before, length)
            weights[0], weights[2] = after - before, (after > 0) & (before == 0)
        return weights if measured.all() else weights * measured

    def _look_up_and_touch(self, chunk: Chunk, ids: np.ndarray, request: np.ndarray, weights: np.ndarray,
                           stratum: np.ndarray | None, count: int) -> None:
        size = np.bincount(request, minlength=count)
        start = self._recency.next_position
        base = start + np.concatenate([[0], np.cumsum(size)[:-1]])
        place = np.arange(len(ids)) - (base - start)[request]
        position = base[request] + size[request] - 1 - place  # the last block of a request is touched first
        previous, inside, final = self._touches.exchange(ids, position)
        self._clock.append(base, chunk.time)

        known = previous >= 0
        begins = np.ones(len(ids), dtype=bool)  # a run: blocks of one request that were neighbours at their last touch too
        begins[1:] = (request[1:] != request[:-1]) | (known[1:] != known[:-1]) | (known[1:] & (previous[1:] != previous[:-1] - 1))
        run = np.flatnonzero(begins)
        ends = np.append(run[1:], len(ids)) - 1
        mixed = known[run] & (self._clock.request_at(previous[run]) != self._clock.request_at(previous[ends]))
        if mixed.any():  # neighbours by chance, from two requests: never so where ids stand for prefixes
            begins |= np.repeat(mixed, ends - run + 1)
            run = np.flatnonzero(begins)
        length = np.diff(np.append(run, len(ids)))
        reused = known[run]
        heads, owner = previous[run][reused], request[run]

        age = np.full(len(run), NEVER)
        age[reused] = chunk.time[owner[reused]] - self._clock.time_of(self._clock.request_at(heads))
        distance = np.full(len(run), NEVER + len(ids))
        distance[reused] = self._recency.stack_distances(heads, length[reused], owner[reused], base[owner[reused]])

        each = np.repeat(distance - run, length) + np.arange(len(ids))  # the k-th block of a run lies k deeper
        if stratum is not None:
            each = self.question.sample.scale(each, len(self._heavy.ids))
        report = self.report
        report.by_distance.add(running_maximum(each, request), weights, stratum)
        worth = np.add.reduceat(weights, run, axis=1) if len(run) else weights
        if stratum is None:
            report.by_age.add(running_maximum(age, owner), worth)
        else:
            report.by_age.add(np.repeat(running_maximum(age, owner), length), weights, stratum)
        report.reuse.add(age, length[None, :])
        report.distinct_blocks = self._touches.distinct
        fresh = np.bincount(request[~known], minlength=count)
        report.growth.add(chunk.time - self._started, fresh)
        self._recency.move(previous[known & ~inside], position[final], start + len(ids))


def replay(chunks: Iterable[Chunk], question: Question, block_tokens: int, kv_bytes: float, measured_from: int = 0) -> Report:
    """Play a whole trace and return what it says."""
    player = Replay(question, block_tokens, kv_bytes, measured_from)
    for chunk in chunks:
        player.add(chunk)
    return player.report
