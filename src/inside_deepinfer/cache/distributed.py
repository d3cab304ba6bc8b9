"""One trace or many files: in this process, or spread over a Dask cluster with the same answer to the last digit.

Two readings of several files. By default each file is the trace of a cache of its own, and counts are added: the work splits by
file. With ``joined`` the files are consecutive parts of one trace: workers read and check them, and one process plays them in
order, since what a request finds depends on all requests before it. All counts are whole numbers, so sums do not depend on
who added them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from inside_deepinfer.cache.report import Report
from inside_deepinfer.cache.reuse import Question, Replay
from inside_deepinfer.cache.trace_format import MAX_DAMAGED, Chunk, Damage, Progress, TraceReader
from inside_deepinfer.facts import InputError, UserError

CONNECT_SECONDS = 15


@dataclass(frozen=True)
class Reading:
    """How files are read; the fields are those of ``TraceReader``, and the bytes of KV per token."""

    kv_bytes: float
    block_tokens: int | None = None
    time_unit: str = "ms"
    max_damaged: float = MAX_DAMAGED
    max_bytes: int | None = None

    def open(self, source: Path | str | BinaryIO, progress: Progress | None = None, name: str = "") -> TraceReader:
        """A reader of one file."""
        return TraceReader(source, name=name, block_tokens=self.block_tokens, time_unit=self.time_unit,
                           max_damaged=self.max_damaged, max_bytes=self.max_bytes, progress=progress)


def analyse(source: Path | str | BinaryIO, question: Question, reading: Reading, progress: Progress | None = None,
            name: str = "") -> Report:
    """Play one file. With a warm-up it is read twice, the first time to count."""
    return analyse_several(source, [question], reading, progress, name)[0]


def analyse_several(source: Path | str | BinaryIO, questions: Sequence[Question], reading: Reading,
                    progress: Progress | None = None, name: str = "") -> list[Report]:
    """Play one file through several caches at once, so that it is read and checked once.

    Args:
        source: a path, or an open binary file, which must be seekable if a question has a warm-up.
        questions: what is asked, each of a cache of its own.
    """
    requests = 0
    if any(question.definition.warm_up for question in questions):
        requests = sum(chunk.requests for chunk in reading.open(source, name=name))
        if not isinstance(source, (str, Path)):
            source.seek(0)
    reader = reading.open(source, progress, name)
    from_ = [int(requests * question.definition.warm_up) for question in questions]
    return _play(reader, questions, lambda: reader.block_tokens, reading.kv_bytes, from_, reader.damage)


def analyse_files(files: Sequence[Path | str], question: Question, reading: Reading, *, joined: bool = False,
                  dask: str | None = None, progress: Progress | None = None) -> Report:
    """Play several files, each with a cache of its own or, ``joined``, as parts of one trace in the order given.

    Args:
        dask: address of a Dask scheduler, e.g. ``tcp://host:8786``; this process alone where left out.
    """
    if not files:
        raise InputError("files", 0, "at least one trace file")
    files = [str(file) for file in files]
    if dask is None:
        return _joined(files, question, reading, map, progress) if joined else _separate(files, question, reading, map, progress)
    with _cluster(dask) as spread:
        files = [str(Path(file).resolve()) for file in files]  # workers have another working directory
        return _joined(files, question, reading, spread, None) if joined else _separate(files, question, reading, spread, None)


Spread = Callable[..., Iterator[Any]]  # map, or the same over a cluster, in order


def _separate(files: list[str], question: Question, reading: Reading, spread: Spread, progress: Progress | None) -> Report:
    whole: Report | None = None
    for report in spread(lambda file: analyse(file, question, reading, progress), files):
        if whole is None:
            whole = report
        else:
            whole.merge(report)
    assert whole is not None
    return whole


@dataclass
class _Part:
    """What is left of one file of a joined trace after reading."""

    name: str
    chunks: Any
    damage: Damage
    block_tokens: int | None


def _read_part(file: str, reading: Reading) -> _Part:
    reader = reading.open(file)
    return _Part(reader.name, list(reader), reader.damage, reader.block_tokens)


def _joined(files: list[str], question: Question, reading: Reading, spread: Spread, progress: Progress | None) -> Report:
    damage, block = Damage(), None

    def in_order() -> Iterator[Chunk]:
        nonlocal damage, block
        damage, latest = Damage(), np.iinfo(np.int64).min
        for part in spread(lambda file: _read_part(file, reading), files):
            damage.merge(part.damage)
            if block not in (None, part.block_tokens):
                raise InputError("block size", part.block_tokens, f"{block} tokens, as in the files before {part.name}")
            block = part.block_tokens
            for chunk in part.chunks:
                back = chunk.time < latest
                for line in chunk.line[back]:
                    damage.note("time before the request above", int(line), part.name)
                kept = chunk.keep(~back)
                if kept.requests:
                    latest = int(kept.time[-1])
                    yield kept

    measured_from = 0
    if question.definition.warm_up:
        measured_from = int(sum(chunk.requests for chunk in in_order()) * question.definition.warm_up)
    [report] = _play(in_order(), [question], lambda: block, reading.kv_bytes, [measured_from], None)
    return replace(report, damage=damage)


def _play(chunks: Iterable[Chunk], questions: Sequence[Question], block: Callable[[], int | None], kv_bytes: float,
          measured_from: Sequence[int], damage: Damage | None) -> list[Report]:
    players: list[Replay] = []
    for chunk in chunks:
        if not players:  # the block size is known once the first chunk was read
            players = [Replay(question, block() or 1, kv_bytes, first) for question, first in zip(questions, measured_from, strict=True)]
        for player in players:
            player.add(chunk)
    assert players  # a reader without requests has raised
    for player in players:
        player.report.damage = damage
    return [player.report for player in players]


@contextmanager
def _cluster(address: str) -> Iterator[Spread]:
    """``map`` over the workers of a Dask cluster: results in order, a few files in flight per worker."""
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--dask needs Dask: pip install 'inside-deepinfer[dask]'") from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"no Dask scheduler answers at {address!r} ({str(error) or type(error).__name__})") from None

    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        client.close()
        raise UserError(f"the Dask scheduler at {address!r} has no worker") from None

    def spread(function: Callable[[str], Any], files: Sequence[str]) -> Iterator[Any]:
        workers = max(1, len(client.nthreads()))
        waiting = [client.submit(function, file, pure=False) for file in files[:2 * workers]]
        todo = list(files[2 * workers:])
        while waiting:
            done = waiting.pop(0).result()
            if todo:
                waiting.append(client.submit(function, todo.pop(0), pure=False))
            yield done

    try:
        yield spread
    finally:
        client.close()
