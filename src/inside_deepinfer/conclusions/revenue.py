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


@conclusion("revenue.hit-rate-needs-cards", "For a workload in balance, one more point of hit rate raises revenue only if GPUs move "
                                            "from prefill to decode; with the cards left as they are it lowers it.")
def _hit_rate_needs_cards() -> bool:
    base, better = catalogue.value(SERVED), load_facts().number("prefill.hit_rate") + 0.01
    cards = catalogue.value("balanced_pd_ratio", hit_rate=better)
    # the balance is what makes it so: with more input per output than the prefill pool can read, the same point raises revenue
    more_input = {"input_output_ratio": 130.0}
    return catalogue.value(SERVED, hit_rate=better) < base < catalogue.value(SERVED, hit_rate=better, pd_ratio=cards) \
        and catalogue.value(SERVED, hit_rate=better, **more_input) > catalogue.value(SERVED, **more_input)


@conclusion("revenue.hits-forgo-revenue", "At fixed demand, a prefill GPU-hour that hits avoid takes more from the revenue than the "
                                          "GPU-hour costs, at the assumed cost and at every rental price in our list.")
def _hits_forgo_revenue() -> bool:
    rents = [row.high for row in load_facts().rentals.values()]
    costs = [catalogue.value("cost_per_gpu_hour"), *(catalogue.value("cost_per_gpu_hour", gpu_cost=rent) for rent in rents)]
    return len(rents) >= 5 and catalogue.value("revenue_forgone_per_avoided_gpu_hour") > max(costs)


@conclusion("revenue.margin-is-the-assumption", "Three quarters or more of the published revenue remain at the assumed cost, and "
                                                "nobody outside knows the cost or can check the revenue.")
def _margin() -> bool:
    kinds = {load_facts().quantity(name).kind for name in ("cost.gpu_hour", "cost.infra_hour")}
    revenue = load_facts().claims["fleet.revenue_per_gpu_hour"]
    return catalogue.value("margin_at_published_revenue") >= 0.75 and kinds == {"assumption"} \
        and revenue.check is None and not revenue.evidence


@conclusion("revenue.formula-holds", "On DeepSeek's own day of February 2025 both the sum over the day's tokens and the formula for a "
                                     "GPU of the cluster give the stated revenue within a tenth of a percent.")
def _formula_holds() -> bool:
    return all(abs(catalogue.value(name)) < 1e-3 for name in ("v3r1_revenue_error", "v3r1_theory_revenue_error"))


@conclusion("revenue.rate-comes-first", "Of all inputs, ten percent of the exchange rate move the result most.")
def _rate_comes_first() -> bool:
    return all(money_swings(make_scenario(), "published", name)[0].name == "cny_per_usd" for name in (RESULT, SERVED))


@conclusion("revenue.speed-comes-next", "With the dollar list the exchange rate drops out, and the speed of prefill comes first; where the "
                                        "workload counts, the speed of decode is level with it.")
def _speed_comes_next() -> bool:
    full, served = (money_swings(make_scenario("off-peak"), "off-peak", name) for name in (RESULT, SERVED))
    rate = [swing.span for swing in (*full, *served) if swing.name == "cny_per_usd"]
    speeds = {"prefill_throughput_new", "decode_throughput"}
    return max(rate, default=0.0) == 0 and full[0].name == "prefill_throughput_new" and full[0].span > 1.2 * full[1].span \
        and {swing.name for swing in served[:2]} == speeds and abs(served[0].span / served[1].span - 1) < 1e-6 \
        and served[2].span < served[1].span


@conclusion("revenue.nothing-but-prices-gains", "At the balance, ten percent more or less of a speed, of the misses, of the "
                                                "workload or of the cards gains nothing.")
def _nothing_but_prices_gains() -> bool:
    money = {"cny_per_usd", "price_hit", "price_miss", "price_output", "peak_share"}
    return all(max(swing.at_low, swing.at_high) <= swing.base * (1 + 1e-9)
               for swing in money_swings(make_scenario(), "published", SERVED) if swing.name not in money)
