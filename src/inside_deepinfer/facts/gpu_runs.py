"""Files that ``benchmarks/gpu`` wrote on a real card: read, checked, grouped by card.

A damaged or foreign file is never read in part: it becomes one line that names file and field, and the others stay.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field, ValidationError

from inside_deepinfer.facts.errors import FactError, UserError
from inside_deepinfer.facts.records import Day, Positive, Record, Text
from inside_deepinfer.facts.store import data_folder

MEASUREMENTS = {  # measurement -> columns that every row must have, besides the times
    "bandwidth": ("bytes", "what", "bytes_moved"),
    "matmul": ("precision", "side", "flop"),
    "experts": ("precision", "tokens", "weight_bytes", "flop", "products"),
    "layer": ("precision", "ep", "experts", "tokens_per_expert", "weight_bytes_per_expert"),
    "gather": ("what", "queries", "entries", "entry_bytes", "bytes_moved"),
    "launch": ("what", "kernels_per_layer", "layers", "kernels"),
    "alltoall": ("bytes", "cards", "bytes_to_others"),
    "batch_bits": ("what", "batch", "values", "values_changed", "largest_difference"),
}
EXTRAS = {  # measurements that explain the others; no card needs them, and no fit uses them
    "uneven": ("what", "precision", "tokens_per_expert"),
    "clocks": ("precision", "side", "flop", "until", "sm_mhz", "watt", "limit_watt"),
    "warm": ("what", "state", "precision", "ep", "tokens_per_expert", "sm_mhz"),
}
COLUMNS = MEASUREMENTS | EXTRAS
TEXTS = ("what", "state", "precision")
TIMES = ("seconds", "seconds_min", "seconds_max", "repeats", "inner")
KINDS = {  # measurement -> the column that says what a row is, and the values that the fits need
    "bandwidth": ("what", {"copy", "read"}),
    "matmul": ("precision", set()),
    "experts": ("precision", set()),
    "layer": ("precision", set()),
    "gather": ("what", {"contiguous", "gathered"}),
    "launch": ("what", {"eager", "graph"}),
    "batch_bits": ("what", {"library", "fixed order"}),
    "uneven": ("what", {"alone", "layer"}),
    "warm": ("what", {"layer", "experts"}),
}
MAY_BE_ZERO = ("values_changed", "largest_difference")


class Machine(Record):
    """What the measurement ran on."""

    card: Text
    cards: int = Field(gt=0)
    memory_bytes: Positive
    multiprocessors: int = Field(gt=0)
    l2_bytes: Positive | None
    driver: Text
    cuda: Text
    torch: Text
    triton: Text
    python: Text


class Run(Record):
    """One result file."""

    measurement: Text
    date: Day
    machine: Machine
    clocks_after: dict[str, str]
    note: str
    rows: list[dict[str, Any]] = Field(min_length=1)

    def table(self) -> pd.DataFrame:
        """The rows as a table; ``seconds`` is the median of the repeats."""
        return pd.DataFrame(self.rows)


def read_run(path: Path) -> Run:
    """One file; an error names file and field, also for a file that is something else."""
    try:
        run = Run.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            raise FactError(path.name, "", ".".join(str(part) for part in first["loc"]), first["msg"]) from None
        raise FactError(path.name, "", "", f"no result of benchmarks/gpu: {' '.join(str(error).split())[:120]}") from None
    if run.measurement not in COLUMNS:
        raise FactError(path.name, "", "measurement", f"{run.measurement!r} is none of {', '.join(COLUMNS)}")
    for number, row in enumerate(run.rows, start=1):
        _check_row(path.name, f"row {number}", run.measurement, row)
    column, needed = KINDS.get(run.measurement, ("", set()))
    missing = needed - {row[column] for row in run.rows} if needed else set()
    if missing:
        raise FactError(path.name, "", column, f"no row has {' or '.join(sorted(missing))}")
    return run


def _check_row(file: str, entry: str, measurement: str, row: dict[str, Any]) -> None:
    """Every column is there, and every number is one that can be divided by."""
    for column in (*COLUMNS[measurement], *TIMES):
        if column not in row:
            raise FactError(file, entry, column, "is missing")
        value = row[column]
        if column in TEXTS:
            if not isinstance(value, str):
                raise FactError(file, entry, column, "must be text")
        elif column == "tokens_per_expert":
            if not (isinstance(value, list) and value and all(_is_number(count, zero=True) for count in value)):
                raise FactError(file, entry, column, "must be a list of counts")
        elif not _is_number(value, zero=column in MAY_BE_ZERO):
            raise FactError(file, entry, column, f"must be a finite number {'of at least' if column in MAY_BE_ZERO else 'above'} 0")
    if not row["seconds_min"] <= row["seconds"] <= row["seconds_max"]:
        raise FactError(file, entry, "seconds", "must lie between minimum and maximum")


def _is_number(value: Any, zero: bool = False) -> bool:
    return (isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
            and (value > 0 or (zero and value == 0)))


@dataclass(frozen=True)
class Scan:
    """What a folder of results holds: sound runs, and for every other file one line."""

    runs: dict[str, dict[str, Run]]
    problems: dict[tuple[str, str], FactError]  # (folder, file without its ending) -> what is wrong


@lru_cache(maxsize=4)
def _scan(folder: Path) -> Scan:
    runs: dict[str, dict[str, Run]] = {}
    problems: dict[tuple[str, str], FactError] = {}
    for path in sorted(folder.glob("*/*.json")):
        card = path.parent.name
        try:
            run, others = read_run(path), runs.setdefault(card, {})
            if run.measurement in others:
                raise FactError(path.name, card, "measurement", f"{run.measurement} stands there twice")
            first = next(iter(others.values()), run).machine.card
            if run.machine.card != first:
                raise FactError(path.name, card, "machine.card", f"is {run.machine.card}, but other files there are of {first}")
        except FactError as error:
            problems[card, path.stem] = error
        else:
            others[run.measurement] = run
    return Scan({card: found for card, found in runs.items() if found}, problems)


def _here() -> Scan:
    return _scan(data_folder() / "measured" / "gpu")


def gpu_runs() -> dict[str, dict[str, Run]]:
    """Folder under ``data/measured/gpu`` -> measurement -> run; a folder is one card, or a second run of it."""
    return _here().runs


def gpu_problems() -> list[str]:
    """One line for every file there that is no sound result, with its folder."""
    return [f"{folder}: {error}" for (folder, _), error in _here().problems.items()]


def gpu_run(card: str, measurement: str) -> Run:
    """One run; a damaged file says what is wrong with it, an unknown card or measurement says which there are."""
    runs = gpu_runs()
    if card not in runs or measurement not in runs[card]:
        if (card, measurement) in _here().problems:
            raise _here().problems[card, measurement]
        there = ", ".join(f"{name} ({', '.join(entries)})" for name, entries in runs.items()) or "none"
        raise UserError(f"no measurement {measurement!r} of card {card!r}; there are {there}")
    return runs[card][measurement]
