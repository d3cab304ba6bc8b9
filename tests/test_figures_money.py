"""Figures of chapters 1 to 4: every number in them comes from the catalogue, and each carries alt text, table and slider."""

from __future__ import annotations

import base64

import numpy as np
import plotly.graph_objects as go
import pytest

from inside_deepinfer import catalogue
from inside_deepinfer.audit import audit
from inside_deepinfer.facts import InputError, NotPossible, load_facts
from inside_deepinfer.figures import audit as audit_figures
from inside_deepinfer.figures import fleet, fleet_movable, movable, price_history, prices, prices_movable
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.scenario import make_scenario

LIVE = (fleet.three_routes, fleet.reconcile, prices.effective_price_curve, prices.revenue_split, prices.revenue_surface,
        prices.sensitivity)
MOVABLE = {"routes": lambda: fleet_movable.routes_at_speed(make_scenario()), "ratio": lambda: prices_movable.price_ratio(make_scenario()),
           "vendors": prices_movable.vendors, "cards": lambda: prices_movable.cards_ratio(make_scenario()), "gaps": audit_figures.gaps}
SCENARIOS = [("published", {}), ("off-peak", {}), ("published", {"h": 0.0}), ("published", {"h": 0.995, "pd": 20, "io": 0.1}),
             ("published", {"sg": 1e15, "T": 1e9}), ("published", {"ph": 0.0}), ("published", {"pk": 1, "gc": 0})]


def trace(figure: go.Figure, name: str) -> go.Scatter:
    return next(part for part in figure.data if part.name == name)


def numbers(part: object) -> np.ndarray:
    """An array of a frame, which plotly keeps in its wire form."""
    return np.frombuffer(base64.b64decode(part["bdata"]), dtype=part["dtype"]) if isinstance(part, dict) else np.asarray(part)


@pytest.mark.parametrize(("preset", "changes"), SCENARIOS, ids=str)
@pytest.mark.parametrize("figure", LIVE, ids=lambda f: f.__name__)
def test_every_live_figure_draws_any_scenario(figure, preset, changes):
    scenario = make_scenario(preset, changes)
    drawn = figure(scenario, preset)
    meta = drawn.layout.meta
    assert len(drawn.data) >= 1 and meta["alt"].endswith(".") and meta["table"]["rows"]
    assert "nan" not in meta["alt"].lower() and "inf " not in meta["alt"].lower()
    assert set(meta["sources"]) <= set(load_facts().sources)
    assert draw(figure, scenario, preset)["layout"]["meta"]["alt"] == meta["alt"]  # the dashboard's cheap way says the same


def test_the_three_routes_show_the_three_numbers():
    figure = fleet.three_routes(make_scenario())
    assert figure.data[0].x == pytest.approx((2392, 2289, 7819), abs=1)  # claims fleet.total_gpus, fleet.gpus_from_storage
    assert "31 %" in figure.layout.meta["alt"]


def test_the_crossing_of_the_reconciling_figure_lies_on_both_lines():
    figure = fleet.reconcile(make_scenario())
    needed, stored = figure.data[0], figure.data[1]
    at = catalogue.value("reconciling_utilisation")
    assert np.interp(at, needed.x, needed.y) == pytest.approx(stored.y[0], rel=0.01)


@pytest.mark.parametrize("preset", ["published", "chatbot", "agents", "peak"])
def test_the_sentence_names_the_share_at_which_the_curve_has_the_height_of_the_revenue_route(preset):
    figure = fleet.reconcile(make_scenario(preset), preset)
    needed, level = figure.data[0], figure.data[2].y[0]
    at = float(np.interp(-level, -np.asarray(needed.y), needed.x))  # the curve falls
    assert f"near {100 * at:.0f} %" in figure.layout.meta["alt"]
    assert preset != "chatbot" or at == pytest.approx(1.522, abs=0.005)  # 219.9 GPUs over 144.5


def test_a_free_cached_token_has_no_price_ratio():
    with pytest.raises(NotPossible, match="cached token is free"):
        prices_movable.price_ratio(make_scenario("published", {"ph": 0.0}))


def test_the_effective_price_figure_has_the_articles_points():
    figure = prices.effective_price_curve(make_scenario())
    assert trace(figure, "computed at 80 % and 96 %").y == pytest.approx((0.216, 0.0592))  # article 004: 0.22 and 0.06
    assert trace(figure, "as the article rounds it").y == pytest.approx((0.22, 0.06))
    moved = prices.effective_price_curve(make_scenario("published", {"h": 0.9}))
    assert trace(moved, "this scenario").y == pytest.approx((0.118,))


def test_other_prices_hide_the_articles_points():
    figure = prices.effective_price_curve(make_scenario("off-peak"), "off-peak")
    assert "as the article rounds it" not in [part.name for part in figure.data]


def test_parts_of_revenue_add_up_to_the_catalogue():
    scenario = make_scenario("published", {"pd": 2, "h": 0.9})
    for name, parts in prices.revenue_parts(scenario).items():
        assert parts.sum(axis=-1) == pytest.approx(catalogue.value(name, scenario)), name


def test_the_revenue_figure_shows_what_is_published_beside_the_parts():
    figure = prices.revenue_split(make_scenario())
    totals = np.sum([bar.x for bar in figure.data[:3]], axis=0)
    assert totals == pytest.approx((45.03, 28.39, 36.71, 36.71), abs=0.005)
    assert trace(figure, "as published").x == (38.0,)


def test_the_surface_is_highest_on_the_ridge():
    figure = prices.revenue_surface(make_scenario())
    surface, ridge = figure.data[0], trace(figure, "both pools full")
    for column in (15, 20, 25):
        best = surface.y[int(np.argmax(np.asarray(surface.z)[:, column]))]
        assert best == pytest.approx(np.interp(surface.x[column], ridge.x, ridge.y), rel=0.15)


def test_sensitivity_leaves_out_what_does_not_matter():
    dollars = prices.sensitivity(make_scenario("off-peak"), "off-peak")
    assert "exchange rate" not in [row[0] for row in dollars.layout.meta["table"]["rows"]]
    yuan = prices.sensitivity(make_scenario())
    assert yuan.layout.meta["table"]["rows"][0][0] == "exchange rate"


@pytest.mark.parametrize("name", sorted(MOVABLE))
def test_a_movable_figure_has_a_frame_and_a_sentence_for_each_step(name):
    figure = MOVABLE[name]()
    slider = figure.layout.sliders[0]
    names = [frame.name for frame in figure.frames]
    assert [step.args[0][0] for step in slider.steps] == names and len(names) >= 5
    assert slider.currentvalue.prefix.strip(": ")
    sentences = [frame.layout.meta["alt"] for frame in figure.frames]
    assert sentences[slider.active] == figure.layout.meta["alt"] and len(set(sentences)) == len(sentences)


def test_a_frame_holds_only_what_changes():
    figure = prices_movable.price_ratio(make_scenario())
    assert all("x" not in part.to_plotly_json() for part in figure.frames[0].data[:3])  # hit rates stay, prices move


def test_steps_with_other_traces_are_refused():
    one, two = fleet.three_routes(make_scenario()), fleet.reconcile(make_scenario())
    with pytest.raises(ValueError, match="differ in their traces"):
        movable.movable([one, two], ["a", "b"], "x", 0)
    with pytest.raises(ValueError, match="labels"):
        movable.movable([one], ["a", "b"], "x", 0)


def test_moved_steps_are_the_catalogue_at_that_scenario():
    figure = prices_movable.cards_ratio(make_scenario())
    place = prices_movable.CARDS.index(2.0)
    served = numbers(figure.frames[place].data[1].y)
    expected = catalogue.value("workload_revenue_per_cluster_gpu_hour", hit_rate=prices_movable.RATES, pd_ratio=2.0)
    assert served == pytest.approx(expected)


def test_at_full_hits_the_vendor_figure_is_the_bare_discount():
    figure = prices_movable.vendors()
    last = numbers(figure.frames[-1].data[0].x)
    listed = sorted(row.cache_read / row.input for row in load_facts().vendor_prices.values() if row.cache_read is not None)
    assert last == pytest.approx(listed)
    assert numbers(figure.frames[0].data[0].x) == pytest.approx(np.ones(len(listed)))


def test_a_vendor_that_states_no_cached_price_is_not_drawn_as_free():
    figure = prices_movable.vendors()
    missing = [row.model for row in load_facts().vendor_prices.values() if row.cache_read is None]
    assert missing and not set(missing) & {row[1] for row in figure.layout.meta["table"]["rows"]}


def test_price_history_follows_one_model_and_leaves_unknown_lists_empty():
    dollars = price_history.default_list("USD")
    assert [row.model for row in dollars][0] == "V3" and dollars[-1].id == "v41-usd-off-peak"
    assert not any(row.window == "peak" for row in dollars)
    assert [row.effective for row in dollars] == sorted(row.effective for row in dollars)
    assert any(row is None for _, row in price_history.steps("CNY"))  # no yuan list of V3.1 to V4-Flash is known
    assert price_history.deepseek("CNY").data[0].y.count(None) >= 1
    with pytest.raises(InputError, match="CNY or USD"):
        price_history.deepseek("EUR")


def test_the_audit_figures_count_every_claim():
    findings = audit()
    figure = audit_figures.verdict_counts(findings)
    assert sum(row[-1] for row in figure.layout.meta["table"]["rows"]) == len(findings) == len(load_facts().claims)
    table = audit_figures.gap_table(findings)
    assert set(table["verdict"]) <= {"reproduced", "consistent", "conflict"}
    assert "fleet.gpus_from_storage" not in set(table["claim"])  # held against a computed number, not a printed one
    assert {"fleet.revenue_theory_usd", "storage.closure", "hbm.weights_full"} <= set(table["claim"])
    assert table.set_index("claim").loc["price.balance", "relative distance"] == pytest.approx(0.52, abs=0.01)


def test_a_point_of_the_gap_figure_carries_its_own_verdict_at_every_tolerance():
    findings = {found.id: found.verdict for found in audit()}
    figure = audit_figures.gaps()
    table = audit_figures.gap_table(audit())
    for part in figure.data:
        shown = [text.partition(":")[0] for text, x in zip(part.text, numbers(part.x), strict=True) if not np.isnan(x)]
        assert shown and {findings[name] for name in shown} == {part.name}
    assert sum(int(np.isfinite(numbers(part.x)).sum()) for part in figure.data) == len(table)
    within = {share: int((table["relative distance"] <= share).sum()) for share in (0.001, 0.01, 0.05, 0.2)}
    assert within == {0.001: 15, 0.01: 27, 0.05: 35, 0.2: 37} and len(table) == 42


def test_the_verdict_figure_says_who_speaks():
    rows = {row[0]: dict(zip(audit_figures.verdict_counts().layout.meta["table"]["columns"], row, strict=True))
            for row in audit_figures.verdict_counts().layout.meta["table"]["rows"]}
    assert rows["conflict"]["reported by DeepSeek"] == 1  # the storage figures; the other three are an author's
    assert rows["conflict"]["our own sum"] == 2 and rows["consistent"]["our own sum"] == 1
    assert rows["conflict"]["an author's arithmetic"] == 3 and rows["conflict"]["an author's statement"] == 5
