"""The prefill frontier of a scenario: throughput against waiting, chunk sizes, hit rates, with and without bounded replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.facts import NotPossible, load_facts
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.prefill_frontier import LOADS, instance
from inside_deepinfer.serving.prefill_queue import Prefill, alone_mean

QUEUE = ("prefill.gpus", "prefill_fixed_time", "prefill_time_per_token", "prefill_chunk", "computed_prompt_tokens", "input_sigma",
         "prefix_fetch_time", "burst")


@dataclass(frozen=True)
class PrefillFrontier:
    """One point per load.

    Attributes:
        load: share of the capacity with full chunks.
        per_gpu: new tokens per second and prefill GPU. ``cached``: the same with cached tokens counted.
        mean, p99: time to first token, s.
        capacity: new tokens per second and GPU that no load exceeds.
    """

    load: np.ndarray
    per_gpu: np.ndarray
    cached: np.ndarray
    mean: np.ndarray
    p99: np.ndarray
    capacity: float


def frontier(scenario: Scenario, preset: str = "published", **changes: Any) -> PrefillFrontier:
    """The simulated frontier; ``changes`` are scenario parameters at another (single) value.

    Raises:
        NotPossible: at every load the network brings the cached tokens too slowly.
    """
    found = catalogue.evaluate(["prefill_waits", "prefill_capacity", "hit_rate", "network_load"], scenario, preset, **changes)
    waits, capacity, hits, fed = (found[name].value for name in found)
    keep = fed > LOADS
    if not keep.any():
        raise NotPossible("the prefill frontier has no feasible point: the network to the KV store brings the cached tokens too slowly")
    loads, waits, capacity = LOADS[keep], waits[keep], float(capacity)
    return PrefillFrontier(loads, loads * capacity, loads * capacity / (1 - float(hits)), waits[:, 0], waits[:, 1], capacity)


def queue_of(scenario: Scenario, preset: str = "published", **changes: Any) -> Prefill:
    """The queue behind the frontier, for simulations of one's own."""
    found = catalogue.evaluate(QUEUE, scenario, preset, **changes)
    return instance(*(float(found[name].value) for name in QUEUE))


def one_at_a_time(queue: Prefill, loads: Any = LOADS) -> tuple[np.ndarray, np.ndarray]:
    """New tokens per second and GPU, and mean time to first token, of a GPU that serves one prompt at a time (exact)."""
    service = queue.fixed + queue.per_token * queue.new_tokens
    return np.asarray(loads) * queue.new_tokens / service, np.array([alone_mean(queue, float(load)) for load in loads])


def by_hit_rate(scenario: Scenario, preset: str = "published", rates: Any = None) -> dict[str, np.ndarray]:
    """Throughput with cached tokens counted against hit rate: the identity, the count, and the count without bounded replay."""
    rates = np.r_[np.linspace(0.0, 0.9, 19), np.linspace(0.91, 0.995, 35)] if rates is None else np.asarray(rates, dtype=float)
    names = ["prefill_throughput_cached", "prefill_capacity_cached", "prefill_capacity", "prefill_capacity_full"]
    found = catalogue.evaluate(names, scenario, preset, hit_rate=rates)
    values = {name: np.broadcast_to(found[name].value, rates.shape) for name in names}
    return values | {"hit_rate": rates, "full_cached": values["prefill_capacity_full"] / (1 - rates)}


def by_chunk(scenario: Scenario, preset: str = "published", chunks: tuple[int, ...] = (2048, 4096, 8192, 16384, 32768)
             ) -> list[tuple[int, PrefillFrontier]]:
    """A frontier for each chunk size."""
    return [(chunk, frontier(scenario, preset, prefill_chunk=chunk)) for chunk in chunks]


def targets() -> tuple[float, float]:
    """Reported mean and 99th percentile of the time to first token, seconds."""
    return load_facts().number("prefill.ttft_mean"), load_facts().number("prefill.ttft_p99")
