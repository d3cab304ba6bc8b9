"""Generated workloads as traces: the same requests with block ids, in the order of their times, as chunks or as a file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from inside_deepinfer.cache.retention import MICRO
from inside_deepinfer.cache.trace_format import Chunk
from inside_deepinfer.cache.workloads import Requests, Workload, generate
from inside_deepinfer.facts.units import DAYS_PER_WEEK, SECONDS_PER_DAY

_CHUNK_BLOCKS = 500_000


def trace_chunks(load: Workload, sessions: int, block_tokens: int, weeks: int = 1, seed: int = 0) -> Iterator[Chunk]:
    """Requests of a workload as a trace of prompt blocks.

    A trace shows prompts only, so what decode writes is not in the store before the next request sends it
    (``output_stored=False``). Sessions begin evenly over ``weeks`` weeks.
    """
    requests = generate(replace(load, output_stored=False), sessions, seed)
    yield from chunks_of(requests, block_tokens, weeks)


def chunks_of(requests: Requests, block_tokens: int, weeks: int = 1) -> Iterator[Chunk]:
    """Number the blocks of every session, shared ones once, and cut the requests into chunks in the order of their times.

    Blocks that a prompt fills keep their id in later requests of the session; the partly filled last one gets an id of its own.
    Ids count up in the order in which blocks appear, as Mooncake's do.
    """
    since = requests.time + requests.session % weeks * (DAYS_PER_WEEK * SECONDS_PER_DAY)
    time = np.round(since * 1000).astype(np.int64) * (MICRO // 1000)  # whole milliseconds, as in the file
    full, blocks = requests.input_tokens // block_tokens, -(-requests.input_tokens // block_tokens)
    common = requests.shared // block_tokens
    own = np.zeros(int(requests.session.max()) + 1, dtype=np.int64)
    np.maximum.at(own, requests.session, full - common)
    first_own = common + np.concatenate([[0], np.cumsum(np.maximum(own, 0))[:-1]])
    partial = int(first_own[-1] + max(own[-1], 0)) + np.arange(len(time))

    order = np.argsort(time, kind="stable")
    cut = np.flatnonzero(np.diff(np.cumsum(blocks[order]) // _CHUNK_BLOCKS)) + 1
    number, given = np.full(int(partial[-1]) + 1, -1, dtype=np.int32 if partial[-1] < 2**31 else np.int64), 0
    line = 0
    for part in np.split(order, cut):
        size = blocks[part]
        starts = np.concatenate([[0], np.cumsum(size)])
        owner = np.repeat(np.arange(len(part)), size)
        place = np.arange(starts[-1]) - starts[:-1][owner]
        ids = np.where(place < common, place, first_own[requests.session[part]][owner] + place - common)
        ids = np.where(place >= full[part][owner], partial[part][owner], ids)
        fresh = ids[number[ids] < 0]
        fresh = fresh[np.sort(np.unique(fresh, return_index=True)[1])]
        number[fresh] = np.arange(given, given + len(fresh))
        given += len(fresh)
        yield Chunk(time[part], requests.input_tokens[part], requests.output_tokens[part], starts,
                    number[ids].astype(np.int64), line + np.arange(1, len(part) + 1))
        line += len(part)


def write_trace(path: Path, chunks: Iterator[Chunk]) -> int:
    """Write chunks as Mooncake JSON lines (gzip where the name ends so); returns the number of requests."""
    count = 0
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as out:
        for chunk in chunks:
            times, inputs, outputs = (column.tolist() for column in (chunk.time // (MICRO // 1000), chunk.input_tokens,
                                                                     chunk.output_tokens))
            ids, starts = chunk.ids.tolist(), chunk.starts.tolist()
            out.writelines(
                json.dumps({"timestamp": times[n], "input_length": inputs[n], "output_length": outputs[n],
                            "hash_ids": ids[starts[n]:starts[n + 1]]}) + "\n" for n in range(chunk.requests))
            count += chunk.requests
    return count
