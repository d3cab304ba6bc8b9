"""What would join the three routes to a number of GPUs, and the same formulas on DeepSeek's account of February 2025."""

from __future__ import annotations

import pytest

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, NotPossible, load_facts
from inside_deepinfer.serving import reconcile, v3r1
from inside_deepinfer.serving.reconcile import balancing_price_ratio, gpus_at_utilisation, revenue_at_utilisation, storage_readings


def test_utilisation_and_clusters_are_two_words_for_one_quotient():
    # 155e12/86400/1.5e6*2 = 2,392 GPUs against 100 PiB / 14.4 TB = 7,819 (article 000)
    assert catalogue.value("reconciling_utilisation") == pytest.approx(0.306, abs=5e-4)
    assert catalogue.value("clusters_sharing_store") == pytest.approx(1 / catalogue.value("reconciling_utilisation"))


def test_the_reconciling_utilisation_is_where_the_two_counts_meet():
    needed = gpus_at_utilisation(catalogue.value("cluster_gpus_from_throughput"), catalogue.value("reconciling_utilisation"))
    assert needed == pytest.approx(catalogue.value("cluster_gpus_from_storage"))


def test_idle_gpus_would_earn_less_than_a_third_of_what_is_published():
    # the day's 2,370 full GPUs at 36.71 USD, spread over 7,819
    assert catalogue.value("revenue_at_reconciling_utilisation") == pytest.approx(2369.86 * 36.710 / 7818.75, abs=1e-3)
    assert catalogue.value("revenue_at_reconciling_utilisation") == pytest.approx(11.13, abs=0.005)
    for preset in ("published", "peak", "chatbot", "my-cluster"):
        day, stored, hour = (catalogue.quantity(name, preset).value for name in (
            "revenue_per_day", "cluster_gpus_from_storage", "revenue_at_reconciling_utilisation"))
        assert hour == pytest.approx(day / 24 / stored)
    assert revenue_at_utilisation(36.0, 0.5) == 18.0


def test_every_reading_of_the_storage_figures_by_hand():
    found = {name: whole / part for name, (whole, part) in storage_readings(100 * 2**50, 14.4e12, 10, 2).items()}
    assert list(found.values()) == pytest.approx([7818.75, 7111.11, 6515.62, 5925.93, 5263.28], abs=0.01)
    assert found["both of these"] == pytest.approx(100 * 2**50 * 10 / 12 / (14.4 * 2**40))


def test_peak_prices_do_not_move_what_is_compared_with_the_off_peak_figure():
    for name, off_peak in (("cluster_gpus_from_revenue", 2438.21), ("utilisation_from_revenue", 0.97197), ("revenue_gap", -0.02884),
                           ("exchange_rate_for_published_revenue", 7.3048)):
        for preset in ("off-peak", "average-week", "peak"):
            assert catalogue.quantity(name, preset).value == pytest.approx(off_peak, rel=2e-4), (name, preset)


def test_the_revenue_route_holds_only_the_ratio_of_the_speeds():
    double = {"prefill_throughput_new": 120_000.0, "decode_throughput": 28_000.0}
    assert catalogue.value("cluster_gpus_from_revenue", **double) == pytest.approx(catalogue.value("cluster_gpus_from_revenue"))
    assert catalogue.value("cluster_gpus_from_throughput", **double) == pytest.approx(2391.975 / 2, abs=0.01)


def test_online_balancing_cannot_stand_beside_the_published_revenue():
    assert catalogue.value("revenue_with_online_balancing") == pytest.approx(0.8 * 36.710, abs=1e-3)  # claim eplb.total
    assert catalogue.quantity("revenue_with_online_balancing", "off-peak").value == pytest.approx(0.8 * 39.096, abs=1e-3)
    both = {"prefill_throughput_new": 48_000.0, "decode_throughput": 11_200.0}
    assert catalogue.value("revenue_with_online_balancing") == pytest.approx(catalogue.value("revenue_per_cluster_gpu_hour", **both))


def test_hit_rate_that_triples_the_bill():
    rate = catalogue.value("hit_rate_at_triple_price")
    assert rate == pytest.approx((1 - 3 * 0.0592) / 0.98) and round(rate, 3) == 0.839
    assert catalogue.value("effective_input_price", hit_rate=rate) == pytest.approx(3 * 0.0592)
    with pytest.raises(NotPossible, match="no hit rate reaches it"):
        reconcile.hit_rate_at_triple_price(1.0, 0.4, 0.02)
    for miss, mean, hit in ((1.0, 0.1, 1.0), (float("nan"), 0.1, 0.02), (1.0, 0.0, 0.02), (1.0, 0.1, -1.0)):
        with pytest.raises(InputError):
            reconcile.hit_rate_at_triple_price(miss, mean, hit)


def test_the_published_revenue_asks_for_more_than_benchmark_speed_in_yuan_and_less_in_dollars():
    assert catalogue.value("utilisation_from_revenue") == pytest.approx(38 / 36.71, abs=1e-3)
    assert catalogue.quantity("utilisation_from_revenue", "off-peak").value == pytest.approx(38 / 39.10, abs=1e-3)


def test_at_the_rate_between_the_lists_both_give_the_same_and_at_6_86_the_published_figure():
    rate = catalogue.value("exchange_rate_for_published_revenue")
    assert rate == pytest.approx(260.64 / 38, abs=1e-4)
    assert catalogue.value("revenue_per_cluster_gpu_hour", cny_per_usd=rate) == pytest.approx(38)
    assert catalogue.value("list_revenue_per_cluster_gpu_hour") == pytest.approx(260.64)  # 1:1, yuan per GPU-hour


def test_price_ratio_that_balances_the_reported_hit_rate():
    assert balancing_price_ratio(0.96) == pytest.approx(24)
    for bad in (1.0, 1.2, -0.1):
        with pytest.raises(InputError):
            balancing_price_ratio(bad)


@pytest.mark.parametrize("share", [0.0, -0.3])
def test_no_utilisation_serves_nothing(share):
    with pytest.raises(InputError, match="utilisation"):
        gpus_at_utilisation(2400, share)


@pytest.mark.parametrize(("name", "expected", "within"), [
    ("v3r1_hit_rate", 0.563, 5e-4),  # "56.3 %" in the account
    ("v3r1_nodes", 226.75, 0.15),  # stated mean number of nodes
    ("v3r1_revenue_per_day", 562_027, 75),  # stated revenue of the day
    ("v3r1_revenue_per_gpu_hour", 12.91, 0.005),
    ("v3r1_cost_per_day", 87_072, 1e-6),
    ("v3r1_cost_profit_margin", 5.45, 0.005),  # "545 %"
    ("v3r1_gross_margin", 0.845, 5e-4),
    ("v3r1_theory_revenue_per_gpu_hour", 562_027 / (226.75 * 8 * 24), 0.005),  # stated revenue over stated nodes: 12.909
    ("v3r1_theory_revenue_error", -0.00037, 1e-5),  # 12.9047 against 12.9095
    ("v3r1_nodes_all_as_input", 776e9 / 86400 / 73_700 * (1 + 1 / 0.72676), 0.01),  # 289.5, which is 28 % too many
])
def test_the_account_of_february_2025_is_reproduced(name, expected, within):
    assert catalogue.value(name) == pytest.approx(expected, abs=within)


def test_the_list_of_r1_is_the_row_of_the_price_history():
    row, facts = load_facts().prices["r1-usd"], load_facts()
    assert (row.cache_hit, row.cache_miss, row.output) == tuple(
        facts.number(f"price.r1.usd.{part}") for part in ("hit", "miss", "output"))


def test_the_stated_hit_rate_of_the_account_is_its_two_counts_rounded():
    assert load_facts().number("v3r1.hit_rate") == pytest.approx(catalogue.value("v3r1_hit_rate"), abs=0.001)  # 56.3 and 56.25 %


def test_the_formula_for_a_gpu_of_the_cluster_by_hand():
    """One to one, 1,000 in at a mean of 0.5 and 100 out at 2 a million: 3.6 million and 0.36 million tokens an hour, over 8 GPUs."""
    assert v3r1.v3r1_theory_revenue_per_gpu_hour(1.0, 1000, 0.5, 0.0, 1.0, 100, 2.0, 8) == pytest.approx((1.8 + 0.72) / 2 / 8)
