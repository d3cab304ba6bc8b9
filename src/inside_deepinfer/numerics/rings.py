"""Sliding-window ring buffers: how long must the ring be when a step stores drafts before it reads?"""

from __future__ import annotations

import numpy as np

from inside_deepinfer.facts import InputError, derived, require


@derived(label="shortest ring that keeps every window", unit="token", formula="window + draft_length",
         uses={"window": "replay.window", "draft_length": "spec.draft_length"})
def shortest_ring(window: int, draft_length: int) -> int:
    """Row 0 still needs position p - window + 1 after row ``draft_length`` has been stored at p + draft_length."""
    require(window >= 1 and draft_length >= 0, "window, draft_length", (window, draft_length), "at least 1 and at least 0")
    return window + draft_length


@derived(label="ring of the released code", unit="token", formula="window + draft_length + 1",
         uses={"window": "replay.window", "draft_length": "spec.draft_length"})
def released_ring(window: int, draft_length: int) -> int:
    """One slot more than the shortest: the code reserves draft length + 1 rows for stepping back (deepinfer-sdist)."""
    return shortest_ring(window, draft_length) + 1


def corrupted_reads(ring: int, window: int, draft_length: int, steps: int) -> np.ndarray:
    """Window reads that find another position in their slot, per row of the step, over ``steps`` decode steps.

    Every step stores rows p .. p + draft_length at slot position mod ring, and only then reads the window of each row.
    The next step starts one position later (the worst case: one token accepted).

    Returns:
        Array of draft_length + 1 counts.
    """
    for name, value, low in (("ring", ring, 1), ("window", window, 1), ("draft_length", draft_length, 0), ("steps", steps, 1)):
        if value != int(value) or value < low:
            raise InputError(name, value, f"a whole number of at least {low}")
    rows = np.arange(draft_length + 1)
    slots = np.full(ring, -1)
    wrong = np.zeros(draft_length + 1, dtype=int)
    slots[np.arange(window) % ring] = np.arange(window)
    for start in range(window, window + steps):
        slots[(start + rows) % ring] = start + rows
        needed = start + rows[:, None] - np.arange(window)[None, :]
        wrong += (slots[needed % ring] != needed).sum(axis=1)
    return wrong
