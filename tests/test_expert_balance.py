"""Expert balance: the policy's promises, on generated routing and on real routing counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer.facts import InputError
from inside_deepinfer.serving import expert_balance as eb


def made(seed: int = 0, steps: int = 12, layers: int = 2, experts: int = 24, **more) -> np.ndarray:
    return eb.generated_loads(steps, layers, experts, 4096, **(dict(spread=0.6, steadiness=50.0) | more), seed=seed)


def sum_of_peaks(loads: np.ndarray, copies: np.ndarray) -> np.ndarray:
    return (loads / copies).max(axis=2).sum(axis=0)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_peak_never_rises_when_a_copy_is_added(seed):
    loads = made(seed)
    sums = np.array([sum_of_peaks(loads, eb.replicate(loads, extra, gpus=8)) for extra in range(0, 12)])
    assert np.all(np.diff(sums, axis=0) <= 1e-9)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), gpus=st.sampled_from([2, 4, 8]), per_gpu=st.integers(0, 2), by=st.sampled_from(["peaks", "total"]))
def test_placement_is_never_worse_than_contiguous_in_sample_and_copies_stand_apart(seed, gpus, per_gpu, by):
    loads = made(seed)
    new = eb.rebalance(loads, gpus, gpus * per_gpu, by)
    old = eb.contiguous(2, 24, gpus, gpus * per_gpu)
    assert np.all(eb.peak_sums(loads, new) <= eb.peak_sums(loads, old) + 1e-9)
    for layer in range(2):
        assert np.array_equal(np.bincount(new.gpu[layer], minlength=gpus), np.full(gpus, (24 + gpus * per_gpu) // gpus))
        pairs = set(zip(new.expert[layer], new.gpu[layer], strict=True))
        assert len(pairs) == new.expert.shape[1], "two copies of one expert on one GPU"
        assert np.array_equal(np.bincount(new.expert[layer], minlength=24), new.copies[layer])


def test_best_split_by_hand():
    """Copies of expert 0 on both GPUs, 4 and 2 rows beside them: 14 rows are 7 on each, but 1 and 9 rows leave 9 on the second."""
    placement = eb.Placement(np.array([[0, 1, 0, 2]]), np.array([[0, 0, 1, 1]]), np.array([[2, 1, 1]]), 2)
    loads = np.array([[[8.0, 4.0, 2.0]], [[3.0, 1.0, 9.0]], [[3.0, 4.0, 4.0]]])
    assert eb.best_split(loads, placement)[:, 0] == pytest.approx([7.0, 9.0, 5.5])


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), per_gpu=st.integers(0, 2))
def test_best_split_lies_between_the_mean_and_the_even_split(seed, per_gpu):
    loads = made(seed, steps=3)
    for placement in (eb.rebalance(loads, 8, 8 * per_gpu), eb.ring(2, 24, 8, per_gpu)):
        even, best = eb.gpu_loads(loads, placement), eb.best_split(loads, placement)
        assert np.all(best <= even.max(axis=2) * (1 + 1e-9)) and np.all(best >= even.mean(axis=2) * (1 - 1e-9))


def test_a_ring_chains_all_gpus():
    """Six experts on three GPUs with one copy each: GPU 0 holds 0 and 1 and the first expert of GPU 1."""
    placement = eb.ring(1, 6, 3, 1)
    assert placement.expert.reshape(3, 3).tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 0]]
    assert placement.copies.tolist() == [[2, 1, 2, 1, 2, 1]] and placement.gpu.tolist() == [[0, 0, 0, 1, 1, 1, 2, 2, 2]]
    for experts, gpus, per_gpu in ((6, 4, 1), (6, 3, 3), (6, 1, 1)):
        with pytest.raises(InputError):
            eb.ring(1, experts, gpus, per_gpu)


def test_no_tokens_are_lost():
    loads = made(3)
    assert eb.gpu_loads(loads, eb.rebalance(loads, 8, 8)).sum() == pytest.approx(loads.sum())


def test_hand_computed_case():
    """Two GPUs, four experts with loads 8, 4, 3, 1: {8} and {4, 3, 1} need two slots each, so 8+1 against 4+3."""
    loads = np.array([[[8.0, 4.0, 3.0, 1.0]]])
    placed = eb.rebalance(loads, 2)
    assert sorted(eb.gpu_loads(loads, placed)[0, 0]) == [7.0, 9.0]
    assert eb.slowest_over_mean(loads, placed) == pytest.approx(9 / 8)
    assert eb.slowest_over_mean(loads, eb.contiguous(1, 4, 2)) == pytest.approx(12 / 8)


def test_one_copy_halves_the_busiest_expert():
    copies = eb.replicate(np.array([[[8.0, 4.0, 3.0, 1.0]]]), 2, gpus=2)
    assert copies.tolist() == [[2, 2, 1, 1]]


def test_full_copies_everywhere_balance_perfectly():
    loads = made(1, experts=4)
    assert eb.slowest_over_mean(loads, eb.rebalance(loads, 4, 12)) == pytest.approx(1.0)


def test_held_out_steps_are_worse_than_the_steps_it_was_fitted_on():
    loads = made(5, steps=60, experts=96, steadiness=5.0)
    placed = eb.rebalance(loads[:30], 16, 16)
    assert eb.slowest_over_mean(loads[:30], placed) < eb.slowest_over_mean(loads[30:], placed)


def test_replay_improves_after_its_first_rebalance():
    loads = made(7, steps=80, experts=48)
    run = eb.replay(loads, 8, 8, window=20, interval=40)
    assert run.moves == 2
    assert run.slowest_over_mean[10:].mean() < run.slowest_over_mean[:10].mean()


@pytest.mark.parametrize(("name", "call"), [
    ("redundant", lambda: eb.rebalance(made(), 7)),
    ("redundant", lambda: eb.rebalance(made(experts=4), 2, 8)),
    ("gpus", lambda: eb.rebalance(made(), 0)),
    ("loads", lambda: eb.rebalance(np.zeros((2, 2, 4)), 2)),
    ("loads", lambda: eb.rebalance(np.array([[[1.0, -1.0]]]), 2)),
    ("loads", lambda: eb.rebalance(np.array([[[1.0, np.nan]]]), 2)),
    ("window", lambda: eb.replay(made(), 8, 8, window=9, interval=4)),
    ("steadiness", lambda: made(steadiness=0.0)),
])
def test_bad_input_names_the_parameter(name, call):
    with pytest.raises(InputError, match=name):
        call()
