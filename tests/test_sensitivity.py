"""The ranking of inputs: exact on functions whose elasticity is known, and the same for a money result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving.sensitivity import swings
from inside_deepinfer.studies.swings import money_swings

NUMBER = st.floats(0.1, 1e6)


@given(a=NUMBER, b=NUMBER, c=NUMBER, power=st.sampled_from([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]))
def test_a_power_has_its_exponent_as_elasticity(a, b, c, power):
    found = {swing.name: swing for swing in swings(lambda x: c * x["a"] ** power * x["b"], {"a": a, "b": b}, step=0.01)}
    assert found["a"].elasticity == pytest.approx(power, rel=2e-3)
    assert found["b"].elasticity == pytest.approx(1.0, rel=1e-9)
    assert found["a"].base == pytest.approx(c * a ** power * b)


def test_order_is_by_the_larger_swing_and_every_input_moves_alone():
    found = swings(lambda x: 10 * x["big"] + x["small"], {"small": 1.0, "big": 1.0})
    assert [swing.name for swing in found] == ["big", "small"]
    assert (found[1].at_low, found[1].at_high) == pytest.approx((10.9, 11.1))


def test_a_result_that_ignores_an_input_does_not_move():
    found = {swing.name: swing for swing in swings(lambda x: x["used"], {"used": 2.0, "unused": 3.0})}
    assert found["unused"].span == 0
    assert found["unused"].elasticity == 0


def test_a_constant_result_is_spread_over_all_steps():
    assert swings(lambda x: 7.0, {"a": 1.0})[0].span == 0


def test_the_complement_is_moved_where_a_share_is_near_one():
    swing = swings(lambda x: 1 / (1 - x["hit"]), {"hit": 0.96}, complements=("hit",))[0]
    assert (swing.low, swing.high) == pytest.approx((0.956, 0.964))  # misses of 4 %, 10 % more and 10 % less
    assert swing.elasticity == pytest.approx(-1.0, rel=0.02)


def test_a_step_beyond_the_range_is_cut_there():
    swing = swings(lambda x: x["share"], {"share": 0.95}, step=0.2, bounds={"share": (0.0, 1.0)})[0]
    assert swing.high == 1.0


@pytest.mark.parametrize("step", [0.0, -0.1, 1.0, float("nan")])
def test_an_impossible_step_says_what_is_allowed(step):
    with pytest.raises(InputError, match="0.001 to 0.9"):
        swings(lambda x: x["a"], {"a": 1.0}, step=step)


def test_nothing_to_move_is_an_error():
    with pytest.raises(InputError, match="at least one input"):
        swings(lambda x: 1.0, {"a": 0.0})


@pytest.mark.parametrize("result", ["revenue_per_cluster_gpu_hour", "workload_revenue_per_cluster_gpu_hour"])
def test_each_end_equals_a_scenario_with_that_one_change(result):
    scenario = make_scenario()
    for swing in money_swings(scenario, "published", result):
        for value, seen in ((swing.low, swing.at_low), (swing.high, swing.at_high)):
            assert seen == pytest.approx(catalogue.value(result, scenario, **{swing.name: value}), rel=1e-12), swing.name


def test_the_articles_formula_has_the_shares_of_revenue_as_elasticities():
    """A price's elasticity is its share of the revenue; the three shares make one."""
    found = {swing.name: swing.elasticity for swing in money_swings(make_scenario(), "published", "revenue_per_cluster_gpu_hour")}
    assert found["price_hit"] + found["price_miss"] + found["price_output"] == pytest.approx(1.0, abs=1e-6)
    output = catalogue.value("revenue_per_decode_gpu_hour") / 2 / catalogue.value("revenue_per_cluster_gpu_hour")
    assert found["price_output"] == pytest.approx(output, rel=1e-6)  # one decode GPU of two at 1:1


def test_inputs_of_other_results_are_left_out():
    names = {swing.name for swing in money_swings(make_scenario(), "published", "effective_input_price")}
    assert names == {"hit_rate", "price_hit", "price_miss"}
    assert not any(np.isnan(swing.span) for swing in money_swings(make_scenario(), "published", "gross_margin"))


def test_with_the_dollar_list_the_rate_drops_out_and_prefill_comes_first():
    full = money_swings(make_scenario("off-peak"), "off-peak", "revenue_per_cluster_gpu_hour")
    assert full[0].name == "prefill_throughput_new" and full[0].span == pytest.approx(2 * 0.1 * 47.952 / 2)  # a tenth of half a prefill GPU
    assert {swing.name: swing.span for swing in full}.get("cny_per_usd", 0.0) == 0.0
