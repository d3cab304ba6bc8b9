"""Numbers and figures of bounded replay."""

from __future__ import annotations

import numpy as np
import pytest

from inside_deepinfer import catalogue
from inside_deepinfer.facts import NotPossible, load_facts
from inside_deepinfer.figures import replay as figures
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.model.flops import prefill_flops
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.numerics import replay
from inside_deepinfer.numerics.replay_numbers import BOUNDED, DROPPED, FULL, error_curve, exact_decoder_tokens, work_map
from inside_deepinfer.scenario import make_scenario

TOKENS = np.random.default_rng(3).normal(size=(40, 16))


def test_where_the_three_numbers_stand():
    """Claims replay.tokens_000 (128) and replay.tokens_004 (140); deepinfer-sdist enforces 134 and 133 would do."""
    assert [catalogue.value(name) for name in ("shortest_ring", "released_ring")] == [133, 134]
    assert catalogue.value("kept_beyond_ring") == 6
    assert catalogue.value("exact_decoder_tokens") == 20 * 127 + 1


def test_saving_at_the_two_published_points():
    """Released estimator: 0.508 for 16,384 tokens from nothing, 0.526 for 3,080 new of 77,000."""
    assert catalogue.value("prefill_flops_ratio_replay", input_tokens=16_384, hit_rate=0.0) == pytest.approx(0.508, abs=5e-4)
    assert catalogue.value("prefill_flops_ratio_replay", input_tokens=77_000, hit_rate=0.96) == pytest.approx(0.526, abs=5e-4)


def test_an_exact_decoder_half_saves_less():
    new = np.array([200, 3000, 20_000])
    names = ("prefill_ratio_exact", "prefill_flops_ratio_replay")
    exact, bounded = (catalogue.value(name, input_tokens=new, hit_rate=0.0) for name in names)
    assert np.all(bounded < exact) and np.all(exact <= 1 + 1e-9)


def test_an_exact_staircase_keeps_two_thirds_of_the_saving():
    """Rows of 20 decoder layers, 19 * 127 + 1 down to 1: 1,207.5 on average; 0.698 of the work for 3,080 new of 77,000 (by hand)."""
    assert catalogue.value("exact_rows_mean") == np.mean([127 * (20 - layer) + 1 for layer in range(1, 21)]) == 1207.5
    assert catalogue.value("prefill_ratio_exact_least") == pytest.approx(0.698, abs=5e-4)
    shape = load_shape("deepseek-v4.1-flash")
    whole = prefill_flops(shape, 73_920, 77_000)
    assert catalogue.value("prefill_ratio_exact_least") == pytest.approx(prefill_flops(shape, 73_920, 77_000, 1207.5) / whole, rel=1e-3)
    hits = np.array([0.0, 0.5, 0.96, 0.999])
    least, every = (catalogue.value(name, hit_rate=hits) for name in ("prefill_ratio_exact_least", "prefill_ratio_exact"))
    assert np.all(least < every) and least[2] == catalogue.value("prefill_ratio_exact_least")
    with pytest.raises(NotPossible, match="nothing to replay"):
        catalogue.value("exact_rows_mean", model="deepseek-v3")


@pytest.mark.parametrize(("layers", "window"), [(8, 6), (12, 4), (4, 1), (8, 30)])
def test_the_staircase_is_exact_in_the_toy(layers, window):
    """Not one bit of the last position differs; the rows are those of the decoder half's field, or the whole prompt."""
    stack = replay.make_stack(layers, window)
    last, rows = replay.staircase(stack, TOKENS)
    assert np.array_equal(last, replay.run(stack, TOKENS)[-1])
    assert rows == [min(40, (layers // 2 - number) * (window - 1) + 1) for number in range(1, layers // 2 + 1)]
    # a row less in the first decoder layer is not enough
    if 1 < window < 10:
        assert replay.largest_error(stack, TOKENS, rows[0] + window - 2) > 0


def test_a_model_without_a_split_has_nothing_to_replay():
    with pytest.raises(NotPossible, match="nothing to replay"):
        exact_decoder_tokens("deepseek-v3")


def test_error_curve_is_the_single_numbers():
    stack = replay.make_stack(4, 5)
    keeps = np.array([3, 5, 9, 40])
    assert error_curve(stack, TOKENS, keeps) == pytest.approx([replay.largest_error(stack, TOKENS, int(keep)) for keep in keeps])
    assert error_curve(stack, TOKENS, np.array([2 * 4 + 1]))[0] == 0  # 2 decoder layers of window 5


def test_a_little_more_than_one_window_may_be_worse_than_one():
    """Twelve layers, window 8, the chapter's tokens: 9 kept rows are off by more than 8."""
    one, more = error_curve(replay.make_stack(12, 8), np.random.default_rng(0).normal(size=(64, 16)), np.array([8, 9]))
    assert more > 2 * one


def test_the_map_counts_what_the_toy_computes():
    done = work_map(40, 8, 10, 5, "compact")
    assert (done[:4] == FULL).all() and (done[4:] == DROPPED).sum() == 4 * 30 and (done[4:] == BOUNDED).sum() == 4 * 4
    stack = replay.make_stack(8, 5)
    assert len(replay.run(stack, TOKENS, "compact", 10)) == 10
    assert (work_map(40, 8, 10, 5, "exact") == FULL).all() and (work_map(40, 8, 10, 5, "mask") != DROPPED).all()


@pytest.mark.parametrize("changes", [{}, {"L": 1024, "h": 0.5}, {"L": 1_048_576, "h": 0.995}], ids=str)
def test_the_saving_figure_stands_for_any_scenario(changes):
    scenario = make_scenario("published", changes)
    meta = figures.saving(scenario).layout.meta
    assert meta["alt"].endswith(".") and set(meta["sources"]) <= set(load_facts().sources)
    assert draw(figures.saving, scenario, "published")["layout"]["meta"]["alt"] == meta["alt"]


def test_movable_figures():
    keeps = (0.5, 1.0, 2.0, 4.0)
    curves = {layers: {window: error_curve(replay.make_stack(layers, window), TOKENS, np.round(np.array(keeps) * window))
                       for window in (4, 6)} for layers in (2, 4)}
    moved, rings = figures.error_by_depth(curves, keeps), figures.rings(128)
    assert len(moved.frames) == 2 and [step.label for step in rings.layout.sliders[0].steps] == ["1", "2", "3", "5", "7"]
    assert "132 gives wrong reads, 133 is the shortest clean one" in rings.layout.meta["alt"]
    assert "64 of 192 out (" in figures.rows_and_layers().layout.meta["alt"]
