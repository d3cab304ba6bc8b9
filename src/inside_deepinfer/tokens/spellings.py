"""Ways to write a control token so that a filter misses it, applied to every control spelling found in a text.

A spelling that cannot change a marker (look-alike bars in ``</think>``) leaves that marker out, so that a cell of the matrix
tests the spelling and not the marker it could not change.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from urllib.parse import quote

from inside_deepinfer.facts import InputError
from inside_deepinfer.tokens.alphabet import BYTE_CHARACTERS
from inside_deepinfer.tokens.vocabulary import added_tokens, control_id

How = Literal["text", "parts", "messages"]


@dataclass(frozen=True)
class Spelled:
    """A text ready for a carrier.

    Attributes:
        parts: the pieces it is delivered in; one unless it is split.
        how: as one text, as parts of one message, or as messages of their own.
        raw: the same text as the inside of a JSON string, its own escapes kept, for a carrier that takes JSON; else empty.
    """

    parts: tuple[str, ...]
    how: How = "text"
    raw: str = ""

    def map(self, change: Callable[[str], str]) -> Spelled:
        """The same delivery with ``change`` applied to each piece, as a filter in front of the renderer would."""
        return Spelled(tuple(map(change, self.parts)), self.how, change(self.raw))


@dataclass(frozen=True)
class Spelling:
    """One way of writing; ``change`` takes one marker and gives its new form."""

    name: str
    label: str
    doc: str
    change: Callable[[str], str] | None = None
    how: How = "text"
    raw_json: bool = False

    def apply(self, text: str) -> Spelled:
        """``text`` with every control spelling in it written this way."""
        if self.how != "text":
            return Spelled(tuple(_cut(text)), self.how)
        if self.change is None:
            return Spelled((text,))
        raw = self._written(json.dumps(text, ensure_ascii=False)[1:-1]) if self.raw_json else ""
        return Spelled((self._written(text),), raw=raw)

    def _written(self, text: str) -> str:
        def written(found: re.Match[str]) -> str:
            changed = self.change(found[0]) if self.change else found[0]
            return "" if changed == found[0] else changed

        return markers().sub(written, text)


@lru_cache(maxsize=1)
def markers() -> re.Pattern[str]:
    """Finds every spelling of an added token, longest first."""
    spellings = sorted((token.spelling for token in added_tokens().values()), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, spellings)))


def _cut(text: str) -> list[str]:
    """The text cut in the middle of every marker."""
    parts, start = [], 0
    for found in markers().finditer(text):
        middle = (found.start() + found.end()) // 2
        parts.append(text[start:middle])
        start = middle
    return [*parts, text[start:]]


def _behind_first(inserted: str) -> Callable[[str], str]:
    return lambda marker: marker[0] + inserted + marker[1:]


def _fullwidth(marker: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in marker)


def _nested(marker: str) -> str:
    middle = len(marker) // 2
    return marker[:middle] + marker + marker[middle:]


_ALL = (
    Spelling("exact", "exact", "The characters of the token, nothing changed."),
    Spelling("ascii-bar", "ASCII bar", "U+007C in place of the full-width bar U+FF5C.", lambda m: m.replace("｜", "|")),
    Spelling("box-bar", "box-drawing bar", "U+2502, which looks like the full-width bar.", lambda m: m.replace("｜", "│")),
    Spelling("underscore", "underscore", "An underscore in place of U+2581.", lambda m: m.replace("▁", "_")),
    Spelling("case", "other case", "Upper case for lower case and the reverse.", str.swapcase),
    Spelling("space", "space inside", "A space behind the first character.", _behind_first(" ")),
    Spelling("zero-width", "zero-width space", "U+200B behind the first character; nothing is seen.", _behind_first("\u200b")),
    Spelling("bidi", "direction override", "U+202E behind the first character: the rest is drawn from right to left.",
             _behind_first("\u202e")),
    Spelling("nul", "NUL inside", "U+0000 behind the first character.", _behind_first("\0")),
    Spelling("surrogate", "lone surrogate", "U+D83D behind the first character, which is no UTF-8 text.",
             _behind_first("\ud83d")),
    Spelling("fullwidth", "full width", "ASCII characters in their full-width form, which NFKC turns back.", _fullwidth),
    Spelling("nested", "nested", "The token inside itself: one pass of deletion leaves the token.", _nested),
    Spelling("byte-alphabet", "byte alphabet", "The vocabulary's own way of writing the token's bytes.",
             lambda m: "".join(BYTE_CHARACTERS[byte] for byte in m.encode())),
    Spelling("id", "id between NULs", "The id as digits between U+0000, a placeholder that some renderers use inside.",
             lambda m: f"\0{control_id(m)}\0"),
    Spelling("entity", "HTML entity", "Angle brackets as HTML entities.", lambda m: html.escape(m)),
    Spelling("percent", "percent encoding", "As in a URL.", lambda m: quote(m, safe="")),
    Spelling("json-escape", "JSON escapes", "Each character as a JSON escape; a carrier that takes JSON decodes them.",
             lambda m: "".join(f"\\u{ord(c):04x}" for c in m), raw_json=True),
    Spelling("parts", "split over parts", "Cut in the middle, delivered as parts of one message.", how="parts"),
    Spelling("messages", "split over messages", "Cut in the middle, delivered as messages in a row.", how="messages"),
)
SPELLINGS: dict[str, Spelling] = {spelling.name: spelling for spelling in _ALL}


def spelling_of(name: str) -> Spelling:
    """The spelling called ``name``."""
    if name not in SPELLINGS:
        raise InputError("spelling", name, ", ".join(SPELLINGS))
    return SPELLINGS[name]
