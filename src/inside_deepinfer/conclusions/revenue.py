"""What chapter 4 concludes."""

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.studies.swings import money_swings

RESULT, SERVED = "revenue_per_cluster_gpu_hour", "workload_revenue_per_cluster_gpu_hour"


@conclusion("revenue.published-between-lists", "The published revenue lies between what the yuan list and the dollar list give.")
def _published_between_lists() -> bool:
    published = load_facts().number("fleet.revenue_per_gpu_hour")
    return catalogue.value(RESULT) < published < catalogue.quantity(RESULT, "off-peak").value


@conclusion("revenue.lists-differ-by-rate", "The two lists differ by an exchange rate and by nothing else.")
def _lists_differ_by_rate() -> bool:
    at_list_rate = catalogue.value(RESULT, cny_per_usd=load_facts().number("rate.cny_per_usd_list"))
    return abs(at_list_rate / catalogue.quantity(RESULT, "off-peak").value - 1) < 1e-6


@conclusion("revenue.prefill-earns-more", "A prefill GPU brings more than a decode GPU.")
def _prefill_earns_more() -> bool:
    return catalogue.value("revenue_per_prefill_gpu_hour") > catalogue.value("revenue_per_decode_gpu_hour")


@conclusion("revenue.one-pool-alone", "Once the pools are balanced, making one of them faster earns nothing until the other "
                                      "follows.")
def _one_pool_alone() -> bool:
    base = catalogue.value(SERVED)
    facts = load_facts()
    faster = {"prefill_throughput_new": 1.1 * facts.number("prefill.throughput_new"),
              "decode_throughput": 1.1 * facts.number("decode.throughput")}
    alone = [catalogue.value(SERVED, **{name: value}) for name, value in faster.items()]
    return max(alone) <= base * (1 + 1e-9) and catalogue.value(SERVED, **faster) > 1.09 * base


@conclusion("revenue.hit-rate-needs-cards", "One more point of hit rate raises revenue only if GPUs move from prefill to decode; "
                                            "with the cards left as they are it lowers it.")
def _hit_rate_needs_cards() -> bool:
    base, better = catalogue.value(SERVED), load_facts().number("prefill.hit_rate") + 0.01
    cards = catalogue.value("balanced_pd_ratio", hit_rate=better)
    return catalogue.value(SERVED, hit_rate=better) < base < catalogue.value(SERVED, hit_rate=better, pd_ratio=cards)


@conclusion("revenue.margin-is-the-assumption", "Three quarters or more of the published revenue remain at the assumed cost, and "
                                                "the cost is the part that nobody outside knows.")
def _margin() -> bool:
    kinds = {load_facts().quantity(name).kind for name in ("cost.gpu_hour", "cost.infra_hour")}
    return catalogue.value("margin_at_published_revenue") >= 0.75 and kinds == {"assumption"}


@conclusion("revenue.formula-holds", "On DeepSeek's own day of February 2025 the same formula gives the stated revenue within a "
                                     "tenth of a percent.")
def _formula_holds() -> bool:
    return abs(catalogue.value("v3r1_revenue_error")) < 1e-3


@conclusion("revenue.rate-comes-first", "Of all inputs, ten percent of the exchange rate move the result most.")
def _rate_comes_first() -> bool:
    return all(money_swings(make_scenario(), "published", name)[0].name == "cny_per_usd" for name in (RESULT, SERVED))


@conclusion("revenue.nothing-but-prices-gains", "At the balance, ten percent more or less of a speed, of the misses, of the "
                                                "workload or of the cards gains nothing.")
def _nothing_but_prices_gains() -> bool:
    money = {"cny_per_usd", "price_hit", "price_miss", "price_output", "peak_share"}
    return all(max(swing.at_low, swing.at_high) <= swing.base * (1 + 1e-9)
               for swing in money_swings(make_scenario(), "published", SERVED) if swing.name not in money)
