"""What would join the three routes to a number of GPUs, and the same formulas on DeepSeek's account of February 2025."""

from __future__ import annotations

import pytest

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, load_facts
from inside_deepinfer.serving.reconcile import balancing_price_ratio, gpus_at_utilisation, revenue_at_utilisation


def test_utilisation_and_clusters_are_two_words_for_one_quotient():
    # 155e12/86400/1.5e6*2 = 2,392 GPUs against 100 PiB / 14.4 TB = 7,819 (article 000)
    assert catalogue.value("reconciling_utilisation") == pytest.approx(0.306, abs=5e-4)
    assert catalogue.value("clusters_sharing_store") == pytest.approx(1 / catalogue.value("reconciling_utilisation"))


def test_the_reconciling_utilisation_is_where_the_two_counts_meet():
    needed = gpus_at_utilisation(catalogue.value("cluster_gpus_from_throughput"), catalogue.value("reconciling_utilisation"))
    assert needed == pytest.approx(catalogue.value("cluster_gpus_from_storage"))


def test_idle_gpus_would_earn_a_third_of_what_is_published():
    assert catalogue.value("revenue_at_reconciling_utilisation") == pytest.approx(11.23, abs=0.005)
    assert revenue_at_utilisation(36.0, 0.5) == 18.0


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
])
def test_the_account_of_february_2025_is_reproduced(name, expected, within):
    assert catalogue.value(name) == pytest.approx(expected, abs=within)


def test_the_list_of_r1_is_the_row_of_the_price_history():
    row, facts = load_facts().prices["r1-usd"], load_facts()
    assert (row.cache_hit, row.cache_miss, row.output) == tuple(
        facts.number(f"price.r1.usd.{part}") for part in ("hit", "miss", "output"))
