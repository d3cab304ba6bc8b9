"""Speculation: laws of sampling, ways of counting, and the schedule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer.facts import InputError, NotPossible
from inside_deepinfer.serving import acceptance as ac


def linear(rows):
    return 8e-3 + 0.03e-3 * np.asarray(rows, dtype=float)


def test_tokens_per_step_by_hand():
    """Two drafts at 0.5: 1 + 0.5 + 0.25; certain drafts: all of them and the bonus; impossible ones: the bonus alone."""
    assert ac.tokens_per_step([0.5, 0.5]) == 1.75
    assert ac.tokens_per_step(np.ones((3, 5))).tolist() == [6.0, 6.0, 6.0]
    assert ac.tokens_per_step([0.0] * 5) == 1.0


def test_rejection_sampling_gives_the_target_law():
    """200,000 draws: each share within five standard errors of the target, and the acceptance is the overlap of both laws."""
    rng = np.random.default_rng(8)
    target, draft = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.25, 0.25, 0.25, 0.25])
    n = 200_000
    drawn, kept = ac.rejection_sample(target, draft, rng, n)
    share = np.bincount(drawn, minlength=4) / n
    assert np.all(np.abs(share - target) < 5 * np.sqrt(target * (1 - target) / n))
    assert kept == pytest.approx(np.minimum(target, draft).sum(), abs=0.005)


@settings(max_examples=20)
@given(mean=st.floats(0.2, 0.95), relative=st.floats(0.1, 0.9), length=st.integers(1, 6))
def test_survivals_fall_along_a_sequence_and_the_curve_is_concave(mean, relative, length):
    survivals = ac.drawn_survivals(mean, relative * np.sqrt(mean * (1 - mean)), length)
    assert np.all(np.diff(survivals.chance, axis=1) <= 0)
    rows, tokens = survivals.curve()
    assert rows[0] == tokens[0] == 1 and rows[-1] == length + 1
    assert np.all(np.diff(tokens) >= 0) and np.all(np.diff(tokens, 2) <= 1e-12)


def test_the_drawn_mean_is_that_of_the_law():
    """Independent positions: 1 + the sum of m**k, here 3.2894 for 0.75; another draw moves it by a few thousandths at most."""
    exact = 1 + sum(0.75**k for k in range(1, 6))
    means = [1 + ac.drawn_survivals(0.75, 0.2, 5, seed).chance.sum(axis=1).mean() for seed in range(4)]
    assert means == pytest.approx([exact] * 4, rel=4e-3) and means[0] == pytest.approx(exact, rel=1e-3)
    first = ac.drawn_survivals(0.75, 0.2, 1).chance
    assert first.mean() == pytest.approx(0.75, abs=1e-5) and first.std() == pytest.approx(0.2, abs=1e-3)


def test_best_budget_beats_every_fixed_length_and_every_threshold_at_every_load():
    survivals, loads = ac.drawn_survivals(0.75, 0.23, 5), np.array([1.0, 10, 50, 200, 800])
    best = ac.best_budget(survivals, loads, linear)
    for drafts in range(6):
        other = ac.fixed_length(survivals, loads, linear, drafts)
        assert np.all(best.tokens / best.time >= other.tokens / other.time - 1e-9)
    for threshold in (0.1, 0.4, 0.8):
        other = ac.above_threshold(survivals, loads, linear, threshold)
        assert np.all(best.tokens / best.time >= other.tokens / other.time - 1e-9)
    assert np.all(np.diff(best.rows) <= 0), "more load never buys more rows"


def test_wrong_confidence_never_helps_and_right_confidence_costs_nothing():
    truth = ac.drawn_survivals(0.75, 0.23, 5)
    loads = np.array([20.0, 200.0])
    best = ac.best_budget(truth, loads, linear)
    same = ac.believed_budget(truth, truth, loads, linear)
    assert np.allclose(same.tokens / same.time, best.tokens / best.time)
    noise = np.random.default_rng(1).normal(scale=0.2, size=truth.chance.shape)
    believed = ac.Survivals(np.clip(truth.chance + noise, 0, 1))
    wrong = ac.believed_budget(truth, believed, loads, linear)
    assert np.all(wrong.tokens / wrong.time < best.tokens / best.time)


def test_staircase_pads_to_the_next_captured_size():
    assert ac.staircase(lambda rows: rows, 8)(np.array([1, 8, 9])).tolist() == [8, 8, 16]


def test_budget_fills_a_bucket_of_the_staircase():
    """On a staircase the best total of rows ends at the edge of a bucket (deepinfer-sdist: it tends to fill a graph)."""
    survivals = ac.drawn_survivals(0.75, 0.23, 5)
    best = ac.best_budget(survivals, np.array([100.0]), ac.staircase(linear, 64))
    assert (100 * best.rows[0]) % 64 > 63 or (100 * best.rows[0]) % 64 < 0.1


def test_verified_drafts_of_the_released_code_leave_out_the_golden_row():
    assert ac.rows_from_verified_drafts(np.array([5.0, 3.2, 4.4])).tolist() == [6.0, 4.2, 5.4]


@pytest.mark.parametrize(("name", "call"), [
    ("acceptance", lambda: ac.tokens_per_step([0.5, 1.2])),
    ("mean", lambda: ac.drawn_survivals(1.0, 0.1, 5)),
    ("spread", lambda: ac.drawn_survivals(0.5, 0.5, 5)),
    ("length", lambda: ac.drawn_survivals(0.5, 0.1, 0)),
    ("drafts", lambda: ac.fixed_length(ac.drawn_survivals(0.5, 0.1, 5), 1, linear, 6)),
    ("sequences", lambda: ac.best_budget(ac.drawn_survivals(0.5, 0.1, 5), 0, linear)),
    ("target", lambda: ac.rejection_sample(np.array([0.5, 0.6]), np.array([0.5, 0.5]), np.random.default_rng(0), 1)),
])
def test_bad_input_names_the_parameter(name, call):
    with pytest.raises(InputError, match=name):
        call()


def test_a_frontier_without_a_feasible_point_says_why():
    survivals = ac.drawn_survivals(0.75, 0.23, 5)
    schedule = ac.best_budget(survivals, np.array([10.0, 20.0]), linear)
    with pytest.raises(NotPossible, match="no point of the frontier"):
        ac.feasible(schedule, np.array([10.0, 20.0]), most_rows=5)
