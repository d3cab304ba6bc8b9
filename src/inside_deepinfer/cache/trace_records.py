"""Records on the lines of a trace as columns. Whether the numbers can be is checked later, in ``trace_format``."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from inside_deepinfer.cache.trace_lines import Lines, NotATrace

_TIME_MS, _TIME_S = "timestamp", "time_s"
_NAMES = {"input": ("input_length", "input_tokens"), "output": ("output_length", "output_tokens"), "ids": ("hash_ids", "blocks")}
_LINES_AT_ONCE = 20_000  # a hopeless file is given up after so many
Note = Callable[[str, int], None]  # reason, line number


@dataclass
class Table:
    """Columns as read: floats that may be NaN, ids as whole numbers."""

    time: np.ndarray  # microseconds
    input_tokens: np.ndarray
    output_tokens: np.ndarray
    starts: np.ndarray
    ids: np.ndarray
    line: np.ndarray
    lines_read: int


def parse_records(lines: Lines, time_unit: str, note: Note) -> Iterator[Table]:
    """Columns of each block of lines; lines that are no record are noted and left out."""
    number, read, header = 0, 0, None
    to_us = 1000.0 if time_unit == "ms" else 1e6
    for block in lines:
        numbered = [(number + n, text) for n, line in enumerate(block, start=1) if (text := line.strip())]
        number += len(block)
        if not numbered:
            continue
        if header is None:
            header = _header(numbered[0][1], lines.name)
            if header:
                numbered = numbered[1:]
        for start in range(0, len(numbered), _LINES_AT_ONCE):
            some = numbered[start:start + _LINES_AT_ONCE]
            read += len(some)
            where, records = _from_csv(some, header, note) if header else _from_json(some, note)
            yield _columns(records, where, to_us, read, note)


def _header(first: bytes, name: str) -> list[str]:
    """Column names of a CSV, an empty list for JSON lines."""
    if first[:1] == b"{":
        return []
    names = [cell.strip().strip('"') for cell in first.decode("utf-8-sig", "replace").split(",")]
    need = ((_TIME_MS, _TIME_S), _NAMES["input"], _NAMES["ids"])
    if not all(any(choice in names for choice in choices) for choices in need):
        raise NotATrace(f"{name} is no trace: its first line is neither a JSON object nor a CSV header with "
                         "timestamp, input_length and hash_ids")
    return names


def _from_json(numbered: list[tuple[int, bytes]], note: Note) -> tuple[list[int], list[Any]]:
    try:  # one call for the whole block is faster; a damaged line anywhere makes it fail
        records = json.loads(b"[" + b",".join(text for _, text in numbered) + b"]")
        if len(records) == len(numbered):  # "1, 2" on one line would pass as two records
            return [n for n, _ in numbered], records
    except (ValueError, RecursionError):
        pass
    where, records = [], []
    for number, text in numbered:
        try:
            records.append(json.loads(text))
            where.append(number)
        except (ValueError, RecursionError):
            note("not JSON", number)
    return where, records


def _from_csv(numbered: list[tuple[int, bytes]], names: list[str], note: Note) -> tuple[list[int], list[Any]]:
    where, records = [], []
    for number, text in numbered:
        try:
            cells = next(csv.reader([text.decode("utf-8")], strict=True))
        except (csv.Error, UnicodeDecodeError, StopIteration):
            note("not CSV", number)
            continue
        if len(cells) != len(names):
            note("another number of cells than the header", number)
            continue
        record: dict[str, Any] = dict(zip(names, cells, strict=True))
        for key in _NAMES["ids"]:
            if key in record:
                record[key] = record[key].split()
        where.append(number)
        records.append(record)
    return where, records


def _columns(records: list[Any], where: list[int], to_us: float, read: int, note: Note) -> Table:
    try:
        return _fast(records, where, to_us, read)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        pass
    good, lines = [], []
    for record, line in zip(records, where, strict=True):
        try:
            good.append(_normal(record, to_us))
            lines.append(line)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            note("not a request (time, input length and hash ids are needed)", line)
    return _fast(good, lines, to_us, read)


def _normal(record: Any, to_us: float) -> dict[str, Any]:
    """A record in Mooncake's names and plain numbers; anything else raises."""
    time = float(record[_TIME_S]) * 1e6 / to_us if _TIME_S in record else float(record[_TIME_MS])
    picked = {kind: next((record[name] for name in names if name in record), None) for kind, names in _NAMES.items()}
    if isinstance(picked["ids"], (str, bytes, dict)) or picked["ids"] is None:
        raise TypeError("no list of ids")
    return {_TIME_MS: time, "input_length": _whole(picked["input"]), "output_length": _whole(picked["output"] or 0),
            "hash_ids": [_id(one) for one in picked["ids"]]}


def _whole(value: Any) -> int:
    number = float(value)
    if number != int(number):
        raise ValueError("no whole number")
    return int(number)


def _id(one: Any) -> int:
    """An id as a signed 64-bit number; text, and numbers too large, are hashed."""
    if isinstance(one, int) and not isinstance(one, bool) and -2**63 <= one < 2**63:
        return one
    if isinstance(one, str) and one.isascii() and one.isdigit() and len(one) < 19:
        return int(one)
    if isinstance(one, (str, int)):
        return int.from_bytes(hashlib.blake2b(str(one).encode(), digest_size=8).digest(), "big", signed=True)
    raise TypeError("an id is a number or text")


def _fast(records: list[Any], where: list[int], to_us: float, read: int) -> Table:
    """All records at once; raises where any of them is not in Mooncake's form."""
    lists = [record["hash_ids"] for record in records]
    if not all(type(ids) is list for ids in lists):
        raise TypeError("no list of ids")
    flat = list(chain.from_iterable(lists))
    if not all(kind is int for kind in set(map(type, flat))):
        raise TypeError("ids that are no whole numbers")
    ids = np.array(flat, dtype=np.int64)
    columns = [np.array([record[name] for record in records], dtype=np.float64)
               for name in (_TIME_MS, "input_length")]
    output = np.array([record.get("output_length", 0) for record in records], dtype=np.float64)
    time, length = columns
    if time.ndim != 1 or length.ndim != 1 or output.ndim != 1:
        raise TypeError("a list instead of a number")
    if np.any(length != np.floor(length)) or np.any(output != np.floor(output)):
        raise ValueError("no whole number of tokens")
    starts = np.concatenate([[0], np.cumsum(np.fromiter(map(len, lists), dtype=np.int64, count=len(lists)))])
    with np.errstate(invalid="ignore", over="ignore"):
        time = np.round(time * to_us)
        time = np.where(np.abs(time) < 2**62, time, np.nan)  # NaN and infinity are refused later
    return Table(time, length, output, starts, ids, np.asarray(where, dtype=np.int64), read)
