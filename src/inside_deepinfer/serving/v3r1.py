"""The formulas of fleet and prices on DeepSeek's earlier account of one day (V3 and R1, February 2025): do they hold there?

That account states both ends, tokens and throughputs as well as nodes and revenue, so it can prove the formulas wrong.
"""

from __future__ import annotations

from typing import Any

from inside_deepinfer.facts import derived, require_not_negative, require_positive
from inside_deepinfer.facts.units import HOURS_PER_DAY, TOKENS_PER_PRICE
from inside_deepinfer.serving.fleet import cluster_gpus_from_throughput, prefill_gpus_from_throughput, tokens_per_second
from inside_deepinfer.serving.prices import effective_input_price, hourly_revenue, price, revenue_per_cluster_gpu_hour

DAY = {"input_tokens": "v3r1.input_tokens", "output_tokens": "v3r1.output_tokens"}


@derived(label="cache hit rate, V3/R1", unit="ratio", formula="cached_tokens / input_tokens",
         uses={"cached_tokens": "v3r1.cached_tokens", "input_tokens": "v3r1.input_tokens"})
def v3r1_hit_rate(cached_tokens: Any, input_tokens: Any) -> Any:
    """Cached input over all input of the day."""
    return require_not_negative("cached_tokens", cached_tokens) / require_positive("input_tokens", input_tokens)


@derived(label="prefill nodes from throughput, V3/R1", unit="node", formula="input_tokens / 86400 / prefill_throughput",
         uses={"input_tokens": "v3r1.input_tokens", "prefill_throughput": "v3r1.prefill_throughput"})
def v3r1_prefill_nodes(input_tokens: Any, prefill_throughput: Any) -> Any:
    """The throughput route, with the day's input tokens and the throughput of a node instead of a GPU."""
    return prefill_gpus_from_throughput(tokens_per_second(input_tokens), prefill_throughput)


@derived(label="decode nodes from throughput, V3/R1", unit="node", formula="output_tokens / 86400 / decode_throughput",
         uses={"output_tokens": "v3r1.output_tokens", "decode_throughput": "v3r1.decode_throughput"})
def v3r1_decode_nodes(output_tokens: Any, decode_throughput: Any) -> Any:
    """The same for output."""
    return prefill_gpus_from_throughput(tokens_per_second(output_tokens), decode_throughput)


@derived(label="nodes from throughput, V3/R1", unit="node", formula="v3r1_prefill_nodes + v3r1_decode_nodes")
def v3r1_nodes(v3r1_prefill_nodes: Any, v3r1_decode_nodes: Any) -> Any:
    """To compare with the mean number of nodes that DeepSeek states for the same day."""
    return v3r1_prefill_nodes + v3r1_decode_nodes


@derived(label="nodes from throughput with every token as input, V3/R1", unit="node",
         formula="(input_tokens + output_tokens) / 86400 / prefill_throughput * (1 + 1 / v3r1_pd_ratio)",
         uses=DAY | {"prefill_throughput": "v3r1.prefill_throughput"})
def v3r1_nodes_all_as_input(input_tokens: Any, output_tokens: Any, prefill_throughput: Any, v3r1_pd_ratio: Any) -> Any:
    """The shortcut of article 000, which counts output as input, on the day that states its number of nodes."""
    prefill = prefill_gpus_from_throughput(tokens_per_second(input_tokens + output_tokens), prefill_throughput)
    return cluster_gpus_from_throughput(prefill, v3r1_pd_ratio)


@derived(label="nodes from throughput over nodes stated, minus 1, V3/R1", unit="ratio", formula="v3r1_nodes / stated - 1",
         uses={"stated": "v3r1.mean_nodes"})
def v3r1_nodes_error(v3r1_nodes: Any, stated: Any) -> Any:
    """Error of the throughput route where it can be checked."""
    return v3r1_nodes / require_positive("stated", stated) - 1


@derived(label="revenue of a day at R1 prices, V3/R1", unit="USD/day",
         formula="(input_tokens * (v3r1_hit_rate * price_hit + (1 - v3r1_hit_rate) * price_miss) + output_tokens * price_output) "
                 "/ 1e6",
         uses=DAY | {"price_hit": "price.r1.usd.hit", "price_miss": "price.r1.usd.miss", "price_output": "price.r1.usd.output"})
def v3r1_revenue_per_day(input_tokens: Any, v3r1_hit_rate: Any, price_hit: Any, price_miss: Any, output_tokens: Any,
                         price_output: Any) -> Any:
    """Every token of the day at the list price of R1, as DeepSeek counts it."""
    input_price = effective_input_price(v3r1_hit_rate, price_hit, price_miss)
    return (input_tokens * input_price + output_tokens * price("price_output", price_output)) / TOKENS_PER_PRICE


@derived(label="revenue of a day over the stated one, minus 1, V3/R1", unit="ratio",
         formula="v3r1_revenue_per_day / stated - 1", uses={"stated": "v3r1.revenue_per_day"})
def v3r1_revenue_error(v3r1_revenue_per_day: Any, stated: Any) -> Any:
    """Error of the money formula where it can be checked."""
    return v3r1_revenue_per_day / require_positive("stated", stated) - 1


@derived(label="revenue per GPU-hour of the cluster, V3/R1", unit="USD/(GPU*h)",
         formula="v3r1_revenue_per_day / (nodes * gpus_per_node * 24)",
         uses={"nodes": "v3r1.mean_nodes", "gpus_per_node": "v3r1.gpus_per_node"})
def v3r1_revenue_per_gpu_hour(v3r1_revenue_per_day: Any, nodes: Any, gpus_per_node: Any) -> Any:
    """Over the mean number of GPUs in use, prefill and decode together."""
    return v3r1_revenue_per_day / (require_positive("nodes", nodes) * require_positive("gpus_per_node", gpus_per_node)
                                   * HOURS_PER_DAY)


@derived(label="revenue per GPU-hour of the cluster from speeds, prices and ratio of cards, V3/R1", unit="USD/(GPU*h)",
         formula="(v3r1_pd_ratio * prefill_throughput * 3600 / 1e6 * (v3r1_hit_rate * price_hit + (1 - v3r1_hit_rate) * price_miss) "
                 "+ decode_throughput * 3600 / 1e6 * price_output) / (v3r1_pd_ratio + 1) / gpus_per_node",
         uses={"prefill_throughput": "v3r1.prefill_throughput", "price_hit": "price.r1.usd.hit", "price_miss": "price.r1.usd.miss",
               "decode_throughput": "v3r1.decode_throughput", "price_output": "price.r1.usd.output",
               "gpus_per_node": "v3r1.gpus_per_node"})
def v3r1_theory_revenue_per_gpu_hour(v3r1_pd_ratio: Any, prefill_throughput: Any, v3r1_hit_rate: Any, price_hit: Any,
                                     price_miss: Any, decode_throughput: Any, price_output: Any, gpus_per_node: Any) -> Any:
    """The formula for a GPU of the cluster on the earlier day; throughputs of that account are per node, so it is divided by 8."""
    prefill = hourly_revenue(prefill_throughput, effective_input_price(v3r1_hit_rate, price_hit, price_miss))
    decode = hourly_revenue(decode_throughput, price("price_output", price_output))
    return revenue_per_cluster_gpu_hour(v3r1_pd_ratio, prefill, decode) / require_positive("gpus_per_node", gpus_per_node)


@derived(label="that revenue over the stated one per GPU-hour, minus 1, V3/R1", unit="ratio",
         formula="v3r1_theory_revenue_per_gpu_hour / (stated / (nodes * gpus_per_node * 24)) - 1",
         uses={"stated": "v3r1.revenue_per_day", "nodes": "v3r1.mean_nodes", "gpus_per_node": "v3r1.gpus_per_node"})
def v3r1_theory_revenue_error(v3r1_theory_revenue_per_gpu_hour: Any, stated: Any, nodes: Any, gpus_per_node: Any) -> Any:
    """Error of the formula for a GPU of the cluster against revenue and nodes as stated."""
    hours = require_positive("nodes", nodes) * require_positive("gpus_per_node", gpus_per_node) * HOURS_PER_DAY
    return v3r1_theory_revenue_per_gpu_hour / (require_positive("stated", stated) / hours) - 1


@derived(label="gross margin, V3/R1", unit="ratio", formula="1 - cost / v3r1_revenue_per_day", uses={"cost": "v3r1.cost_per_day"})
def v3r1_gross_margin(cost: Any, v3r1_revenue_per_day: Any) -> Any:
    """Over revenue; DeepSeek prints the same as profit over cost, which reads larger."""
    return 1 - require_not_negative("cost", cost) / require_positive("revenue", v3r1_revenue_per_day)


@derived(label="prefill nodes per decode node, V3/R1", unit="ratio", formula="v3r1_prefill_nodes / v3r1_decode_nodes")
def v3r1_pd_ratio(v3r1_prefill_nodes: Any, v3r1_decode_nodes: Any) -> Any:
    """The ratio of cards that the day's traffic asked for."""
    return v3r1_prefill_nodes / require_positive("decode nodes", v3r1_decode_nodes)


@derived(label="most nodes in use over the mean, V3/R1", unit="ratio", formula="peak / mean",
         uses={"peak": "v3r1.peak_nodes", "mean": "v3r1.mean_nodes"})
def v3r1_peak_over_mean(peak: Any, mean: Any) -> Any:
    """How far a fleet sized for the busiest moment exceeds the mean over the day."""
    return require_positive("peak", peak) / require_positive("mean", mean)


@derived(label="cost of a day, V3/R1", unit="USD/day", formula="nodes * gpus_per_node * 24 * gpu_hour_cost",
         uses={"nodes": "v3r1.mean_nodes", "gpus_per_node": "v3r1.gpus_per_node", "gpu_hour_cost": "v3r1.gpu_hour_cost"})
def v3r1_cost_per_day(nodes: Any, gpus_per_node: Any, gpu_hour_cost: Any) -> Any:
    """The mean number of GPUs in use, rented all day at the price that DeepSeek assumes."""
    return require_positive("nodes", nodes) * require_positive("gpus_per_node", gpus_per_node) * HOURS_PER_DAY \
        * require_not_negative("gpu_hour_cost", gpu_hour_cost)


@derived(label="profit over cost, V3/R1", unit="ratio", formula="revenue / v3r1_cost_per_day - 1",
         uses={"revenue": "v3r1.revenue_per_day"})
def v3r1_cost_profit_margin(revenue: Any, v3r1_cost_per_day: Any) -> Any:
    """From the stated revenue, as DeepSeek computes it."""
    return require_positive("revenue", revenue) / require_positive("cost", v3r1_cost_per_day) - 1
