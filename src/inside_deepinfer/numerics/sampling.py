"""Sampling that is a pure function of seed and position: fixed-point probabilities and a counter instead of a state.

After the released sampler's design (deepinfer-sdist, TL/cuda/random_sampling.py and TL/sampler.py): 31-bit fixed point, so
that sums are integers and do not depend on their order, and three random streams per position.
"""

from __future__ import annotations

import numpy as np

from inside_deepinfer.facts import require

FIXED_POINT_BITS = 31  # a row that sums to 1 has a sum below 2**31, which fits a uint32 with one bit to spare
ROW_SUM_ERROR = 1e-4  # how far a row of float32 probabilities may sum from 1
STREAMS = 3  # per position: sample, resample of the residual, accept draw
SAMPLE, RESAMPLE, ACCEPT = range(STREAMS)


def splitmix64(state: np.ndarray) -> np.ndarray:
    """The SplitMix64 mixing function (Steele, Lea and Flood 2014) on an array of uint64."""
    z = np.asarray(state, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def draw(seed: np.ndarray, position: np.ndarray, stream: int = SAMPLE) -> np.ndarray:
    """One 31-bit random integer per (seed, position), the same whoever else is in the batch.

    Args:
        seed, position: integers, broadcast against each other.
        stream: SAMPLE, RESAMPLE or ACCEPT.
    """
    require(stream in range(STREAMS), "stream", stream, "0, 1 or 2")
    with np.errstate(over="ignore"):
        counter = np.uint64(STREAMS) * np.asarray(position, dtype=np.uint64) + np.uint64(stream)
        mixed = splitmix64(splitmix64(np.asarray(seed, dtype=np.uint64)) + counter)
    return (mixed >> np.uint64(64 - FIXED_POINT_BITS)).astype(np.int64)


def fixed_point(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities as 31-bit integers, rounded down; order of summation no longer matters.

    What is less likely than 2**-31 becomes 0 and is never drawn.

    Args:
        probabilities: any shape, last axis the vocabulary; not negative, not NaN, each row with the sum 1.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    require(np.isfinite(p) & (p >= 0), "probabilities", probabilities, "finite numbers of at least 0")
    # the sum is checked and not divided by: it is a float, and would bring its order into the integers
    require(np.abs(p.sum(axis=-1) - 1) < ROW_SUM_ERROR, "sum of a row of probabilities", p.sum(axis=-1), "1")
    return np.floor(p * (2**FIXED_POINT_BITS - 1)).astype(np.int64)


def sample(probabilities: np.ndarray, seed: np.ndarray, position: np.ndarray, stream: int = SAMPLE) -> np.ndarray:
    """Token ids, one per row, as a pure function of probabilities, seed and position.

    Args:
        probabilities: rows x vocabulary.
        seed, position: one integer per row.
    """
    weights = fixed_point(probabilities)
    cumulative = np.cumsum(weights, axis=-1)
    total = cumulative[..., -1]
    # multiply-shift instead of modulo: a 31-bit draw times a total of about 2**31 stays exact in 64 bits
    point = (draw(seed, position, stream) * total) >> FIXED_POINT_BITS
    return (cumulative <= point[..., None]).sum(axis=-1)


def stateful_sample(probabilities: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The usual way, for contrast: one generator serves the batch in its order, so neighbours change the answer."""
    cumulative = np.cumsum(probabilities, axis=-1)
    point = generator.random(probabilities.shape[:-1]) * cumulative[..., -1]
    return (cumulative <= point[..., None]).sum(axis=-1)
