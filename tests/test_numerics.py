"""Bounded replay, rings, batch invariance and deterministic sampling, on real arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer.facts import InputError
from inside_deepinfer.numerics import products, replay, rings, sampling

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def toy():
    return replay.make_stack(layers=8, window=6), RNG.normal(size=(60, 16))


def test_mask_equals_compact_to_the_last_bit_on_kept_rows(toy):
    stack, tokens = toy
    for keep in (1, 6, 12, 60):
        mask, compact = replay.run(stack, tokens, "mask", keep), replay.run(stack, tokens, "compact", keep)
        assert compact.shape == (keep, 16)
        assert np.array_equal(mask[-keep:], compact)


def test_bounded_replay_is_an_approximation_that_vanishes_when_everything_is_kept(toy):
    stack, tokens = toy
    assert replay.largest_error(stack, tokens, keep=60) == 0
    assert replay.largest_error(stack, tokens, keep=8) > 1e-6


def test_keeping_the_decoder_receptive_field_is_exact(toy):
    """4 decoder layers x (6 - 1) positions and the last one: nothing older can reach it."""
    stack, tokens = toy
    field = 4 * (6 - 1) + 1
    assert replay.largest_error(stack, tokens, keep=field) == 0
    assert replay.largest_error(stack, tokens, keep=field - 1) > 0


@pytest.mark.parametrize(("name", "call"), [
    ("window", lambda: replay.run(replay.make_stack(4, 9), RNG.normal(size=(8, 16)))),
    ("keep", lambda: replay.run(replay.make_stack(4, 3), RNG.normal(size=(8, 16)), "mask", 9)),
    ("mode", lambda: replay.run(replay.make_stack(4, 3), RNG.normal(size=(8, 16)), "fast")),
    ("layers", lambda: replay.make_stack(3, 3)),
    ("ring", lambda: rings.corrupted_reads(0, 4, 1, 5)),
])
def test_bad_input_names_the_parameter(name, call):
    with pytest.raises(InputError, match=name):
        call()


@pytest.mark.parametrize(("ring", "clean"), [(131, False), (132, False), (133, True), (134, True)])
def test_ring_of_133_is_the_shortest_clean_one_for_window_128_and_5_drafts(ring, clean):
    """deepinfer-sdist, section 2: rings of 131 and 132 corrupt windows, 133 and 134 do not."""
    wrong = rings.corrupted_reads(ring, window=128, draft_length=5, steps=400)
    assert (wrong.sum() == 0) == clean
    assert rings.shortest_ring(128, 5) == 133 and rings.released_ring(128, 5) == 134


@settings(max_examples=25)
@given(window=st.integers(1, 20), drafts=st.integers(0, 6))
def test_shortest_ring_is_clean_and_one_less_is_not(window, drafts):
    shortest = rings.shortest_ring(window, drafts)
    assert rings.corrupted_reads(shortest, window, drafts, 60).sum() == 0
    if shortest > 1:
        assert rings.corrupted_reads(shortest - 1, window, drafts, 60).sum() > 0


def test_fixed_order_product_keeps_every_bit_of_a_row():
    x, w = (RNG.normal(size=shape).astype(np.float32) for shape in ((65, 640), (640, 96)))
    batches = [1, 2, 3, 8, 17, 64, 65]
    assert not products.values_changed(products.fixed_order_product, x, w, batches).any()
    assert np.allclose(products.fixed_order_product(x, w), x @ w, atol=1e-3)


def test_order_of_summation_changes_bits():
    values = RNG.normal(size=4096).astype(np.float32)
    sums = {products.split_sum(values, parts).tobytes() for parts in (1, 2, 4, 8, 16)}
    assert len(sums) > 1
    assert np.isclose(products.split_sum(values, 7), values.astype(np.float64).sum(), atol=1e-2)


def test_sampling_is_the_same_for_any_batch_order_and_company():
    p = RNG.dirichlet(np.ones(50), size=32)
    seeds, positions = np.arange(32) * 7919, RNG.integers(0, 1000, 32)
    together = sampling.sample(p, seeds, positions)
    order = RNG.permutation(32)
    assert np.array_equal(sampling.sample(p[order], seeds[order], positions[order]), together[order])
    for row in range(32):
        assert sampling.sample(p[row:row + 1], seeds[row:row + 1], positions[row:row + 1])[0] == together[row]


def test_the_usual_sampler_depends_on_the_company():
    p = RNG.dirichlet(np.ones(50), size=32)
    first = sampling.stateful_sample(p, np.random.default_rng(1))
    second = sampling.stateful_sample(p[::-1], np.random.default_rng(1))[::-1]
    assert not np.array_equal(first, second)


def test_sampling_follows_the_probabilities():
    """40,000 draws against four probabilities: within five standard errors."""
    p = np.array([0.5, 0.25, 0.15, 0.1])
    n = 40_000
    ids = sampling.sample(np.tile(p, (n, 1)), np.full(n, 11), np.arange(n))
    share = np.bincount(ids, minlength=4) / n
    assert np.all(np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / n))


def test_fixed_point_sums_do_not_depend_on_order():
    weights = sampling.fixed_point(RNG.dirichlet(np.ones(1000)))
    assert weights.sum() == weights[RNG.permutation(1000)].sum()


def test_fixed_point_is_the_probability_times_2_31_less_1():
    """floor(0.5 * 2147483647) = 1073741823; the sum of a row fits 31 bits, whatever the vocabulary."""
    assert sampling.fixed_point(np.array([0.5, 0.25, 0.25])).tolist() == [1_073_741_823, 536_870_911, 536_870_911]
    assert sampling.fixed_point(np.full(129_280, 1 / 129_280)).sum() < 2**31
    assert sampling.fixed_point(np.array([1 - 2.0**-33, 2.0**-33]))[1] == 0


def test_a_token_without_probability_is_never_drawn():
    p = np.array([[0.0, 1.0, 0.0]] * 500)
    assert set(sampling.sample(p, np.zeros(500, int), np.arange(500))) == {1}


@pytest.mark.parametrize("bad", [[[0.5, -0.1]], [[np.nan, 1.0]], [[0.0, 0.0]], [[1.0, 1.0]], [[0.5, 0.4]], [[]]])
def test_bad_probabilities_are_refused(bad):
    with pytest.raises(InputError):
        sampling.sample(np.array(bad), np.array([1]), np.array([1]))
