"""Fleet and prices: values computed by hand, and properties that hold for every scenario."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.pages import cache_prices as cache_page
from inside_deepinfer.explorer.pages import fleet as fleet_page
from inside_deepinfer.explorer.pages import revenue as revenue_page
from inside_deepinfer.facts import InputError
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving import fleet, prices

HIT_RATES = st.floats(0.0, 0.99)
PRICES = st.floats(0.001, 100.0)
RATES = st.floats(100.0, 1e6)
RATIOS = st.floats(0.05, 20.0)
AMOUNTS = st.floats(1e9, 1e16)
steady = settings(max_examples=200)


def per_group(hit_rate, hit, miss, output, new, decode, pd_ratio, factor=1.0, usd=1.0):
    """Revenue per GPU-hour of the cluster straight from the functions."""
    cached = fleet.prefill_throughput_cached(new, hit_rate)
    hits = prices.hit_revenue_per_prefill_gpu_hour(cached, hit_rate, hit, factor, usd)
    misses = prices.miss_revenue_per_prefill_gpu_hour(cached, hit_rate, miss, factor, usd)
    out = prices.revenue_per_decode_gpu_hour(decode, output, factor, usd)
    return prices.revenue_per_cluster_gpu_hour(pd_ratio, prices.revenue_per_prefill_gpu_hour(hits, misses), out)


# ---- by hand -------------------------------------------------------------------------------------------------------------------


def test_a_day_by_hand():
    assert fleet.tokens_per_second(155e12) == pytest.approx(1_793_981_481.48, abs=0.01)
    assert fleet.prefill_throughput_cached(60_000, 0.96) == pytest.approx(1_500_000)
    assert fleet.prefill_gpus_from_throughput(1.5e9, 1.5e6) == 1000
    assert fleet.cluster_gpus_from_throughput(1000, 2.0) == 1500  # one decode GPU for two prefill GPUs
    assert fleet.cluster_gpus_from_storage(100, 12.5) == 8
    assert fleet.reconciling_utilisation(2392, 7819) == pytest.approx(0.3059, abs=1e-4)
    assert fleet.balanced_pd_ratio(107.142857142857, 14_000, 1.5e6) == pytest.approx(1.0)
    assert fleet.requests_per_prefill_gpu(1.5e6, 75_000) == 20
    assert fleet.cluster_gpus_for_workload(1.1e6, 10, 1e5, 1e4) == pytest.approx(10 + 10)  # 1.0M in, 0.1M out
    assert fleet.cluster_gpus_from_revenue(24 * 38 * 100, 1.0, 38) == pytest.approx(100)
    assert fleet.cluster_gpus_from_revenue(24 * 38 * 100, 2.0, 38) == pytest.approx(50)  # sold at double price, published off-peak


def test_pools_counted_by_their_own_tokens():
    assert catalogue.value("cluster_gpus_for_workload") == pytest.approx(2369.86, abs=0.01)  # as the groups: the pools are in step
    assert catalogue.value("cluster_gpus_for_workload") == pytest.approx(catalogue.value("cluster_gpus_from_groups"))
    assert catalogue.value("cluster_gpus_for_workload", hit_rate=0.9) == pytest.approx(4147.25, abs=0.01)
    assert catalogue.value("cluster_gpus_from_throughput", hit_rate=0.9) == pytest.approx(5979.94, abs=0.01)


def test_prices_by_hand():
    assert prices.effective_input_price(0.96, 0.02, 1.00) == pytest.approx(0.0592)  # 0.0192 + 0.04
    assert prices.effective_input_price(0.80, 0.02, 1.00) == pytest.approx(0.216)  # 0.016 + 0.2
    assert prices.miss_over_hit(1.00, 0.02) == pytest.approx(50)
    assert prices.hit_over_miss_revenue(0.96, 0.02, 1.00) == pytest.approx(0.48)  # 0.0192 / 0.04
    assert prices.balancing_hit_rate(1.00, 0.02) == pytest.approx(50 / 51)
    assert round(100 * prices.balancing_hit_rate(1.00, 0.02), 2) == 98.04
    assert prices.price_factor(0.25, 2.0) == 1.25


def test_revenue_by_hand_in_yuan():
    """1.5M token/s for an hour are 5.4 billion: 103.68 yuan of hits, 216 of misses; 50.4M output tokens are 201.60."""
    assert per_group(0.96, 0.02, 1.00, 4.00, 60_000, 14_000, 1.0) == pytest.approx((103.68 + 216.00 + 201.60) / 2)
    assert per_group(0.96, 0.02, 1.00, 4.00, 60_000, 14_000, 1.0, usd=1 / 7.10) == pytest.approx(36.71, abs=5e-3)


def test_revenue_by_hand_in_dollars():
    """Off-peak list 0.003 / 0.15 / 0.60: 15.55 + 32.40 and 30.24."""
    assert per_group(0.96, 0.003, 0.15, 0.60, 60_000, 14_000, 1.0) == pytest.approx((15.552 + 32.40 + 30.24) / 2)
    assert per_group(0.96, 0.003, 0.15, 0.60, 60_000, 14_466, 1.0) == pytest.approx(39.60, abs=5e-3)
    assert per_group(0.96, 0.003, 0.15, 0.60, 60_000, 14_000, 1.0, factor=2.0) == pytest.approx(78.19, abs=5e-3)


def test_money_by_hand():
    assert prices.annual_revenue_per_gpu(38) == 332_880
    assert prices.annual_revenue_per_gpu_jpy(332_880, 150) == 49_932_000
    assert prices.annual_revenue(2400, 332_880) == pytest.approx(798.912e6)
    assert prices.margin_at_published_revenue(8, 38) == pytest.approx(0.789, abs=5e-4)
    assert prices.revenue_gap(36.71, 1.0, 38) == pytest.approx(0.0339, abs=1e-4)  # against the published figure, not against theory
    assert prices.revenue_gap(73.42, 2.0, 38) == pytest.approx(0.0339, abs=1e-4)  # peak prices are no part of the comparison
    # 216 million tokens of an hour at 1 - 0.02 yuan a million, over 7.10
    assert prices.revenue_forgone_per_avoided_gpu_hour(60_000, 1.0, 0.02, 1.0, 1 / 7.10) == pytest.approx(216 * 0.98 / 7.10)
    assert catalogue.value("revenue_forgone_per_avoided_gpu_hour") == pytest.approx(29.81, abs=0.005)
    assert prices.to_usd(7.1, "CNY", {"CNY": 7.1}) == pytest.approx(1.0)
    assert prices.to_usd(3.0, "USD", {}) == 3.0


# ---- for every scenario --------------------------------------------------------------------------------------------------------


@given(h=HIT_RATES, hit=PRICES, miss=PRICES, output=PRICES, pd=RATIOS, more=st.floats(1.01, 10))
@steady
def test_revenue_grows_with_every_price(h, hit, miss, output, pd, more):
    base = per_group(h, hit, miss, output, 60_000, 14_000, pd)
    assert per_group(h, hit, miss * more, output, 60_000, 14_000, pd) > base
    assert per_group(h, hit, miss, output * more, 60_000, 14_000, pd) > base
    assert per_group(h, hit * more, miss, output, 60_000, 14_000, pd) >= base


@given(h=HIT_RATES, hit=PRICES, ratio=st.floats(1.01, 200), gap=st.floats(0.001, 0.5))
@steady
def test_effective_price_falls_with_the_hit_rate_and_stays_between_the_prices(h, hit, ratio, gap):
    miss = hit * ratio
    here = prices.effective_input_price(h, hit, miss)
    assert hit * (1 - 1e-12) <= here <= miss * (1 + 1e-12)
    assert prices.effective_input_price(min(1.0, h + gap), hit, miss) < here


@given(hit=PRICES, miss=PRICES)
@steady
def test_the_balance_point_solves_the_balance(hit, miss):
    h = prices.balancing_hit_rate(miss, hit)
    assert h * hit == pytest.approx((1 - h) * miss, rel=1e-6)
    assert prices.hit_over_miss_revenue(h, hit, miss) == pytest.approx(1, rel=1e-6)


@given(h=HIT_RATES, hit=PRICES, miss=PRICES, new=RATES)
@steady
def test_hits_and_misses_add_up_to_prefill(h, hit, miss, new):
    cached = fleet.prefill_throughput_cached(new, h)
    hits = prices.hit_revenue_per_prefill_gpu_hour(cached, h, hit, 1.0, 1.0)
    misses = prices.miss_revenue_per_prefill_gpu_hour(cached, h, miss, 1.0, 1.0)
    whole = prices.hourly_revenue(cached, prices.effective_input_price(h, hit, miss))
    assert prices.revenue_per_prefill_gpu_hour(hits, misses) == pytest.approx(whole)


@given(h=HIT_RATES, new=RATES)
@steady
def test_cached_throughput_is_new_throughput_over_the_miss_share(h, new):
    assert fleet.prefill_throughput_cached(new, h) * (1 - h) == pytest.approx(new)


@given(tokens=AMOUNTS, h=HIT_RATES, new=RATES, decode=RATES, pd=RATIOS)
@steady
def test_the_groups_of_the_cluster_serve_exactly_the_day(tokens, h, new, decode, pd):
    cached = fleet.prefill_throughput_cached(new, h)
    rate = fleet.tokens_per_second(tokens)
    group = fleet.tokens_per_second_per_group(pd, cached, decode)
    gpus = fleet.cluster_gpus_from_groups(rate, group, pd)
    prefill, decoding = gpus * pd / (pd + 1), gpus / (pd + 1)
    assert prefill * cached + decoding * decode == pytest.approx(rate)
    assert gpus < fleet.cluster_gpus_from_throughput(fleet.prefill_gpus_from_throughput(rate, cached), pd)


@given(io=st.floats(0.1, 2000), h=HIT_RATES, pd=RATIOS, decode=RATES)
@steady
def test_one_pool_is_always_full(io, h, pd, decode):
    cached = fleet.prefill_throughput_cached(60_000, h)
    balance = fleet.balanced_input_output_ratio(pd, cached, decode)
    prefill, decoding = prices.prefill_busy_share(io, balance), prices.decode_busy_share(io, balance)
    assert max(prefill, decoding) == 1.0 and min(prefill, decoding) > 0
    assert pd * prefill * cached == pytest.approx(io * decoding * decode)  # input and output keep the workload's ratio
    assert fleet.balanced_pd_ratio(balance, decode, cached) == pytest.approx(pd)


@given(tokens=AMOUNTS, h=HIT_RATES)
@steady
def test_a_workload_never_earns_more_than_full_pools(tokens, h):
    found = catalogue.evaluate(["workload_revenue_per_cluster_gpu_hour", "revenue_per_cluster_gpu_hour"], tokens_per_day=tokens, hit_rate=h)
    assert found["workload_revenue_per_cluster_gpu_hour"].value <= found["revenue_per_cluster_gpu_hour"].value * (1 + 1e-9)


# ---- the sentences of the dashboard ----------------------------------------------------------------------------------------------


def test_the_revenue_page_says_what_partial_use_leaves():
    """50 billion tokens a day fill 5.57 of the 12 GPUs of that cluster: 7.90 USD become 3.67."""
    said = revenue_page.finding(make_scenario("my-cluster"), "my-cluster")
    assert "leaves a gross margin of 11 %" in said
    assert "Spread over the 12 GPUs counted from storage, the day's traffic brings 3.668 USD per GPU-hour, 46 % of what it earns" in said
    # the sentence follows the workload: at 500 in per out the same day earns less, and at 20 more than these pools can
    spread = [revenue_page.finding(make_scenario("published", {"io": ratio}), "published") for ratio in (20, 500)]
    assert "Spread over" not in spread[0] and "brings 7.8" in spread[1]
    assert "Spread over" not in revenue_page.finding(make_scenario("published", {"sg": 50e12}), "published")  # a store for fewer GPUs


def test_the_cache_page_says_who_earns_more_than_whom():
    assert cache_page.finding(make_scenario(), "published").endswith("below the balance point of 98.04 %, so misses earn more than hits.")
    assert cache_page.finding(make_scenario("published", {"h": 0.99}), "published").endswith("so hits earn more than misses.")


def test_the_fleet_page_counts_revenue_off_peak():
    assert "revenue for 2,438" in fleet_page.finding(make_scenario("peak"), "peak")


# ---- arrays --------------------------------------------------------------------------------------------------------------------

ALL = [name for name, entry in catalogue.names().items() if entry.function.__module__ in (fleet.__name__, prices.__name__)]


@pytest.mark.parametrize("name", ALL)
def test_arrays_give_what_scalars_give(name):
    grid = {"hit_rate": np.array([0.0, 0.5, 0.96]), "pd_ratio": np.array([0.5, 1.0, 2.0]), "price_output": np.array([1.0, 4.0, 8.0]),
            "tokens_per_day": np.array([1e12, 155e12, 1e15])}
    together = np.broadcast_to(catalogue.value(name, **grid), 3)
    one_by_one = [catalogue.value(name, **{key: float(values[n]) for key, values in grid.items()}) for n in range(3)]
    np.testing.assert_allclose(together, one_by_one, rtol=1e-12)


def test_arrays_broadcast_over_two_directions():
    surface = catalogue.value("revenue_per_cluster_gpu_hour", hit_rate=np.linspace(0, 0.98, 5)[:, None], pd_ratio=np.array([0.5, 1, 2]))
    assert surface.shape == (5, 3) and np.isfinite(surface).all()


# ---- what cannot be ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [
    lambda: prices.effective_input_price(1.5, 0.02, 1.0),
    lambda: prices.effective_input_price(-0.1, 0.02, 1.0),
    lambda: prices.effective_input_price(float("nan"), 0.02, 1.0),
    lambda: prices.effective_input_price(0.5, -0.02, 1.0),
    lambda: prices.effective_input_price(0.5, None, 1.0),
    lambda: prices.effective_input_price(0.5, float("nan"), 1.0),
    lambda: prices.effective_input_price(np.array([0.5, 1.1]), 0.02, 1.0),
    lambda: prices.miss_over_hit(1.0, 0.0),
    lambda: prices.hit_over_miss_revenue(1.0, 0.02, 1.0),
    lambda: prices.to_usd(1.0, "EUR", {"CNY": 7.1}),
    lambda: prices.to_usd(1.0, "CNY", {"CNY": 0.0}),
    lambda: prices.price_factor(1.2, 2.0),
    lambda: prices.margin_at_published_revenue(8, 0),
    lambda: fleet.tokens_per_second(0),
    lambda: fleet.prefill_throughput_cached(60_000, 1.0),
    lambda: fleet.cluster_gpus_from_throughput(1000, 0),
    lambda: fleet.cluster_gpus_from_storage(1e15, 0),
    lambda: fleet.reconciling_utilisation(2392, 0),
    lambda: fleet.requests_per_prefill_gpu(1.5e6, 0),
    lambda: fleet.balanced_pd_ratio(107.0, float("nan"), 1.5e6),
    lambda: fleet.balanced_pd_ratio(107.0, -1.0, 1.5e6),
    lambda: fleet.balanced_pd_ratio(107.0, float("inf"), 1.5e6),
    lambda: fleet.balanced_pd_ratio(107.0, np.array([14_000.0, 0.0]), 1.5e6),
    lambda: fleet.cluster_gpus_for_workload(1e9, 0.0, 1.5e6, 14_000),
    lambda: fleet.cluster_gpus_for_workload(1e9, 107.0, 1.5e6, float("nan")),
    lambda: prices.revenue_forgone_per_avoided_gpu_hour(0, 1.0, 0.02, 1.0, 1.0),
    lambda: prices.revenue_forgone_per_avoided_gpu_hour(60_000, None, 0.02, 1.0, 1.0),
])
def test_impossible_input_is_an_error_that_names_the_range(wrong):
    with pytest.raises(InputError) as caught:
        wrong()
    assert "allowed is" in str(caught.value)


def test_a_missing_price_is_not_a_price_of_zero():
    assert prices.effective_input_price(0.5, 0.0, 1.0) == 0.5
    with pytest.raises(InputError, match="not the same as free"):
        prices.effective_input_price(0.5, None, 1.0)
