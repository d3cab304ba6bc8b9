"""The segments of a prompt: what stands between its markers, and how much of it threads can encode side by side."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from inside_deepinfer.facts import require_between, require_positive


def segment_lengths(conversation: Any) -> list[int]:
    """Characters of each text between the markers of a rendered conversation; empty ones are left out."""
    from inside_deepinfer.tokens.vocabulary import recipe_encoding

    rendered = recipe_encoding().render_conversation(conversation)
    starts = [0, *(stop for _, stop in rendered.special_ranges)]
    stops = [*(start for start, _ in rendered.special_ranges), len(rendered.prompt)]
    return [stop - start for start, stop in zip(starts, stops, strict=True) if stop > start]


def even_but_one(messages: int, share: float) -> list[float]:
    """Lengths, as shares of the whole, of messages of which one holds ``share`` of all characters and the others divide the rest.

    A share below that of an even division gives the even division.
    """
    require_positive("messages", messages)
    require_between("share", share, 0.0, 1.0)
    largest = max(share, 1 / messages)
    return [largest, *[(1 - largest) / (messages - 1)] * (messages - 1)] if messages > 1 else [1.0]


def parallel_gain(lengths: Sequence[float], threads: int) -> float:
    """How many times faster ``threads`` are than one, if a segment takes as long as it has characters and is never divided.

    The longest segments are given out first (Graham 1969: at most a third above the best division).
    """
    require_positive("threads", threads)
    loads = [0.0] * min(int(threads), max(len(lengths), 1))
    for length in sorted(lengths, reverse=True):
        heapq.heapreplace(loads, loads[0] + length)
    longest = max(loads)
    return sum(lengths) / longest if longest else 1.0
