"""The bits of this machine's own products: a row in growing batches, and what other bits do to sampled tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inside_deepinfer.facts import require
from inside_deepinfer.numerics.products import Product
from inside_deepinfer.numerics.sampling import fixed_point, sample


@dataclass(frozen=True)
class Case:
    """Random arrays: hidden rows, a matrix to the vocabulary, and each row's seed and position."""

    hidden: np.ndarray  # rows x inner, float32
    matrix: np.ndarray  # inner x vocabulary, float32
    seeds: np.ndarray
    positions: np.ndarray


def make_case(rows: int, inner: int, vocabulary: int, seed: int = 0) -> Case:
    """Logits of spread 2, so that sampling has something to choose."""
    for name, value in (("rows", rows), ("inner", inner), ("vocabulary", vocabulary)):
        require(value >= 1 and value == int(value), name, value, "a whole number of at least 1")
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, inner)).astype(np.float32)
    matrix = (rng.normal(size=(inner, vocabulary)) * 2 / np.sqrt(inner)).astype(np.float32)
    return Case(hidden, matrix, rng.integers(0, 2**62, rows), rng.integers(0, 100_000, rows))


def ulps(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Distance of two float32 arrays in units of the last place; 0 where every bit is the same."""
    def ordered(values: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.int32).astype(np.int64)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    return np.abs(ordered(one) - ordered(other))


def row_changes(product: Product, case: Case, batches: Sequence[int]) -> np.ndarray:
    """By how much each value of row 0 differs from the row computed alone: batches x vocabulary.

    In units of one float32 rounding (2^-24) of the row's root mean square; exactly 0 where the value is the same.
    """
    require(min(batches) >= 1 and max(batches) <= len(case.hidden), "batches", batches, f"sizes from 1 to {len(case.hidden)}")
    alone = product(case.hidden[:1], case.matrix)[0]
    unit = 2.0**-24 * np.sqrt(np.mean(alone.astype(np.float64) ** 2))
    return np.stack([(product(case.hidden[:size], case.matrix)[0].astype(np.float64) - alone) / unit for size in batches])


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities, row by row in float64, so that only the product decides about bits."""
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def answer(case: Case, order: np.ndarray, pieces: int, product: Product) -> tuple[np.ndarray, np.ndarray]:
    """Logits and sampled ids where the rows come in this order, in so many batches; both in the order of the case.

    The draw is the pure function of seed and position; only the product can change an id.
    """
    logits = np.empty((len(order), case.matrix.shape[1]), dtype=np.float32)
    for part in np.array_split(order, pieces):
        logits[part] = product(case.hidden[part], case.matrix)
    return logits, sample(softmax(logits), case.seeds, case.positions)


def share_of_draws_that_differ(one: np.ndarray, other: np.ndarray) -> float:
    """Chance that a draw gives another token with probabilities ``other`` than with ``one``; both one row."""
    ends = [np.cumsum(fixed_point(row)) / fixed_point(row).sum() for row in (one, other)]
    cuts = np.unique(np.concatenate([[0.0], *ends]))
    middle = (cuts[1:] + cuts[:-1]) / 2
    tokens = [np.searchsorted(end, middle, side="right") for end in ends]
    return float(np.diff(cuts)[tokens[0] != tokens[1]].sum())
