"""The prefill trade-off: new tokens per second against time to first token, for a few cards that step together.

A step reads all weights of a GPU once and computes up to a chunk of new tokens. Its counted time over the time that gives the
published 60,000 new tokens per second is one fitted number, ``prefill.efficiency``: a factor and not a time per step, because a
full step lasts over 100 ms, of which a fixed time like decode's would be a twentieth. Left out: traffic of activations, reads of
selected KV entries, waiting for the slower GPU inside a step, the image encoder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require, require_between, require_positive
from inside_deepinfer.facts.units import BITS_PER_BYTE
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.serving.prefill_queue import Prefill, mean_and_p99
from inside_deepinfer.serving.step_budget import by_resource

# load -> prompts simulated there: an idle queue needs fewer of them for a steady tail; all runs draw the same prompts
PROMPTS_AT_LOAD = 5000
PROMPTS = {0.1: 1000, 0.4: 2000, **dict.fromkeys((0.6, 0.7, 0.78, 0.85, 0.91, 0.95), PROMPTS_AT_LOAD)}
LOADS = np.array(list(PROMPTS))
# a burst is one draw, so that the prompts grow with it; up to here, where 20,000 come within about a twentieth of 200,000
MOST_TOGETHER = 4.0
GPUS_PER_MACHINE = 8
FIT_TOKENS = np.array([1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0])
GIGA = 1e9


def check_group(experts: int, gpus: Any, domain: Any) -> Any:
    """``gpus`` as given, if the experts divide over them and they are one scale-up domain."""
    gpus_given = np.asarray(gpus, dtype=float)
    require((gpus_given >= 1) & (experts % np.maximum(gpus_given, 1) == 0), "prefill.gpus", gpus, f"a divisor of {experts} experts")
    if np.any(gpus_given > domain):
        raise NotPossible(f"a prefill instance of {np.max(gpus_given):g} cards is more than the {np.min(domain):g} cards of one "
                          "scale-up domain")
    return gpus


@derived(label="HBM bytes of weights on a prefill GPU of the instance", unit="B/GPU", words=True,
         uses={"gpus": "prefill.gpus", "balance": "eplb.prefill"},
         formula="(routed_experts / gpus + redundant) * moe_layers * expert_bytes + replicated weights, Engram scales, image encoder")
def prefill_held_bytes(routed_experts: Any, gpus: Any, balance: Any, card_domain: Any, moe_layers: Any, expert_bytes: Any,
                       replicated_weight_bytes: Any, engram_scale_bytes: Any, vision_bytes: Any) -> Any:
    """The draft model's experts are dropped. An instance of 4 cards holds far more per card than EP64 does."""
    held = routed_experts / check_group(int(routed_experts), gpus, card_domain) + balance[0]
    return held * moe_layers * expert_bytes + replicated_weight_bytes + engram_scale_bytes + vision_bytes


@derived(label="weight bytes read per prefill step", unit="B/GPU", words=True,
         uses={"gpus": "prefill.gpus", "balance": "eplb.prefill"},
         formula="(routed_experts / gpus + redundant) * moe_layers * expert_bytes + replicated_read_bytes, if the weights fit")
def prefill_read_bytes(routed_experts: Any, gpus: Any, balance: Any, moe_layers: Any, expert_bytes: Any, replicated_read_bytes: Any,
                       prefill_held_bytes: Any, usable_memory: Any) -> Any:
    """Every expert gets rows from a chunk of thousands of tokens, so that all are read; the draft model's are dropped."""
    over = np.asarray(prefill_held_bytes > usable_memory)
    if over.any():
        worst = float(np.min(np.where(over, usable_memory, np.inf)))
        raise NotPossible(f"the weights on each of {np.min(gpus):g} prefill cards are {np.max(prefill_held_bytes) / GIGA:.1f} GB, and "
                          f"the card leaves {worst / GIGA:.1f} GB")
    return (routed_experts / gpus + balance[0]) * moe_layers * expert_bytes + replicated_read_bytes


@derived(label="time to read weights in a prefill step", unit="s", formula="prefill_read_bytes / (card_bandwidth * efficiency)",
         uses={"efficiency": "weight_read_efficiency"})
def prefill_time_weights(prefill_read_bytes: Any, card_bandwidth: Any, efficiency: Any) -> Any:
    """The same for every chunk size."""
    return prefill_read_bytes / (card_bandwidth * require_between("efficiency", efficiency, 1e-6, 1.0))


@derived(label="compute time of a prefill step", unit="s", uses={"efficiency": "product_efficiency"},
         formula="prefill_chunk * prefill_flops_per_token / (card_fp8_peak * efficiency)")
def prefill_time_compute(prefill_chunk: Any, prefill_flops_per_token: Any, card_fp8_peak: Any, efficiency: Any) -> Any:
    """Matrix products and attention of a full chunk, at the share of the peak that large products reach."""
    return require_positive("prefill_chunk", prefill_chunk) * prefill_flops_per_token / (card_fp8_peak * efficiency)


@derived(label="layers that a new token passes in prefill", unit="layer", words=True, uses={"keep": "engine.replay_keep"},
         formula="encoder layers + decoder layers * kept tokens / new tokens; all layers without a split")
def prefill_layers_per_token(model: str, computed_prompt_tokens: Any, keep: Any) -> Any:
    """20.9 of 40 for V4.1-Flash with 3,080 new tokens of which 140 are kept."""
    body = load_shape(model).body
    if body.encoder_layers is None:
        return float(body.layers)
    kept = np.minimum(keep / np.maximum(computed_prompt_tokens, 1.0), 1.0)
    return body.encoder_layers + (body.layers - body.encoder_layers) * kept


@derived(label="time of dispatch and combine in a prefill step", unit="s", words=True,
         uses={"gpus": "prefill.gpus", "efficiency": "exchange_efficiency", "latency": "link.latency",
               "per_layer": "link.exchanges_per_layer"},
         formula="chunk * layers passed * copies * bytes both ways * (gpus - 1) / gpus over the link, + a latency per exchange")
def prefill_time_exchange(prefill_chunk: Any, prefill_layers_per_token: Any, exchange_bytes_per_token_layer: Any, gpus: Any,
                          card_link_bandwidth: Any, efficiency: Any, moe_layers: Any, latency: Any, per_layer: Any) -> Any:
    """Inside one scale-up domain."""
    moved = prefill_chunk * prefill_layers_per_token * exchange_bytes_per_token_layer * (gpus - 1) / gpus
    return moved / (card_link_bandwidth * efficiency) + np.where(np.asarray(gpus) > 1, moe_layers * per_layer * latency, 0.0)


@derived(label="counted time of a full prefill step", unit="s", words=True,
         formula="longest of HBM, tensor cores, link and launches + (1 - overlap) * the others")
def counted_prefill_step_time(prefill_time_weights: Any, prefill_time_compute: Any, prefill_time_exchange: Any, time_launch: Any,
                              overlap: Any) -> Any:
    """As in decode, with a chunk of prompt tokens per GPU."""
    times = by_resource(prefill_time_weights, 0.0, prefill_time_compute, 0.0, prefill_time_exchange, time_launch)
    longest = np.maximum(np.maximum(times[0], times[1]), np.maximum(times[2], times[3]))
    return longest + (1 - require_between("overlap", overlap, 0.0, 1.0)) * (sum(times) - longest)


@derived(label="time of a full prefill step", unit="s", formula="counted_prefill_step_time / efficiency",
         uses={"efficiency": "prefill.efficiency"})
def prefill_step_time(counted_prefill_step_time: Any, efficiency: Any) -> Any:
    """With the fitted share of the counted speed."""
    return counted_prefill_step_time / require_between("prefill.efficiency", efficiency, 1e-6, 1.0)


@derived(label="prefill capacity, new tokens", unit="token/(s*GPU)", formula="prefill_chunk / prefill_step_time")
def prefill_capacity(prefill_chunk: Any, prefill_step_time: Any) -> Any:
    """With every chunk full. Fitted to the published 60,000."""
    return prefill_chunk / prefill_step_time


@derived(label="prefill capacity, cached tokens counted", unit="token/(s*GPU)", words=True,
         uses={"network": "fleet.network"},
         formula="the smaller of prefill_capacity / (1 - hit_rate) and what the network can deliver of cached KV")
def prefill_capacity_cached(prefill_capacity: Any, hit_rate: Any, kv_bytes_per_token: Any, network: Any) -> Any:
    """60,000 / (1 - h) is an identity as long as a new token costs the same at every hit rate, and no longer."""
    require(np.asarray(hit_rate) < 1, "hit_rate", hit_rate, "below 1, since some tokens of every prompt are computed again")
    computed = prefill_capacity / (1 - require_between("hit_rate", hit_rate, 0.0, 1.0))
    with np.errstate(divide="ignore"):
        fetched = fetch_bandwidth(network) / (kv_bytes_per_token * np.asarray(hit_rate, dtype=float))
    return np.minimum(computed, fetched)[()]


def fetch_bandwidth(network: Any) -> Any:
    """Bytes per second and GPU of the network that a claim states per machine of 8 cards, in Gbit/s."""
    return network * GIGA / BITS_PER_BYTE / GPUS_PER_MACHINE


@derived(label="hit rate from which the network binds prefill", unit="ratio", words=True, uses={"network": "fleet.network"},
         formula="h where prefill_capacity * h / (1 - h) * kv_bytes_per_token is one GPU's share of the network")
def network_hit_rate(prefill_capacity: Any, kv_bytes_per_token: Any, network: Any) -> Any:
    """Beyond it cached tokens arrive too slowly to keep the GPU busy with new ones."""
    fetched = fetch_bandwidth(network) / (kv_bytes_per_token * prefill_capacity)
    return fetched / (1 + fetched)


@derived(label="load up to which the network brings the cached tokens", unit="ratio", words=True, uses={"network": "fleet.network"},
         formula="one GPU's share of the network over the bytes of cached tokens that come with prefill_capacity, at most 1")
def network_load(prefill_capacity: Any, hit_rate: Any, kv_bytes_per_token: Any, network: Any) -> Any:
    """1 where the GPUs are busy first."""
    hits = np.asarray(hit_rate, dtype=float)
    with np.errstate(divide="ignore"):
        return np.minimum(fetch_bandwidth(network) * (1 - hits) / (prefill_capacity * kv_bytes_per_token * hits), 1.0)[()]


@derived(label="what the identity 60,000 / (1 - h) overstates", unit="ratio",
         formula="prefill_throughput_cached / prefill_capacity_cached - 1")
def identity_gap(prefill_throughput_cached: Any, prefill_capacity_cached: Any) -> Any:
    """Positive where new tokens cost more than in the benchmark, or the network binds."""
    return prefill_throughput_cached / prefill_capacity_cached - 1


@derived(label="modelled prefill capacity over the published one, minus 1", unit="ratio", formula="prefill_capacity / published - 1",
         uses={"published": "prefill.throughput_new"})
def prefill_error(prefill_capacity: Any, published: Any) -> Any:
    """Small by construction at the published scenario: one point, one fitted number."""
    return prefill_capacity / require_positive("published", published) - 1


@derived(label="two-number form of a prefill step", unit="s, s, ratio", words=True, listed=False,
         uses={"efficiency": "prefill.efficiency"},
         formula="fixed time and time per new token through a step of 1,024 to 32,768 tokens, least relative squares; mean error")
def prefill_two_numbers(prefill_time_weights: Any, prefill_time_compute: Any, prefill_time_exchange: Any, time_launch: Any,
                        overlap: Any, prefill_chunk: Any, efficiency: Any) -> Any:
    """Last axis: fixed time (s), time per token (s), mean relative error. Exact at the scenario's own chunk."""
    tokens = FIT_TOKENS
    share = tokens / np.asarray(prefill_chunk, dtype=float)[..., None]
    parts = [np.asarray(part, dtype=float)[..., None] for part in (
        prefill_time_weights, prefill_time_compute, prefill_time_exchange, time_launch)]
    lap = np.asarray(overlap, dtype=float)[..., None]
    step = counted_prefill_step_time(parts[0], parts[1] * share, parts[2] * share, parts[3], lap) / efficiency
    here = counted_prefill_step_time(prefill_time_weights, prefill_time_compute, prefill_time_exchange, time_launch, overlap) \
        / efficiency
    # through the scenario's own chunk: step = here + per_token * (tokens - chunk), weighted by 1 / step
    away = (tokens - np.asarray(prefill_chunk, dtype=float)[..., None]) / step
    rest = 1 - np.asarray(here)[..., None] / step
    per_token = (away * rest).sum(axis=-1) / (away**2).sum(axis=-1)
    fixed = np.maximum(here - per_token * prefill_chunk, 0.0)
    error = np.abs((fixed[..., None] + per_token[..., None] * tokens) / step - 1).mean(axis=-1)
    return np.stack(np.broadcast_arrays(fixed, per_token, error), axis=-1)


@derived(label="fixed time of a prefill step", unit="s", words=True, formula="first of the two numbers that stand for the step")
def prefill_fixed_time(prefill_two_numbers: Any) -> Any:
    """Mostly weights."""
    return prefill_two_numbers[..., 0][()]


@derived(label="time per new token of a prefill step", unit="s", words=True, formula="second of the two numbers")
def prefill_time_per_token(prefill_two_numbers: Any) -> Any:
    """Compute and exchange."""
    return prefill_two_numbers[..., 1][()]


@derived(label="share of a full prefill step that buys no token", unit="ratio", formula="prefill_fixed_time / prefill_step_time")
def prefill_fixed_share(prefill_fixed_time: Any, prefill_step_time: Any) -> Any:
    """The shorter the chunk, the larger."""
    return prefill_fixed_time / require_positive("prefill_step_time", prefill_step_time)


@derived(label="mean error of the two-number form of prefill", unit="ratio", words=True,
         formula="mean of |fixed + tokens * time per token over the counted step, minus 1|")
def prefill_fit_error(prefill_two_numbers: Any) -> Any:
    """Over steps of 1,024 to 32,768 tokens."""
    return prefill_two_numbers[..., 2][()]


@derived(label="time to read the cached part of a mean prompt", unit="s", words=True, uses={"network": "fleet.network"},
         formula="input_tokens * hit_rate * kv_bytes_per_token over one GPU's share of the network")
def prefix_fetch_time(input_tokens: Any, hit_rate: Any, kv_bytes_per_token: Any, network: Any) -> Any:
    """Delays the prompt, while the GPU works on others."""
    return input_tokens * hit_rate * kv_bytes_per_token / fetch_bandwidth(network)


@derived(label="times to first token at the loads of the frontier", unit="s", words=True, listed=False,
         uses={"gpus": "prefill.gpus"}, formula="simulation: mean and 99th percentile at each load, and at the scenario's own load")
def prefill_waits(gpus: Any, prefill_fixed_time: Any, prefill_time_per_token: Any, prefill_chunk: Any, computed_prompt_tokens: Any,
                  input_sigma: Any, prefix_fetch_time: Any, burst: Any) -> Any:
    """Last axes: loads (``LOADS``) x (mean, 99th percentile), seconds."""
    columns = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (
        gpus, prefill_fixed_time, prefill_time_per_token, prefill_chunk, computed_prompt_tokens, input_sigma, prefix_fetch_time,
        burst)))
    found = [[mean_and_p99(instance(*values), load, prompts_drawn(prompts, values[-1])) for load, prompts in PROMPTS.items()]
             for values in zip(*(column.ravel().tolist() for column in columns), strict=True)]
    return np.reshape(found, (*columns[0].shape, len(LOADS), 2))


def instance(gpus: float, fixed: float, per_token: float, chunk: float, new_tokens: float, sigma: float, fetch: float,
             burst: float) -> Prefill:
    """The queue of one instance; ``fetch`` is that of a mean prompt."""
    require(new_tokens > 0, "computed_prompt_tokens", new_tokens, "above 0, as with a hit_rate below 1")
    return Prefill(int(gpus), fixed, per_token, chunk, new_tokens, sigma, fetch / new_tokens, burst)


def prompts_drawn(prompts: int, burst: float) -> int:
    """How many prompts are simulated where ``prompts`` would do for a Poisson stream."""
    return int(prompts * min(burst, MOST_TOGETHER))


@derived(label="mean time to first token", unit="s", words=True, uses={"gpus": "prefill.gpus"},
         formula="simulation of steps at prefill_load: waiting, steps, and reading the cached part")
def first_token_mean(gpus: Any, prefill_fixed_time: Any, prefill_time_per_token: Any, prefill_chunk: Any,
                     computed_prompt_tokens: Any, input_sigma: Any, prefix_fetch_time: Any, burst: Any, prefill_load: Any,
                     network_load: Any) -> Any:
    """Reported target: 400 ms."""
    return _at_load(0, gpus, prefill_fixed_time, prefill_time_per_token, prefill_chunk, computed_prompt_tokens, input_sigma,
                    prefix_fetch_time, burst, _fed(prefill_load, network_load))


@derived(label="time to first token, 99th percentile", unit="s", words=True, uses={"gpus": "prefill.gpus"},
         formula="the same simulation")
def first_token_p99(gpus: Any, prefill_fixed_time: Any, prefill_time_per_token: Any, prefill_chunk: Any,
                    computed_prompt_tokens: Any, input_sigma: Any, prefix_fetch_time: Any, burst: Any, prefill_load: Any,
                     network_load: Any) -> Any:
    """Reported target: at most 1,000 ms."""
    return _at_load(1, gpus, prefill_fixed_time, prefill_time_per_token, prefill_chunk, computed_prompt_tokens, input_sigma,
                    prefix_fetch_time, burst, _fed(prefill_load, network_load))


def _fed(load: Any, network_load: Any) -> Any:
    """The load, if the network can bring the cached tokens that come with it."""
    over = np.asarray(load) >= network_load
    if np.any(over & (np.asarray(load) < 1)):
        raise NotPossible(f"the queue is unstable: from a load of {np.min(network_load):.3g} on the network to the KV store brings the "
                          "cached tokens too slowly, so waiting grows without end")
    return load


def _at_load(which: int, *values: Any) -> Any:
    columns = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in values))
    found = [mean_and_p99(instance(*row[:-1]), row[-1], prompts_drawn(PROMPTS_AT_LOAD, row[-2]))[which]
             for row in zip(*(column.ravel().tolist() for column in columns), strict=True)]
    return np.reshape(found, columns[0].shape)[()]


def load_that_meets(waits: Any, which: int, target: Any) -> Any:
    """Largest load at which the mean (0) or the 99th percentile (1) stays within ``target`` seconds; 0 where none does."""
    times = np.maximum.accumulate(np.asarray(waits)[..., which], axis=-1)
    flat = [np.interp(target, row, LOADS, left=0.0) for row in times.reshape(-1, len(LOADS))]
    return np.reshape(flat, times.shape[:-1])[()]


@derived(label="load at which the mean target is met", unit="ratio", words=True, uses={"target": "prefill.ttft_mean"},
         formula="largest load at which the simulated mean is within the target, and the network brings what is cached")
def load_at_mean_target(prefill_waits: Any, target: Any, network_load: Any) -> Any:
    """Interpolated between simulated loads; 0 where no load meets it."""
    return np.minimum(load_that_meets(prefill_waits, 0, target), network_load)


@derived(label="load at which the P99 target is met", unit="ratio", words=True, uses={"target": "prefill.ttft_p99"},
         formula="largest load at which the simulated 99th percentile is within the target, and the network brings what is cached")
def load_at_p99_target(prefill_waits: Any, target: Any, network_load: Any) -> Any:
    """As above."""
    return np.minimum(load_that_meets(prefill_waits, 1, target), network_load)


@derived(label="new-token throughput within both targets", unit="token/(s*GPU)", words=True,
         formula="prefill_capacity * the smaller of the two loads")
def throughput_within_targets(prefill_capacity: Any, load_at_mean_target: Any, load_at_p99_target: Any) -> Any:
    """What of the capacity can be sold at the reported waiting times."""
    return prefill_capacity * np.minimum(load_at_mean_target, load_at_p99_target)


@derived(label="prefill capacity without bounded replay", unit="token/(s*GPU)", words=True,
         formula="prefill_capacity with every new token in all layers, at the same efficiency", uses={
             "efficiency": "product_efficiency", "reached": "prefill.efficiency"})
def prefill_capacity_full(model: str, prefill_chunk: Any, prefill_flops_per_token_full: Any, prefill_layers_per_token: Any,
                          prefill_time_weights: Any, prefill_time_exchange: Any, time_launch: Any, card_fp8_peak: Any,
                          efficiency: Any, overlap: Any, reached: Any) -> Any:
    """All 40 layers for every new token: work and exchange grow, reads of weights do not."""
    compute = prefill_time_compute(prefill_chunk, prefill_flops_per_token_full, card_fp8_peak, efficiency)
    exchange = prefill_time_exchange * load_shape(model).body.layers / prefill_layers_per_token
    return prefill_chunk / (counted_prefill_step_time(prefill_time_weights, compute, exchange, time_launch, overlap) / reached)


@derived(label="gain of bounded replay in prefill capacity, minus 1", unit="ratio", formula="prefill_capacity / prefill_capacity_full - 1")
def replay_gain(prefill_capacity: Any, prefill_capacity_full: Any) -> Any:
    """Below the saving in FLOPs, since reading weights is not saved."""
    return prefill_capacity / prefill_capacity_full - 1


@derived(label="time to first token without a cache over that with a warm one, 8 H100", unit="ratio", formula="cold / warm",
         uses={"cold": "h100.first_token_cold", "warm": "h100.first_token_warm"})
def h100_first_token_gain(cold: Any, warm: Any) -> Any:
    """Both medians with 8 requests at a time."""
    return cold / require_positive("warm", warm)


@derived(label="new tokens saved by the warm cache, 8 H100", unit="ratio", formula="1 / (1 - hits)", uses={"hits": "h100.hit_rate_warm"})
def h100_identity(hits: Any) -> Any:
    """All tokens over those still to be computed."""
    return 1 / (1 - require_between("hits", hits, 0.0, 0.999))
