"""Chapter 8 and the page Decode frontier: conclusions, numbers beside their sources, what cannot exist, the table of the peer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from inside_deepinfer import catalogue
from inside_deepinfer.cli import app
from inside_deepinfer.explorer import session, state, view
from inside_deepinfer.explorer.pages.decode_frontier import PAGE
from inside_deepinfer.facts import InputError, NotPossible, load_facts
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving.feasible import NAMES
from inside_deepinfer.serving.production import mean_abs_error, predict
from inside_deepinfer.serving.step_budget import PARTS
from inside_deepinfer.studies import decode_curves
from inside_deepinfer.studies.prepared import sweep

CHAPTER = (Path(__file__).parent.parent / "notebooks" / "decode-frontier.md").read_text("utf-8")
RUN = CliRunner()


def page(query: str) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(session.answer(PAGE, json.dumps(dict(id=1, op="view", query=query))))
    return reply["view"]


def card(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in found["numbers"] if entry["name"] == f"fitting_{name}")


# ---- the chapter -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "value", "error", "source"), [
    ("article_step_time", 60 * 3.21 / 14_466, 1e-9, "article 000: sequences, tokens per step and benchmark"),
    ("throughput_per_decode_gpu", 14_466, 0.03, "article 000, benchmark"),
    ("modelled_user_speed", 230, 0.06, "articles 000 and 004, beside 14,000"),
    ("throughput_per_cluster_gpu", 14_466 / 2, 0.03, "the same over as many prefill GPUs"),
    ("dynamo_per_cluster_gpu", 694.7, 1e-9, "Dynamo recipe, GB200 disaggregated"),
    ("dynamo_per_decode_gpu", 8336 / 4, 1e-9, "Dynamo recipe: 8,336 token/s over 4 decode GPUs"),
    ("dynamo_user_speed", 59.86, 1e-9, "Dynamo recipe, GB200 disaggregated"),
    ("lone_rest_gb300", 7.687e-3 - 2.730e-3, 1e-3, "InferenceX, less the counted step of six rows on four GB300"),
    ("lone_rest_h100", 7.84e-3 - 2.149e-3, 1e-3, "H100 report, less the counted step of one row on eight H100"),
    ("v4_flash_null_error", 0.0397, 0.01, "a power law of the load fitted to DSpark-5 over MTP-1 (review, by hand)"),
    ("v4_pro_null_error", 0.0195, 0.01, "the same; it beats ours"),
    ("v4_flash_budget_slope", 0.914 / 0.638, 0.02, "slopes against the logarithm of the load (review, by hand)"),
    ("v4_pro_budget_slope", 0.758 / 0.539, 0.02, "the same"),
    ("v4_pro_expert_rows", 80.5, 0.01, "DSpark paper, figure 8: distinct experts of EP64 would saturate near one row per GPU"),
    ("lone_step_gb300", 3.51 / 456.6, 1e-9, "InferenceX: 3.51 tokens per step, 456.6 token/s for one request"),
    ("v4_flash_mtp1_error", 0.002, 0.5, "DSpark paper, figure 8: a scratch fit of the same form gave 0.2 %"),
    ("v4_pro_dspark5_error", 0.029, 0.5, "DSpark paper, figure 8: a scratch fit gave 2.9 %"),
])
def test_numbers_beside_their_sources(name, value, error, source):
    assert catalogue.value(name) == pytest.approx(value, rel=error), source


def test_the_third_term_is_what_the_scratch_fit_lacked():
    """A fit of fixed time and time per row gave 0.68 row for V4-Pro (scratch fit, issue 4); the third term halves it."""
    two, three = predict("pro", saturating=False), predict("pro")
    miss = [float(np.nanmean(np.abs(run.schedule.rows - run.budget))) for run in (two, three)]
    assert miss[0] == pytest.approx(0.68, abs=0.1) and miss[1] < 0.35 < miss[0]
    assert mean_abs_error(three.mtp_model, three.mtp) < 0.3 * mean_abs_error(two.mtp_model, two.mtp)
    assert abs(three.mean - predict("flash").mean) < abs(three.mean - two.mean)


def test_the_parts_of_a_curve_are_those_of_the_step():
    curve = decode_curves.frontier(make_scenario(), batch=np.array([1.0, 60.0, 900.0]))
    assert set(curve.parts) == set(PARTS)
    for name, times in curve.parts.items():
        assert times == pytest.approx([catalogue.value(name, batch=batch) for batch in (1, 60, 900)], rel=1e-12), name


@pytest.mark.parametrize("changes", [{}, {"b": 1}, {"ctx": 300_000, "c": "gb300"}, {"ep": 128, "un": 0.001}], ids=str)
def test_what_a_page_keeps_gives_the_same_curve_and_band(changes):
    """Within ``catalogue.shared`` the curve starts from numbers that the cards computed; the numbers are the same."""
    batch = np.array([1.0, 20.0, 60.0, 300.0])
    apart = make_scenario(changes=changes)
    curve, around = decode_curves.frontier(apart, batch=batch), decode_curves.band(apart, "published", batch)
    scenario = make_scenario(changes=changes)
    with catalogue.shared(scenario, "published"):
        catalogue.evaluate(["decode_step_time", "throughput_per_cluster_gpu", "two_numbers"], scenario)
        again, wide = decode_curves.frontier(scenario, batch=batch), decode_curves.band(scenario, "published", batch)
    assert np.array_equal(curve.step_time, again.step_time) and curve.regions == again.regions
    assert np.array_equal(around.slow, wide.slow) and np.array_equal(around.fast, wide.fast)


def test_a_sweep_forgets_what_the_swept_parameter_reaches():
    scenario = make_scenario()
    first = sweep(("decode_step_time",), scenario, "published", {})["decode_step_time"]
    many = sweep(("decode_step_time",), scenario, "published", {"batch": np.array([60.0, 120.0])})["decode_step_time"]
    held = sweep(("decode_step_time",), scenario, "published", {}, {"counted_step_time": 1e-3})["decode_step_time"]
    assert many[0] == first < many[1] and held == pytest.approx(1e-3 + scenario.uncounted_time)
    moved = make_scenario(changes={"b": 120})
    assert sweep(("decode_step_time",), moved, "published", {})["decode_step_time"] == many[1]


# ---- the page --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("query", ["", "b=240", "ep=128", "ctx=1000000&c=gb300", "tp=4.5"])
def test_the_operating_point_lies_on_the_curve_and_the_cards_agree(query):
    found = page(query)
    scenario = state.read(query, PAGE).scenario
    curve = decode_curves.frontier(scenario)
    place = int(np.searchsorted(curve.batch, scenario.batch))
    here = next(trace for trace in found["figures"][0]["data"] if trace["name"] == "this scenario")
    assert (here["x"][0], here["y"][0]) == (curve.user_speed[place], curve.per_decode_gpu[place])
    assert card(found, "throughput_per_decode_gpu")["raw"] == pytest.approx(here["y"][0], rel=1e-12)
    assert card(found, "throughput_per_cluster_gpu")["raw"] == pytest.approx(here["y"][0] / 2, rel=1e-12)


def test_hover_shows_the_time_budget_of_a_point():
    model = next(trace for trace in page("")["figures"][0]["data"] if trace["name"] == "model")
    place = int(np.searchsorted(decode_curves.frontier(make_scenario()).batch, 60))
    text = model["hovertext"][place]
    assert "60 sequences: 14,482 token/s per GPU" in text and "not counted: 5.80 ms" in text
    assert all(label in text for label, _ in PARTS.values())


def test_a_scenario_that_does_not_fit_has_reasons_and_no_numbers():
    found = page("b=3000")
    assert "at most 1,981 sequences per GPU fit" in found["finding"]["reason"]
    assert all("sequences per GPU fit" in card(found, name)["reason"] and not card(found, name)["big"] for name in NAMES)
    curve, budget = found["figures"]
    assert "3,000 sequences per GPU do not fit" in curve["alt"] and "sequences per GPU fit" in budget["reason"]
    assert not any(trace["name"] == "this scenario" for trace in curve["data"])


def test_what_lies_beyond_the_curve_is_said_with_its_reason():
    titles = {block["title"]: block["text"] for block in page("ep=128")["blocks"]}
    assert "sequences per GPU fit" in titles["More sequences"] and "gives no user more than" in titles["More speed"]
    assert "more cards than the 72" in titles["Scale-up domain"] and "Scale-up domain" not in {
        block["title"] for block in page("")["blocks"]}
    nothing = page("ep=2&c=h200")
    assert "spread the experts over more GPUs" in nothing["finding"]["reason"]
    assert [figure["reason"] != "" for figure in nothing["figures"]] == [True, True]


@pytest.mark.parametrize(("query", "says"), [
    ("b=0", "a whole number from 1"), ("b=1.5", "a whole number"), ("tp=0.5", "1 to 8"), ("rw=9", "1 to 8"), ("ep=0", "from 1 to 384"),
    ("ov=2", "0 to 1"), ("un=-1", "0 to 0.1"), ("ctx=nan", "1 to 1.048576 million")])
def test_bad_input_in_the_address_is_said_and_replaced(query, says):
    found = page(query)
    assert len(found["notices"]) == 1 and says in found["notices"][0] and not found["finding"]["reason"]
    failed = RUN.invoke(app, ["frontier", "decode", "--set", query])
    assert failed.exit_code == 2 and says in " ".join(failed.output.split())


@pytest.mark.parametrize(("query", "says"), [
    ("tp=5", "every accepted draft needs a row"), ("ep=7", "divisor"), ("ep=2&c=h200", "GB before the first sequence"),
    ("tp=6&rw=5.5", "cannot give 6 tokens")])
def test_what_cannot_be_is_refused_by_page_and_command(query, says):
    assert says in page(query)["finding"]["reason"]
    failed = RUN.invoke(app, ["frontier", "decode", *(part for change in query.split("&") for part in ("--set", change))])
    assert failed.exit_code == 2 and says in " ".join(failed.output.split())


@pytest.mark.parametrize(("tokens", "says"), [(0.2, "at least 1"), (1, "")])
def test_output_of_no_token_is_refused_and_of_one_ends_with_the_first(tokens, says):
    done = RUN.invoke(app, ["value", "request_duration", "--set", "L=256", "--set", f"io={256 / tokens}", "--json"])
    assert (done.exit_code == 2 and says in done.output) if says else json.loads(done.stdout)["value"] == 0.4


@pytest.mark.parametrize(("name", "says", "changes"), [
    *[(name, "uncounted_time", {"uncounted_time": bad}) for bad in (-1.0, float("nan")) for name in (
        "user_speed_limit", "step_fixed_time", "throughput_limit", "decode_band_low", "scheduled_drafts", "late_budget_loss")],
    *[(name, "tokens_per_step", {"tokens_per_step": bad}) for bad in (-1.0, float("nan")) for name in (
        "user_speed_limit", "throughput_limit", "decode_band_low")],
    ("decode_band_low", "batch", {"batch": "x"}), ("decode_band_low", "batch", {"batch": float("nan")})], ids=str)
def test_bad_numbers_are_refused_by_name(name, says, changes):
    with pytest.raises(InputError, match=says):
        catalogue.value(name, **changes)


def test_numbers_that_fit_take_an_array_of_cards():
    each = [catalogue.value("throughput_per_decode_gpu", card=name) for name in ("gb200", "b200")]
    assert catalogue.value("fitting_throughput_per_decode_gpu", card=np.array(["gb200", "b200"])) == pytest.approx(each)
    with pytest.raises(NotPossible, match="sequences per GPU fit"):
        catalogue.value("fitting_throughput_per_decode_gpu", card=np.array(["gb200", "gb300"]), batch=2500)


def test_a_curve_module_alone_knows_the_counted_step():
    """In a process of its own: what the schedule costs needs no other import."""
    code = ("import inside_deepinfer.serving.speculation as s; print(s.counted_cost([60.0], 0.0, model='deepseek-v4.1-flash', "
            "card='gb200', ep=64, redundant_experts=1, context=77000.0, overlap=0.5, selection_overlap=0.0).times[0, 0])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and 1e-3 < float(done.stdout) < 1e-2, done.stderr


def test_a_number_that_fits_is_the_number_itself():
    for name in NAMES:
        assert catalogue.value(f"fitting_{name}") == catalogue.value(name)
        with pytest.raises(NotPossible, match="sequences per GPU fit"):
            catalogue.value(f"fitting_{name}", batch=3000)


# ---- the peer --------------------------------------------------------------------------------------------------------------

def test_the_table_of_the_peer_holds_both_answers_and_the_ratio_of_the_times():
    table = load_facts().points("aiconfigurator-runs")
    assert len(table) == 8 and table["question"].is_unique and table.iloc[-1]["question"] == "one frontier"
    for row in table.itertuples(index=False):
        assert row.ratio == pytest.approx(row.peer_s / row.our_s, rel=0.03) and row.peer_answer and row.our_answer
    assert view.written(table["our_answer"].tolist())
