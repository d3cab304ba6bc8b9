"""The cluster and the traffic of a scenario as inputs of the simulation, and what is read off its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.facts import NotPossible, load_facts, require_positive
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.pd_simulation import (
    Cluster,
    Outcome,
    Requests,
    expected_events,
    poisson_requests,
    simulate,
)

# seconds of this simulation per event and per sequence and step, on a two-core machine of 2026; only for "about how long"
PER_EVENT, PER_ADVANCE = 6e-5, 2e-6


def cluster_of(scenario: Scenario, preset: str, prefill_gpus: int, decode_gpus: int, ranks: int | None = None,
               **changes: Any) -> Cluster:
    """A small cluster of the scenario's cards.

    The decode step is the model of chapter 8, a fixed part and a part per sequence, scaled so that a GPU with all its slots
    taken reaches the scenario's decode throughput.
    """
    batch, tokens = int(scenario.batch), float(scenario.tokens_per_step)
    alone, full = catalogue.value("decode_step_time", scenario, preset, batch=np.array([1.0, float(max(batch, 2))]))
    wanted = batch * tokens / require_positive("decode_throughput", scenario.decode_throughput)
    per_row = (full - alone) / (max(batch, 2) - 1)
    fit = wanted / (alone + per_row * (batch - 1))
    facts = load_facts()
    rate = float(scenario.scaleout_bandwidth)
    made = Cluster(
        prefill_gpus=prefill_gpus, decode_gpus=decode_gpus, ranks=decode_gpus if ranks is None else ranks, slots=batch,
        prefill_rate=float(scenario.prefill_throughput_new), prefill_fixed=0.0, step_fixed=float((alone - per_row) * fit),
        step_per_row=float(per_row * fit), cpu_time=facts.number("pd.cpu_time"), overlap=True, tokens_per_step=tokens,
        read_rate=rate, transfer_rate=rate, kv_bytes=float(catalogue.value("kv_bytes_per_token", scenario, preset)))
    return replace(made, **changes)


@dataclass(frozen=True)
class Limits:
    """Requests per second that each pool can serve for good, by closed form."""

    prefill: float
    decode: float

    @property
    def smaller(self) -> float:
        return min(self.prefill, self.decode)


def limits(scenario: Scenario, cluster: Cluster) -> Limits:
    """Work per request over what the cards do; with ``together`` all cards do both."""
    new = scenario.input_tokens * (1 - scenario.hit_rate)
    output = scenario.input_tokens / scenario.input_output_ratio
    prompt = cluster.prefill_fixed + new / cluster.prefill_rate + (scenario.input_tokens - new) * cluster.kv_bytes / cluster.read_rate
    decode = output / cluster.decode_capacity()
    if cluster.together:
        both = 1 / (prompt / cluster.decode_gpus + decode)
        return Limits(both, both)
    return Limits(cluster.prefill_gpus / prompt, 1 / decode)


def traffic(scenario: Scenario, cluster: Cluster, load: float, count: int, seed: int = 0) -> Requests:
    """Poisson requests of the scenario at a load of the busier pool; every GPU has had work before the count ends."""
    output = scenario.input_tokens / scenario.input_output_ratio
    if output < 1:
        raise NotPossible(f"a request would have {output:.2g} output tokens; at least 1 is needed")
    rate = require_positive("load", load) * limits(scenario, cluster).smaller
    return poisson_requests(count, rate, scenario.input_tokens, scenario.hit_rate, output, input_sigma=scenario.input_sigma, seed=seed)


def all_at_once(requests: Requests) -> Requests:
    """The same requests, all there at the start: what a saturated pool works off."""
    return replace(requests, arrival=np.zeros(len(requests.arrival)))


def expected_seconds(cluster: Cluster, requests: Requests) -> float:
    """About how long the simulation takes."""
    return PER_EVENT * expected_events(cluster, requests) + PER_ADVANCE * float(requests.outputs.sum()) / cluster.tokens_per_step


def simulated_balance(scenario: Scenario, preset: str, count: int = 240, seed: int = 0) -> float:
    """Prefill GPUs per decode GPU at which neither waits, from two saturated simulations: one of each pool's speed."""
    cluster = cluster_of(scenario, preset, 1, 1)
    requests = all_at_once(traffic(scenario, cluster, 0.5, count, seed))
    short = replace(requests, outputs=np.ones(count))
    prompts = simulate(cluster, short, allow_long=True).steady_rate(0.0, 1.0) * float(np.mean(requests.inputs - requests.cached))
    answers = simulate(replace(cluster, prefill_rate=1e12, read_rate=1e18), requests, allow_long=True).steady_rate(0.05, 0.55) \
        * float(np.mean(requests.outputs))
    # per token and not per request, so that the luck of the drawn lengths does not count
    return scenario.input_output_ratio * (1 - scenario.hit_rate) * answers / prompts


def runs(scenario: Scenario, preset: str, load: float, count: int, seed: int = 0) -> dict[str, Outcome]:
    """The same cards and requests three ways: apart, apart with CPU work in the open, and together.

    The load is that of the first way; a way that these requests would overload is left out. The first tenth of the requests is
    not counted.
    """
    cards = int(load_facts().number("pd.simulated_cards"))
    apart = cluster_of(scenario, preset, cards, cards)
    together = replace(apart, prefill_gpus=1, decode_gpus=2 * cards, ranks=2 * cards, together=True)
    requests = traffic(scenario, apart, load, count, seed)
    ways = {"apart": apart, "apart, CPU work not hidden": replace(apart, overlap=False), "together": together}
    rate = load * limits(scenario, apart).smaller
    return {name: simulate(way, requests).later() for name, way in ways.items() if rate < limits(scenario, way).smaller}


def prompt_line(scenario: Scenario, preset: str, loads: Sequence[float], count: int,
                seed: int = 0) -> tuple[float, list[tuple[float, float, float]]]:
    """Work of one prompt (s), and for each load (load, mean wait, standard error) of a single prefill GPU with equal prompts.

    The error is that of means of 20 batches of consecutive requests, since neighbours wait for each other.
    """
    cluster = replace(cluster_of(scenario, preset, 1, 1), slots=10**6, step_fixed=1e-6, step_per_row=0.0, cpu_time=0.0)
    work = 1 / limits(scenario, cluster).prefill
    rng, found = np.random.default_rng(seed), []
    for load in loads:
        length = np.full(count, float(scenario.input_tokens))
        requests = Requests(np.cumsum(rng.exponential(work / load, count)), length, length * scenario.hit_rate, np.ones(count))
        wait = simulate(cluster, requests, allow_long=True).wait[count // 20:]
        batches = np.array([part.mean() for part in np.array_split(wait, 20)])
        found.append((load, float(wait.mean()), float(batches.std(ddof=1) / np.sqrt(len(batches)))))
    return work, found
