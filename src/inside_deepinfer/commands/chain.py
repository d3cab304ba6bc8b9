"""A quantity and all it rests on, as lines for a terminal and as nested data for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inside_deepinfer.audit.records import plain
from inside_deepinfer.audit.rules import YES_OR_NO
from inside_deepinfer.facts import Quantity, digits, load_facts, show
from inside_deepinfer.publish.chain import substituted

MEGA = 1e6
BYTE_UNITS = ("B/GPU", "B/sequence", "B/server", "B/drive", "B/request", "B/expert")


def shown(part: Quantity) -> str:
    """The value for a reader: a share also in percent, bytes also in the decimal units that the articles print."""
    if part.unit == YES_OR_NO:
        return "yes" if part.value else "no"
    text = show(part.value, part.unit)
    if isinstance(part.value, str) or part.value is None or part.unit not in ("ratio", "B", *BYTE_UNITS):
        return text
    values = np.asarray(part.value, dtype=float).ravel()
    if part.unit == "ratio":
        return f"{text} ({' / '.join(f'{100 * value:.2f} %' for value in values)})" if (abs(values) < 1).all() else text
    return f"{text} ({' / '.join(decimal(value, part.unit) for value in values)})" if (abs(values) >= MEGA).all() else text


def decimal(value: float, unit: str) -> str:
    """Bytes with a decimal prefix: 4.31 GB/GPU."""
    step, prefix = next(item for item in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (MEGA, "M")) if abs(value) >= item[0])
    return f"{digits(value / step)} {prefix}{unit}"


def lines(quantity: Quantity, indent: str = "", seen: set[str] | None = None) -> Iterator[str]:
    """The chain as an indented tree; what was explained once (kept in ``seen``) is only named again."""
    yield from _lines(quantity, indent, set() if seen is None else seen)


def _lines(part: Quantity, indent: str, seen: set[str]) -> Iterator[str]:
    origin = part.kind + (f": {', '.join(part.sources)}" if part.sources else "")
    again = part.name in seen and bool(part.inputs)
    label = f"  {part.label}" if part.label else ""
    yield f"{indent}{part.name} = {shown(part)}  [{origin}{', see above' if again else ''}]{label}"
    if again:
        return
    seen.add(part.name)
    if part.formula:
        yield f"{indent}  : {part.formula}"
        numbers = substituted(part)
        if numbers and numbers != part.formula:
            yield f"{indent}  = {numbers}"
    if part.note:
        yield f"{indent}  note: {part.note}"
    for below in part.inputs:
        yield from _lines(below, indent + "    ", seen)


def source_lines(names: tuple[str, ...], indent: str = "") -> Iterator[str]:
    """Each source with title, date and address."""
    known = load_facts().sources
    for name in names:
        source = known[name]
        yield f"{indent}{name}: {source.title}, {source.date}" + (f", {source.url}" if source.url else "")


def as_data(part: Quantity) -> dict[str, Any]:
    """The chain as nested data: name, value, unit, kind, sources, and the same of every input."""
    return {
        "name": part.name,
        "label": part.label,
        "value": plain(part.value),
        "unit": part.unit,
        "kind": part.kind,
        "formula": part.formula,
        "with_numbers": substituted(part),
        "inputs": [as_data(below) for below in part.inputs],
        "sources": list(part.all_sources()),
        "note": part.note,
    }
