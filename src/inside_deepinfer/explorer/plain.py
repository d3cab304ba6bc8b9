"""Blocks of a page as data that the browser draws."""

from __future__ import annotations

from typing import Any

from inside_deepinfer.explorer.page import Block, Chips, Counts, Prose, TokenStrip
from inside_deepinfer.figures.drawing import wire


def plain(block: Block) -> dict[str, Any]:
    """A block as data."""
    if isinstance(block, Prose):
        return dict(type="prose", text=block.text, tone=block.tone, title=block.title)
    if isinstance(block, Chips):
        return dict(type="chips", title=block.title,
                    chips=[dict(text=chip.text, role=chip.role, note=chip.note) for chip in block.chips])
    if isinstance(block, Counts):
        return dict(type="counts", title=block.title,
                    counts=[dict(label=one.label, text=one.text, mark=one.mark, tone=one.tone) for one in block.counts])
    if isinstance(block, TokenStrip):
        return dict(type="strip", title=block.title, css=block.css, legend=[list(kind) for kind in block.legend], turns=[
            dict(label=turn.label, forged=turn.forged, left_out=turn.left_out,
                 pieces=[[piece.kind, piece.mark, piece.text, piece.label] if piece.mark else [piece.text]
                         for piece in turn.pieces]) for turn in block.turns])
    return dict(type="table", name=block.name, title=block.title, columns=list(block.columns),
                rows=wire([list(row) for row in block.rows]), filters=list(block.filters), key=block.key,
                details=block.details is not None, search=block.search,
                marks={column: {text: list(mark) for text, mark in marks.items()} for column, marks in block.marks.items()})
