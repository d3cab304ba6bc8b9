"""Figures of models and HBM: each states its finding, holds its numbers, and moves where it should."""

from __future__ import annotations

import pytest

from inside_deepinfer import catalogue
from inside_deepinfer.facts import NotPossible
from inside_deepinfer.figures import hbm, hbm_movable, model
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.scenario import make_scenario

FIGURES = (hbm.waterfall, hbm.binding_map, hbm_movable.bytes_and_time, model.parameter_classes, model.flops_by_context)
SCENARIOS = ({}, {"model": "deepseek-v3", "context": 4096}, {"model": "deepseek-v4-flash"}, {"card": "h200", "ep": 8},
             {"ep": 96, "batch": 1, "context": 1}, {"ep": 2, "card": "h100"})


@pytest.mark.parametrize("changes", SCENARIOS, ids=str)
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__)
def test_a_figure_stands_for_any_scenario(figure, changes):
    scenario = make_scenario(changes=changes)
    made = figure(scenario)
    meta = made.layout.meta
    assert meta["alt"].endswith(".") and meta["table"]["rows"] and meta["sources"]
    assert "nan" not in meta["alt"].lower()
    light = draw(figure, scenario)  # as the dashboard draws it
    assert [trace["type"] for trace in light["data"]] == [trace.type for trace in made.data]


def test_the_waterfall_ends_where_the_numbers_do():
    table = hbm.waterfall(make_scenario()).layout.meta["table"]
    level = {row[0]: row[2] for row in table["rows"]}
    assert level["weights counted"] == pytest.approx(catalogue.value("hbm_read_bytes_per_step") / 1e9, rel=1e-5)
    assert level["all reads"] == pytest.approx(catalogue.value("hbm_total_bytes_per_step") / 1e9, rel=1e-5)


def test_the_map_agrees_with_the_derived_number():
    scenario = make_scenario()
    rows = hbm.binding_map(scenario).layout.meta["table"]["rows"]
    alt = hbm.binding_map(scenario).layout.meta["alt"]
    assert rows and str(catalogue.value("binding_resource", scenario)) in alt


def test_the_movable_figure_has_a_frame_per_group_size():
    figure = hbm_movable.bytes_and_time_by_ep(make_scenario())
    assert [step.label for step in figure.layout.sliders[0].steps] == ["2", "4", "8", "16", "32", "64", "128"]
    assert len(figure.frames) == 7
    said = [frame.layout.meta["alt"] for frame in figure.frames]
    assert said[0].startswith("EP2: 193 experts") and said[5].startswith("EP64: 7 experts")
    assert "reaches" not in said[0] and len(set(said)) == 7


def test_what_does_not_fit_is_said_in_the_figure():
    assert "not possible" in hbm_movable.bytes_and_time(make_scenario(changes={"ep": 2, "card": "h200"})).layout.meta["alt"]


def test_a_card_without_a_stated_domain_is_refused_with_the_reason():
    with pytest.raises(NotPossible, match="scale-up domain"):
        hbm.binding_map(make_scenario(changes={"card": "ascend-950pr"}))
