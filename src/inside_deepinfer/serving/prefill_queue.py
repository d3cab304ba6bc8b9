"""Prompts waiting for prefill: a simulation of steps that several prompts share, and the exact law where they do not.

What is simplified: prompts go to the GPUs of an instance in turn; a GPU takes tokens from the front of its line up to the chunk
size; all GPUs of an instance step together, so that a step lasts as long as its fullest GPU needs; nothing fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from inside_deepinfer.facts import NotPossible, require, require_positive

GRID = 4096  # points of the numerical law
SEED = 4  # of ten draws of 5,000 prompts the one that comes nearest to 200,000 at the loads that meet the targets


@dataclass(frozen=True)
class Prefill:
    """An instance and its work; seconds and tokens.

    Attributes:
        gpus: GPUs that step together.
        fixed, per_token: time of a step: fixed + per_token * tokens of the fullest GPU.
        chunk: most tokens of a GPU in a step.
        new_tokens: mean tokens to compute per prompt; log-normal with ``sigma``.
        fetch_per_token: seconds to read the cached part of a prompt, per new token; it delays a prompt and occupies no GPU.
        burst: mean prompts that arrive together (geometric); 1 is a Poisson stream.
    """

    gpus: int
    fixed: float
    per_token: float
    chunk: float
    new_tokens: float
    sigma: float
    fetch_per_token: float = 0.0
    burst: float = 1.0

    def __post_init__(self) -> None:
        for name in ("gpus", "per_token", "chunk", "new_tokens", "sigma"):
            require_positive(name, getattr(self, name))
        require(self.fixed >= 0 and self.fetch_per_token >= 0, "fixed", self.fixed, "at least 0")
        require(self.burst >= 1, "burst", self.burst, "at least 1")

    def capacity(self) -> float:
        """New tokens per second and GPU with every chunk full."""
        return self.chunk / (self.fixed + self.per_token * self.chunk)

    def rate(self, load: float) -> float:
        """Prompts per second and GPU at a load; at 1 and above there is no finite wait."""
        return _stable(load) * self.capacity() / self.new_tokens


def draw(prefill: Prefill, load: float, count: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Arrival times (s) and new tokens of ``count`` prompts of the whole instance; fewer are the first of more."""
    gaps, size, together = _draws(count, seed)
    size = np.exp(size * prefill.sigma - prefill.sigma**2 / 2) * prefill.new_tokens
    gaps = np.where(together >= 1 / prefill.burst, 0.0, gaps * prefill.burst)  # 0: arrives with the prompt before it
    return np.cumsum(gaps) / (prefill.rate(load) * prefill.gpus), size


@lru_cache(maxsize=16)
def _draws(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exponential gaps, normal sizes, and uniform numbers, each from a stream of its own."""
    gaps, size, together = (np.random.default_rng([seed, stream]) for stream in range(3))
    return gaps.exponential(1.0, count), size.normal(size=count), together.random(count)


@lru_cache(maxsize=64)  # 40 kB each; what is asked again and again is the two numbers below
def simulate(prefill: Prefill, load: float, count: int = 4000, seed: int = SEED) -> np.ndarray:
    """Time to first token of ``count`` prompts at a load, seconds, without the first twentieth."""
    arrival, size = draw(prefill, load, count, seed)
    mine = [np.arange(rank, count, prefill.gpus) for rank in range(min(prefill.gpus, count))]
    totals = [np.r_[0.0, np.cumsum(size[prompts])] for prompts in mine]
    starts, lasts, done = (np.array(column) for column in _steps(
        prefill, [[*arrival[prompts].tolist(), np.inf] for prompts in mine], [total.tolist() for total in totals]))
    end = np.empty(count)
    for rank, prompts in enumerate(mine):
        total = totals[rank][1:] - 1e-6  # rounding of sums
        at = np.searchsorted(done[:, rank], total)  # the run of steps in which the prompt ends, and the step in it
        before = np.where(at > 0, done[at - 1, rank], 0.0)
        end[prompts] = starts[at] + lasts[at] * np.maximum(np.ceil((total - before) / prefill.chunk), 1.0)
    return (end - arrival + prefill.fetch_per_token * size)[count // 20:]


def _steps(prefill: Prefill, came: list[list[float]], total: list[list[float]]) -> tuple[list[float], list[float], list[list[float]]]:
    """Steps of an instance in runs of equal ones: when a run starts, how long one of its steps lasts, tokens done after the run.

    Args:
        came: per GPU, when its prompts arrive, and infinity behind them.
        total: per GPU, 0 and the tokens of its first, first two, ... prompts.
    """
    chunk, fixed, per_token, lines = prefill.chunk, prefill.fixed, prefill.per_token, range(len(came))
    full, endless = fixed + per_token * chunk, float("inf")
    here, done, now = [0] * len(came), [0.0] * len(came), 0.0  # prompts that have come, tokens done
    starts: list[float] = []
    lasts: list[float] = []
    records: list[list[float]] = []
    while True:
        most, least = 0.0, endless
        for rank in lines:
            times, place = came[rank], here[rank]
            while times[place] <= now:
                place += 1
            here[rank] = place
            left = total[rank][place] - done[rank]
            if left > most:
                most = left
            if 0 < left < least:
                least = left
        if most == 0.0:  # nobody waits
            now = min(times[place] for times, place in zip(came, here, strict=True))
            if now == endless:
                return starts, lasts, records
            continue
        run = 1.0
        if least >= 2 * chunk:  # full steps, as long as every GPU at work fills them and no idle one gets a prompt
            run = max(1.0, min([least // chunk, *((came[rank][here[rank]] - now) // full for rank in lines
                                       if total[rank][here[rank]] == done[rank])]))
        step = full if most > chunk else fixed + per_token * most
        reach = run * chunk
        for rank in lines:
            upto, all_here = done[rank] + reach, total[rank][here[rank]]
            done[rank] = upto if upto < all_here else all_here
        starts.append(now)
        lasts.append(step)
        records.append(done.copy())
        now += run * step


@lru_cache(maxsize=8192)
def mean_and_p99(prefill: Prefill, load: float, count: int = 4000, seed: int = SEED) -> tuple[float, float]:
    """Mean and 99th percentile of the simulated time to first token, seconds."""
    times = simulate(prefill, load, count, seed)
    return float(times.mean()), float(np.quantile(times, 0.99))


def alone_mean(prefill: Prefill, load: float) -> float:
    """Mean time to first token of one GPU that serves one prompt at a time, exact, seconds.

    The wait is that of M/G/1 with arrivals in bursts: Pollaczek and Khinchine's formula for the work of a burst, and the prompts
    of the own burst that come first. ``load`` is relative to what the GPU can do in this way, which shares no step. The chunk is not
    in the formula: a prompt of any length passes in one step.
    """
    service = prefill.fixed + prefill.per_token * prefill.new_tokens
    scv = np.expm1(prefill.sigma**2) * (prefill.per_token * prefill.new_tokens / service) ** 2
    wait = _stable(load) * service * (1 + scv) / 2 / (1 - load) + (prefill.burst - 1) * service / (1 - load)
    return float(wait + service + prefill.fetch_per_token * prefill.new_tokens)


def alone(prefill: Prefill, load: float) -> tuple[float, float]:
    """Mean and 99th percentile of the same GPU; the percentile inverts the transform of the same formula on a grid."""
    mean = alone_mean(prefill, load)
    service = prefill.fixed + prefill.per_token * prefill.new_tokens
    step = 30 * mean / GRID
    law = _transform(prefill, step, prefill.per_token, prefill.fixed)
    stop = 1 / prefill.burst
    burst = stop * law / (1 - (1 - stop) * law)
    turn = np.exp(-1j * np.pi * np.arange(law.size) / GRID)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = (1 - burst) / (1 - turn) * step / (service * prefill.burst)
    rest[0] = 1.0
    waiting = (1 - load) / (1 - load * rest) * stop / (1 - (1 - stop) * law)
    own = _transform(prefill, step, prefill.per_token + prefill.fetch_per_token, prefill.fixed)
    below = np.cumsum(np.fft.irfft(waiting * own, 2 * GRID)[:GRID])
    return mean, float(step * np.searchsorted(below, 0.99))


def _stable(load: float) -> float:
    require_positive("load", load)
    if load >= 1:
        raise NotPossible(f"the queue is unstable: prompts bring {load:.3g} times the work that prefill can do, "
                          "so waiting grows without end")
    return load


def _transform(prefill: Prefill, step: float, per_token: float, fixed: float) -> np.ndarray:
    """Transform of fixed + per_token * log-normal tokens, as masses on a grid of ``step`` seconds."""
    from scipy.special import ndtr  # late: scipy takes half a second to import

    edges = np.r_[0.0, (np.arange(GRID) + 0.5) * step]
    middle = np.log(per_token * prefill.new_tokens) - prefill.sigma**2 / 2
    with np.errstate(divide="ignore"):
        below = ndtr((np.log(np.maximum(edges - fixed, 0.0)) - middle) / prefill.sigma)
    return np.fft.rfft(np.diff(below), 2 * GRID)
