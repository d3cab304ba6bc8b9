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
@pytest.mark.parametrize(("servers", "m"), [(13, 0), (20, 1), (20, 2), (30, 3)])
def test_years_to_loss_against_the_chain(servers, m):
    """Expected time to m + 1 servers rebuilding at once, from the generator matrix: -Q t = 1."""
    loss, repair = 0.2, 1e-4  # per year, years: busy 2e-5 of the time
    rates = np.zeros((m + 1, m + 1))
    for lost in range(m + 1):
        leave, back = (servers - lost) * loss, lost / repair
        rates[lost, lost] = -(leave + back)
        if lost < m:
            rates[lost, lost + 1] = leave
        if lost:
            rates[lost, lost - 1] = back
    expected = np.linalg.solve(-rates, np.ones(m + 1))[0]
    assert erasure.store_years_to_loss(servers, 10, m, loss, loss * repair) == pytest.approx(expected, rel=2e-3)


def test_years_to_loss_of_the_published_store_by_hand():
    """219.8 servers of 20 drives: 0.02 + 20 x 0.009 losses a year each, hours to rebuild a server and a twentieth of it for a drive."""
    raw = 20 * 30.73e12
    servers = 100 * 2**50 / raw * 1.2
    rebuild = max(raw * 10 / ((servers - 1) * 40e9 * 0.1), raw / ((servers - 1) * 5e9 * 0.1))
    assert catalogue.value("server_rebuild_time") == pytest.approx(rebuild)
    assert catalogue.value("store_repair_time") == pytest.approx(3600 + rebuild)
    assert catalogue.value("drive_repair_time") == pytest.approx(3600 + rebuild / 20)
    busy = (0.02 * (3600 + rebuild) + 0.18 * (3600 + rebuild / 20)) / (365 * 86_400)
    years = 1 / (servers * 0.2 * (servers - 1) * (servers - 2) / 2 * busy**2)
    assert catalogue.value("store_years_to_loss") == pytest.approx(years)
    assert years == pytest.approx(1113, abs=1)
    chance = catalogue.value("store_loss_per_year", parity_shards=np.array([0, 1, 2, 3]))
    assert np.all(np.diff(chance) < 0) and chance[0] == pytest.approx(1.0) and chance[2] == pytest.approx(1 / years, rel=1e-3)


def test_stores_that_cannot_be_say_so():
    with pytest.raises(NotPossible, match="cannot rebuild"):
        catalogue.value("server_rebuild_time", store_capacity=1e12)
    with pytest.raises(NotPossible, match="does not fit on 11"):
        erasure.store_years_to_loss(11, 10, 2, 0.2, 1e-5)
    for shards in ((0, 2), (2.5, 2), (10, -1), (10, 2.5), (float("nan"), 2), (10, np.array([2, float("nan")]))):
        with pytest.raises(InputError, match="_shards"):
            erasure.store_years_to_loss(200, *shards, 0.2, 1e-5)
        with pytest.raises(InputError, match="_shards"):
            erasure.unreadable_share(*shards, 0.1)


def test_unreadable_share_is_the_binomial_tail():
    down, k, m = 0.03, 10, 2
    tail = sum(math.comb(k + m - 1, i) * down**i * (1 - down)**(k + m - 1 - i) for i in range(m, k + m))
    assert erasure.unreadable_share(k, m, down) == pytest.approx(down * tail)
    assert erasure.unreadable_share(10, 0, 0.2) == pytest.approx(0.2)
    assert erasure.unreadable_share(10, 2, np.array([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert np.all(np.diff(erasure.unreadable_share(10, np.arange(5), 0.05)) < 0)
    with pytest.raises(InputError):
        erasure.unreadable_share(10, 2, 1.1)


@pytest.mark.parametrize(("p", "blocks"), [(0.3, 1), (0.005, 4), (0.5, 7), (1e-3, 50)])
def test_a_hit_ends_at_the_first_unreadable_block(p, blocks):
    """All ways in which the blocks of a short prefix can be unreadable, or for long ones the sum that the docstring names."""
    if blocks <= 7:
        kept = 0.0
        for state in range(2**blocks):
            holes = [state >> place & 1 for place in range(blocks)]
            chance = math.prod(p if hole else 1 - p for hole in holes)
            kept += chance * (holes.index(1) if 1 in holes else blocks)
    else:
        kept = sum((1 - p)**place for place in range(1, blocks + 1))
    assert erasure.prefix_lost(p, blocks) == pytest.approx(1 - kept / blocks)


def test_lost_prefix_at_the_edges():
    lost = erasure.prefix_lost(np.array([0.0, 1e-18, 1e-7, 0.5, 1.0]), 600)
    assert lost[0] == 0.0 and lost[4] == 1.0 and np.all(np.diff(lost) > 0)
    assert lost[1] == pytest.approx(601 / 2 * 1e-18)
    around = erasure.prefix_lost(np.array([0.999999e-4, 1.000001e-4]) / 600, 600)  # series and closed form meet
    assert around[1] / around[0] == pytest.approx(1.000002, rel=1e-6)
    assert erasure.prefix_lost(0.1, np.array([0.0, 0.5, 1.0])).tolist() == pytest.approx([0.1] * 3)
    for bad in ((1.1, 5), (float("nan"), 5), (0.1, -1), (0.1, float("inf"))):
        with pytest.raises(InputError):
            erasure.prefix_lost(*bad)


def test_silent_servers_cost_prefill():
    """0.96 x 77,000 / 128 = 577.5 blocks; without parity a hole comes after q (1 - q^n) / p blocks of them, q = 0.995."""
    blocks = 0.96 * 77_000 / 128
    assert catalogue.value("hit_blocks") == pytest.approx(blocks)
    lost = 1 - 0.995 * (1 - 0.995**blocks) / (blocks * 0.005)
    assert lost == pytest.approx(0.674, abs=1e-3)
    assert catalogue.value("extra_prefill_without_parity") == pytest.approx(lost * 0.96 / 0.04)
    assert catalogue.value("extra_prefill_without_parity") == pytest.approx(16.2, abs=0.05)
    few = catalogue.value("unreadable_share")  # 6.67e-6: to first order half of the blocks come after the hole
    assert catalogue.value("prefix_lost_with_parity") == pytest.approx(few * (blocks + 1) / 2, rel=2e-3)
    assert catalogue.value("extra_prefill_with_parity") == pytest.approx(0.046, abs=5e-4)
    assert catalogue.value("extra_prefill_without_parity", hit_rate=0.0) == 0
    assert catalogue.value("read_amplification") == pytest.approx(1 + 0.005 * 9)
    assert catalogue.value("read_amplification_one_down") == pytest.approx(1 + 9 / 12)


# --- the chance of reuse that a hit rate of 96 % means
def test_reads_and_reuse_of_a_stored_token():
    """0.96 of 153.57T input tokens are read, 7.58T tokens are stored; 92 % of the generated ones are read again."""
    assert catalogue.value("reads_per_stored_token") == pytest.approx(0.96 * 153.567e12 / 7.576e12, rel=1e-3)
    assert catalogue.value("generated_reuse_share") == pytest.approx(0.920, abs=1e-3)
    per_day = catalogue.value("break_even_reuse_per_day")
    assert catalogue.value("generated_break_even_days") == pytest.approx(catalogue.value("generated_reuse_share") / per_day)
    short, long = catalogue.value("generated_reuse_share", retention_days=np.array([0.1, 3.0]))
    assert short < long
