"""A finding as plain data, for machines: what ``audit --json`` prints and a table shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inside_deepinfer.audit.run import Finding
from inside_deepinfer.facts import Quantity


def plain(value: Any) -> Any:
    """A value that JSON can carry: NumPy numbers and arrays become Python's; whole numbers stay whole."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def as_record(found: Finding) -> dict[str, Any]:
    """The finding as a JSON object."""
    claim = found.claim
    numbers = [number for part in found.computed for number in np.asarray(part.value, dtype=float).ravel().tolist()]
    against = found.target if claim.check is not None and claim.check.against else None
    return {
        "id": claim.id,
        "verdict": found.verdict,
        "expected_verdict": claim.expected_verdict,
        "statement": claim.statement,
        "kind": claim.kind,
        "said_by": claim.speaker,
        "articles": list(claim.articles),
        "value": claim.value,
        "unit": claim.unit,
        "computed": (numbers[0] if len(numbers) == 1 else numbers) if numbers else None,
        "computed_unit": found.computed[0].unit if found.computed else None,
        "computes": [part.name for part in found.computed],
        "against": None if against is None else _brief(against),
        "shown": [_brief(part) for part in found.shown],
        "rule": found.rule,
        "evidence": list(found.evidence),
        "sources": list(found.sources),
        "chapter": claim.chapter,
        "see": list(claim.see),
        "note": claim.note,
        "problems": list(found.problems),
    }


def _brief(part: Quantity) -> dict[str, Any]:
    return {"name": part.name, "value": plain(part.value), "unit": part.unit}
