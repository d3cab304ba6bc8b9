"""Published curves: errors stay within what the book prints (DSpark paper, figures 2 and 8 and table 1)."""

import numpy as np
import pytest

from inside_deepinfer.serving import production
from inside_deepinfer.serving.validation import validate


@pytest.fixture(scope="module")
def by_id():
    return {entry.id: entry for entry in validate()}


@pytest.mark.parametrize(("name", "limit"), [
    ("v4_flash_mtp1", 0.01), ("v4_pro_mtp1", 0.03), ("v4_flash_dspark5", 0.03), ("v4_pro_dspark5", 0.06),
    ("v4_flash_budget", 0.35), ("v4_pro_budget", 0.35), ("accepted_length", 0.01)])
def test_mean_error_is_within_the_stated_limit(by_id, name, limit):
    entry = by_id[name]
    assert entry.mean_abs_error <= limit
    assert entry.role == ("fit" if name.endswith("mtp1") else "test")
    assert len(entry.points) >= 8


def test_acceptance_of_both_models_agrees_though_each_was_fitted_alone(by_id):
    flash, pro = by_id["v4_flash_dspark5"].fitted, by_id["v4_pro_dspark5"].fitted
    assert flash["mean"] == pytest.approx(pro["mean"], abs=0.05) and flash["spread"] == pytest.approx(pro["spread"], abs=0.05)


def test_two_numbers_are_enough_for_flash_but_not_for_pro():
    """The third term is what the budget of V4-Pro needs: with it the miss halves."""
    for model, gain in (("flash", 0.9), ("pro", 0.6)):
        full, short = production.predict(model), production.predict(model, saturating=False)
        misses = [np.nanmean(np.abs(run.schedule.rows - run.budget)) for run in (full, short)]
        assert (misses[0] < gain * misses[1]) == (model == "pro")
