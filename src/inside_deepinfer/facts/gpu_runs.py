"""Files that ``benchmarks/gpu`` wrote on a real card: read, checked, grouped by card."""

from __future__ import annotations

import json
from functools import lru_cache
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
TIMES = ("seconds", "seconds_min", "seconds_max", "repeats", "inner")


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
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FactError(path.name, "", "", f"no result of benchmarks/gpu: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise FactError(path.name, "", ".".join(str(part) for part in first["loc"]), first["msg"]) from None
    if run.measurement not in MEASUREMENTS:
        raise FactError(path.name, "", "measurement", f"{run.measurement!r} is none of {', '.join(MEASUREMENTS)}")
    for number, row in enumerate(run.rows, start=1):
        missing = [column for column in (*MEASUREMENTS[run.measurement], *TIMES) if column not in row]
        if missing:
            raise FactError(path.name, f"row {number}", missing[0], "is missing")
        if not (isinstance(row["seconds"], (int, float)) and 0 < row["seconds_min"] <= row["seconds"] <= row["seconds_max"]):
            raise FactError(path.name, f"row {number}", "seconds", "must be above 0 and between minimum and maximum")
    return run


@lru_cache(maxsize=4)
def _runs(folder: Path) -> dict[str, dict[str, Run]]:
    found: dict[str, dict[str, Run]] = {}
    for path in sorted(folder.glob("*/*.json")):
        run = read_run(path)
        if run.measurement in found.setdefault(path.parent.name, {}):
            raise FactError(path.name, path.parent.name, "measurement", f"{run.measurement} stands there twice")
        found[path.parent.name][run.measurement] = run
    return found


def gpu_runs() -> dict[str, dict[str, Run]]:
    """Folder under ``data/measured/gpu`` -> measurement -> run; a folder is one card, or a second run of it."""
    return _runs(data_folder() / "measured" / "gpu")


def gpu_run(card: str, measurement: str) -> Run:
    """One run; an unknown card or measurement says which there are."""
    runs = gpu_runs()
    if card not in runs or measurement not in runs[card]:
        there = ", ".join(f"{name} ({', '.join(entries)})" for name, entries in runs.items()) or "none"
        raise UserError(f"no measurement {measurement!r} of card {card!r}; there are {there}")
    return runs[card][measurement]
