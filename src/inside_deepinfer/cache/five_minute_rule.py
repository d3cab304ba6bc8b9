"""Keep or recompute: the five-minute rule (Gray and Putzolu 1987) for the KV of a token.

Keeping costs a share of a drive for as long as it lasts; dropping costs the prefill GPU time to compute the token again, if it
is asked for again. What a read from the store costs is left out, which makes keeping look better; so are faster answers on a
hit, which makes it look worse.
"""

from __future__ import annotations

from typing import Any

from inside_deepinfer.cache.workloads import mixed_reuse, of_mix
from inside_deepinfer.facts import derived, require_between, require_not_negative, require_positive
from inside_deepinfer.facts.units import DAYS_PER_YEAR, HOURS_PER_DAY, SECONDS_PER_HOUR, TOKENS_PER_PRICE

TERA = 1e12  # drives are sold by the decimal terabyte


@derived(label="cost of keeping a byte for a day", unit="USD/(B*day)",
         formula="ssd_price / 1e12 * cost_factor * erasure_overhead / (years * 365)",
         uses={"cost_factor": "store.cost_factor", "years": "ssd.years"})
def keep_cost_per_byte_day(ssd_price: Any, cost_factor: Any, erasure_overhead: Any, years: Any) -> Any:
    """Price of the drives and of the servers around them, parity included, spread over the drives' life."""
    raw = require_positive("ssd_price", ssd_price) / TERA * require_positive("cost_factor", cost_factor)
    return raw * erasure_overhead / (require_positive("years", years) * DAYS_PER_YEAR)


@derived(label="cost of keeping a token for a day", unit="USD/(token*day)", formula="kv_bytes_per_token * keep_cost_per_byte_day")
def keep_cost_per_token_day(kv_bytes_per_token: Any, keep_cost_per_byte_day: Any) -> Any:
    """The KV of one token on SSD."""
    return require_positive("kv_bytes_per_token", kv_bytes_per_token) * keep_cost_per_byte_day


@derived(label="cost of keeping a million tokens for an hour", unit="USD/(Mtoken*h)",
         formula="keep_cost_per_token_day * 1e6 / 24")
def keep_cost_per_million_hour(keep_cost_per_token_day: Any) -> Any:
    """In the unit in which a vendor sells it: Google asks 4.50 for Gemini 2.5 Pro (fact price.gemini25_pro.storage)."""
    return keep_cost_per_token_day * TOKENS_PER_PRICE / HOURS_PER_DAY


@derived(label="cost of computing a token again", unit="USD/token", formula="cost_per_gpu_hour / 3600 / prefill_throughput_new")
def recompute_cost_per_token(cost_per_gpu_hour: Any, prefill_throughput_new: Any) -> Any:
    """GPU time of prefill at its published throughput of new tokens; per prefill GPU, which an assumption prices."""
    return cost_per_gpu_hour / SECONDS_PER_HOUR / require_positive("prefill_throughput_new", prefill_throughput_new)


@derived(label="break-even retention", unit="day",
         formula="reuse_probability * recompute_cost_per_token / keep_cost_per_token_day")
def break_even_days(reuse_probability: Any, recompute_cost_per_token: Any, keep_cost_per_token_day: Any) -> Any:
    """Days on SSD that cost as much as the recomputation they save on average. One reuse counts; more make it longer."""
    require_between("reuse_probability", reuse_probability, 0.0, 1.0)
    return reuse_probability * require_not_negative("recompute_cost_per_token", recompute_cost_per_token) \
        / require_positive("keep_cost_per_token_day", keep_cost_per_token_day)


@derived(label="reads of a stored token, mean", unit="ratio",
         formula="hit_rate * (tokens_per_day - output_tokens_per_day) / new_tokens_per_day")
def reads_per_stored_token(hit_rate: Any, tokens_per_day: Any, output_tokens_per_day: Any, new_tokens_per_day: Any) -> Any:
    """Every hit token is one read, every new token is stored once; a steady day."""
    require_between("hit_rate", hit_rate, 0.0, 1.0)
    return hit_rate * (tokens_per_day - output_tokens_per_day) / require_positive("new_tokens_per_day", new_tokens_per_day)


@derived(label="share of stored tokens that are read again in the generated traffic", unit="ratio", words=True,
         formula="tokens written and read at least once before they are dropped, over all tokens written; agents and chat")
def generated_reuse_share(retention_days: Any, retention_chat_days: Any, block_tokens: Any) -> Any:
    """The generated agents and chat meet the published mean input and hit rate; everything else about them is assumed."""
    return of_mix(mixed_reuse, retention_days, retention_chat_days, block_tokens)


@derived(label="break-even retention at the reuse of the generated traffic", unit="day",
         formula="generated_reuse_share * recompute_cost_per_token / keep_cost_per_token_day")
def generated_break_even_days(generated_reuse_share: Any, recompute_cost_per_token: Any, keep_cost_per_token_day: Any) -> Any:
    """:func:`break_even_days` with another chance of reuse; one reuse counts here too."""
    return break_even_days(generated_reuse_share, recompute_cost_per_token, keep_cost_per_token_day)


@derived(label="break-even retention at the drive price of 2025", unit="day", formula="break_even_days * ssd_price / before",
         uses={"before": "ssd.price_2025"})
def break_even_days_before(break_even_days: Any, ssd_price: Any, before: Any) -> Any:
    """The rest of the cost of keeping is proportional to the drive price."""
    return break_even_days * ssd_price / require_positive("ssd.price_2025", before)


@derived(label="reuses per day that pay for keeping a token", unit="1/day",
         formula="keep_cost_per_token_day / recompute_cost_per_token")
def break_even_reuse_per_day(keep_cost_per_token_day: Any, recompute_cost_per_token: Any) -> Any:
    """Keep a token while the chance that it is read in the next day is above this."""
    return keep_cost_per_token_day / require_positive("recompute_cost_per_token", recompute_cost_per_token)


@derived(label="stored tokens per input token", unit="ratio",
         formula="new_tokens_per_day / (tokens_per_day - output_tokens_per_day)")
def written_per_input_token(new_tokens_per_day: Any, tokens_per_day: Any, output_tokens_per_day: Any) -> Any:
    """Misses and output, which both go to the store, over the input."""
    return new_tokens_per_day / require_positive("input tokens per day", tokens_per_day - output_tokens_per_day)


@derived(label="gain in hit rate that pays for a further day of retention", unit="ratio/day",
         formula="written_per_input_token * break_even_reuse_per_day")
def hit_rate_gain_that_pays(written_per_input_token: Any, break_even_reuse_per_day: Any) -> Any:
    """Keeping everything a day longer costs this much hit rate; 0.01 is one point of all input tokens."""
    return written_per_input_token * break_even_reuse_per_day


@derived(label="what a hit saves the customer", unit="USD/token", formula="(price_miss - price_hit) / 1e6 * usd_per_unit")
def hit_saving_at_list_price(price_miss: Any, price_hit: Any, usd_per_unit: Any) -> Any:
    """Miss minus hit of the price list, off-peak."""
    saved = require_not_negative("price_miss - price_hit", price_miss - require_not_negative("price_hit", price_hit))
    return saved / TOKENS_PER_PRICE * usd_per_unit


@derived(label="break-even retention at list prices", unit="day",
         formula="reuse_probability * hit_saving_at_list_price / keep_cost_per_token_day")
def customer_break_even_days(reuse_probability: Any, hit_saving_at_list_price: Any, keep_cost_per_token_day: Any) -> Any:
    """The same rule for a customer who would pay for storing and save the difference between a miss and a hit."""
    require_between("reuse_probability", reuse_probability, 0.0, 1.0)
    return reuse_probability * hit_saving_at_list_price / require_positive("keep_cost_per_token_day", keep_cost_per_token_day)


@derived(label="days on SSD that the price of one hit pays", unit="day",
         formula="price_hit / 1e6 * usd_per_unit / keep_cost_per_token_day")
def days_paid_by_a_hit(price_hit: Any, usd_per_unit: Any, keep_cost_per_token_day: Any) -> Any:
    """Against the retention in days: whether the price of a hit covers the storage behind it."""
    return require_not_negative("price_hit", price_hit) / TOKENS_PER_PRICE * usd_per_unit \
        / require_positive("keep_cost_per_token_day", keep_cost_per_token_day)


@derived(label="cost of the KV store per day", unit="USD/day", formula="store_capacity * keep_cost_per_byte_day")
def store_cost_per_day(store_capacity: Any, keep_cost_per_byte_day: Any) -> Any:
    """The whole store, full or not."""
    return require_positive("store_capacity", store_capacity) * keep_cost_per_byte_day


@derived(label="cost of the KV store per GPU-hour of the cluster", unit="USD/(GPU*h)",
         formula="store_cost_per_day / (cluster_gpus_from_throughput * 24)")
def store_cost_per_gpu_hour(store_cost_per_day: Any, cluster_gpus_from_throughput: Any) -> Any:
    """What the store adds to a GPU-hour if one cluster pays for all of it."""
    return store_cost_per_day / (require_positive("cluster_gpus_from_throughput", cluster_gpus_from_throughput) * HOURS_PER_DAY)
