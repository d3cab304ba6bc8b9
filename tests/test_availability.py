"""Availability: the chain against simple closed forms, and the simulation against the chain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer.facts import InputError, load_facts
from inside_deepinfer.serving import availability as av

HOUR = 3600.0


def test_card_rate_is_the_published_count():
    """Llama 3 paper: 419 unexpected interruptions in 54 days on 16,384 GPUs."""
    assert load_facts().number("failure.card_rate") == pytest.approx(419 / (54 * 24 * 16_384), rel=2e-3)


def test_without_resizing_one_card_is_a_two_state_chain():
    """One card, repair then restart: up / (up + replace + restart)."""
    chain = av.instance_chain(1, failure_rate=1 / (1000 * HOUR), restart_time=HOUR, replace_time=9 * HOUR, resize=False)
    # a failure during the restart starts over; the two-state form leaves that out, hence 0.2 %
    assert chain.availability == pytest.approx(1000 / (1000 + 9 + 1), rel=2e-3)


def test_nothing_fails_at_rate_zero():
    chain = av.instance_chain(64, 0.0, 300, 86_400)
    assert chain.availability == pytest.approx(1.0) and chain.capacity == pytest.approx(1.0)
    assert av.served_share(chain, 3, 0) == pytest.approx(1.0)


@settings(max_examples=30)
@given(cards=st.sampled_from([8, 64, 128]), rate=st.floats(1e-9, 1e-7), restart=st.floats(30, 3600), replace=st.floats(3600, 6e5))
def test_probabilities_and_directions(cards, rate, restart, replace):
    chain = av.instance_chain(cards, rate, restart, replace)
    assert chain.up.sum() + chain.restarting.sum() == pytest.approx(1.0)
    assert 0 < chain.capacity <= chain.availability <= 1
    assert av.instance_chain(cards, rate, restart * 2, replace).availability < chain.availability
    assert av.instance_chain(cards, rate * 2, restart, replace).availability < chain.availability
    share = [av.served_share(chain, 4, spares) for spares in range(4)]
    assert all(low <= high + 1e-12 for low, high in zip(share, share[1:], strict=False))
    assert np.all(np.diff(av.service_availability(chain, 4, np.arange(5))) >= -1e-12)


def test_larger_instances_are_up_less_often():
    small, large = (av.instance_chain(cards, 1e-8, 300, 86_400) for cards in (64, 128))
    assert large.availability < small.availability


def test_resizing_beats_waiting_for_the_card():
    assert av.instance_chain(64, 1e-8, 300, 86_400).availability > av.instance_chain(64, 1e-8, 300, 86_400, resize=False).availability


def test_a_single_card_agrees_with_its_simulation():
    chain = av.instance_chain(1, 5e-7, 600, 86_400)
    simulated = av.simulate_availability(1, 5e-7, 600, 86_400, days=3000, seed=2)
    assert chain.availability < 1 and abs(simulated.mean - chain.availability) < 3 * simulated.standard_error


@pytest.mark.parametrize("resize", [True, False])
def test_simulation_agrees_with_the_chain_within_its_error_bar(resize):
    chain = av.instance_chain(64, 5e-8, 600, 86_400, resize)
    simulated = av.simulate_availability(64, 5e-8, 600, 86_400, days=3000, histories=200, resize=resize, seed=5)
    assert simulated.standard_error < 0.002
    assert abs(simulated.mean - chain.availability) < 3 * simulated.standard_error


@pytest.mark.parametrize(("name", "call"), [
    ("cards", lambda: av.instance_chain(0, 1e-8, 1, 1)),
    ("failure_rate", lambda: av.instance_chain(4, -1, 1, 1)),
    ("failure_rate", lambda: av.instance_chain(4, float("nan"), 1, 1)),
    ("restart_time", lambda: av.instance_chain(4, 1e-8, 0, 1)),
    ("spares", lambda: av.service_availability(av.instance_chain(4, 1e-8, 1, 1), 2, -1)),
    ("needed", lambda: av.served_share(av.instance_chain(4, 1e-8, 1, 1), 0, 1)),
    ("needed", lambda: av.service_availability(av.instance_chain(4, 1e-8, 1, 1), 1.5, 1)),
    ("spares", lambda: av.service_availability(av.instance_chain(4, 1e-8, 1, 1), 2, float("nan"))),
    ("spares", lambda: av.served_share(av.instance_chain(4, 1e-8, 1, 1), 2, 0.5)),
    ("cards", lambda: av.instance_chain(float("nan"), 1e-8, 1, 1)),
    ("cards", lambda: av.simulate_availability(64.5, 1e-8, 300, 86_400)),
    ("restart_time", lambda: av.simulate_availability(64, 1e-8, float("nan"), 86_400)),
    ("replace_time", lambda: av.simulate_availability(64, 1e-8, 300, 0)),
    ("histories", lambda: av.simulate_availability(64, 1e-8, 300, 86_400, histories=2.5)),
    ("days", lambda: av.simulate_availability(64, 1e-8, 300, 86_400, days=-1)),
])
def test_bad_input_names_the_parameter(name, call):
    with pytest.raises(InputError, match=name):
        call()
