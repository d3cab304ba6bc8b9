"""One text in one carrier through one pipeline: the laboratory's single entry."""

from __future__ import annotations

from functools import lru_cache

from inside_deepinfer.facts import NotPossible
from inside_deepinfer.tokens.carriers import carrier_of
from inside_deepinfer.tokens.encoded import Encoded
from inside_deepinfer.tokens.ownership import NEUTRAL, control_tokens, data_ranges, turns_of
from inside_deepinfer.tokens.pipelines import pipeline_of
from inside_deepinfer.tokens.rendering import Rendered
from inside_deepinfer.tokens.spellings import How, Spelled, spelling_of
from inside_deepinfer.tokens.texts import as_text, require_growth
from inside_deepinfer.tokens.vocabulary import control_ids, encode_whole, full_tokenizer


def encode(text: str, carrier: str = "user", pipeline: str = "recipe", spelling: str = "exact") -> Encoded:
    """Encode a request that carries ``text``.

    Args:
        text: any text up to ``tokens.limit`` bytes; lone surrogates are replaced and a notice says so.
        carrier: a name in :data:`carriers.CARRIERS`.
        pipeline: a name in :data:`pipelines.PIPELINES`.
        spelling: a name in :data:`spellings.SPELLINGS`, applied to the control spellings in the text.

    Raises:
        InputError: no such carrier, pipeline or spelling.
        TooLarge: the text, or the prompt that it grows to, is too large.
        NotPossible: the text cannot be split that way in this carrier.
    """
    place, way, written = carrier_of(carrier), pipeline_of(pipeline), spelling_of(spelling)
    given, notices = as_text(text)
    pieces, more = _as_texts(written.apply(given))
    cleaned = pieces.map(way.clean)
    rendered = way.render(place.body(cleaned))
    require_growth(rendered.prompt)
    ids = way.tokenise(rendered)
    neutral, markers = _neutral(carrier, pipeline, len(cleaned.parts), cleaned.how)
    data = data_ranges(rendered.prompt, neutral.prompt, cleaned.parts)
    control = control_tokens(ids, data)
    closes = bool(place.closes) and rendered.prompt.count(place.closes) > neutral.prompt.count(place.closes)
    kept = sum(token.owner == "template" for token in control)
    return Encoded(
        carrier=carrier, pipeline=pipeline, spelling=spelling, prompt=rendered.prompt, ids=tuple(ids), data=data,
        control=control, turns=turns_of(control, len(ids)), lost=max(0, markers - kept), changed=cleaned != pieces, closes_frame=closes,
        refusal=rendered.refusal, notices=tuple(dict.fromkeys(notices + more)))


def _as_texts(spelled: Spelled) -> tuple[Spelled, tuple[str, ...]]:
    notices: list[str] = []

    def clean(part: str) -> str:
        text, said = as_text(part)
        notices.extend(said)
        return text

    return spelled.map(clean), tuple(notices)


@lru_cache(maxsize=1024)
def _neutral(carrier: str, pipeline: str, parts: int, how: How) -> tuple[Rendered, int]:
    """The request with neutral words, and how many control tokens its template holds."""
    if parts > len(NEUTRAL):
        raise NotPossible(f"a text can be split into at most {len(NEUTRAL)} parts here, not {parts}")
    rendered = pipeline_of(pipeline).render(carrier_of(carrier).body(Spelled(NEUTRAL[:parts], how)))
    ids = encode_whole(full_tokenizer(), rendered.prompt)
    return rendered, sum(number in control_ids() for number in ids)
