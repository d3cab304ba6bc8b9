"""What a reader may hand in: any text up to a stated size; what cannot be text is replaced and said."""

from __future__ import annotations

import re
from functools import lru_cache

from inside_deepinfer.facts import NotPossible, load_facts

GROWTH = 2  # a prompt may be this many times the largest text

_SURROGATES = re.compile("[\ud800-\udfff]")


class TooLarge(NotPossible):
    """The text is larger than the laboratory takes."""


@lru_cache(maxsize=8)
def limit(name: str = "limit") -> int:
    """A size limit in bytes of UTF-8: ``limit`` for one text, ``matrix_limit`` for the whole matrix."""
    return int(load_facts().number(f"tokens.{name}"))


def attack() -> str:
    """The injected text of the source article (fact tokens.attack)."""
    return str(load_facts().quantity("tokens.attack").value)


def require_size(text: str, name: str = "limit", what: str = "the text") -> str:
    """Return ``text`` unless it is too large."""
    most = limit(name)
    size = len(text) if len(text) > most else len(text.encode("utf-8", "surrogatepass"))  # no copy of a huge text
    if size > most:
        raise TooLarge(f"{what} is larger than the laboratory takes: at least {size:,} bytes, allowed are {most:,}")
    return text


def require_growth(text: str) -> str:
    """Return what a text has grown to, unless it is too large to go on: JSON escapes and NFKC make some texts longer."""
    most = GROWTH * limit()
    size = len(text.encode("utf-8"))
    if size > most:
        raise TooLarge(f"the text grows to {size:,} bytes on its way to the prompt; at most {most:,} are encoded")
    return text


def as_text(text: str) -> tuple[str, tuple[str, ...]]:
    """The text as UTF-8 can hold it, and a notice for each kind of replacement.

    A lone surrogate is no character and no encoder accepts it; a byte that was not UTF-8 arrives as one, too.
    """
    require_size(text)
    cleaned, count = _SURROGATES.subn("\ufffd", text)
    return cleaned, (_replaced(count),) if count else ()


@lru_cache(maxsize=32)
def _replaced(count: int) -> str:
    return f"{count:,} lone surrogate{'s' if count > 1 else ''} (no UTF-8 text) replaced by U+FFFD"
