"""What breaks a repeatable answer although products and draws are repeatable: changing rows per step, and copies of experts.

After the released code (deepinfer-sdist, section 7 of our notes): a further row of a step moves the counter of its draw by a
fixed stride, so a token's draw depends on where in its step it stood; and experts on one GPU are added up before they are sent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inside_deepinfer.facts import require
from inside_deepinfer.numerics.sampling import sample

ROW_STRIDE = 10_000_019  # added to the counter for each further row of a step (deepinfer-sdist)


def counters(rows_per_step: Sequence[int]) -> np.ndarray:
    """Counter of every token's draw, where step ``n`` yields ``rows_per_step[n]`` tokens: its first position + stride * row."""
    rows = np.asarray(rows_per_step)
    require((rows >= 1) & (rows == np.round(rows)), "rows_per_step", rows_per_step, "whole numbers of at least 1")
    first = np.concatenate([[0], np.cumsum(rows)[:-1]])
    return np.concatenate([start + ROW_STRIDE * np.arange(count) for start, count in zip(first, rows, strict=True)])


def sample_in_steps(probabilities: np.ndarray, seed: int, rows_per_step: Sequence[int]) -> np.ndarray:
    """Token ids of one sequence whose steps have these rows; the probabilities stay the same.

    Args:
        probabilities: positions x vocabulary; as many positions as the steps have rows.
    """
    at = counters(rows_per_step)
    require(len(at) == len(probabilities), "rows_per_step", len(at), f"{len(probabilities)} rows in all")
    return sample(probabilities, np.full(len(at), seed), at)


def combine(outputs: np.ndarray, gpu: Sequence[int]) -> np.ndarray:
    """Sum of a token's expert outputs: experts of one GPU first, then the GPUs in order, all in float32.

    Args:
        outputs: experts x width.
        gpu: where each expert's copy stood that served the token.
    """
    place = np.asarray(gpu)
    require(len(place) == len(outputs), "gpu", len(place), f"one for each of {len(outputs)} experts")
    total = np.zeros(outputs.shape[1], dtype=np.float32)
    for one in np.unique(place):
        part = np.zeros_like(total)
        for row in outputs[place == one]:
            part += row
        total += part
    return total
