"""What tokens earn: effective input price, revenue per GPU-hour, margin, and what moves them."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import InputError, derived, require_between, require_not_negative, require_positive
from inside_deepinfer.facts.units import DAYS_PER_WEEK, HOURS_PER_DAY, HOURS_PER_YEAR, SECONDS_PER_HOUR, TOKENS_PER_PRICE


def to_usd(amount: Any, currency: str, rates: dict[str, float]) -> Any:
    """``amount`` of ``currency`` in dollars.

    Args:
        rates: units of each currency per dollar; a currency without a rate is an error, never 1.
    """
    if currency == "USD":
        return amount
    if currency not in rates:
        raise InputError("currency", currency, "a currency with a rate: " + ", ".join(["USD", *rates]))
    return amount / require_positive(f"{currency} per USD", rates[currency])


def price(name: str, value: Any) -> Any:
    """A list price; missing is an error and not zero, negative is an error."""
    if value is None or (not isinstance(value, str) and bool(np.any(np.isnan(np.asarray(value, dtype=float))))):
        raise InputError(name, None, "a price of at least 0; the list states none here, which is not the same as free")
    return require_not_negative(name, value)


@derived(label="share of a week's hours that are peak hours", unit="ratio", formula="peak_hours / 24 * peak_days / 7",
         uses={"peak_hours": "price.peak_hours_per_day", "peak_days": "price.peak_days_per_week"})
def peak_hours_share(peak_hours: Any, peak_days: Any) -> Any:
    """Of a week without holidays. It is the share of tokens at peak price only if traffic is flat."""
    hours = require_between("peak_hours", peak_hours, 0.0, HOURS_PER_DAY)
    return hours / HOURS_PER_DAY * require_between("peak_days", peak_days, 0.0, DAYS_PER_WEEK) / DAYS_PER_WEEK


@derived(label="factor on the off-peak price", unit="ratio", formula="1 + peak_share * (peak_factor - 1)",
         uses={"peak_factor": "price.peak_factor"})
def price_factor(peak_share: Any, peak_factor: Any) -> Any:
    """Mean price over the off-peak price when a share of the tokens is sold at peak."""
    return 1 + require_between("peak_share", peak_share, 0.0, 1.0) * (require_positive("peak_factor", peak_factor) - 1)


@derived(label="effective input price", unit="price/Mtoken", formula="hit_rate * price_hit + (1 - hit_rate) * price_miss")
def effective_input_price(hit_rate: Any, price_hit: Any, price_miss: Any) -> Any:
    """What an input token costs on average at a hit rate, in the currency of the list, off-peak."""
    hit_rate = require_between("hit_rate", hit_rate, 0.0, 1.0)
    return hit_rate * price("price_hit", price_hit) + (1 - hit_rate) * price("price_miss", price_miss)


@derived(label="price of a miss over a hit", unit="ratio", formula="price_miss / price_hit")
def miss_over_hit(price_miss: Any, price_hit: Any) -> Any:
    """How many cached tokens one uncached token pays for."""
    return price("price_miss", price_miss) / require_positive("price_hit", price("price_hit", price_hit))


@derived(label="revenue from hits over revenue from misses", unit="ratio",
         formula="hit_rate * price_hit / ((1 - hit_rate) * price_miss)")
def hit_over_miss_revenue(hit_rate: Any, price_hit: Any, price_miss: Any) -> Any:
    """1 where hits and misses earn the same."""
    hit_rate = require_between("hit_rate", hit_rate, 0.0, 1.0)
    misses = require_positive("(1 - hit_rate) * price_miss", (1 - hit_rate) * price("price_miss", price_miss))
    return hit_rate * price("price_hit", price_hit) / misses


@derived(label="hit rate at which hits and misses earn the same", unit="ratio", formula="price_miss / (price_miss + price_hit)")
def balancing_hit_rate(price_miss: Any, price_hit: Any) -> Any:
    """Solves h * hit = (1 - h) * miss for h."""
    return price("price_miss", price_miss) / require_positive(
        "price_miss + price_hit", price("price_hit", price_hit) + price_miss)


@derived(label="dollars per unit of the scenario's currency", unit="USD", words=True,
         formula="1 for USD, 1 / cny_per_usd for CNY")
def usd_per_unit(currency: str, cny_per_usd: Any) -> Any:
    """Exchange into dollars; a currency without a rate is an error."""
    return to_usd(1.0, currency, {"CNY": cny_per_usd})


@derived(label="revenue from cached tokens per prefill GPU-hour", unit="USD/(GPU*h)",
         formula="prefill_throughput_cached * 3600 / 1e6 * hit_rate * price_hit * price_factor * usd_per_unit")
def hit_revenue_per_prefill_gpu_hour(prefill_throughput_cached: Any, hit_rate: Any, price_hit: Any, price_factor: Any,
                                     usd_per_unit: Any) -> Any:
    """List-price value of the cached input tokens that one prefill GPU serves in an hour."""
    rate = hourly_revenue(prefill_throughput_cached, price("price_hit", price_hit))
    return rate * hit_rate * price_factor * usd_per_unit


@derived(label="revenue from uncached tokens per prefill GPU-hour", unit="USD/(GPU*h)",
         formula="prefill_throughput_cached * 3600 / 1e6 * (1 - hit_rate) * price_miss * price_factor * usd_per_unit")
def miss_revenue_per_prefill_gpu_hour(prefill_throughput_cached: Any, hit_rate: Any, price_miss: Any, price_factor: Any,
                                      usd_per_unit: Any) -> Any:
    """List-price value of the newly computed input tokens that one prefill GPU serves in an hour."""
    rate = hourly_revenue(prefill_throughput_cached, price("price_miss", price_miss))
    return rate * (1 - hit_rate) * price_factor * usd_per_unit


@derived(label="revenue per prefill GPU-hour", unit="USD/(GPU*h)",
         formula="hit_revenue_per_prefill_gpu_hour + miss_revenue_per_prefill_gpu_hour")
def revenue_per_prefill_gpu_hour(hit_revenue_per_prefill_gpu_hour: Any, miss_revenue_per_prefill_gpu_hour: Any) -> Any:
    """Per prefill GPU, which is not per GPU of the cluster."""
    return hit_revenue_per_prefill_gpu_hour + miss_revenue_per_prefill_gpu_hour


@derived(label="revenue per decode GPU-hour", unit="USD/(GPU*h)",
         formula="decode_throughput * 3600 / 1e6 * price_output * price_factor * usd_per_unit")
def revenue_per_decode_gpu_hour(decode_throughput: Any, price_output: Any, price_factor: Any, usd_per_unit: Any) -> Any:
    """Per decode GPU, which is not per GPU of the cluster."""
    require_positive("decode_throughput", decode_throughput)
    return hourly_revenue(decode_throughput, price("price_output", price_output)) * price_factor * usd_per_unit


@derived(label="revenue per GPU-hour of the cluster", unit="USD/(GPU*h)",
         formula="(pd_ratio * revenue_per_prefill_gpu_hour + revenue_per_decode_gpu_hour) / (pd_ratio + 1)")
def revenue_per_cluster_gpu_hour(pd_ratio: Any, revenue_per_prefill_gpu_hour: Any, revenue_per_decode_gpu_hour: Any) -> Any:
    """Mean over all GPUs when both pools are busy, whatever the workload: the articles' formula."""
    require_positive("pd_ratio", pd_ratio)
    return (pd_ratio * revenue_per_prefill_gpu_hour + revenue_per_decode_gpu_hour) / (pd_ratio + 1)


@derived(label="share of time the prefill pool is busy", unit="ratio", words=True,
         formula="the smaller of 1 and input_output_ratio / balanced_input_output_ratio")
def prefill_busy_share(input_output_ratio: Any, balanced_input_output_ratio: Any) -> Any:
    """Below 1 where decode limits: output needs so much that prefill GPUs wait."""
    return np.minimum(1.0, require_positive("input_output_ratio", input_output_ratio) / balanced_input_output_ratio)


@derived(label="share of time the decode pool is busy", unit="ratio", words=True,
         formula="the smaller of 1 and balanced_input_output_ratio / input_output_ratio")
def decode_busy_share(input_output_ratio: Any, balanced_input_output_ratio: Any) -> Any:
    """Below 1 where prefill limits: decode GPUs wait for requests."""
    return np.minimum(1.0, balanced_input_output_ratio / require_positive("input_output_ratio", input_output_ratio))


@derived(label="revenue per GPU-hour of the cluster for this workload", unit="USD/(GPU*h)",
         formula="(pd_ratio * prefill_busy_share * revenue_per_prefill_gpu_hour "
                 "+ decode_busy_share * revenue_per_decode_gpu_hour) / (pd_ratio + 1)")
def workload_revenue_per_cluster_gpu_hour(pd_ratio: Any, prefill_busy_share: Any, revenue_per_prefill_gpu_hour: Any,
                                          decode_busy_share: Any, revenue_per_decode_gpu_hour: Any) -> Any:
    """As above, but the pool that the workload leaves waiting earns only while it is busy."""
    require_positive("pd_ratio", pd_ratio)
    return (pd_ratio * prefill_busy_share * revenue_per_prefill_gpu_hour
            + decode_busy_share * revenue_per_decode_gpu_hour) / (pd_ratio + 1)


@derived(label="how far theory stays below the published revenue", unit="ratio",
         formula="1 - revenue_per_cluster_gpu_hour / price_factor / published_revenue",
         uses={"published_revenue": "fleet.revenue_per_gpu_hour"})
def revenue_gap(revenue_per_cluster_gpu_hour: Any, price_factor: Any, published_revenue: Any) -> Any:
    """How far theory at off-peak prices, as the published figure counts, stays below that figure, relative to it."""
    off_peak = revenue_per_cluster_gpu_hour / require_positive("price_factor", price_factor)
    return 1 - off_peak / require_positive("published_revenue", published_revenue)


@derived(label="revenue forgone per prefill GPU-hour that hits avoid", unit="USD/(GPU*h)",
         formula="prefill_throughput_new * 3600 / 1e6 * (price_miss - price_hit) * price_factor * usd_per_unit")
def revenue_forgone_per_avoided_gpu_hour(prefill_throughput_new: Any, price_miss: Any, price_hit: Any, price_factor: Any,
                                         usd_per_unit: Any) -> Any:
    """At fixed demand the tokens that a prefill GPU would have computed in an hour are sold as hits instead of misses.

    Negative where the list asks more for a hit than for a miss.
    """
    require_positive("prefill_throughput_new", prefill_throughput_new)
    difference = price("price_miss", price_miss) - price("price_hit", price_hit)
    return hourly_revenue(prefill_throughput_new, difference) * price_factor * usd_per_unit


@derived(label="assumed cost per GPU-hour", unit="USD/(GPU*h)", formula="gpu_cost + infra_cost")
def cost_per_gpu_hour(gpu_cost: Any, infra_cost: Any) -> Any:
    """Both parts are assumptions."""
    return require_not_negative("gpu_cost", gpu_cost) + require_not_negative("infra_cost", infra_cost)


@derived(label="gross margin at the published revenue", unit="ratio", formula="1 - cost_per_gpu_hour / published_revenue",
         uses={"published_revenue": "fleet.revenue_per_gpu_hour"})
def margin_at_published_revenue(cost_per_gpu_hour: Any, published_revenue: Any) -> Any:
    """Share of the published revenue that an assumed cost leaves; negative where cost exceeds revenue."""
    return 1 - cost_per_gpu_hour / require_positive("published_revenue", published_revenue)


@derived(label="gross margin", unit="ratio", formula="1 - cost_per_gpu_hour / workload_revenue_per_cluster_gpu_hour")
def gross_margin(cost_per_gpu_hour: Any, workload_revenue_per_cluster_gpu_hour: Any) -> Any:
    """Share of this scenario's revenue that the assumed cost leaves; negative where cost exceeds revenue."""
    return 1 - cost_per_gpu_hour / require_positive("revenue", workload_revenue_per_cluster_gpu_hour)


@derived(label="published revenue per GPU-year", unit="USD/(GPU*year)", formula="published_revenue * 8760",
         uses={"published_revenue": "fleet.revenue_per_gpu_hour"})
def annual_revenue_per_gpu(published_revenue: Any) -> Any:
    """The published hourly figure, all year long."""
    return require_positive("published_revenue", published_revenue) * HOURS_PER_YEAR


@derived(label="published revenue per GPU-year in yen", unit="JPY/(GPU*year)", formula="annual_revenue_per_gpu * jpy_per_usd",
         uses={"jpy_per_usd": "rate.jpy_per_usd"})
def annual_revenue_per_gpu_jpy(annual_revenue_per_gpu: Any, jpy_per_usd: Any) -> Any:
    """At the article's own rate."""
    return annual_revenue_per_gpu * require_positive("jpy_per_usd", jpy_per_usd)


@derived(label="published revenue of the fleet per year", unit="USD/year", formula="fleet_gpus * annual_revenue_per_gpu",
         uses={"fleet_gpus": "fleet.total_gpus"})
def annual_revenue(fleet_gpus: Any, annual_revenue_per_gpu: Any) -> Any:
    """The article's rounded fleet at the published hourly figure, all year long."""
    return require_positive("fleet_gpus", fleet_gpus) * annual_revenue_per_gpu


def hourly_revenue(tokens_per_second: Any, price_per_million: Any) -> Any:
    """Revenue of an hour from a token rate and a price per million tokens, in the price's currency."""
    return tokens_per_second * SECONDS_PER_HOUR / TOKENS_PER_PRICE * price_per_million
