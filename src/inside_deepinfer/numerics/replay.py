"""Bounded replay on a toy: a stack of sliding-window layers, first half encoder, second half decoder.

What is simplified: one head, no mixture of experts, no compression; every decoder layer reads global keys that the first
decoder layer makes from all tokens, as the real model's layer 20 does (deepinfer-sdist, section 2 of our notes).
Rows are computed by einsum, one sum per row in one order, so that dropping rows cannot change the bits of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from inside_deepinfer.facts import InputError, require

Mode = Literal["exact", "mask", "compact"]


@dataclass(frozen=True)
class Stack:
    """Random weights of a toy: ``layers`` of width ``width``; layers from ``first_decoder`` on are the decoder half."""

    query: np.ndarray  # layers x width x width
    key: np.ndarray
    value: np.ndarray
    global_key: np.ndarray  # width x width
    global_value: np.ndarray
    window: int
    first_decoder: int

    @property
    def layers(self) -> int:
        return len(self.query)


def make_stack(layers: int, window: int, width: int = 16, seed: int = 0) -> Stack:
    """A toy with an even number of layers, half of them decoder."""
    require(layers >= 2 and layers % 2 == 0, "layers", layers, "an even number of at least 2")
    require(window >= 1, "window", window, "a whole number of at least 1")
    rng = np.random.default_rng(seed)
    scale = width**-0.5
    parts = rng.normal(scale=scale, size=(3, layers, width, width))
    more = rng.normal(scale=scale, size=(2, width, width))
    return Stack(parts[0], parts[1], parts[2], more[0], more[1], window, layers // 2)


def run(stack: Stack, tokens: np.ndarray, mode: Mode = "exact", keep: int | None = None) -> np.ndarray:
    """Hidden states after the last layer.

    Args:
        tokens: positions x width.
        mode: ``exact`` runs every row through every layer; ``mask`` lets decoder windows see only the last ``keep``
            positions; ``compact`` drops the rows before them from the decoder half.
        keep: how many positions are replayed; at least 1, at most all.

    Returns:
        rows x width: all positions, or the last ``keep`` in mode ``compact``.
    """
    count = len(tokens)
    if mode not in ("exact", "mask", "compact"):
        raise InputError("mode", mode, "exact, mask or compact")
    if stack.window > count:
        raise InputError("window", stack.window, f"at most the length of the sequence, {count}")
    kept = count if keep is None else keep
    require(1 <= kept <= count, "keep", keep, f"1 to {count}")
    hidden, keys, values = _encoder(stack, tokens)
    positions = np.arange(count)
    start = count - kept if mode != "exact" else 0
    if mode == "compact":
        hidden, positions = hidden[start:], positions[start:]
    for layer in range(stack.first_decoder, stack.layers):
        near = _window(stack, layer, hidden, positions, positions, hidden, start)
        hidden = hidden + near + _global(stack, layer, hidden, positions, keys, values)
    return hidden


def staircase(stack: Stack, tokens: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """The last position, exact, where each decoder layer computes only the rows that a later layer reads.

    Returns:
        hidden state of the last position after the last layer; rows that each decoder layer computed.
    """
    count = len(tokens)
    hidden, keys, values = _encoder(stack, tokens)
    positions, computed = np.arange(count), []
    for layer in range(stack.first_decoder, stack.layers):
        rows = min((stack.layers - 1 - layer) * (stack.window - 1) + 1, count)
        above, at = hidden[-rows:], positions[-rows:]
        near = _window(stack, layer, above, at, positions, hidden, 0)
        hidden, positions = above + near + _global(stack, layer, above, at, keys, values), at
        computed.append(rows)
    return hidden[-1], computed


def _encoder(stack: Stack, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hidden states after the encoder half, and the keys and values that all decoder layers read."""
    hidden, positions = tokens.astype(np.float64), np.arange(len(tokens))
    for layer in range(stack.first_decoder):
        hidden = hidden + _window(stack, layer, hidden, positions, positions, hidden, 0)
    return (hidden, np.einsum("td,de->te", _norm(hidden), stack.global_key),
            np.einsum("td,de->te", _norm(hidden), stack.global_value))


def _global(stack: Stack, layer: int, rows: np.ndarray, at: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    queries = np.einsum("td,de->te", _norm(rows), stack.query[layer])
    return _attend(queries, keys, values, np.arange(len(keys))[None, :] <= at[:, None])


def largest_error(stack: Stack, tokens: np.ndarray, keep: int) -> float:
    """Largest difference that bounded replay makes in the last position, relative to the largest exact value there."""
    exact = run(stack, tokens)[-1]
    return float(np.abs(run(stack, tokens, "compact", keep)[-1] - exact).max() / np.abs(exact).max())


def _window(stack: Stack, layer: int, rows: np.ndarray, at: np.ndarray, of: np.ndarray, source: np.ndarray,
            start: int) -> np.ndarray:
    queries = np.einsum("td,de->te", _norm(rows), stack.query[layer])
    keys = np.einsum("td,de->te", _norm(source), stack.key[layer])
    values = np.einsum("td,de->te", _norm(source), stack.value[layer])
    distance = at[:, None] - of[None, :]
    seen = (distance >= 0) & (distance < stack.window)
    # before the kept rectangle a decoder row sees only itself in mode mask; those rows are not read afterwards
    seen &= (of[None, :] >= start) | (distance == 0)
    return _attend(queries, keys, values, seen)


def _norm(rows: np.ndarray) -> np.ndarray:
    """RMS norm, so that attention stays spread over the window however deep the stack."""
    return rows / np.sqrt(np.einsum("td,td->t", rows, rows) / rows.shape[1])[:, None]


def _attend(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Softmax attention, row by row over the seen keys only, so that unseen ones cannot touch a bit."""
    out = np.empty_like(queries)
    for row, (query, mask) in enumerate(zip(queries, seen, strict=True)):
        scores = np.einsum("kd,d->k", keys[mask], query) / np.sqrt(len(query))
        weights = np.exp(scores - scores.max())
        out[row] = np.einsum("k,kd->d", weights, values[mask]) / weights.sum()
    return out
