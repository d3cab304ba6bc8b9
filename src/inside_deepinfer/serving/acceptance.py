"""Guessing ahead: how many drafts survive, and how many are worth verifying.

One way of counting for the whole book: a step computes **rows** (the golden token and the drafts verified with it) and a
sequence advances by **tokens** (accepted drafts and one token that the target adds). Paper, released code and articles count
otherwise: :func:`rows_from_verified_drafts` converts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inside_deepinfer.facts import InputError, NotPossible, require, require_between, require_not_negative, require_positive

QUANTILES = 801
SAMPLES = 2000  # sequences whose confidences stand for all; another draw moves tokens per step by about 0.1 %


def tokens_per_step(acceptance: Any) -> Any:
    """Mean tokens per step when all drafts are verified.

    Args:
        acceptance: last axis the draft positions; chance that draft k is accepted once all before it were.
    """
    p = require_between("acceptance", np.asarray(acceptance, dtype=float), 0.0, 1.0)
    return 1 + np.cumprod(p, axis=-1).sum(axis=-1)


def rows_from_verified_drafts(drafts: Any) -> Any:
    """Rows per sequence from the released code's "verified length", which leaves the golden row out."""
    return require_not_negative("drafts", drafts) + 1


def rejection_sample(target: np.ndarray, draft: np.ndarray, rng: np.random.Generator, count: int) -> tuple[np.ndarray, float]:
    """Draws of one token by draft and correction, and the share of drafts accepted.

    A draft d from ``draft`` is kept with probability min(1, target[d] / draft[d]); otherwise a token is drawn from the part
    of the target that the draft leaves uncovered. The law of the result is the target's (Leviathan et al. 2023).

    Args:
        target, draft: probabilities over one small vocabulary.
        count: number of independent draws.
    """
    q, p = (np.asarray(values, dtype=float) for values in (target, draft))
    for name, values in (("target", q), ("draft", p)):
        require(np.all(values >= 0) and abs(values.sum() - 1) < 1e-9, name, values, "probabilities that sum to 1")
    require(q.shape == p.shape, "draft", p.shape, f"the vocabulary of the target, {q.shape}")
    drawn = rng.choice(len(p), size=count, p=p)
    keep = rng.random(count) * p[drawn] < q[drawn]
    rest = np.clip(q - p, 0, None)
    if not keep.all():
        drawn[~keep] = rng.choice(len(q), size=int((~keep).sum()), p=rest / rest.sum())
    return drawn, float(keep.mean())


def speculate(target: np.ndarray, draft: np.ndarray, length: int, tokens: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """``tokens`` tokens of ``count`` sequences, written by drafting ``length`` tokens, checking them in order, and a bonus.

    Args:
        target, draft: laws of the next token, one row per token before it; every sequence starts after token 0.
    """
    written = np.zeros((count, tokens), dtype=int)
    before, left = np.zeros(count, dtype=int), np.full(count, length)  # drafts of the round that are not yet checked
    uncovered = np.clip(target - draft, 0, None)
    for place in range(tokens):
        guess = _pick(draft[before], rng)
        kept = (left > 0) & (rng.random(count) * draft[before, guess] < target[before, guess])
        rest = np.where((left > 0)[:, None], uncovered[before], target[before])  # no draft left: the bonus token
        total = rest.sum(axis=1, keepdims=True)
        own = _pick(np.divide(rest, total, out=target[before], where=total > 0), rng)
        before = np.where(kept, guess, own)
        left = np.where(kept, left - 1, length)
        written[:, place] = before
    return written


def _pick(law: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One token from each row of probabilities."""
    return np.minimum((np.cumsum(law, axis=1) < rng.random((len(law), 1))).sum(axis=1), law.shape[1] - 1)


@dataclass(frozen=True)
class Survivals:
    """Chance that each draft of each sequence is reached and accepted.

    Attributes:
        chance: sequences x draft length, falling along a sequence.
    """

    chance: np.ndarray

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows per sequence, and tokens per step, when the best drafts of all sequences are verified first."""
        best = -np.sort(-self.chance.ravel())
        sequences = len(self.chance)
        return 1 + np.arange(best.size + 1) / sequences, 1 + np.append(0.0, np.cumsum(best)) / sequences


def drawn_survivals(mean: float, spread: float, length: int, seed: int = 0) -> Survivals:
    """Survivals of drafts whose acceptance follows a beta law, independent from draft to draft.

    Args:
        mean: mean acceptance of a draft, above 0 and below 1.
        spread: its standard deviation; below sqrt(mean * (1 - mean)), where nothing is left between 0 and 1.
        length: draft length.
    """
    require(0 < mean < 1, "mean", mean, "above 0 and below 1")
    most = float(np.sqrt(mean * (1 - mean)))
    require(0 < spread < most, "spread", spread, f"above 0 and below {most:.3g} for this mean")
    if length != int(length) or length < 1:
        raise InputError("length", length, "a whole number of at least 1")
    weight = mean * (1 - mean) / spread**2 - 1
    from scipy.special import betaincinv  # late: scipy takes long to import
    # every position gets the same 2,000 quantiles, in an order of its own: single draws would move the mean by ten times as much
    uniform = (np.random.default_rng(seed).random((SAMPLES, int(length))).argsort(axis=0) + 0.5) / SAMPLES
    # the inverse law is slow, so it is tabulated, densest at both ends; which moves no mean survival by 1e-5
    grid = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, QUANTILES))
    return Survivals(np.cumprod(np.interp(uniform, grid, betaincinv(mean * weight, (1 - mean) * weight, grid)), axis=1))


@dataclass(frozen=True)
class Schedule:
    """What a policy chooses at each load: rows per sequence, tokens per step and time of the step; arrays over loads."""

    rows: np.ndarray
    tokens: np.ndarray
    time: np.ndarray


def _at(rows: np.ndarray, tokens: np.ndarray, sequences: np.ndarray, step_time: Any, pick: np.ndarray) -> Schedule:
    chosen = rows[pick]
    return Schedule(chosen, tokens[pick], step_time(sequences * chosen))


def best_budget(survivals: Survivals, sequences: Any, step_time: Any) -> Schedule:
    """The released rule: as many drafts as make expected tokens per time largest, at each number of sequences.

    Args:
        sequences: sequences per GPU.
        step_time: function from rows per GPU to seconds, taking arrays.
    """
    n = np.atleast_1d(require_positive("sequences", sequences)).astype(float)
    rows, tokens = survivals.curve()
    rate = tokens / step_time(n[:, None] * rows[None, :])
    return _at(rows, tokens, n, step_time, rate.argmax(axis=1))


def fixed_length(survivals: Survivals, sequences: Any, step_time: Any, drafts: int) -> Schedule:
    """Verify the first ``drafts`` drafts of every sequence, whatever the load."""
    length = survivals.chance.shape[1]
    require(0 <= drafts <= length, "drafts", drafts, f"0 to the draft length, {length}")
    n = np.atleast_1d(require_positive("sequences", sequences)).astype(float)
    tokens = 1 + survivals.chance[:, :drafts].sum() / len(survivals.chance)
    rows = np.full(len(n), 1.0 + drafts)
    return Schedule(rows, np.full(len(n), tokens), step_time(n * rows))


def above_threshold(survivals: Survivals, sequences: Any, step_time: Any, threshold: float) -> Schedule:
    """Verify the drafts whose survival is at least ``threshold``, whatever the load."""
    require_between("threshold", threshold, 0.0, 1.0)
    n = np.atleast_1d(require_positive("sequences", sequences)).astype(float)
    rows, tokens = survivals.curve()
    count = int((survivals.chance >= threshold).sum())
    return _at(rows, tokens, n, step_time, np.full(len(n), count))


def believed_budget(truth: Survivals, belief: Survivals, sequences: Any, step_time: Any) -> Schedule:
    """The released rule with wrong or stale confidences: chosen by ``belief``, paid and accepted by ``truth``.

    A survival that is believed too high costs rows, one believed too low costs tokens.
    """
    require(truth.chance.shape == belief.chance.shape, "belief", belief.chance.shape, f"the shape of the truth, {truth.chance.shape}")
    n = np.atleast_1d(require_positive("sequences", sequences)).astype(float)
    rows, expected = belief.curve()
    order = np.argsort(-belief.chance, axis=None, kind="stable")
    tokens = 1 + np.append(0.0, np.cumsum(truth.chance.ravel()[order])) / len(truth.chance)
    pick = (expected / step_time(n[:, None] * rows[None, :])).argmax(axis=1)
    return _at(rows, tokens, n, step_time, pick)


def staircase(step_time: Any, interval: int) -> Any:
    """The same step time, but rows are padded to the next captured graph size, a multiple of ``interval``."""
    require(interval >= 1, "interval", interval, "a whole number of at least 1")
    return lambda rows: step_time(np.ceil(np.asarray(rows) / interval) * interval)


def feasible(schedule: Schedule, sequences: Any, most_rows: float) -> Schedule:
    """The schedule, or :class:`NotPossible` where no load keeps within ``most_rows`` rows per GPU."""
    n = np.atleast_1d(np.asarray(sequences, dtype=float))
    fits = n * schedule.rows <= most_rows
    if not fits.any():
        raise NotPossible(f"even {n.min():g} sequences bring more than {most_rows:g} rows per GPU, so no point of the frontier exists")
    return Schedule(schedule.rows[fits], schedule.tokens[fits], schedule.time[fits])
