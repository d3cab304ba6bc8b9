"""The matrix: every pipeline, carrier and spelling, computed."""

from __future__ import annotations

from functools import lru_cache

import pandas as pd

from inside_deepinfer.facts import NotPossible
from inside_deepinfer.tokens.carriers import CARRIERS
from inside_deepinfer.tokens.laboratory import encode
from inside_deepinfer.tokens.pipelines import PIPELINES
from inside_deepinfer.tokens.spellings import SPELLINGS
from inside_deepinfer.tokens.texts import TooLarge, attack, require_size

NOT_APPLICABLE = "does not apply"


def matrix(text: str | None = None) -> pd.DataFrame:
    """One row per pipeline, carrier and spelling.

    Args:
        text: at most ``tokens.matrix_limit`` bytes; the injected text of the source article where left out.

    Returns:
        Columns pipeline, carrier, spelling, control (count), injected, lost (both missing where a text cannot be split that
        way in that carrier), verdict, refused (the API layer refuses such a request).
    """
    text = attack() if text is None else text
    require_size(text, "matrix_limit", "the text for the whole matrix")
    return _matrix(text).copy()


def by_carrier(text: str, spelling: str = "exact") -> pd.DataFrame:
    """The rows of :func:`matrix` for one spelling; not kept, because the text may be a visitor's own."""
    require_size(text, "matrix_limit", "the text for all carriers")
    return _table([_cell(text, pipeline, carrier, spelling) for pipeline in PIPELINES for carrier in CARRIERS])


@lru_cache(maxsize=8)
def _matrix(text: str) -> pd.DataFrame:
    return _table([_cell(text, pipeline, carrier, spelling)
                   for pipeline in PIPELINES for carrier in CARRIERS for spelling in SPELLINGS])


def _table(rows: list[dict[str, object]]) -> pd.DataFrame:
    return pd.DataFrame(rows).astype({"control": "Int64", "injected": "Int64", "lost": "Int64"})


def _cell(text: str, pipeline: str, carrier: str, spelling: str) -> dict[str, object]:
    where = {"pipeline": pipeline, "carrier": carrier, "spelling": spelling}
    try:
        found = encode(text, carrier, pipeline, spelling)
    except TooLarge:
        raise
    except NotPossible:
        return where | {"control": None, "injected": None, "lost": None, "verdict": NOT_APPLICABLE, "refused": False}
    return where | {"control": len(found.control), "injected": found.injected, "lost": found.lost, "verdict": found.verdict,
                    "refused": bool(found.refusal)}
