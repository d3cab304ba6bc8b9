"""What chapter 3 concludes."""

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts


@conclusion("cached-token.misses-earn-twice", "At the reported hit rate the few misses bring about twice what the many "
                                              "hits bring.")
def _misses_earn_twice() -> bool:
    return 1.9 < 1 / catalogue.value("hit_over_miss_revenue") < 2.2


@conclusion("cached-token.balance-above-98", "Hits and misses bring the same only above a hit rate of 98 percent.")
def _balance_above_98() -> bool:
    return 0.98 < catalogue.value("balancing_hit_rate") < 0.99


@conclusion("cached-token.drop-triples", "Losing sixteen points of hit rate more than triples the mean price of an input token.")
def _drop_triples() -> bool:
    facts = load_facts()
    high, low = facts.number("prefill.hit_rate"), facts.number("article.hit_rate_low")
    return abs(high - low - 0.16) < 1e-9 and catalogue.value("input_price_jump") > 3


@conclusion("cached-token.steepest-discount", "No other model in our list has a cached token for so small a share of an uncached one; "
                                              "the gateway that resells this model keeps the ratio.")
def _steepest_discount() -> bool:
    shares = {row.id: row.cache_read / row.input for row in load_facts().vendor_prices.values() if row.cache_read is not None}
    ours = 1 / catalogue.value("miss_over_hit")
    same_model = {name: share for name, share in shares.items() if "v41" in name}
    others = [share for name, share in shares.items() if name not in same_model]
    return len(others) >= 8 and ours < min(others) and any(name.startswith("vercel") for name in same_model) \
        and all(abs(share / ours - 1) < 1e-9 for share in same_model.values())


@conclusion("cached-token.same-ratio-in-both-lists", "The yuan list and the dollar list have the same ratio of a miss to a hit.")
def _same_ratio() -> bool:
    return abs(catalogue.quantity("miss_over_hit", "off-peak").value / catalogue.value("miss_over_hit") - 1) < 1e-9


@conclusion("cached-token.one-point-costs-a-sixth", "At the reported hit rate, losing one point raises the mean price of an "
                                                    "input token by a sixth.")
def _one_point() -> bool:
    less = catalogue.value("effective_input_price", hit_rate=load_facts().number("prefill.hit_rate") - 0.01)
    return abs(less / catalogue.value("effective_input_price") - 7 / 6) < 0.005


@conclusion("cached-token.two-thirds-from-misses", "About two thirds of the prefill revenue come from the tokens that had to be "
                                                   "computed.")
def _two_thirds() -> bool:
    return 0.64 < catalogue.value("miss_revenue_per_prefill_gpu_hour") / catalogue.value("revenue_per_prefill_gpu_hour") < 0.70


@conclusion("cached-token.cheapest-part-fell-furthest", "From V3 to V4.1 the cached token lost more than nine tenths of its "
                                                        "dollar price, uncached input and output less than half.")
def _fell_furthest() -> bool:
    first, last = (load_facts().prices[name] for name in ("v3-usd", "v41-usd-off-peak"))
    return last.cache_hit < 0.1 * first.cache_hit and last.cache_miss > 0.5 * first.cache_miss \
        and last.output > 0.5 * first.output


@conclusion("cached-token.one-cut", "The last factor of ten came in one cut on 26 April 2026; all three prices of V4.1 are above those "
                                    "after it: hit and miss by less than a tenth, and output is more than twice as high.")
def _one_cut() -> bool:
    before, after, now = (load_facts().prices[name] for name in ("v4-flash-launch-usd", "v4-flash-usd", "v41-usd-off-peak"))
    cut = after.effective == "2026-04-26" and abs(before.cache_hit / after.cache_hit - 10) < 1e-9 \
        and (before.cache_miss, before.output) == (after.cache_miss, after.output)
    return cut and 1 < now.cache_hit / after.cache_hit < 1.1 and 1 < now.cache_miss / after.cache_miss < 1.1 \
        and now.output / after.output > 2


@conclusion("cached-token.half-in-yuan", "In yuan, from the standard list of V3 on, uncached input and output fell by half.")
def _half_in_yuan() -> bool:
    first, last = (load_facts().prices[name] for name in ("v3-cny", "v41-cny-off-peak"))
    return (last.cache_miss, last.output) == (first.cache_miss / 2, first.output / 2)
