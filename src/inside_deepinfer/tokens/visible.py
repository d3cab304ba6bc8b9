"""Hostile text made visible: what is invisible, moves other characters or draws over its neighbours is written by its code."""

from __future__ import annotations

import codecs
import unicodedata

# characters with no mark of their own that are not in the categories below: fillers, joiners, variation selectors
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800") | {chr(n) for n in range(0xFE00, 0xFE10)} \
    | {chr(n) for n in range(0xE0100, 0xE01F0)}
_HIDDEN = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
_MARKS = frozenset(("Mn", "Me"))
_MARKS_IN_A_ROW = 2  # accents of real scripts; more than that draws over other lines


def code(character: str) -> str:
    """``U+202E`` in angle brackets that no token uses."""
    return f"⟨U+{ord(character):04X}⟩"


def visible(text: str, lines: bool = False) -> str:
    """``text`` with every hidden character written by its code.

    Args:
        lines: keep line feeds (behind a return sign) instead of showing only the sign.
    """
    shown, marks = [], 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in _MARKS else 0
        if character == "\n":
            shown.append("↵\n" if lines else "↵")
        elif character == "\t":
            shown.append("⇥")
        elif (category in _HIDDEN or character in _BLANK or marks > _MARKS_IN_A_ROW
              or (category == "Zs" and character != " ") or (marks and len(shown) == 0)):
            shown.append(code(character))
        else:
            shown.append(character)
    return "".join(shown)


class TokenText:
    """Shows tokens in a row; a character that is spread over tokens appears with the token that completes it."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def show(self, raw: bytes) -> str:
        """The text of the next token: its characters, and in hex the bytes that hold only a part of one."""
        waiting, _ = self._decoder.getstate()
        text = self._decoder.decode(raw)
        rest, _ = self._decoder.getstate()
        if not waiting and not rest:
            return visible(text)
        if not text:
            return _hex(raw)
        if not waiting:
            return visible(text) + _hex(rest)
        own = len(text[0].encode("utf-8")) - len(waiting)
        completed = f"{_hex(raw[:own])}={visible(text[0])}"
        return completed + visible(text[1:]) + _hex(rest)


def _hex(raw: bytes) -> str:
    return "".join(f"⟨{byte:02X}⟩" for byte in raw)
