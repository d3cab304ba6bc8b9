"""One text as the dashboard shows it: the chosen way in full, and beside it every other pipeline and carrier."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from inside_deepinfer.facts import NotPossible
from inside_deepinfer.tokens.encoded import Encoded
from inside_deepinfer.tokens.laboratory import encode
from inside_deepinfer.tokens.matrix import by_carrier
from inside_deepinfer.tokens.pipelines import PIPELINES
from inside_deepinfer.tokens.texts import limit
from inside_deepinfer.tokens.visible import visible


@dataclass(frozen=True)
class Trial:
    """A text on its way to token ids.

    Attributes:
        chosen: the encoding that the visitor asked for.
        pipelines: the same text, carrier and spelling through every pipeline; empty for a text that is too long to compare.
        carriers: the same text and spelling in every pipeline and carrier (:func:`matrix.by_carrier`); None likewise.
    """

    chosen: Encoded
    pipelines: dict[str, Encoded]
    carriers: pd.DataFrame | None


def trial(text: str, carrier: str, pipeline: str, spelling: str) -> Trial:
    """Encode a text the chosen way and, where it is short, every other way.

    Raises:
        NotPossible: no such encoding; the reason shows hidden characters by their codes, whoever wrote them.
    """
    try:
        chosen = encode(text, carrier, pipeline, spelling)
        if not comparable(text):
            return Trial(chosen, {}, None)
        ways = {name: chosen if name == pipeline else encode(text, carrier, name, spelling) for name in PIPELINES}
        return Trial(chosen, ways, by_carrier(text, spelling))
    except NotPossible as error:
        raise NotPossible(visible(str(error))) from None


def comparable(text: str) -> bool:
    """Whether a text is short enough to be encoded in every way at once."""
    return len(text.encode("utf-8", "surrogatepass")) <= limit("matrix_limit")
