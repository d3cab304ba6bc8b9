"""Hit rate of generated requests for every retention: sorted once, so that a slider costs a search and no pass over the requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inside_deepinfer.cache.blocks import apply_rule, suffix
from inside_deepinfer.facts import InputError, require
from inside_deepinfer.facts.arrays import scalar
from inside_deepinfer.facts.units import SECONDS_PER_DAY

if TYPE_CHECKING:
    from inside_deepinfer.cache.workloads import Requests


@dataclass(frozen=True)
class HitCurve:
    """Hits by retention for one block size.

    Attributes:
        gap: seconds since the session's last request, ascending; infinite for first requests.
        gained: tokens that the first n of them add to the hits, shape (requests + 1,).
        always: tokens that hit at any retention above 0, because every session begins with them.
        input_tokens: tokens of all requests.
        output_tokens: tokens that decode adds to the store.
    """

    gap: np.ndarray
    gained: np.ndarray
    always: int
    input_tokens: int
    output_tokens: int

    def at(self, retention_days: Any) -> Any:
        """Hit rate in tokens for one retention or an array of them; infinite allowed."""
        days = np.asarray(retention_days, dtype=float)
        if not np.all(days >= 0):
            raise InputError("retention_days", retention_days, "0 or more days")
        kept = np.searchsorted(self.gap, np.minimum(days * SECONDS_PER_DAY, np.finfo(float).max), side="right")
        rates = np.where(days > 0, self.always + self.gained[kept], 0) / self.input_tokens
        return scalar(rates)

    @property
    def requests(self) -> int:
        return len(self.gap)

    def written_per_request(self, retention_days: float) -> float:
        """Tokens that a mean request adds to the store: misses and output."""
        return ((1 - self.at(retention_days)) * self.input_tokens + self.output_tokens) / self.requests

    def kept_per_request(self, retention_days: float, since_days: float = 0.0) -> float:
        """Token-days that a mean request adds to the store at ages from ``since_days`` to ``retention_days`` after the last use.

        Of what is written per request, :meth:`written_per_request` (r) reaches the age r without being used again; this is its
        integral over r, exact because hits change in steps.
        """
        if not 0 <= since_days <= retention_days < np.inf:
            raise InputError("since_days, retention_days", (since_days, retention_days), "0 or more days, the first not above the second")
        start, end = np.searchsorted(self.gap, np.array([since_days, retention_days]) * SECONDS_PER_DAY, side="right")
        later = retention_days - self.gap[start:end] / SECONDS_PER_DAY  # how long each of these hits counts
        hits = (self.always + self.gained[start]) * (retention_days - since_days) + np.diff(self.gained[start:end + 1]) @ later
        return float(((self.input_tokens + self.output_tokens) * (retention_days - since_days) - hits) / self.requests)


def curve_of(requests: Requests, block: int) -> HitCurve:
    """All retentions of these requests; the rule of ``blocks`` with blocks of ``block`` tokens."""
    require((block >= 1) & (block == np.floor(block)), "block", block, "a whole number of tokens, at least 1")
    least = apply_rule(requests.shared, requests.input_tokens, block, suffix())
    most = apply_rule(np.maximum(requests.known, requests.shared), requests.input_tokens, block, suffix())
    order = np.argsort(requests.gap)
    return HitCurve(requests.gap[order], np.concatenate([[0], np.cumsum((most - least)[order])]), int(least.sum()),
                    int(requests.input_tokens.sum()), int(requests.output_tokens.sum()))
