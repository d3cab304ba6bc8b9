"""The exchange around the experts: bytes per token, what leaves the domain, and its time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.facts import load_facts
from inside_deepinfer.serving.links import domains_reached


def test_bytes_per_token_by_hand():
    """6 copies of 5,120 values, out in FP8 with a scale byte per 32, back in BF16, in 40 layers."""
    assert catalogue.value("dispatch_row_bytes") == 5120 * (1 + 1 / 32)
    assert catalogue.value("combine_row_bytes") == 5120 * 2
    assert catalogue.value("exchange_bytes_per_token") == 40 * 6 * (5120 * (1 + 1 / 32) + 5120 * 2)


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
    assert kinds["link.dispatch_format"] == "config"


def test_the_chain_of_the_exchange_names_every_source():
    quantity = catalogue.quantity("time_exchange")
    assert {"link.latency", "link.scaleout_bandwidth", "efficiency.link"} <= {part.name for part in quantity.walk()}
    assert {"aiconfigurator", "deepinfer-sdist", "inside-deepinfer"} <= set(quantity.all_sources())
