"""Chapters 9 and 10: their conclusions, their numbers by hand, and the pages Prefill frontier and Speculation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from inside_deepinfer import catalogue
from inside_deepinfer.cli import app
from inside_deepinfer.explorer import state, view
from inside_deepinfer.explorer.pages import page_of
from inside_deepinfer.facts import InputError, NotPossible, UserError
from inside_deepinfer.figures import frontier_movable
from inside_deepinfer.figures import speculation as figures
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving import speculation as serving
from inside_deepinfer.serving.acceptance import drawn_survivals, speculate
from inside_deepinfer.serving.prefill_queue import SEED, mean_and_p99, simulate
from inside_deepinfer.serving.prefill_queue import draw as drawn
from inside_deepinfer.studies import prefill_curves, speculation

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
CHAPTERS = ("prefill-frontier", "speculation")
RUN = CliRunner()


def shown(slug: str, query: str) -> dict:
    page = page_of(slug)
    return json.loads(view.results(page, state.read(query, page)))


@pytest.mark.parametrize(("name", "value", "source"), [
    ("prefill_held_bytes", (384 / 4 + 4) * 40 * 18.8006e6 + 9.848e9 + 6.14e9 + 0.9e9, "config, 4 copies, parts of chapter 6"),
    ("h100_first_token_gain", 14.843 / 0.765, "report on 8 H100"), ("h100_identity", 1 / 0.03, "its hit rate of 97.0 %"),
    ("prefill_throughput_cached", 60_000 / 0.04, "the identity"), ("network_load", 1.0, "400 Gbit/s carry far more at 96 % hits"),
    ("predecessor_tokens", 3.247, "the fit on V4-Flash (preview)"),
])
def test_numbers_of_the_two_chapters(name, value, source):
    assert catalogue.value(name) == pytest.approx(value, rel=0.01), source


def test_the_network_ends_the_frontier_before_the_cards_do():
    """50 GB/s per machine of eight are 7.02 million cached tokens per second and card at 890 bytes (config, article 001)."""
    load = catalogue.value("network_load", hit_rate=0.995)
    assert load == pytest.approx(50e9 / 8 / 890 * 0.005 / 0.995 / catalogue.value("prefill_capacity", hit_rate=0.995), rel=0.01)
    assert catalogue.value("network_load", hit_rate=0.0) == 1
    curve = prefill_curves.frontier(make_scenario(changes={"h": 0.995}))
    assert 0 < curve.load.size < 8 and np.all(curve.load < load)
    assert catalogue.value("load_at_p99_target", hit_rate=0.995) <= load
    with pytest.raises(NotPossible, match="network"):
        catalogue.value("first_token_mean", hit_rate=0.995, prefill_load=0.9)
    assert "network" in shown("prefill-frontier", "h=0.995&pl=0.9")["finding"]["text"]


def test_weights_that_do_not_fit_are_the_reason_and_no_number():
    """92 GB of weights on each of four cards; H100 has 80 GB (data sheet)."""
    with pytest.raises(NotPossible, match="weights"):
        catalogue.value("prefill_capacity", card=np.array(["gb200", "h100"]))
    found = shown("prefill-frontier", "c=h100")
    assert "weights" in found["finding"]["reason"] and all("weights" in part["reason"] for part in found["figures"])
    done = RUN.invoke(app, ["frontier", "prefill", "--set", "c=h100"])
    assert done.exit_code != 0


# ---- the queue -------------------------------------------------------------------------------------------------------------

def plainly(prefill, load: float, count: int, seed: int) -> np.ndarray:
    """One step after the other, one prompt after the other: what ``simulate`` must agree with."""
    arrival, size = drawn(prefill, load, count, seed)
    left, end, now = size.copy(), np.zeros(count), 0.0
    while (left > 0).any():
        most, ready = 0.0, []
        for rank in range(prefill.gpus):
            room, place = prefill.chunk, rank
            while place < count and arrival[place] <= now and room > 0:
                part = min(left[place], room)
                if part > 0:
                    left[place] = 0.0 if part >= left[place] - 1e-6 else left[place] - part
                    room -= part
                    if left[place] == 0:
                        ready.append(place)
                place += prefill.gpus
            most = max(most, prefill.chunk - room)
        if most == 0:
            now = arrival[left > 0].min()
            continue
        now += prefill.fixed + prefill.per_token * most
        end[ready] = now
    return (end - arrival + prefill.fetch_per_token * size)[count // 20:]


@pytest.mark.parametrize("changes", [{}, {"new_tokens": 40_000.0}, {"burst": 6.0}, {"gpus": 1, "new_tokens": 100_000.0}], ids=str)
@pytest.mark.parametrize("load", [0.2, 0.9])
def test_joined_steps_give_the_same_times_as_single_ones(changes, load):
    queue = replace(prefill_curves.queue_of(make_scenario()), **changes)
    assert simulate(queue, load, 300, 3) == pytest.approx(plainly(queue, load, 300, 3), rel=1e-6)


def test_fewer_prompts_are_the_first_of_more():
    queue = prefill_curves.queue_of(make_scenario())
    for one, two in zip(drawn(queue, 0.5, 100), drawn(queue, 0.5, 400), strict=True):
        assert np.array_equal(one, two[:100])


def test_the_drawn_prompts_stand_for_many_more():
    """The mean within 5 % and the tail within 10 % of 100,000 prompts, at the loads where the targets are met."""
    queue = prefill_curves.queue_of(make_scenario())
    for load in (0.7, 0.78):
        few, many = mean_and_p99(queue, load, 5000, SEED), mean_and_p99(queue, load, 100_000, 99)
        assert few[0] == pytest.approx(many[0], rel=0.05) and few[1] == pytest.approx(many[1], rel=0.10)


def test_the_operating_point_lies_on_its_curve():
    curve = prefill_curves.frontier(make_scenario())
    for load, mean, tail in zip(curve.load[2:].tolist(), curve.mean[2:], curve.p99[2:], strict=True):
        assert catalogue.value("first_token_mean", prefill_load=load) == pytest.approx(mean)
        assert catalogue.value("first_token_p99", prefill_load=load) == pytest.approx(tail)


@pytest.mark.parametrize("load", ["1", "1.2"])
def test_beyond_saturation_page_and_command_say_unstable(load):
    found = shown("prefill-frontier", f"pl={load}")
    assert "unstable" in found["finding"]["text"]
    waits = [card for card in found["numbers"] if card["name"].startswith("first_token")]
    assert len(waits) == 2 and all("unstable" in card["reason"] for card in waits)
    assert "this scenario" not in [trace.get("name") for trace in found["figures"][0]["data"]]
    data = json.loads(RUN.invoke(app, ["frontier", "prefill", "--json", "--set", f"pl={load}"]).stdout)
    assert "unstable" in data["notice"] and data["operating_point"] == {"load": float(load)}
    steady = json.loads(RUN.invoke(app, ["frontier", "prefill", "--json"]).stdout)
    assert not steady["notice"] and steady["operating_point"]["first_token_p99"] < 1


# ---- speculation -----------------------------------------------------------------------------------------------------------

def test_one_guess_at_a_time_is_the_textbook_rule():
    """Law after token 0: draft surely 0, target half 0 and half 1; half of the guesses are corrected to 1."""
    target, draft = np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    written = speculate(target, draft, 1, 2, 40_000, np.random.default_rng(0))
    shares = np.bincount(written @ [2, 1], minlength=4) / 40_000
    assert shares == pytest.approx([0.25, 0.25, 0.0, 0.5], abs=0.012)


def test_the_tables_of_quantiles_is_the_beta_law():
    """Mean and spread of single acceptances are those asked for, within the error of 10,000 draws."""
    kept = serving.conditional(drawn_survivals(0.7, 0.2, 5).chance)
    assert kept.mean() == pytest.approx(0.7, abs=0.01) and kept.std() == pytest.approx(0.2, abs=0.01)


def test_the_optimum_of_the_objective_is_the_schedule():
    for batch in (1, 60, 500):
        scenario = make_scenario(changes={"b": batch})
        seen = speculation.objective(scenario)
        assert seen.rows[seen.best] == pytest.approx(catalogue.value("scheduled_rows", scenario))
        assert seen.tokens[seen.best] == pytest.approx(catalogue.value("scheduled_tokens", scenario))
        assert np.all(seen.padded >= seen.time * (1 - 1e-9)), "padding never shortens a step"
    run = speculation.by_load(make_scenario(changes={"b": 77}))
    place = int(np.searchsorted(run.loads, 77))
    assert run.loads[place] == 77 and np.all(np.diff(run.loads) > 0)
    assert run.best.rows[place] == pytest.approx(catalogue.value("scheduled_rows", batch=77))


def test_rows_at_one_load_or_at_many_cost_the_same():
    cost = speculation.kept_cost((30.0, 60.0), 0.0058, *speculation._inputs(make_scenario()))
    rows = np.array([1.0, 2.2, 4.8])
    both = cost(cost.sequences[:, None] * rows[None, :])
    assert both == pytest.approx(cost(np.array([[30.0, 66.0, 144.0], [60.0, 132.0, 288.0]]) + np.array([[0.0], [1e-5]])), rel=1e-5)
    assert both[1] == pytest.approx([cost(cost.sequences * one)[1] for one in rows])


def test_what_does_not_fit_has_no_schedule():
    with pytest.raises(NotPossible, match="fit"):
        catalogue.value("scheduled_drafts", batch=4000, context=1_000_000)
    found = shown("speculation", "b=4000&ctx=1000000")
    assert "fit" in found["finding"]["reason"] and all("fit" in part["reason"] for part in [*found["numbers"], *found["figures"]])
    run = speculation.by_load(make_scenario(changes={"ctx": 1_000_000}))
    assert run.loads[-1] <= catalogue.value("largest_batch", context=1_000_000)


@pytest.mark.parametrize("changes", [{}, {"b": 1}, {"am": 0.6, "as": 0.2}], ids=str)
def test_the_objective_is_drawn_for_any_scenario(changes):
    scenario = make_scenario(changes=changes)
    made = figures.objective(scenario)
    assert made.layout.meta["alt"].endswith(".") and len(draw(figures.objective, scenario, "published")["data"]) == len(made.data)


def test_the_movable_objective_keeps_its_axes():
    made = frontier_movable.objective_by_batch(make_scenario())
    assert len(made.frames) == 9 and made.layout.sliders[0].active == 4 and made.layout.yaxis.range[0] == 0


@pytest.mark.parametrize("change", ["am=1.2", "am=-0.1", "b=0", "as=0.9"])
def test_bad_speculation_input_is_refused_by_command_and_page(change):
    name, given = change.split("=")
    assert RUN.invoke(app, ["value", "schedule_gain", "--set", change]).exit_code != 0
    with pytest.raises(InputError):
        make_scenario(changes={name: given})
    notices = state.read(change, page_of("speculation")).notices
    assert notices and name in str(notices[0])


def test_a_spread_that_leaves_no_room_says_so():
    with pytest.raises(UserError, match="spread"):
        catalogue.value("scheduled_drafts", acceptance_mean=0.9, acceptance_spread=0.45)
    assert "spread" in shown("speculation", "am=0.9&as=0.45")["finding"]["reason"]


@pytest.mark.filterwarnings("error")
def test_confidence_near_one_overflows_nothing():
    """Mean 0.98 and spread 0.13: odds too large for exp."""
    assert 0 <= catalogue.value("miscalibration_loss", acceptance_mean=0.98, acceptance_spread=0.13) < 0.01


@pytest.mark.parametrize(("slug", "query", "name"), [
    ("prefill-frontier", "sd=2", "prefill_capacity"), ("prefill-frontier", "df=bf16", "prefill_capacity"),
    ("speculation", "cf=mxfp4", "scheduled_rows"), ("speculation", "sb=1e9&sd=8", "schedule_gain")])
def test_the_link_moves_both_pages(slug, query, name):
    page = page_of(slug)
    assert not state.read(query, page).notices
    values = [next(card for card in shown(slug, given)["numbers"] if card["name"] == name) for given in ("", query)]
    assert values[0]["big"] != values[1]["big"]


@pytest.mark.parametrize("name", ["scheduled_drafts", "schedule_gain", "late_budget_loss"])
def test_the_schedule_follows_the_efficiencies_of_the_scenario(name):
    assert catalogue.value(name, efficiencies="measured") != catalogue.value(name, efficiencies="datasheet")
