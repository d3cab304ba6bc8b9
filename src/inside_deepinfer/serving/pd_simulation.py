"""Prefill and decode, apart or together, event by event (SimPy).

What is simplified: one prompt at a time per prefill GPU, no chunks, no failures; a decode instance advances all its ranks in
lock step and a step lasts as long as its fullest rank needs; the router sends a request to the shortest line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import simpy

from inside_deepinfer.facts import NotPossible, require, require_between, require_not_negative, require_positive

MAX_EVENTS = 2_000_000  # about half a minute; longer runs must be asked for


@dataclass(frozen=True)
class Cluster:
    """What is simulated; seconds, tokens, bytes, per GPU.

    Attributes:
        prefill_gpus, decode_gpus: cards of each pool; with ``together`` all cards are decode_gpus and do both.
        ranks: decode GPUs that advance in lock step.
        slots: sequences that one decode GPU can hold.
        prefill_rate: newly computed tokens per second and GPU.
        prefill_fixed: seconds every prompt costs besides its tokens.
        step_fixed, step_per_row: GPU time of a decode step, and what each of a rank's sequences adds.
        cpu_time: scheduling time per decode step; hidden behind the GPU where ``overlap``.
        tokens_per_step: tokens that a sequence advances in a step.
        read_rate, transfer_rate: bytes per second for cache reads and for prefill -> decode, per GPU.
        kv_bytes: bytes per token.
    """

    prefill_gpus: int
    decode_gpus: int
    ranks: int
    slots: int
    prefill_rate: float
    prefill_fixed: float
    step_fixed: float
    step_per_row: float
    cpu_time: float
    overlap: bool
    tokens_per_step: float
    read_rate: float
    transfer_rate: float
    kv_bytes: float
    together: bool = False

    def __post_init__(self) -> None:
        for name in ("prefill_gpus", "decode_gpus", "ranks", "slots", "prefill_rate", "tokens_per_step", "read_rate",
                     "transfer_rate"):
            require_positive(name, getattr(self, name))
        for name in ("prefill_fixed", "step_fixed", "step_per_row", "cpu_time", "kv_bytes"):
            require_not_negative(name, getattr(self, name))
        require(self.step_fixed + self.step_per_row > 0, "step_fixed + step_per_row", 0, "above 0")
        require(self.decode_gpus % self.ranks == 0, "ranks", self.ranks, f"a divisor of decode_gpus = {self.decode_gpus}")

    def step_time(self, rows: int) -> float:
        """Time of one decode step whose fullest rank holds ``rows`` sequences."""
        gpu = self.step_fixed + self.step_per_row * rows
        return max(gpu, self.cpu_time) if self.overlap else gpu + self.cpu_time

    def decode_capacity(self) -> float:
        """Output tokens per second of the whole decode pool with every slot taken."""
        return self.decode_gpus * self.slots * self.tokens_per_step / self.step_time(self.slots)


@dataclass(frozen=True)
class Requests:
    """A workload: arrival times (s, rising), input tokens, cached input tokens, output tokens; one value per request."""

    arrival: np.ndarray
    inputs: np.ndarray
    cached: np.ndarray
    outputs: np.ndarray

    def __post_init__(self) -> None:
        require(np.all(np.diff(self.arrival) >= 0) and self.arrival[0] >= 0, "arrival", self.arrival, "rising times from 0")
        require((self.cached >= 0) & (self.cached <= self.inputs), "cached", self.cached, "0 to the input tokens")
        require(self.outputs >= 1, "outputs", self.outputs, "at least 1")


def poisson_requests(count: int, rate: float, input_mean: float, hit_rate: float, output_mean: float, *, input_sigma: float = 0.8,
                     seed: int = 0) -> Requests:
    """Poisson arrivals, log-normal inputs with the given mean, a fixed share cached, geometric outputs."""
    require(count >= 1, "count", count, "at least 1")
    require_positive("rate", rate)
    require_between("hit_rate", hit_rate, 0, 1)
    require(seed >= 0, "seed", seed, "a whole number of at least 0")
    require(output_mean >= 1, "output_mean", output_mean, "at least 1")
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(1 / rate, count))
    inputs = np.maximum(1, rng.lognormal(np.log(input_mean) - input_sigma**2 / 2, input_sigma, count)).round()
    return Requests(arrival, inputs, np.floor(inputs * hit_rate), rng.geometric(1 / output_mean, count).astype(float))


@dataclass
class Outcome:
    """What was seen, one value per finished request; seconds."""

    wait: np.ndarray
    ttft: np.ndarray
    token_gap: np.ndarray  # mean time per token behind the first
    worst_gap: np.ndarray  # longest time without a new token, from the first token on
    span: float
    output_tokens: float
    prefill_busy: float
    decode_busy: float
    finish: np.ndarray  # when each request ended

    def later(self, dropped: float = 0.1) -> Outcome:
        """Without the first share ``dropped`` of the requests, which met a cluster that was still empty."""
        require(0 <= dropped < 1, "dropped", dropped, "0 to below 1")
        skip = int(dropped * len(self.ttft))
        return replace(self, **{name: getattr(self, name)[skip:] for name in ("wait", "ttft", "token_gap", "worst_gap", "finish")})

    def steady_rate(self, low: float = 0.1, high: float = 0.6) -> float:
        """Requests per second between the moments when the shares ``low`` and ``high`` of them had ended."""
        require(0 <= low < high <= 1, "low, high", (low, high), "two shares, the first below the second")
        ended = np.sort(self.finish)
        first, last = int(low * (len(ended) - 1)), int(high * (len(ended) - 1))
        return (last - first) / require_positive("time between", float(ended[last] - ended[first]))


@dataclass
class _Seen:
    wait: dict[int, float] = field(default_factory=dict)
    ttft: dict[int, float] = field(default_factory=dict)
    first: dict[int, float] = field(default_factory=dict)  # when the first token was there
    gap: dict[int, float] = field(default_factory=dict)
    worst: dict[int, float] = field(default_factory=dict)
    finish: dict[int, float] = field(default_factory=dict)
    prefill: float = 0.0
    decode: float = 0.0


def expected_events(cluster: Cluster, requests: Requests) -> float:
    """About how many events a run takes: a few per request and one per decode step."""
    steps = (requests.arrival[-1] + requests.outputs.max() / cluster.tokens_per_step * cluster.step_time(cluster.slots)) \
        / cluster.step_time(1)
    return 8 * len(requests.arrival) + steps * cluster.decode_gpus / cluster.ranks


def simulate(cluster: Cluster, requests: Requests, *, progress: Callable[[float], None] | None = None,
             allow_long: bool = False) -> Outcome:
    """Run all requests to their end.

    Args:
        progress: called with the share of finished requests, about a hundred times.
        allow_long: run even where more than :data:`MAX_EVENTS` events are expected.

    Raises:
        NotPossible: the prefill or decode pool gets more work than it can do, or the run is long and was not asked for.
    """
    _must_be_stable(cluster, requests)
    events = expected_events(cluster, requests)
    if events > MAX_EVENTS and not allow_long:
        raise NotPossible(f"about {events:,.0f} events are expected, more than {MAX_EVENTS:,}; ask for a long run to do it anyway")
    env, seen = simpy.Environment(), _Seen()
    instances = [_Decoder(env, cluster, seen) for _ in range(cluster.decode_gpus // cluster.ranks)]
    pools = [simpy.Resource(env, 1) for _ in range(cluster.prefill_gpus)]
    total, done = len(requests.arrival), 0
    tick = max(1, total // 100)

    def finished() -> None:
        nonlocal done
        done += 1
        if progress and (done % tick == 0 or done == total):
            progress(done / total)

    def request(number: int):
        yield env.timeout(requests.arrival[number])
        new = requests.inputs[number] - requests.cached[number]
        work = cluster.prefill_fixed + requests.cached[number] * cluster.kv_bytes / cluster.read_rate + new / cluster.prefill_rate
        if cluster.together:
            instance = min(instances, key=lambda each: each.load())
            yield instance.prefill(work, number)
        else:
            gpu = min(pools, key=lambda each: each.count + len(each.queue))
            with gpu.request() as turn:
                yield turn
                seen.wait[number] = env.now - requests.arrival[number]
                yield env.timeout(work)
                seen.prefill += work
            instance = min(instances, key=lambda each: each.load())
        seen.first[number] = env.now
        seen.ttft[number] = env.now - requests.arrival[number]
        if not cluster.together:
            yield env.timeout(requests.inputs[number] * cluster.kv_bytes / cluster.transfer_rate)
        yield instance.decode(number, requests.outputs[number])
        seen.finish[number] = env.now
        finished()

    for number in range(total):
        env.process(request(number))
    env.run()
    prefill_lines = len(instances) if cluster.together else cluster.prefill_gpus
    order = range(total)
    return Outcome(np.array([seen.wait[n] for n in order]), np.array([seen.ttft[n] for n in order]),
                   np.array([seen.gap[n] for n in order]), np.array([seen.worst[n] for n in order]), env.now,
                   float(requests.outputs.sum()), seen.prefill / prefill_lines / env.now,
                   seen.decode / len(instances) / env.now, np.array([seen.finish[n] for n in order]))


class _Decoder:
    """One decode instance: ranks in lock step, a line of requests waiting for a slot, and (together) prompts in between."""

    def __init__(self, env: simpy.Environment, cluster: Cluster, seen: _Seen):
        self.env, self.cluster, self.seen = env, cluster, seen
        self.active: list[dict[int, list[float]]] = [{} for _ in range(cluster.ranks)]  # number -> [left, first, last, worst, all]
        self.line: list[tuple[int, float, simpy.Event]] = []
        self.prompts: list[tuple[float, int, simpy.Event, float]] = []
        self.done: dict[int, simpy.Event] = {}
        self.work = env.event()
        env.process(self.run())

    def load(self) -> int:
        return sum(map(len, self.active)) + len(self.line) + len(self.prompts)

    def decode(self, number: int, tokens: float) -> simpy.Event:
        end = self.env.event()
        self.line.append((number, tokens, end))
        self.wake()
        return end

    def prefill(self, work: float, number: int) -> simpy.Event:
        end = self.env.event()
        self.prompts.append((work, number, end, self.env.now))
        self.wake()
        return end

    def wake(self) -> None:
        if not self.work.triggered:
            self.work.succeed()

    def admit(self) -> None:
        while self.line:
            rank = min(self.active, key=len)
            if len(rank) >= self.cluster.slots:
                return
            number, tokens, end = self.line.pop(0)
            began = self.seen.first[number]  # a reader waits from the first token on, also for the transfer and for a slot
            rank[number] = [tokens, began, began, 0.0, tokens]
            self.done[number] = end

    def run(self):
        while True:
            while self.prompts:  # together: prompts stop the decode steps of their instance until none waits
                work, number, end, came = self.prompts.pop(0)
                self.seen.wait[number] = self.env.now - came
                yield self.env.timeout(work / self.cluster.ranks)
                self.seen.prefill += work / self.cluster.ranks
                yield end.succeed()  # its request stands in the line below when this goes on
            self.admit()
            rows = max(map(len, self.active))
            if rows == 0:
                if not self.prompts and not self.line:
                    self.work = self.env.event()
                    yield self.work
                continue
            step = self.cluster.step_time(rows)
            yield self.env.timeout(step)
            self.seen.decode += step
            for rank in self.active:
                for number in [n for n, state in rank.items() if self.advance(state)]:
                    _, first, last, worst, tokens = rank.pop(number)
                    self.seen.worst[number] = worst
                    self.seen.gap[number] = (last - first) / tokens
                    self.done.pop(number).succeed()

    def advance(self, state: list[float]) -> bool:
        state[0] -= self.cluster.tokens_per_step
        state[3] = max(state[3], self.env.now - state[2])
        state[2] = self.env.now
        return state[0] <= 0


def _must_be_stable(cluster: Cluster, requests: Requests) -> None:
    span = requests.arrival[-1] - requests.arrival[0]
    if len(requests.arrival) < 50 or span <= 0:
        return
    new = requests.inputs - requests.cached
    work = cluster.prefill_fixed + requests.cached * cluster.kv_bytes / cluster.read_rate + new / cluster.prefill_rate
    prefill = work.sum() / cluster.prefill_gpus / span
    decode = requests.outputs.sum() / cluster.decode_capacity() / span
    loads = {"prefill": prefill, "decode": decode}
    if cluster.together:
        loads = {"prefill and decode together": work.sum() / cluster.decode_gpus / span + decode}
    for pool, rho in loads.items():
        if rho >= 1:
            raise NotPossible(f"the queue is unstable: the {pool} pool gets {rho:.3g} times the work it can do, "
                              "so waiting grows without end")
