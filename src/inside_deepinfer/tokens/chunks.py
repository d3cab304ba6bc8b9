"""How three receivers read one output: by token ids, by text with a buffer, and by text chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inside_deepinfer.tokens.output import OUTPUTS, Output, Parsed, by_ids, by_text

MARKER = "</think>"
RECEIVERS = {"ids": "token ids", "buffered": "text, deepseek-recipe", "chunkwise": "text, each chunk alone"}


def chunkwise(chunks: Sequence[str]) -> Parsed:
    """A splitter as it is often written: look for the marker in each chunk that arrives, and nowhere else."""
    thought, answer, over = [], [], False
    for chunk in chunks:
        if over:
            answer.append(chunk)
            continue
        before, found, after = chunk.partition(MARKER)
        thought.append(before)
        if found:
            over = True
            answer.append(after)
    return Parsed("".join(thought), "".join(answer), ())


def at_cut(cut: int, output: Output | None = None) -> dict[str, Parsed]:
    """What each receiver makes of an output whose text arrives in two chunks, cut behind ``cut`` characters."""
    output = output or OUTPUTS["spelled-end"]
    cutted = replace(output, chunks=(output.text[:cut], output.text[cut:]))
    return {"ids": by_ids(output), "buffered": by_text(cutted), "chunkwise": chunkwise(cutted.chunks)}


def cuts(output: Output | None = None) -> range:
    """Every place inside the text of an output where it can be cut."""
    return range(1, len((output or OUTPUTS["spelled-end"]).text))
