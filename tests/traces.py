"""Traces for the tests of the prefix cache: the shipped one, made ones, and the public ones where they are at hand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from inside_deepinfer.cache.trace_format import Chunk

ROOT = Path(__file__).resolve().parents[1]
HAND = ROOT / "data" / "traces" / "hand.jsonl"
HAND_CSV = ROOT / "data" / "traces" / "hand.csv"


def public(name: str) -> Path:
    """A public trace of the folder INSIDE_DEEPINFER_TRACES (or ../shared/traces); skips where it is absent."""
    named = os.environ.get("INSIDE_DEEPINFER_TRACES")
    folder = Path(named) if named else ROOT.parent / "shared" / "traces"
    path = folder / name
    if not path.is_file():
        pytest.skip(f"the public trace {name} is not here: it is not ours to ship; name its folder in INSIDE_DEEPINFER_TRACES")
    return path


def chunk(requests: Iterable[tuple[float, int, list[int]]]) -> Chunk:
    """A chunk from (seconds, input tokens, ids)."""
    rows = list(requests)
    size = [len(ids) for _, _, ids in rows]
    return Chunk(np.array([round(time * 1e6) for time, _, _ in rows], dtype=np.int64),
                 np.array([length for _, length, _ in rows], dtype=np.int64), np.ones(len(rows), dtype=np.int64),
                 np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
                 np.array([one for _, _, ids in rows for one in ids], dtype=np.int64), np.arange(1, len(rows) + 1))


def line(time: object = 0, length: object = 128, ids: object = (1,), output: object = 5) -> str:
    """One request in Mooncake's format."""
    return json.dumps({"timestamp": time, "input_length": length, "output_length": output,
                       "hash_ids": list(ids) if isinstance(ids, tuple) else ids})
