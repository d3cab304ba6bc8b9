"""Outage of the decode pool: against closed forms, the chain and a simulation; the figures of chapter 13."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, load_facts
from inside_deepinfer.figures import availability as figures
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving import availability as av
from inside_deepinfer.serving import outage
from inside_deepinfer.studies.outages import chain_and_simulation


@settings(max_examples=40)
@given(needed=st.integers(1, 40), spares=st.integers(0, 4), lost=st.floats(0, 1))
def test_too_few_is_the_binomial_tail(needed, spares, lost):
    chain = av.InstanceChain(1, np.array([1 - lost]), np.array([lost]))
    assert outage.too_few(needed, spares, lost) == pytest.approx(1 - float(av.service_availability(chain, needed, spares)), abs=1e-9)


def test_small_shares_keep_their_digits():
    """Without rounding: 20 choose 2 pairs of a million-th each, and next to nothing beyond."""
    assert outage.too_few(19, 1, 1e-6) == pytest.approx(190e-12, rel=1e-4)


def test_nothing_fails_at_rate_zero_and_spares_may_be_zero():
    assert outage.too_few(19, 0, 0.0) == 0.0
    assert outage.chain_of(64, 0.0, 300, 86_400).availability == pytest.approx(1.0)


def test_the_chain_agrees_with_the_form_by_hand():
    """The two differ by what fails during a restart: relative size rate * restart, below a percent up to 128 cards."""
    eps = np.array([8, 64, 128])
    assert catalogue.value("instance_downtime", ep=eps) == pytest.approx(catalogue.value("instance_downtime_by_hand", ep=eps), rel=0.01)


def test_published_point():
    """64 cards at 1.97e-5 per hour (Llama 3 paper) fail every 33 days and interrupt 64 x 60 sequences (claim decode.sequences)."""
    assert catalogue.value("days_between_failures") == pytest.approx(33.0, abs=0.1)
    assert catalogue.value("sequences_lost_per_failure") == 3840
    assert catalogue.value("decode_instances") == 19  # 1,196 GPUs (claim fleet.prefill_gpus) over 64


def test_output_generated_twice_by_hand():
    """Two restarts interrupt 3,840 sequences each, half of 77,000 / 107.1 tokens is there; one failure in 33 days of 60 sequences."""
    assert catalogue.value("tokens_lost_per_failure") == pytest.approx(3840 * 77_000 / (1.5e6 / 14_000), rel=1e-3)
    per_day = 64 * 24 * 1.97e-5 * catalogue.value("output_tokens_per_request")
    assert catalogue.value("output_lost_share") == pytest.approx(per_day * 60 / (86_400 * catalogue.value("decode_throughput")))
    assert catalogue.value("output_lost_share") == pytest.approx(1.08e-6, rel=0.01)


def test_long_outputs_are_caught_more_often():
    """E[L^2] / (2 E[L]^2): a half if all are equally long, a whole for exponential lengths; what the conclusion's margin is for."""
    rng = np.random.default_rng(0)
    for lengths, lost in ((np.full(10, 700.0), 0.5), (rng.exponential(700, 200_000), 1.0)):
        ends = lengths.cumsum()
        at = rng.uniform(0, ends[-1], 200_000)  # one slot writes one output after the other; a failure comes at any moment
        here = np.searchsorted(ends, at)
        written = at - (ends[here] - lengths[here])
        assert written.mean() / lengths.mean() == pytest.approx(lost, rel=0.02)


def test_a_single_card_waits_for_its_replacement():
    """Rate x (a day + 300 s), as there is no other card to go on with."""
    down = 1.97e-5 / 3600 * (86_400 + 300)
    assert catalogue.value("instance_downtime", ep=1) == pytest.approx(down, rel=2e-3)
    assert catalogue.value("instance_downtime", ep=1) == catalogue.value("instance_downtime_waiting", ep=1)


def test_very_large_pools_can_be_asked_about():
    """Ten quadrillion tokens need 1,206 instances; the tail of so many keeps its digits."""
    found = catalogue.evaluate(["decode_instances", "instance_downtime", "short_of_instances"], tokens_per_day=1e16)
    needed, down, short = (float(quantity.value) for quantity in found.values())
    assert needed == 1206
    none, one = (1 - down)**1207, 1207 * down * (1 - down)**1206
    assert short == pytest.approx(1 - none - one, rel=1e-6)


def test_a_spare_is_worth_more_than_a_fast_restart():
    for ep in (64, 128):
        assert catalogue.value("gain_of_a_spare", ep=ep) > 10 * catalogue.value("gain_of_a_faster_restart", ep=ep)
    assert catalogue.value("gain_of_a_faster_restart") == pytest.approx(load_facts().number("failure.fast_restart"), rel=0.01)


def test_more_spares_and_faster_restarts_never_hurt():
    short = catalogue.value("short_of_instances", spare_instances=np.arange(5))
    assert np.all(np.diff(short) < 0)
    assert np.all(np.diff(catalogue.value("short_of_instances", restart_time=np.array([10.0, 100.0, 1000.0]))) > 0)


def test_chain_and_simulation():
    for one in chain_and_simulation(make_scenario(), (8, 64, 128)):
        assert one.errors_apart < 3


@pytest.mark.parametrize(("match", "call"), [
    ("spare_instances", lambda: outage.too_few(3, -1, 0.1)), ("needed", lambda: outage.too_few(0, 1, 0.1)),
    ("unavailability", lambda: outage.too_few(3, 1, float("nan"))),
    ("spare_instances", lambda: outage.too_few(3, 1.5, 0.1)), ("needed", lambda: outage.too_few(float("nan"), 1, 0.1)),
    ("ep", lambda: outage.chain_of(8.7, 1e-5, 300, 86_400)), ("ep", lambda: outage.instance_downtime(float("nan"), 1e-5, 300, 86_400)),
    ("failure.card_rate", lambda: outage.chain_of(64, -1.0, 300, 86_400))])
def test_bad_input_names_the_parameter(match, call):
    with pytest.raises(InputError, match=match):
        call()


@pytest.mark.parametrize("changes", [{}, {"rt": 1}, {"rt": 86_400, "ep": 384}, {"T": 1e12}, {"pd": 20}], ids=str)
@pytest.mark.parametrize("figure", [figures.spares, figures.downtime], ids=lambda figure: figure.__name__)
def test_a_figure_stands_for_any_scenario(figure, changes):
    scenario = make_scenario("published", changes)
    meta = figure(scenario).layout.meta
    assert meta["alt"].endswith(".") and "nan" not in meta["alt"] and set(meta["sources"]) <= set(load_facts().sources)
    assert draw(figure, scenario, "published")["layout"]["meta"]["alt"] == meta["alt"]


def test_the_movable_figure_and_the_simulated_one():
    moved = figures.spares_by_restart(make_scenario())
    assert [step.label for step in moved.layout.sliders[0].steps] == ["0.5", "1", "2", "5", "10", "20", "60"]
    assert "standard errors" in figures.beside(chain_and_simulation(make_scenario(), (8, 64))).layout.meta["alt"]
