"""What would have to be true for the routes to a number of GPUs to agree; each reading is shown, none is claimed."""

from __future__ import annotations

from typing import Any

from inside_deepinfer.facts import derived, require_between, require_positive


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
         formula="published_revenue / revenue_per_cluster_gpu_hour", uses={"published_revenue": "fleet.revenue_per_gpu_hour"})
def utilisation_from_revenue(published_revenue: Any, revenue_per_cluster_gpu_hour: Any) -> Any:
    """Mean speed over benchmark speed at which every GPU would earn the published figure; above 1 is faster than benchmark."""
    return require_positive("published_revenue", published_revenue) \
        / require_positive("revenue_per_cluster_gpu_hour", revenue_per_cluster_gpu_hour)


@derived(label="revenue per GPU-hour if storage names the GPUs", unit="USD/(GPU*h)",
         formula="reconciling_utilisation * revenue_per_cluster_gpu_hour")
def revenue_at_reconciling_utilisation(reconciling_utilisation: Any, revenue_per_cluster_gpu_hour: Any) -> Any:
    """What a GPU would earn an hour if the day's tokens were spread over the GPUs counted from storage."""
    return reconciling_utilisation * revenue_per_cluster_gpu_hour


@derived(label="exchange rate at which theory equals the published revenue", unit="CNY/USD",
         formula="cny_per_usd * revenue_per_cluster_gpu_hour / published_revenue",
         uses={"published_revenue": "fleet.revenue_per_gpu_hour"})
def exchange_rate_for_published_revenue(cny_per_usd: Any, revenue_per_cluster_gpu_hour: Any, published_revenue: Any) -> Any:
    """Revenue of a yuan list in dollars is inverse to the rate, so one rate makes the two equal."""
    return require_positive("cny_per_usd", cny_per_usd) * revenue_per_cluster_gpu_hour \
        / require_positive("published_revenue", published_revenue)


@derived(label="price ratio at which hits and misses earn the same", unit="ratio", formula="hit_rate / (1 - hit_rate)")
def balancing_price_ratio(hit_rate: Any) -> Any:
    """Price of a miss over a hit that would balance the two at this hit rate."""
    hit_rate = require_between("hit_rate", hit_rate, 0.0, 1.0)
    return hit_rate / require_positive("1 - hit_rate", 1 - hit_rate)


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
