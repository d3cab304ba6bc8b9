"""An encoding as a row of pieces that any page can draw."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Literal

from inside_deepinfer.tokens.alphabet import token_bytes
from inside_deepinfer.tokens.encoded import Encoded, Turn
from inside_deepinfer.tokens.visible import TokenText

Kind = Literal["template", "injected", "text"]

SHOWN = 2000  # a page with more pieces is slow and nobody reads it

LABELS: dict[str, str] = {
    "template": "control token from the template",
    "injected": "control token from the text",
    "text": "ordinary token",
}
MARKS: dict[str, str] = {"template": "◆", "injected": "⚠", "text": ""}  # a shape as well as a colour


@dataclass(frozen=True, slots=True)
class StripPiece:
    """One token.

    Attributes:
        text: its characters, hidden ones written by their code; not escaped for HTML.
        label: what a screen reader says.
    """

    position: int
    id: int
    kind: Kind
    text: str
    label: str

    @property
    def mark(self) -> str:
        """The sign in front of a control token."""
        return MARKS[self.kind]


@dataclass(frozen=True)
class StripTurn:
    """One turn with its pieces; ``forged`` turns were opened by the text."""

    role: str
    forged: bool
    pieces: tuple[StripPiece, ...]
    left_out: int = 0

    @property
    def label(self) -> str:
        """What a screen reader says."""
        return f"{self.role} turn, opened by the text" if self.forged else f"{self.role} turn"


def strip(encoded: Encoded, most: int = SHOWN) -> tuple[StripTurn, ...]:
    """The turns of an encoding with their pieces.

    Control tokens are always shown; ordinary tokens up to ``most`` in all, then only counted in ``left_out``.
    """
    owners = {token.position: token.owner for token in encoded.control}
    left, last, texts, rows = most, -1, TokenText(), []
    for turn in encoded.turns:
        pieces: list[StripPiece] = []
        for position in _positions(turn, left, owners):
            kind: Kind = "text" if position not in owners else "injected" if owners[position] == "data" else "template"
            left -= kind == "text"
            raw = token_bytes(encoded.ids[position])
            if position != last + 1:
                texts = TokenText()  # tokens were left out: nothing to complete
            last = position
            pieces.append(_piece(position, encoded.ids[position], kind, texts.show(raw)))
        rows.append(StripTurn(turn.role, turn.owner == "data", tuple(pieces), turn.stop - turn.start - len(pieces)))
    return tuple(rows)


def _positions(turn: Turn, left: int, owners: dict[int, str]) -> list[int]:
    """Positions to show: all of a turn, or its first ``left`` ordinary tokens and every control token."""
    if turn.stop - turn.start <= left:
        return list(range(turn.start, turn.stop))
    inside = sorted(position for position in owners if turn.start <= position < turn.stop)
    ordinary = (position for position in range(turn.start, turn.stop) if position not in owners)
    return sorted([*inside, *islice(ordinary, max(left, 0))])


def _piece(position: int, number: int, kind: Kind, text: str) -> StripPiece:
    label = f"{LABELS[kind]}: {text}, id {number}" if kind != "text" else text
    return StripPiece(position, number, kind, text, label)
