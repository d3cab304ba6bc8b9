"""What would have to be true for the routes to a number of GPUs to agree; each reading is shown, none is claimed."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require_between, require_not_negative, require_positive
from inside_deepinfer.facts.units import HOURS_PER_DAY


@derived(label="clusters that would share the store", unit="ratio",
         formula="cluster_gpus_from_storage / cluster_gpus_from_throughput")
def clusters_sharing_store(cluster_gpus_from_storage: Any, cluster_gpus_from_throughput: Any) -> Any:
    """How many clusters of this size, all at benchmark speed, the GPUs counted from storage would make."""
    return cluster_gpus_from_storage / require_positive("cluster_gpus_from_throughput", cluster_gpus_from_throughput)


@derived(label="KV store per GPU if one cluster had it alone", unit="B/GPU",
         formula="store_capacity / cluster_gpus_from_throughput")
def store_per_gpu_of_one_cluster(store_capacity: Any, cluster_gpus_from_throughput: Any) -> Any:
    """What the stated capacity per GPU would have to be for storage to name the same GPUs as throughput."""
    return require_positive("store_capacity", store_capacity) \
        / require_positive("cluster_gpus_from_throughput", cluster_gpus_from_throughput)


@derived(label="share of benchmark speed that the published revenue asks for", unit="ratio",
         formula="published_revenue * price_factor / revenue_per_cluster_gpu_hour",
         uses={"published_revenue": "fleet.revenue_per_gpu_hour"})
def utilisation_from_revenue(published_revenue: Any, price_factor: Any, revenue_per_cluster_gpu_hour: Any) -> Any:
    """Mean speed over benchmark speed at which every GPU would earn the published figure; above 1 is faster than benchmark.

    Both are counted at off-peak prices, as the published figure is.
    """
    return require_positive("published_revenue", published_revenue) * require_positive("price_factor", price_factor) \
        / require_positive("revenue_per_cluster_gpu_hour", revenue_per_cluster_gpu_hour)


@derived(label="revenue per GPU-hour if storage names the GPUs", unit="USD/(GPU*h)",
         formula="revenue_per_day / (24 * cluster_gpus_from_storage)")
def revenue_at_reconciling_utilisation(revenue_per_day: Any, cluster_gpus_from_storage: Any) -> Any:
    """What a GPU would earn an hour if the day's tokens were spread over the GPUs counted from storage."""
    return revenue_per_day / (HOURS_PER_DAY * require_positive("cluster_gpus_from_storage", cluster_gpus_from_storage))


@derived(label="revenue per GPU-hour of the cluster with online balancing", unit="USD/(GPU*h)",
         formula="balancing * revenue_per_cluster_gpu_hour", uses={"balancing": "eplb.total"})
def revenue_with_online_balancing(balancing: Any, revenue_per_cluster_gpu_hour: Any) -> Any:
    """If both speeds are even benchmarks and the service reaches the reported share of them (claim eplb.total)."""
    return require_between("balancing", balancing, 0.0, 1.0) * revenue_per_cluster_gpu_hour


@derived(label="exchange rate at which theory equals the published revenue", unit="CNY/USD",
         formula="cny_per_usd * revenue_per_cluster_gpu_hour / price_factor / published_revenue",
         uses={"published_revenue": "fleet.revenue_per_gpu_hour"})
def exchange_rate_for_published_revenue(cny_per_usd: Any, revenue_per_cluster_gpu_hour: Any, price_factor: Any,
                                        published_revenue: Any) -> Any:
    """Off-peak revenue of a yuan list in dollars is inverse to the rate, so one rate makes the two equal."""
    return require_positive("cny_per_usd", cny_per_usd) * revenue_per_cluster_gpu_hour \
        / require_positive("price_factor", price_factor) / require_positive("published_revenue", published_revenue)


@derived(label="price ratio at which hits and misses earn the same", unit="ratio", formula="hit_rate / (1 - hit_rate)")
def balancing_price_ratio(hit_rate: Any) -> Any:
    """Price of a miss over a hit that would balance the two at this hit rate."""
    hit_rate = require_between("hit_rate", hit_rate, 0.0, 1.0)
    return hit_rate / require_positive("1 - hit_rate", 1 - hit_rate)


@derived(label="hit rate at which an input token costs three times as much", unit="ratio",
         formula="(price_miss - 3 * effective_input_price) / (price_miss - price_hit)")
def hit_rate_at_triple_price(price_miss: Any, effective_input_price: Any, price_hit: Any) -> Any:
    """Solves h * hit + (1 - h) * miss = 3 * the present mean price for h."""
    room = require_positive("price_miss - price_hit", require_positive("price_miss", price_miss)
                            - require_not_negative("price_hit", price_hit))
    above = price_miss - 3 * require_positive("effective_input_price", effective_input_price)
    if not np.all(np.asarray(above) >= 0):
        raise NotPossible("three times the mean price of an input token is more than a miss costs, so no hit rate reaches it")
    return above / room


@derived(label="revenue per GPU-hour of the cluster in the currency of the list", unit="price/(GPU*h)",
         formula="revenue_per_cluster_gpu_hour / usd_per_unit")
def list_revenue_per_cluster_gpu_hour(revenue_per_cluster_gpu_hour: Any, usd_per_unit: Any) -> Any:
    """Before any exchange: what the list itself gives."""
    return revenue_per_cluster_gpu_hour / require_positive("usd_per_unit", usd_per_unit)


def gpus_at_utilisation(gpus_at_full_speed: Any, utilisation: Any) -> Any:
    """GPUs that serve the same load when each runs at ``utilisation`` (above 0) of benchmark speed."""
    return require_positive("gpus_at_full_speed", gpus_at_full_speed) / require_positive("utilisation", utilisation)


def revenue_at_utilisation(revenue_at_full_speed: Any, utilisation: Any) -> Any:
    """Revenue per GPU-hour when a GPU serves ``utilisation`` of what it serves at benchmark speed."""
    return require_positive("utilisation", utilisation) * revenue_at_full_speed


def storage_readings(store_capacity: float, store_per_gpu: float, data_shards: float,
                     parity_shards: float) -> dict[str, tuple[float, float]]:
    """Capacity of the store and per GPU, in bytes, in the ways in which a reader could take the two printed numbers.

    Args:
        store_capacity: printed in binary units (100 PiB).
        store_per_gpu: printed in decimal units (14.4 TB).
        data_shards, parity_shards: the erasure code, where the capacity is taken to count parity too.
    """
    data = store_capacity * data_shards / (data_shards + parity_shards)
    binary = store_per_gpu * 2 ** 40 / 1e12
    return {"as printed": (store_capacity, store_per_gpu),
            "TB meant as TiB": (store_capacity, binary),
            "PiB counts parity too": (data, store_per_gpu),
            "both of these": (data, binary),
            "both, and PiB meant as PB": (data * 1e15 / 2 ** 50, binary)}
