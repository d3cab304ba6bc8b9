"""Bits on this machine and on a real card, what breaks a repeatable answer, and the figures of chapter 17."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, UserError, load_facts
from inside_deepinfer.figures import determinism
from inside_deepinfer.numerics import machine_bits, sampling, what_breaks
from inside_deepinfer.numerics.card_bits import bits_table, invariant_time_ratio, time_ratio
from inside_deepinfer.numerics.products import fixed_order_product, library_product, split_sum
from inside_deepinfer.numerics.sampling import sample

CASE = machine_bits.make_case(24, 640, 64, seed=5)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), pieces=st.integers(1, 24))
def test_the_invariant_path_gives_the_same_bits_and_ids_for_any_order_and_any_batches(seed, pieces):
    logits, ids = machine_bits.answer(CASE, np.arange(24), 1, fixed_order_product)
    other_logits, other_ids = machine_bits.answer(CASE, np.random.default_rng(seed).permutation(24), pieces, fixed_order_product)
    assert not machine_bits.ulps(logits, other_logits).any() and np.array_equal(ids, other_ids)


def test_a_library_answer_is_right_to_rounding():
    """Whatever bits this machine's library gives, the values agree; whether bits move is measured in the chapter, not asserted."""
    one, _ = machine_bits.answer(CASE, np.arange(24), 1, library_product)
    other, _ = machine_bits.answer(CASE, np.arange(24)[::-1], 7, library_product)
    assert np.allclose(one, other, atol=1e-4)
    assert np.abs(machine_bits.row_changes(library_product, CASE, [1, 2, 24])[0]).max() == 0


def test_ulps():
    one = np.array([1.0, -1.0, 0.0, 3.0], dtype=np.float32)
    other = np.array([np.nextafter(np.float32(1), np.float32(2)), -1.0, -0.0, np.float32(3)], dtype=np.float32)
    assert machine_bits.ulps(one, other).tolist() == [1, 0, 0, 0]


def test_share_of_draws_that_differ():
    """Moving a quarter from the first to the second of two tokens changes a quarter of the draws."""
    assert machine_bits.share_of_draws_that_differ(np.array([0.75, 0.25]), np.array([0.5, 0.5])) == pytest.approx(0.25)
    same = np.random.default_rng(1).dirichlet(np.ones(30))
    assert machine_bits.share_of_draws_that_differ(same, same) == 0


def test_a_draw_depends_on_the_row_it_had_in_its_step():
    p = np.random.default_rng(2).dirichlet(np.ones(40), size=24)
    fixed, again = what_breaks.sample_in_steps(p, 3, [6] * 4), what_breaks.sample_in_steps(p, 3, [6] * 4)
    varied = what_breaks.sample_in_steps(p, 3, [6, 4, 6, 6, 2])
    assert np.array_equal(fixed, again)
    assert np.array_equal(fixed[:10], varied[:10]) and not np.array_equal(fixed, varied)
    assert np.array_equal(what_breaks.sample_in_steps(p, 3, [1] * 24), sample(p, np.full(24, 3), np.arange(24)))


def test_counters_of_a_step():
    """deepinfer-sdist: 10,000,019 per further row of a step."""
    assert what_breaks.counters([2, 1, 2]).tolist() == [0, 10_000_019, 2, 3, 10_000_022]


def test_where_copies_stand_changes_the_bits_of_a_sum():
    outputs = np.random.default_rng(4).normal(size=(6, 512)).astype(np.float32)
    one, other = what_breaks.combine(outputs, [0, 0, 1, 2, 2, 3]), what_breaks.combine(outputs, [0, 1, 1, 2, 3, 3])
    assert machine_bits.ulps(one, other).any() and np.allclose(one, other, atol=1e-5)
    assert np.array_equal(one, what_breaks.combine(outputs, [5, 5, 6, 7, 7, 8]))  # the same groups elsewhere


@pytest.mark.parametrize(("match", "call"), [
    ("rows_per_step", lambda: what_breaks.counters([0, 1])),
    ("rows_per_step", lambda: what_breaks.sample_in_steps(np.ones((3, 2)), 1, [1, 1])),
    ("gpu", lambda: what_breaks.combine(np.ones((2, 3)), [0])),
    ("inner", lambda: machine_bits.make_case(2, 0, 2)),
    ("batches", lambda: machine_bits.row_changes(library_product, CASE, [25])),
])
def test_bad_input_names_the_parameter(match, call):
    with pytest.raises(InputError, match=match):
        call()


# ---- the real card --------------------------------------------------------------------------------------------------------

def test_the_card_changed_bits_and_the_fixed_order_did_not():
    """data/measured/gpu/h200/batch_bits.json and the second run of it."""
    for run in ("h200", "h200-run2"):
        changed = bits_table(run)["values_changed"]
        assert changed["fixed order"].max() == 0 and changed["library"].max() > 0
    assert catalogue.value("first_batch_that_changes") == 128 and catalogue.value("product_values") == 2304
    assert catalogue.value("fixed_values_changed") == 0 and catalogue.value("library_values_changed") == 6


def test_the_price_lies_between_its_ends():
    low, high = catalogue.value("invariant_time_ratio_low"), catalogue.value("invariant_time_ratio_high")
    ratios = catalogue.value("invariant_time_ratio", batch=np.array([1, 8, 60, 400, 4096]))
    assert np.all((ratios >= low) & (ratios <= high)) and low < 1 < high


def test_the_price_between_two_measured_batches_is_the_larger_of_theirs():
    """h200/batch_bits.json: 20.1728 / 13.3408 = 1.5121 at 256 rows and 0.947 at 512; (0.5121 * 3.1202 ms) / 7.4991 ms = 21.3 %."""
    found = invariant_time_ratio("h200", np.array([288.0, 256.0, 512.0, 511.0, 0.5, 1e6]))
    ratio = time_ratio("h200")
    assert found == pytest.approx([1.5121, 1.5121, 0.9475, 1.5121, ratio.iloc[0], ratio.iloc[-1]], abs=1e-4)
    assert catalogue.value("rows_per_step") == 288 and catalogue.value("invariant_time_ratio") == pytest.approx(1.5121, abs=1e-4)
    assert catalogue.value("invariance_cost") == pytest.approx(0.2131, abs=1e-4)


def test_the_sums_are_told_apart_in_the_table():
    sums = [np.float32(135.05731), np.nextafter(np.float32(135.05731), np.float32(200))]
    table = determinism.sums_in_pieces(np.ones(4, dtype=np.float32), (1, 2), sums).layout.meta["table"]
    assert len({row[1] for row in table["rows"]}) == 2


def test_an_unknown_run_says_which_there_are():
    with pytest.raises(UserError, match="h200"):
        bits_table("a100")


def test_figures():
    values = np.random.default_rng(6).normal(size=500).astype(np.float32)
    pieces = (1, 2, 4)
    made = [determinism.sums_in_pieces(values, pieces, [float(split_sum(values, count)) for count in pieces]),
            determinism.row_in_batches(machine_bits.row_changes(library_product, CASE, [1, 2, 24]), [1, 2, 24], "this machine"),
            determinism.card_bits("h200"), determinism.card_price("h200")]
    for figure in made:
        meta = figure.layout.meta
        assert meta["alt"].endswith(".") and meta["table"]["rows"] and set(meta["sources"]) <= set(load_facts().sources)
    assert len(made[1].frames) == 3
    assert "from a batch of 128 on" in made[2].layout.meta["alt"]


def test_facts_of_the_sampler_are_those_of_the_code():
    facts = load_facts()
    assert (facts.number("sampling.bits"), facts.number("sampling.streams"), facts.number("sampling.row_stride")) == (
        sampling.FIXED_POINT_BITS, sampling.STREAMS, what_breaks.ROW_STRIDE)
