"""How large is the cluster? Three routes to a number of GPUs: throughput, revenue, storage."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require, require_between, require_positive
from inside_deepinfer.facts.units import HOURS_PER_DAY, SECONDS_PER_DAY


@derived(label="tokens per second", unit="token/s", formula="tokens_per_day / 86400")
def tokens_per_second(tokens_per_day: Any) -> Any:
    """Mean rate of a day. Source: claim fleet.tokens_per_second."""
    return require_positive("tokens_per_day", tokens_per_day) / SECONDS_PER_DAY


@derived(label="prefill throughput, cached tokens counted", unit="token/(s*GPU)",
         formula="prefill_throughput_new / (1 - hit_rate)")
def prefill_throughput_cached(prefill_throughput_new: Any, hit_rate: Any) -> Any:
    """Input tokens served per second and prefill GPU when only the misses cost work.

    True by construction (claim prefill.throughput_cached): one measurement and the hit rate, not two measurements.
    Limit: reading the cached KV must keep up; at a hit rate of 1 the quotient has no value.
    """
    require_positive("prefill_throughput_new", prefill_throughput_new)
    hit_rate = require_between("hit_rate", hit_rate, 0.0, 1.0)
    require(hit_rate < 1, "hit_rate", hit_rate, "below 1, since some tokens of every prompt are computed again")
    return prefill_throughput_new / (1 - hit_rate)


@derived(label="prefill GPUs from throughput", unit="GPU", formula="tokens_per_second / prefill_throughput_cached")
def prefill_gpus_from_throughput(tokens_per_second: Any, prefill_throughput_cached: Any) -> Any:
    """Prefill GPUs that serve the whole day at benchmark speed, all tokens counted as input (as the article does)."""
    require_positive("tokens_per_second", tokens_per_second)
    return tokens_per_second / require_positive("prefill_throughput_cached", prefill_throughput_cached)


@derived(label="GPUs of the cluster from throughput", unit="GPU", formula="prefill_gpus_from_throughput * (1 + 1 / pd_ratio)")
def cluster_gpus_from_throughput(prefill_gpus_from_throughput: Any, pd_ratio: Any) -> Any:
    """Prefill and decode GPUs together, if every GPU runs at benchmark speed all day."""
    return prefill_gpus_from_throughput * (1 + 1 / require_positive("pd_ratio", pd_ratio))


@derived(label="tokens per second of one prefill group and its decode GPU", unit="token/s",
         formula="pd_ratio * prefill_throughput_cached + decode_throughput")
def tokens_per_second_per_group(pd_ratio: Any, prefill_throughput_cached: Any, decode_throughput: Any) -> Any:
    """Input and output of ``pd_ratio`` prefill GPUs and one decode GPU, both busy."""
    require_positive("pd_ratio", pd_ratio)
    return pd_ratio * prefill_throughput_cached + require_positive("decode_throughput", decode_throughput)


@derived(label="GPUs of the cluster from throughput, output counted apart", unit="GPU",
         formula="tokens_per_second / tokens_per_second_per_group * (pd_ratio + 1)")
def cluster_gpus_from_groups(tokens_per_second: Any, tokens_per_second_per_group: Any, pd_ratio: Any) -> Any:
    """As above, but output tokens are taken from the decode GPUs' share of the day's tokens."""
    return tokens_per_second / tokens_per_second_per_group * (pd_ratio + 1)


@derived(label="GPUs of the cluster that the workload asks for", unit="GPU",
         formula="tokens_per_second / (1 + input_output_ratio) * (input_output_ratio / prefill_throughput_cached + 1 / decode_throughput)")
def cluster_gpus_for_workload(tokens_per_second: Any, input_output_ratio: Any, prefill_throughput_cached: Any,
                              decode_throughput: Any) -> Any:
    """Each pool as large as its own tokens need at benchmark speed; the ratio of cards follows from the workload."""
    ratio = require_positive("input_output_ratio", input_output_ratio)
    busy = ratio / require_positive("prefill_throughput_cached", prefill_throughput_cached) \
        + 1 / require_positive("decode_throughput", decode_throughput)
    return require_positive("tokens_per_second", tokens_per_second) / (1 + ratio) * busy


@derived(label="revenue of a day at list price", unit="USD/day",
         formula="tokens_per_second / tokens_per_second_per_group * (pd_ratio + 1) * revenue_per_cluster_gpu_hour * 24")
def revenue_per_day(tokens_per_second: Any, tokens_per_second_per_group: Any, pd_ratio: Any,
                    revenue_per_cluster_gpu_hour: Any) -> Any:
    """List-price value of the day's tokens, in the mix that a balanced group handles."""
    return cluster_gpus_from_groups(tokens_per_second, tokens_per_second_per_group, pd_ratio) \
        * revenue_per_cluster_gpu_hour * HOURS_PER_DAY


@derived(label="GPUs of the cluster from revenue", unit="GPU", formula="revenue_per_day / price_factor / (published_revenue * 24)",
         uses={"published_revenue": "fleet.revenue_per_gpu_hour"})
def cluster_gpus_from_revenue(revenue_per_day: Any, price_factor: Any, published_revenue: Any) -> Any:
    """GPUs over which the day's list-price value spreads to the published USD per GPU-hour.

    The published figure counts every hour off-peak, so the day is counted off-peak too, whatever the scenario sells at peak.
    """
    if not np.all(np.asarray(revenue_per_day) > 0):
        raise NotPossible("at prices of 0 there is no revenue to count GPUs from")
    off_peak = revenue_per_day / require_positive("price_factor", price_factor)
    return off_peak / (require_positive("published_revenue", published_revenue) * HOURS_PER_DAY)


@derived(label="GPUs of the cluster from storage", unit="GPU", formula="store_capacity / store_per_gpu")
def cluster_gpus_from_storage(store_capacity: Any, store_per_gpu: Any) -> Any:
    """GPUs that share the KV store at the stated capacity per GPU."""
    return require_positive("store_capacity", store_capacity) / require_positive("store_per_gpu", store_per_gpu)


@derived(label="utilisation that would reconcile storage and throughput", unit="ratio",
         formula="cluster_gpus_from_throughput / cluster_gpus_from_storage")
def reconciling_utilisation(cluster_gpus_from_throughput: Any, cluster_gpus_from_storage: Any) -> Any:
    """Mean share of benchmark speed at which the GPUs counted from storage would run to serve the day.

    Above 1 storage names fewer GPUs than the day needs at full speed.
    """
    return cluster_gpus_from_throughput / require_positive("cluster_gpus_from_storage", cluster_gpus_from_storage)


@derived(label="output tokens per request", unit="token", formula="input_tokens / input_output_ratio")
def output_tokens_per_request(input_tokens: Any, input_output_ratio: Any) -> Any:
    """Mean output of a request."""
    return require_positive("input_tokens", input_tokens) / require_positive("input_output_ratio", input_output_ratio)


@derived(label="input tokens per output token when both pools are full", unit="ratio",
         formula="pd_ratio * prefill_throughput_cached / decode_throughput")
def balanced_input_output_ratio(pd_ratio: Any, prefill_throughput_cached: Any, decode_throughput: Any) -> Any:
    """The workload that keeps prefill and decode GPUs busy at this ratio of cards."""
    return require_positive("pd_ratio", pd_ratio) * prefill_throughput_cached \
        / require_positive("decode_throughput", decode_throughput)


@derived(label="prefill GPUs per decode GPU that the workload asks for", unit="ratio",
         formula="input_output_ratio * decode_throughput / prefill_throughput_cached")
def balanced_pd_ratio(input_output_ratio: Any, decode_throughput: Any, prefill_throughput_cached: Any) -> Any:
    """The ratio of cards at which neither pool waits for the other."""
    return require_positive("input_output_ratio", input_output_ratio) * require_positive("decode_throughput", decode_throughput) \
        / require_positive("prefill_throughput_cached", prefill_throughput_cached)


@derived(label="requests per second and prefill GPU", unit="1/(s*GPU)", formula="prefill_throughput_cached / input_tokens")
def requests_per_prefill_gpu(prefill_throughput_cached: Any, input_tokens: Any) -> Any:
    """Requests that one prefill GPU starts in a second."""
    return prefill_throughput_cached / require_positive("input_tokens", input_tokens)
