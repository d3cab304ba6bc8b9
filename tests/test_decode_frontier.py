"""The decode frontier: through the published point, lawful in its inputs, honest about what cannot exist."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from inside_deepinfer import catalogue
from inside_deepinfer.cli import app
from inside_deepinfer.facts import InputError, NotPossible, load_facts
from inside_deepinfer.figures import decode_frontier as figures
from inside_deepinfer.figures import frontier_movable, production
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.model.shape import load_shape, without_draft
from inside_deepinfer.scenario import make_scenario, parameters
from inside_deepinfer.serving.decode_frontier import tokens_of_a_step
from inside_deepinfer.serving.facts_of_parameters import FACT_OF
from inside_deepinfer.serving.pareto import non_dominated
from inside_deepinfer.serving.published import at_published
from inside_deepinfer.studies import decode_curves

RUN = CliRunner()


# ---- the published point ---------------------------------------------------------------------------------------------------

def test_the_model_passes_the_published_point_and_the_named_number_is_the_fit():
    """14,466 token/s per decode GPU with 60 sequences and 3.21 tokens per step (article 000): within 3 %, here within 0.5 %."""
    assert abs(catalogue.value("benchmark_error")) < 0.005
    fitted, open_ = load_facts().number("decode.uncounted_time"), catalogue.value("step_time_left_open")
    assert fitted == pytest.approx(open_, rel=0.01), "the fact is the fit of the present count; fit it again"
    assert abs(catalogue.value("user_speed_error")) < 0.06


def test_published_inputs_are_those_of_the_scenario():
    assert {name: parameters()[name].fact for name in FACT_OF} == FACT_OF
    assert at_published(["throughput_per_decode_gpu"])["throughput_per_decode_gpu"] == catalogue.value("throughput_per_decode_gpu")


def test_two_numbers_stand_for_the_step():
    found = catalogue.evaluate(["step_fixed_time", "step_time_per_row", "step_fit_error", "decode_step_time"])
    two = found["step_fixed_time"].value + 60 * 4.8 * found["step_time_per_row"].value
    assert two == pytest.approx(found["decode_step_time"].value, rel=0.03) and 0 < found["step_fit_error"].value < 0.02


def test_what_is_not_counted_is_a_floor_and_not_a_factor():
    """The production curves of V4-Flash miss more fixed time than time per row on every card tried, and a lone step
    leaves nearly the fitted time on GB300 and H100."""
    assert catalogue.value("predecessor_fixed_ratio") > 2 * catalogue.value("predecessor_row_ratio")
    fitted = catalogue.evaluate(["v4_flash_fixed_time", "v4_flash_time_per_row"])
    for card, ep in (("h800", 16), ("b200", 8)):
        fixed, row, _ = at_published(["two_numbers"], model="deepseek-v4-flash", card=card, ep=ep, rows_per_sequence=2.0,
                                     uncounted_time=0.0)["two_numbers"]
        assert fitted["v4_flash_fixed_time"].value / fixed > 1.5 * fitted["v4_flash_time_per_row"].value / row, card
    rests = [catalogue.value(name) for name in ("lone_rest_gb300", "lone_rest_h100")]
    assert rests == pytest.approx([load_facts().number("decode.uncounted_time")] * 2, rel=1 / 6)


def test_the_band_meets_at_the_published_point_and_widens_away_from_it():
    scenario = make_scenario()
    band = decode_curves.band(scenario, "published", np.array([5.0, 15.0, 60.0, 240.0]))
    middle = decode_curves.frontier(scenario, "published", band.batch).user_speed
    width = band.fast / band.slow
    assert width[2] == pytest.approx(1.0) and width[0] > width[1] > width[2] < width[3]
    assert np.all(band.slow <= middle * 1.005) and np.all(middle <= band.fast * 1.005)
    assert band.members > 20 and band.refused > 0 and 0 < band.shares.min() < band.shares.max() <= 1
    assert catalogue.value("decode_band_low_few") == pytest.approx(15 * band.slow[1])


# ---- laws ------------------------------------------------------------------------------------------------------------------

@settings(max_examples=25)
@given(batch=st.integers(1, 1500), card=st.sampled_from(["b200", "b300", "gb200", "gb300"]), ep=st.sampled_from([8, 32, 64, 128]),
       context=st.floats(1, 1e6), factor=st.floats(1.0, 3.0))
def test_more_bandwidth_never_lowers_and_more_context_never_raises_throughput(batch, card, ep, context, factor):
    inputs = dict(batch=batch, card=card, ep=ep, context=context)
    base = at_published(["throughput_per_decode_gpu", "card_bandwidth", "card_link_bandwidth"], **inputs)
    for name in ("card_bandwidth", "card_link_bandwidth"):
        faster = at_published(["throughput_per_decode_gpu"], **inputs, **{name: base[name] * factor})
        assert faster["throughput_per_decode_gpu"] >= base["throughput_per_decode_gpu"] * (1 - 1e-12)
    longer = at_published(["throughput_per_decode_gpu"], **inputs | {"context": min(context * factor, 2**20)})
    assert longer["throughput_per_decode_gpu"] <= base["throughput_per_decode_gpu"] * (1 + 1e-12)


@settings(max_examples=15)
@given(card=st.sampled_from(["b200", "gb200", "gb300", "h200"]), ep=st.sampled_from([8, 16, 64, 128]), pd=st.floats(0.1, 5),
       speculation=st.booleans())
def test_points_are_mutually_non_dominated_and_units_agree(card, ep, pd, speculation):
    curve = decode_curves.frontier(make_scenario(changes={"card": card, "ep": ep, "pd": pd}), speculation=speculation)
    x, y = curve.user_speed[curve.efficient], curve.per_decode_gpu[curve.efficient]
    beaten = (x[:, None] <= x) & (y[:, None] <= y) & ((x[:, None] < x) | (y[:, None] < y))
    assert not beaten.any() and curve.efficient.any()
    assert np.allclose(curve.per_decode_gpu, curve.batch * curve.user_speed)
    assert np.allclose(curve.per_cluster_gpu, curve.per_decode_gpu / (1 + pd))
    assert np.allclose(curve.latency * curve.user_speed, 1.0) and np.all(curve.step_time > 0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_non_dominated_against_the_definition(pairs):
    x, y = np.array(pairs, dtype=float).T
    kept = non_dominated(x, y)
    for n, (a, b) in enumerate(pairs):
        better = any((c >= a and d >= b) and (c > a or d > b) for c, d in pairs)
        assert not (kept[n] and better)
        assert better or (a, b) in {pairs[m] for m in np.flatnonzero(kept)}, "every undominated value is there once"
    assert len({pairs[m] for m in np.flatnonzero(kept)}) == kept.sum()


def test_arrays_agree_with_scalars_of_the_catalogue():
    curve = decode_curves.frontier(make_scenario(), batch=np.array([1.0, 60.0, 500.0]))
    one_by_one = [catalogue.value("throughput_per_decode_gpu", batch=batch) for batch in (1, 60, 500)]
    assert np.allclose(curve.per_decode_gpu, one_by_one, rtol=1e-12)


def test_speculation_helps_few_sequences_and_hurts_many():
    scenario = make_scenario()
    with_, without = (decode_curves.frontier(scenario, batch=np.array([1.0, 60.0, 1900.0]), speculation=on) for on in (True, False))
    ratio = with_.per_decode_gpu / without.per_decode_gpu
    assert ratio[0] > 2 and ratio[1] > 1.5 and ratio[2] < 1
    plain = without_draft("deepseek-v4.1-flash")
    assert load_shape(plain).draft is None and load_shape(plain).body == load_shape("deepseek-v4.1-flash").body
    assert without_draft(plain) == plain


def test_hbm_holds_more_sequences_on_the_larger_card_and_fewer_at_longer_context():
    most = {(card, context): decode_curves.frontier(make_scenario(changes={"card": card, "context": context})).batch.max()
            for card in ("gb200", "gb300") for context in (77_000, 1_048_576)}
    assert most["gb300", 77_000] > most["gb200", 77_000] > most["gb300", 1_048_576] > most["gb200", 1_048_576] > 100


# ---- what cannot exist -----------------------------------------------------------------------------------------------------

def test_regions_say_why():
    curve = decode_curves.frontier(make_scenario())
    reasons = {region.kind: region.reason for region in curve.regions}
    assert "sequences per GPU fit" in reasons["memory"] and "gives no user more than" in reasons["speed"]
    assert curve.at_speed(10_000) == 0.0 and curve.at_speed(241) == pytest.approx(14_500, rel=0.01)
    fast = decode_curves.band(make_scenario(), "published", np.array([1.0])).fast[0]
    assert fast > curve.user_speed.max() and "other plausible inputs may give more" in reasons["speed"], "the band goes higher"
    assert not curve.notice and "scale-up domain" in decode_curves.frontier(make_scenario(changes={"ep": 128})).notice


def test_a_held_value_reaches_notice_and_reasons():
    """What is held instead of the scenario's value holds for the sentences too."""
    scenario = make_scenario()
    assert not decode_curves.frontier(scenario, changes={"ep": 128, "scaleup_domain": 128}).notice
    assert "EP128" in decode_curves.frontier(scenario, changes={"ep": 128}).notice
    assert "this scale-up domain" in decode_curves.frontier(scenario, changes={"scaleup_domain": 32}).notice
    with pytest.raises(NotPossible, match="what DeepSeek-V3.R1 keeps on every GPU"):
        decode_curves.frontier(scenario, changes={"model": "deepseek-v3", "ep": 2, "card": "h200"})
    assert "with 1 ms that are not counted" in decode_curves.frontier(scenario, changes={"uncounted_time": 1e-3}).regions[1].reason


@pytest.mark.parametrize("batch", [np.array([0.0]), np.array([]), np.array([60.0, -1.0]), np.array([float("nan")])])
def test_a_batch_below_one_is_refused(batch):
    with pytest.raises(InputError, match="batch"):
        decode_curves.frontier(make_scenario(), batch=batch)


def test_a_frontier_without_a_feasible_point_says_why():
    with pytest.raises(NotPossible, match="no feasible point; not possible: what DeepSeek-V4.1-Flash keeps on every GPU"):
        decode_curves.frontier(make_scenario(changes={"ep": 2, "card": "h200"}))
    with pytest.raises(NotPossible, match="no feasible point"):
        decode_curves.frontier(make_scenario(), batch=np.array([3000.0]))
    with pytest.raises(NotPossible, match="no feasible point"):
        non_dominated([np.nan], [1.0])


def test_acceptance_cannot_exceed_what_is_verified():
    with pytest.raises(NotPossible, match="every accepted draft needs a row"):
        tokens_of_a_step(3.2, 3.0)
    with pytest.raises(InputError, match="tokens_per_step"):
        tokens_of_a_step(0.5, 3.0)


def test_output_of_one_token_ends_with_the_first_and_of_none_is_refused():
    one = catalogue.value("request_duration", input_tokens=100.0, input_output_ratio=100.0)
    assert one == load_facts().number("prefill.ttft_mean")
    with pytest.raises(InputError, match="output tokens"):
        catalogue.value("request_duration", input_tokens=100.0, input_output_ratio=2000.0)


# ---- command and figures ---------------------------------------------------------------------------------------------------

def test_the_command_gives_the_points():
    data = json.loads(RUN.invoke(app, ["frontier", "decode", "--json"]).stdout)
    point = next(point for point in data["points"] if point["batch"] == 60)
    assert point["per_decode_gpu"] == pytest.approx(60 * point["user_speed"]) == pytest.approx(14_466, rel=0.03)
    assert set(data["limits"]) == {"memory", "speed"} and data["operating_point"]["batch"] == 60
    plain = RUN.invoke(app, ["frontier", "decode", "--set", "ep=128"])
    assert plain.exit_code == 0 and "notice: EP128" in plain.stdout
    for arguments, says in ((["frontier", "up"], "decode or prefill"), (["frontier", "decode", "--set", "ep=7"], "divisor"),
                            (["frontier", "decode", "--set", "ep=2", "--set", "card=h200"], "no feasible point")):
        failed = RUN.invoke(app, arguments)
        assert failed.exit_code == 2 and says in failed.output


@pytest.mark.parametrize("changes", [{}, {"card": "b200"}, {"batch": 4096}, {"model": "deepseek-v3", "context": 4096}, {"un": 0, "ep": 8}],
                         ids=str)
@pytest.mark.parametrize("figure", [figures.operating_curve, figures.variants, figures.time_budget, figures.others],
                         ids=lambda figure: figure.__name__)
def test_a_figure_stands_for_any_scenario(figure, changes):
    scenario = make_scenario(changes=changes)
    made = figure(scenario)
    meta = made.layout.meta
    assert meta["alt"].endswith(".") and "nan" not in meta["alt"].lower() and meta["table"]["rows"] and meta["sources"]
    light = draw(figure, scenario, "published")
    assert [trace["type"] for trace in light["data"]] == [trace.type for trace in made.data]


def test_figures_of_the_proof():
    for made in (production.throughput("flash"), production.throughput("pro"), production.budget()):
        assert made.layout.meta["alt"].endswith(".") and len(made.layout.meta["table"]["rows"]) >= 9


def test_the_time_budget_moves_with_the_batch():
    made = frontier_movable.time_budget_by_batch(make_scenario())
    assert made.layout.sliders[0].active == 4 and len({frame.layout.meta["alt"] for frame in made.frames}) == len(made.frames) == 11
