"""The block rule, the five-minute rule and the erasure code: known values, limits, and formulas that say what is computed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.cache import erasure, five_minute_rule
from inside_deepinfer.cache.blocks import RULES, longest_input, rule_function, usable_hit
from inside_deepinfer.facts import CATALOGUE, InputError, NotPossible, load_facts

OWN = [name for name, entry in CATALOGUE.items() if entry.function.__module__ in (
    "inside_deepinfer.cache.blocks", "inside_deepinfer.cache.five_minute_rule", "inside_deepinfer.cache.erasure")]


# --- block rule (article 001: multiples of 128, at most L - 134, back 128 where the window state is missing)
@pytest.mark.parametrize(("stored", "length", "expected", "without_state"), [
    (0, 1000, 0, 0), (1000, 1, 0, 0), (1000, 133, 0, 0), (1000, 134, 0, 0), (1000, 261, 0, 0), (1000, 262, 128, 0),
    (262, 262, 128, 0), (127, 1000, 0, 0), (128, 1000, 128, 0), (10**9, 1000, 768, 640), (1000, 10**6, 896, 768),
    (77_000, 77_000, 76_800, 76_672), (2**21, 2**20, 1_048_320, 1_048_192)])
def test_usable_hit(stored, length, expected, without_state):
    assert usable_hit(stored, length) == expected
    assert usable_hit(stored, length, state_present=False) == without_state
    assert rule_function("v4.1")(stored, length) == expected
    assert rule_function("v4.1-state-missing")(stored, length) == without_state
    assert rule_function("plain")(stored, length) == min(stored, length)


@given(st.integers(0, 2**21), st.integers(1, 2**20))
def test_usable_hit_is_a_multiple_within_its_limits(stored, length):
    hit = int(usable_hit(stored, length))
    assert hit % 128 == 0 and 0 <= hit <= min(stored, max(length - 134, 0))
    assert hit + 128 > min(stored, max(length - 134, 0))


def test_usable_hit_on_arrays_and_bad_input():
    hits = usable_hit(np.array([[500], [1000]]), np.array([134, 1000]), np.array([True, False]))
    assert hits.tolist() == [[0, 256], [0, 640]]
    for stored, length in ((-1, 100), (float("nan"), 100), (100, 0), (100, 2**20 + 1), (100, float("nan")), (None, 5)):
        with pytest.raises(InputError):
            usable_hit(stored, length)
    with pytest.raises(InputError, match="rule"):
        rule_function("v3")
    assert longest_input() == 1_048_576 and RULES[0] == "plain"


def test_block_rule_numbers_of_the_mean_prompt():
    assert catalogue.value("longest_hit_rate") == pytest.approx(76_800 / 77_000)
    assert catalogue.value("state_missing_loss") == pytest.approx(128 / 77_000)


# --- every formula string says what the function does
@pytest.mark.parametrize("name", [name for name in OWN if not CATALOGUE[name].words])
def test_formula_evaluates_to_the_value(name):
    quantity = catalogue.evaluate([name])[name]
    inputs = {parameter: part.value for parameter, part in zip(CATALOGUE[name].inputs, quantity.inputs, strict=True)}
    assert eval(CATALOGUE[name].formula, {}, inputs) == pytest.approx(quantity.value)


@pytest.mark.parametrize("name", OWN)
def test_number_is_finite_and_not_negative_for_every_preset(name):
    for preset in load_facts().presets:
        try:
            value = np.asarray(catalogue.value(name, preset=preset), dtype=float)
        except NotPossible as reason:
            assert str(reason)
        else:
            assert np.all(np.isfinite(value)) and np.all(value >= 0)


# --- five-minute rule, worked out by hand
def test_keep_or_recompute_by_hand():
    """365 USD/TB x 1.5 x 12/10 over 5 years for 890 B; 8 USD an hour at 60,000 token/s; a quarter read again."""
    day = 890 * 365 / 1e12 * 1.5 * 1.2 / (5 * 365)
    again = 8 / 3600 / 60_000
    assert catalogue.value("keep_cost_per_token_day") == pytest.approx(day)
    assert catalogue.value("recompute_cost_per_token") == pytest.approx(again)
    assert catalogue.value("break_even_days") == pytest.approx(0.249 * again / day)
    assert catalogue.value("break_even_days") == pytest.approx(28.8, abs=0.05)
    assert catalogue.value("break_even_reuse_per_day") == pytest.approx(day / again)
    assert catalogue.value("customer_break_even_days") == pytest.approx(0.249 * (1 - 0.02) / 7.10 / 1e6 / day)
    assert catalogue.value("days_paid_by_a_hit") == pytest.approx(0.02 / 7.10 / 1e6 / day)
    assert catalogue.value("keep_cost_per_million_hour") == pytest.approx(day * 1e6 / 24)


def test_cost_of_the_store_and_gain_that_pays():
    assert catalogue.value("store_cost_per_day") == pytest.approx(100 * 2**50 * 365 / 1e12 * 1.8 / 1825)
    written = (1 - 0.96) + 1 / (1.5e6 / 14_000)  # misses and output per input token
    assert catalogue.value("written_per_input_token") == pytest.approx(written)
    assert catalogue.value("hit_rate_gain_that_pays") == pytest.approx(written * catalogue.value("break_even_reuse_per_day"))


def test_break_even_moves_the_right_way():
    prices = np.array([50.0, 100.0, 200.0])
    days = catalogue.value("break_even_days", ssd_price=prices)
    assert days == pytest.approx(days[0] * prices[0] / prices)  # twice the price, half the time
    assert catalogue.value("break_even_days", gpu_cost=13.0) == pytest.approx(2 * catalogue.value("break_even_days"))
    assert catalogue.value("break_even_days", reuse_probability=0.0) == 0.0
    assert catalogue.value("break_even_days", gpu_cost=0.0, infra_cost=0.0) == 0.0


def test_five_minute_rule_refuses_what_cannot_be():
    for call in (lambda: five_minute_rule.break_even_days(1.1, 1e-8, 1e-10), lambda: five_minute_rule.break_even_days(-0.1, 1e-8, 1e-10),
                 lambda: five_minute_rule.break_even_days(0.5, 1e-8, 0.0), lambda: five_minute_rule.keep_cost_per_token_day(0, 1e-13),
                 lambda: five_minute_rule.keep_cost_per_byte_day(float("nan"), 1.5, 1.2, 5),
                 lambda: five_minute_rule.recompute_cost_per_token(8.0, 0.0),
                 lambda: five_minute_rule.hit_saving_at_list_price(0.1, 0.2, 1.0),
                 lambda: five_minute_rule.break_even_reuse_per_day(1e-10, 0.0)):
        with pytest.raises(InputError):
            call()


# --- erasure code
def test_mean_time_to_loss_of_mirrored_pairs():
    """k = 1, m = 1: the textbook (3 a + b) / (2 a^2) for two copies with failure rate a and repair rate b."""
    a, repair = 0.05, 7200.0
    b = erasure.SECONDS_PER_YEAR / repair
    assert erasure.mean_years_to_loss(1, 1, a, repair) == pytest.approx((3 * a + b) / (2 * a**2))


@pytest.mark.parametrize(("k", "m"), [(1, 0), (4, 0), (1, 2), (4, 2), (10, 2), (6, 3)])
def test_mean_time_to_loss_solves_the_chain(k, m):
    """Expected time to absorption from the generator matrix: -Q t = 1."""
    a, repair = 0.4, 0.05 * erasure.SECONDS_PER_YEAR
    rates = np.zeros((m + 1, m + 1))
    for lost in range(m + 1):
        leave, back = (k + m - lost) * a, lost / 0.05
        rates[lost, lost] = -(leave + back)
        if lost < m:
            rates[lost, lost + 1] = leave
        if lost:
            rates[lost, lost - 1] = back
    expected = np.linalg.solve(-rates, np.ones(m + 1))[0]
    assert erasure.mean_years_to_loss(k, m, a, repair) == pytest.approx(expected)


def test_mean_time_to_loss_broadcasts_and_checks():
    years = erasure.mean_years_to_loss(10, np.array([0, 1, 2]), 0.03, np.array([[3600.0], [36_000.0]]))
    assert years.shape == (2, 3) and np.all(np.diff(years, axis=1) > 0) and np.all(years[0, 1:] > years[1, 1:])
    assert years[0, 0] == pytest.approx(1 / (10 * 0.03))
    for bad in ((0, 2, 0.1, 1.0), (2.5, 2, 0.1, 1.0), (10, -1, 0.1, 1.0), (10, 1.5, 0.1, 1.0), (10, 2, 0.0, 1.0), (10, 2, 0.1, 0.0)):
        with pytest.raises(InputError):
            erasure.mean_years_to_loss(*bad)


def test_loss_per_year_and_repair_of_the_published_store():
    raw = 20 * 30.73e12
    others = 100 * 2**50 / raw * 1.2 - 1
    rebuild = max(raw * 10 / (others * 40e9 * 0.1), raw / (others * 5e9 * 0.1))
    assert catalogue.value("server_rebuild_time") == pytest.approx(rebuild)
    assert catalogue.value("store_repair_time") == pytest.approx(3600 + rebuild)
    chance = catalogue.value("store_loss_per_year", parity_shards=np.array([0, 1, 2, 3]))
    assert np.all(np.diff(chance) < 0) and chance[0] == pytest.approx(1.0) and chance[2] < 1e-5
    with pytest.raises(NotPossible, match="cannot rebuild"):
        catalogue.value("server_rebuild_time", store_capacity=1e12)


def test_unreadable_share_is_the_binomial_tail():
    down, k, m = 0.03, 10, 2
    tail = sum(math.comb(k + m - 1, i) * down**i * (1 - down)**(k + m - 1 - i) for i in range(m, k + m))
    assert erasure.unreadable_share(k, m, down) == pytest.approx(down * tail)
    assert erasure.unreadable_share(10, 0, 0.2) == pytest.approx(0.2)
    assert erasure.unreadable_share(10, 2, np.array([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert np.all(np.diff(erasure.unreadable_share(10, np.arange(5), 0.05)) < 0)
    with pytest.raises(InputError):
        erasure.unreadable_share(10, 2, 1.1)


def test_silent_servers_cost_prefill():
    """At 96 % hits every lost point of hit rate is a quarter more of the 4 % that are computed."""
    assert catalogue.value("extra_prefill_without_parity") == pytest.approx(0.005 * 0.96 / 0.04)
    assert catalogue.value("extra_prefill_with_parity") < 0.001
    assert catalogue.value("read_amplification") == pytest.approx(1 + 0.005 * 9)
    assert catalogue.value("read_amplification_one_down") == pytest.approx(1 + 9 / 12)
