"""Reading traces: Mooncake JSON lines and a simple CSV, plain or gzip, as a stream of chunks with bounded memory.

JSON lines: ``{"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [...]}``, one hash per block of the
prompt, each standing for the whole prefix up to there. CSV: a header with ``timestamp`` (ms) or ``time_s`` (s), ``input_length``
or ``input_tokens``, ``hash_ids`` or ``blocks`` (ids with spaces between them); ``output_length`` or ``output_tokens`` may follow.

Limits: a line has at most 16 MiB, a gzip stream may not expand more than 200 times, and at most one chunk is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from inside_deepinfer.cache.blocks import longest_input
from inside_deepinfer.cache.trace_lines import Lines, NotATrace
from inside_deepinfer.cache.trace_records import Table, parse_records
from inside_deepinfer.facts import InputError

MAX_DAMAGED = 0.05  # share of damaged lines that is tolerated
EXAMPLES = 3  # line numbers kept per kind of damage
_SAMPLE_LINES = 2000  # requests from which the block size is inferred
_TIE = 0.1
_CANDIDATES = tuple(sorted({2**power for power in range(15)} | set(range(16, 4097, 16)), key=lambda b: (b & (b - 1) != 0, -b)))

Progress = Callable[[int, int], None]  # bytes read, bytes in all (0 where unknown)


@dataclass
class Chunk:
    """Some requests in the order of their times.

    Attributes:
        time: microseconds, int64, shape (requests,).
        input_tokens, output_tokens: int64, shape (requests,).
        starts: where each request's blocks begin in ``ids``, shape (requests + 1,).
        ids: one id per block, int64; equal ids are equal prefixes.
        line: line number in the file.
    """

    time: np.ndarray
    input_tokens: np.ndarray
    output_tokens: np.ndarray
    starts: np.ndarray
    ids: np.ndarray
    line: np.ndarray

    @property
    def requests(self) -> int:
        return len(self.time)

    def keep(self, which: np.ndarray) -> Chunk:
        """The requests of a boolean mask."""
        if which.all():
            return self
        size = np.diff(self.starts)
        return Chunk(self.time[which], self.input_tokens[which], self.output_tokens[which],
                     np.concatenate([[0], np.cumsum(size[which])]), self.ids[np.repeat(which, size)], self.line[which])


@dataclass
class Damage:
    """Lines that were left out, by reason, with the first line numbers of each."""

    lines: int = 0
    read: int = 0  # lines with content
    reasons: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, reason: str, line: int, file: str = "") -> None:
        """Count one damaged line."""
        self.lines += 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        kept = self.examples.setdefault(reason, [])
        if len(kept) < EXAMPLES:
            kept.append(f"{file} line {line}".strip())

    def merge(self, other: Damage) -> None:
        """Add the damage of another file."""
        self.lines, self.read = self.lines + other.lines, self.read + other.read
        for reason, count in other.reasons.items():
            self.reasons[reason] = self.reasons.get(reason, 0) + count
            self.examples[reason] = (self.examples.get(reason, []) + other.examples[reason])[:EXAMPLES]

    def as_json(self) -> dict[str, Any]:
        return {reason: {"lines": count, "first": self.examples[reason]} for reason, count in self.reasons.items()}

    def __str__(self) -> str:
        return "; ".join(f"{reason}: {count} (first: {', '.join(self.examples[reason])})"
                         for reason, count in self.reasons.items()) or "none"


class TraceReader:
    """The requests of one file, in chunks. Damaged lines are counted in ``damage`` and left out."""

    def __init__(self, source: Path | str | BinaryIO, *, name: str = "", block_tokens: int | None = None, time_unit: str = "ms",
                 max_damaged: float = MAX_DAMAGED, max_bytes: int | None = None, progress: Progress | None = None):
        """
        Args:
            source: a path or an open binary file (an upload).
            name: what to call the source in messages, where it has no path.
            block_tokens: tokens per block; inferred from the first requests where left out.
            time_unit: unit of ``timestamp``: ``ms`` (Mooncake) or ``s``.
            max_damaged: share of damaged lines above which the file is refused.
            max_bytes: most bytes to read after decompression (for uploads).
            progress: called with the bytes read so far and in all.
        """
        if time_unit not in ("ms", "s"):
            raise InputError("time_unit", time_unit, "ms or s")
        if block_tokens is not None and (not isinstance(block_tokens, int) or not 1 <= block_tokens <= longest_input()):
            raise InputError("block_size", block_tokens, f"a whole number from 1 to {longest_input()}")
        if not 0 <= max_damaged <= 1:
            raise InputError("max_damaged", max_damaged, "0 to 1")
        self.name = name or (Path(source).name if isinstance(source, (str, Path)) else "the upload")
        self.block_tokens, self.time_unit, self.max_damaged = block_tokens, time_unit, max_damaged
        self.damage = Damage()
        self._lines = Lines(source, self.name, max_bytes, progress)
        self._latest = np.iinfo(np.int64).min

    def __iter__(self) -> Iterator[Chunk]:
        damage, accepted = self.damage, 0
        for table in parse_records(self._lines, self.time_unit, lambda why, line: damage.note(why, line, self.name)):
            damage.read = table.lines_read
            chunk = self._in_order(self._checked(table))
            accepted += chunk.requests
            if damage.lines > self.max_damaged * max(damage.read, 1000):
                raise self._too_damaged()
            if chunk.requests:
                yield chunk
        if damage.lines > self.max_damaged * damage.read:
            raise self._too_damaged()
        if not accepted:
            raise NotATrace(f"{self.name} holds no request: a trace has one request per line")

    def _too_damaged(self) -> NotATrace:
        return NotATrace(f"{self.name}: {self.damage.lines} of {self.damage.read} lines are damaged, more than the "
                         f"{100 * self.max_damaged:g} % that is tolerated ({self.damage})")

    def _checked(self, table: Table) -> Chunk:
        """Leave out requests whose numbers cannot be; their line is counted once, under the first reason."""
        size = np.diff(table.starts)
        length = np.nan_to_num(table.input_tokens, nan=-1.0)
        longest = longest_input()
        wrong = [(~(table.time >= 0), "negative or missing time"), (~(length >= 1), "input below 1 token"),
                 (length > longest, f"input longer than {longest:,} tokens"), (~(table.output_tokens >= 0), "negative output")]
        good = self._leave_out(table.line, wrong, np.ones(len(length), dtype=bool))
        if self.block_tokens is None and good.any():
            self.block_tokens = infer_block(length[good][:_SAMPLE_LINES], size[good][:_SAMPLE_LINES], self.name)
        if self.block_tokens is not None:
            demanded = -(-length // self.block_tokens)
            wrong = [(size < demanded, "hash list shorter than the length demands"),
                     (size > demanded, "hash list longer than the length demands")]
            good = self._leave_out(table.line, wrong, good)
        twice = _repeats(table.ids, table.starts)
        good = self._leave_out(table.line, [(twice, "one block twice in a request")], good)
        whole = Chunk(*(np.where(good, column, 0).astype(np.int64) for column in (table.time, length, table.output_tokens)),
                      table.starts, table.ids, table.line)
        return whole.keep(good)

    def _in_order(self, chunk: Chunk) -> Chunk:
        """Leave out requests whose time lies before that of a request above them."""
        latest = np.maximum.accumulate(np.concatenate([[self._latest], chunk.time]))
        back = chunk.time < latest[:-1]
        for line in chunk.line[back]:
            self.damage.note("time before the request above", int(line), self.name)
        self._latest = int(latest[-1])
        return chunk.keep(~back)

    def _leave_out(self, line: np.ndarray, wrong: list[tuple[np.ndarray, str]], good: np.ndarray) -> np.ndarray:
        for mask, reason in wrong:
            for number in line[mask & good]:
                self.damage.note(reason, int(number), self.name)
            good = good & ~mask
        return good


def _repeats(ids: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Which requests name one block twice: a prefix cannot be its own prefix."""
    request = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    found = np.zeros(len(starts) - 1, dtype=bool)
    same = request[1:] == request[:-1]
    ascending = np.ones(len(found), dtype=bool)
    ascending[request[1:][same & (ids[1:] <= ids[:-1])]] = False  # ascending ids cannot repeat: most traces need no sort
    some = np.flatnonzero(~ascending[request])
    if some.size:
        order = np.lexsort((ids[some], request[some]))
        where, what = request[some][order], ids[some][order]
        found[where[1:][(where[1:] == where[:-1]) & (what[1:] == what[:-1])]] = True
    return found


def infer_block(length: np.ndarray, blocks: np.ndarray, name: str = "the trace") -> int:
    """Tokens per block from prompt lengths and block counts: a size that explains nearly as many requests as the best.

    Among those powers of two come first, then the largest; a few damaged lines must not tip the choice.
    """
    shares = [float(np.mean(-(-length // size) == blocks)) for size in _CANDIDATES]
    best = next(place for place, share in enumerate(shares) if share >= max(shares) - _TIE)
    if shares[best] < 0.9:
        raise NotATrace(f"{name}: no block size explains the hash lists (the best, {_CANDIDATES[best]} tokens, fits "
                        f"{100 * shares[best]:.0f} % of the requests); name it with --block-size")
    return _CANDIDATES[best]
