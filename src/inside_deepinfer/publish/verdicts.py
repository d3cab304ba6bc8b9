"""The audit's finding for every claim, by id, and the verdicts in words."""

from __future__ import annotations

from functools import lru_cache

from inside_deepinfer.audit import Finding, audit

MEANING = {
    "reproduced": "computed again from the claim's own inputs, and it rounds to the printed value; or run again, same outcome",
    "consistent": "a second, independent route lands within the stated tolerance, or a document supports it",
    "conflict": "the calculation, a document or another article contradicts it; the row says which",
    "identity": "the same number in other words; agreement proves nothing",
    "unverifiable": "nothing that is public can decide it",
}
VERDICTS = tuple(MEANING)


@lru_cache(maxsize=1)
def verdicts() -> dict[str, Finding]:
    """Findings by claim id; computed by the audit, never typed."""
    return {found.id: found for found in audit()}
