"""Figures of the cache: they draw, say what they show, and follow the scenario."""

from __future__ import annotations

import numpy as np
import pytest
from traces import HAND, chunk

from inside_deepinfer import catalogue
from inside_deepinfer.cache.distributed import Reading, analyse
from inside_deepinfer.cache.reuse import Question, replay
from inside_deepinfer.cache.sampling import Sample
from inside_deepinfer.facts import load_facts
from inside_deepinfer.figures import cache, cache_erasure, cache_public, cache_rule, cache_store, cache_workloads
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.scenario import make_scenario

OF_SCENARIO = (cache_rule.break_even, cache_rule.break_even_by_reuse, cache_workloads.retention_by_workload,
               cache_workloads.retention_gain, cache_erasure.loss_by_parity, cache_erasure.silent_servers, cache_store.servers)


def check(figure):
    meta = figure.layout.meta
    assert meta["name"] and len(meta["alt"]) > 40 and meta["table"]["rows"]
    assert "nan" not in meta["alt"] and "inf " not in meta["alt"]
    for source in meta["sources"]:
        assert source in load_facts().sources
    for trace in figure.data:
        for values in (trace.x, trace.y):
            if isinstance(values, dict):  # the frames of a movable figure hold encoded arrays
                continue
            numbers = np.asarray(values)
            assert len(numbers) and (numbers.dtype.kind not in "f" or np.all(np.isfinite(numbers)))
    return figure


@pytest.mark.parametrize("make", OF_SCENARIO)
def test_figures_of_a_scenario(make):
    check(make(make_scenario()))
    check(make(make_scenario("published", {"ssd": 50, "rd": 1, "rc": 14, "ps": 1, "ru": 0.5})))
    assert draw(make, make_scenario())["data"]


def test_other_figures():
    for kind in ("agents", "chat"):
        check(cache_workloads.what_decides(kind))
    check(cache_workloads.hit_rates_in_the_world())
    counted = check(cache_public.public_retention())
    assert "35.0 %" in counted.layout.meta["alt"] and len(counted.data) == 4  # README of the traces: 35.01 % at ten minutes


def test_takeaway_figure_shows_the_catalogue_s_numbers():
    scenario = make_scenario("published", {"ssd": 100})
    days = catalogue.value("break_even_days", scenario)
    figure = cache_rule.break_even(scenario)
    middle = figure.data[1]  # the scenario's own price of a GPU-hour
    assert np.interp(np.log(100), np.log(middle.x), np.log(middle.y)) == pytest.approx(np.log(days), rel=1e-6)
    assert f"{days:.0f}" in figure.layout.meta["alt"]


def test_figures_of_a_trace():
    report = analyse(HAND, Question(), Reading(kv_bytes=890.0))
    names = [check(figure).layout.meta["name"] for figure in cache.trace_figures(report)]
    assert names == ["trace-retention", "trace-capacity", "trace-reuse-times", "trace-distinct-blocks"]
    assert "47.3 %" in cache.retention_curve(report).layout.meta["alt"]  # 1,280 of 2,708 tokens


def test_figures_of_a_sampled_trace_and_of_one_without_reuse():
    chunks = [chunk((n, 256, [n % 50, 1000 + n]) for n in range(500))]
    sampled = replay(chunks, Question(capacities=(1e7,), sample=Sample(0.5)), 128, 890.0)
    for figure in cache.trace_figures(sampled):
        check(figure)
    assert "error bound" in cache.capacity_curve(sampled).layout.meta["table"]["columns"]
    alone = replay([chunk((n, 128, [n]) for n in range(3))], Question(), 128, 890.0)
    assert [check(figure).layout.meta["name"] for figure in cache.trace_figures(alone)] == ["trace-distinct-blocks"]
