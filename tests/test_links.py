"""The exchange around the experts: bytes per token, what leaves the domain, and its time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, load_facts
from inside_deepinfer.scenario import parameters
from inside_deepinfer.serving.decode_band import INPUTS
from inside_deepinfer.serving.decode_frontier import COUNTED_INPUTS
from inside_deepinfer.serving.facts_of_parameters import FACT_OF
from inside_deepinfer.serving.links import domains_reached


def test_bytes_per_token_by_hand():
    """6 copies of 5,120 values, out in FP8 with a scale byte per 32, back in BF16, in 40 layers."""
    assert catalogue.value("dispatch_row_bytes") == 5120 * (1 + 1 / 32)
    assert catalogue.value("combine_row_bytes") == 5120 * 2
    assert catalogue.value("exchange_bytes_per_token") == 40 * 6 * (5120 * (1 + 1 / 32) + 5120 * 2)


def test_the_formats_of_the_exchange_are_the_readers_choice():
    """BF16 both ways is 2 * 2 bytes a value; MXFP4 is half a byte and one scale byte per 32."""
    assert catalogue.value("exchange_bytes_per_token", dispatch_format="bf16") == 40 * 6 * 5120 * 4
    found = catalogue.value("combine_row_bytes", combine_format=np.array(["bf16", "mxfp4", "mxfp8"]))
    assert found.tolist() == [10240, 5120 * (0.5 + 1 / 32), 5120 * (1 + 1 / 32)]
    with pytest.raises(InputError, match="fp9"):
        catalogue.value("dispatch_row_bytes", dispatch_format="fp9")


def test_a_domain_of_ones_own_replaces_the_cards():
    assert catalogue.value("card_domain") == 72 and catalogue.value("card_domain", scaleup_domain=128) == 128
    assert catalogue.value("card_domain", card="ascend-950pr", scaleup_domain=64) == 64  # this card states none
    assert catalogue.value("card_domain", scaleup_domain=np.array([0, 8])).tolist() == [72, 8]
    assert catalogue.value("crossing_bytes_per_step", ep=128) > 0
    assert catalogue.value("crossing_bytes_per_step", ep=128, scaleup_domain=128) == 0
    with pytest.raises(InputError, match="scaleup_domain"):
        catalogue.value("card_domain", scaleup_domain=-1)


@given(domain=st.integers(1, 384), ep=st.sampled_from([64, 128, 384]), network=st.floats(1e9, 1e12))
def test_a_larger_domain_or_a_faster_network_never_takes_longer(domain, ep, network):
    now, larger, faster = (catalogue.value("time_exchange", ep=ep, scaleup_domain=size, scaleout_bandwidth=rate)
                           for size, rate in ((domain, network), (2 * domain, network), (domain, 2 * network)))
    assert larger <= now * (1 + 1e-12) and faster <= now
    assert np.isfinite(now) and now > 0


def test_every_calculation_of_a_step_takes_all_that_the_step_rests_on():
    """Curves and bands count the step from lists of inputs: a parameter that is missing there would change the step only."""
    needed = {part.name for part in catalogue.quantity("counted_step_time").walk()} & set(parameters())
    assert {"dispatch_format", "scaleup_domain"} <= needed <= set(FACT_OF)
    assert needed - {"batch"} <= set(INPUTS)
    assert needed - {"batch", "rows_per_sequence"} <= set(COUNTED_INPUTS)
    for name in ("step_fixed_time", "user_speed_limit", "decode_band_low", "scheduled_rows"):
        assert needed - {"batch", "rows_per_sequence"} <= {part.name for part in catalogue.quantity(name).walk()}, name


@pytest.mark.parametrize("change", [{"dispatch_format": "bf16"}, {"combine_format": "mxfp8"}, {"ep": 128, "scaleup_domain": 128},
                                    {"ep": 128, "scaleout_bandwidth": 4e11}, {"ep": 128, "crossing": "expert"}])
def test_the_link_reaches_step_frontier_and_schedule(change):
    """Before and after the change, the fixed and per-row time of the frontier follow the counted step."""
    base = {"ep": change.get("ep", 64)}
    names = ("counted_step_time", "step_time_per_row", "scheduled_rows")
    before, after = ({name: catalogue.quantity(name, changes=at).value for name in names} for at in (base, base | change))
    slower = after["counted_step_time"] > before["counted_step_time"]
    assert after["counted_step_time"] != before["counted_step_time"]
    assert (after["step_time_per_row"] > before["step_time_per_row"]) == slower
    assert (after["scheduled_rows"] < before["scheduled_rows"]) == slower


def test_a_row_that_crosses_once_per_expert():
    """EP128 beyond a domain of 72: 6 * 56/128 copies cross instead of 1 - (72/128)**6; 2.7 times the bytes."""
    once, each = (catalogue.value("crossing_bytes_per_step", ep=128, crossing=way) for way in ("domain", "expert"))
    rows, size = 60 * 4.8, 5120 * (1 + 1 / 32) + 5120 * 2
    assert each == pytest.approx(rows * 40 * 6 * 56 / 128 * size) and once == pytest.approx(rows * 40 * (1 - (72 / 128) ** 6) * size)
    both = catalogue.value("crossing_copies", ep=128, crossing=np.array(["domain", "expert"]))
    assert both.tolist() == pytest.approx([1 - (72 / 128) ** 6, 2.625])
    assert catalogue.value("crossing_bytes_per_step", ep=64, crossing="expert") == 0
    with pytest.raises(InputError, match="crossing"):
        catalogue.value("crossing_copies", crossing="never")


def test_a_single_gpu_exchanges_nothing():
    assert catalogue.value("exchange_bytes_per_step", ep=1) == 0
    assert catalogue.value("time_exchange", ep=1) == 0


@pytest.mark.parametrize(("ep", "domain", "copies", "expected"), [
    (64, 72, 6, 0.0), (72, 72, 6, 0.0), (8, 8, 6, 0.0),
    (16, 8, 1, 0.5), (64, 8, 1, 7 / 8), (128, 72, 1, 56 / 128),
    (16, 8, 6, 1 - 0.5**6), (64, 8, 6, 7 * (1 - (7 / 8) ** 6)), (128, 72, 6, 1 - (72 / 128) ** 6)])
def test_domains_reached(ep, domain, copies, expected):
    assert float(domains_reached(ep, domain, copies)) == pytest.approx(expected)


@given(ep=st.integers(1, 384), domain=st.integers(1, 384), copies=st.integers(1, 16))
def test_domains_reached_is_bounded(ep, domain, copies):
    reached = float(domains_reached(ep, domain, copies))
    assert 0 <= reached <= copies * max(ep - domain, 0) / ep * (1 + 1e-9) + 1e-12
    assert reached <= np.ceil(max(ep - domain, 0) / domain) + 1e-12


def test_domains_reached_against_a_draw():
    """The expectation is the mean over random choices of experts, counted one by one."""
    rng = np.random.default_rng(7)
    ep, domain, copies = 128, 48, 6
    gpus = rng.integers(0, ep, size=(200_000, copies)) // domain  # the row's own GPU stands in domain 0
    mean = np.mean([(gpus == other).any(axis=1) for other in (1, 2)], axis=1).sum()
    assert float(domains_reached(ep, domain, copies)) == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize(("card", "ep", "crosses"), [
    ("gb200", 64, False), ("gb200", 96, True), ("gb200", 128, True), ("b200", 8, False), ("b200", 16, True), ("h200", 64, True)])
def test_a_group_beyond_the_domain_crosses_it(card, ep, crosses):
    """Domains: 72 GPUs for GB200, 8 for B200 and H200 (data/hardware/cards.yaml)."""
    assert (catalogue.value("crossing_bytes_per_step", card=card, ep=ep) > 0) == crosses


@given(ep=st.sampled_from([2, 4, 8, 16, 32, 64, 128]), batch=st.integers(1, 2048))
def test_more_gpus_or_rows_never_exchange_less(ep, batch):
    at = {"ep": ep, "batch": batch}
    now, more_rows, fewer_gpus = (catalogue.value("exchange_bytes_per_step", **at | other)
                                  for other in ({}, {"batch": batch + 1}, {"ep": ep // 2}))
    assert fewer_gpus <= now < more_rows
    assert catalogue.value("time_exchange", **at) > 0


def test_every_assumption_of_the_exchange_says_that_it_is_one():
    kinds = {name: fact.kind for name, fact in load_facts().facts.items() if name.startswith(("link.", "efficiency.link"))}
    assert kinds["link.scaleout_bandwidth"] == kinds["efficiency.link"] == kinds["link.combine_format"] == "assumption"
    assert kinds["link.dispatch_format"] == "config" and kinds["link.scaleup_domain"] == "assumption"


def test_the_chain_of_the_exchange_names_every_source():
    quantity = catalogue.quantity("time_exchange")
    assert {"link.latency", "scaleout_bandwidth", "efficiency.link"} <= {part.name for part in quantity.walk()}
    assert {"aiconfigurator", "deepinfer-sdist", "inside-deepinfer"} <= set(quantity.all_sources())
