"""Real routing counts, what uneven experts cost, and the figures of chapter 11."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import public

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.pages.balance import PAGE
from inside_deepinfer.facts import InputError, NotPossible, load_facts
from inside_deepinfer.figures import balance, balance_movable
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving import expert_balance as eb
from inside_deepinfer.serving import routing_counts
from inside_deepinfer.serving.balance_cost import _largest_of
from inside_deepinfer.studies import routing

FULL_TRACE = "esft_routing_counts.csv.gz"


def full_trace() -> dict[str, np.ndarray]:
    """Every full window of all 26 layers: windows x layers x experts by task."""
    rows: dict[str, dict[int, list[list[int]]]] = {}
    with gzip.open(public(FULL_TRACE), "rt") as handle:
        for row in csv.DictReader(handle):
            if int(row["tokens"]) == 256:
                rows.setdefault(row["task"], {}).setdefault(int(row["layer"]), []).append([int(row[f"e{n}"]) for n in range(64)])
    return {task: np.stack([np.array(windows) for windows in layers.values()], axis=1) for task, layers in rows.items()}


# ---- counts ---------------------------------------------------------------------------------------------------------------

def test_shipped_counts_are_those_of_the_full_trace():
    full = full_trace()
    layers = sorted(set(load_facts().points("esft-routing").layer.astype(int)))
    for task in routing_counts.tasks():
        assert np.array_equal(routing_counts.task_loads(task), full[task][:, [layer - 1 for layer in layers]])


@pytest.mark.parametrize(("gpus", "own", "other"), [(8, 1.12, 1.48), (16, 1.21, 1.90), (32, 1.36, 2.66)])
def test_held_out_ratios_on_the_full_trace(gpus, own, other):
    """All 26 layers, one copy per GPU; counted on 2026-11-29 from deepseek-ai/ESFT."""
    full = full_trace()
    found = [routing_counts.split(full, task, gpus, 1) for task in full]
    assert np.mean([one.held_out for one in found]) == pytest.approx(own, abs=0.01)
    assert np.mean([one.other for one in found]) == pytest.approx(other, abs=0.02)


@pytest.mark.parametrize("gpus", [8, 16, 32])
def test_five_layers_stand_for_all(gpus):
    full = full_trace()
    all_layers = np.mean([routing_counts.split(full, task, gpus, 1).held_out for task in full])
    assert catalogue.value("balance_held_out", balance_gpus=gpus) == pytest.approx(all_layers, rel=0.03)


@pytest.mark.parametrize("gpus", [8, 16, 32])
def test_looking_back_flatters_and_other_traffic_undoes_it(gpus):
    fitted, own, other, before = (catalogue.value(f"balance_{name}", balance_gpus=gpus)
                                  for name in ("in_sample", "held_out", "other_task", "before"))
    assert 1 < fitted < own < other < 1.1 * before


def test_the_peak_policy_beats_the_total_policy_on_later_steps():
    for gpus in (8, 16, 32):
        new, old = (np.mean([one.held_out for one in routing_counts.splits(gpus, 1, by)]) for by in ("peaks", "total"))
        assert new < old


@given(experts=st.integers(1, 400), gpus=st.integers(1, 128), per_gpu=st.integers(0, 8))
def test_copies_are_rounded_up_until_slots_divide(experts, gpus, per_gpu):
    copies = routing_counts.copies_needed(experts, gpus, per_gpu)
    assert (experts + copies) % gpus == 0 and 0 <= copies - per_gpu * gpus < gpus


def test_released_sizing():
    """deepinfer-sdist: 1 per card at EP64 means 64, 4 per card at EP4 means 16."""
    assert (routing_counts.copies_needed(384, 64, 1), routing_counts.copies_needed(384, 4, 4)) == (64, 16)


# ---- replay ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", routing.texts())
def test_the_study_replays_as_the_model_does(name):
    scenario = make_scenario("published", {"bg": 16})
    run = routing.run(name, scenario)
    model = eb.replay(run.loads, 16, run.copies, window=8, interval=16)
    assert run.after == pytest.approx(model.slowest_over_mean) and len(run.moves) == model.moves == 2


def test_slots_hold_every_token_and_no_expert_twice_on_a_gpu():
    run = routing.run("law", make_scenario())
    loads, experts, copies = routing.slots(run.loads[9], run.serving(9))
    assert loads.sum() == pytest.approx(256 * 6) and loads.shape == (9, 8)
    assert np.all(np.diff(loads, axis=0) <= 0)
    for column in experts.T:
        assert len(set(column)) == 9
    assert np.all(copies >= 1)


@pytest.mark.parametrize(("match", "changes", "name"), [("statistics of 20 steps", {"bw": 20, "bi": 16}, "law"), ("texts", {}, "poems")])
def test_bad_replays_say_why(match, changes, name):
    with pytest.raises((InputError, NotPossible), match=match):
        routing.run(name, make_scenario("published", changes))


# ---- chance and cost ------------------------------------------------------------------------------------------------------

def test_largest_of_normal_deviates():
    """Tables of order statistics: 0.5642 of 2, 1.4236 of 8, 2.3437 of 64."""
    assert [_largest_of(count) for count in (1, 2, 8, 64)] == pytest.approx([0, 0.5642, 1.4236, 2.3437], abs=2e-4)


def test_chance_is_what_even_popularity_leaves_in_the_model():
    """Made-up routing without popularity: the contiguous layout at EP64 has the ratio that the formula gives."""
    choices = catalogue.value("choices_per_gpu")
    loads = eb.generated_loads(200, 2, 384, int(choices * 64), spread=0.0, steadiness=choices * 64 / 384, seed=3)
    ratio = eb.slowest_over_mean(loads, eb.contiguous(2, 384, 64))
    assert ratio - 1 == pytest.approx(catalogue.value("chance_imbalance") - 1, rel=0.05)


def test_a_split_that_knows_the_step_removes_most_of_chance():
    """Reviewer's simulation of 18,432 rows, 6 of 384, EP64: 1.002 with the best split, 1.051 to 1.054 evenly; without copies nothing."""
    assert catalogue.value("chance_imbalance_split") == pytest.approx(1.002, abs=1e-3)
    assert catalogue.value("chance_imbalance_split", redundant_experts=0) == pytest.approx(catalogue.value("chance_imbalance"), abs=3e-3)
    loads = np.random.default_rng(1).multinomial(18_432 * 6, np.full(384, 1 / 384), size=(15, 1))
    ring, mean = eb.ring(1, 384, 64, 1), loads.sum() / 15 / 64
    assert eb.slowest_over_mean(loads, ring) == pytest.approx(1.0525, abs=3e-3)
    placed = eb.rebalance(loads[:10], 64, 64)  # where the balancer puts copies, GPUs hang together less
    assert eb.best_split(loads[10:], ring).mean() < eb.best_split(loads[10:], placed).mean() < 1.04 * mean
    with pytest.raises(NotPossible, match="ring of 100"):
        catalogue.value("chance_imbalance_split", ep=100)


@pytest.mark.parametrize(("gpus", "chance"), [(8, 1.103), (16, 1.180), (32, 1.299)])
def test_chance_of_the_replay_explains_most_of_what_remains(gpus, chance):
    """1 + z / sqrt(1536 / G), z = 1.4236, 1.7660, 2.0697 of 8, 16 and 32 (tables of order statistics)."""
    assert catalogue.value("replay_chance", balance_gpus=gpus) == pytest.approx(chance, abs=5e-4)
    held, fitted = (catalogue.value(f"balance_{name}", balance_gpus=gpus) for name in ("held_out", "in_sample"))
    assert fitted < chance < held and (chance - 1) / (held - 1) > 0.5


def test_numbers_that_nothing_explains_say_so():
    assert catalogue.value("filled_share_that_explains", batch=8) == 1.0  # experts and lock step explain more than the loss
    assert catalogue.value("rows_spread_that_explains", imbalance=1.3) == 0.0
    with pytest.raises(NotPossible, match="waits for no other"):
        catalogue.value("rows_spread_that_explains", ep=1)
    for ep in (8.7, float("nan")):
        with pytest.raises(InputError, match="ep"):
            catalogue.value("largest_deviation", ep=ep)
    ends = [catalogue.value(f"prefill_imbalance_{end}") for end in ("least", "most")]
    assert ends == list(load_facts().quantity("eplb.prefill_ratio").value) and catalogue.value("imbalance_excess") == pytest.approx(0.09)


def test_an_even_load_costs_nothing_and_the_cost_is_bounded():
    assert catalogue.value("imbalance_cost", imbalance=1.0) == 0
    ratios = np.linspace(1, 4, 20)
    for changes in ({}, {"ep": 8}, {"overlap": 0.0}, {"overlap": 1.0}, {"batch": 1000}):
        cost = catalogue.value("imbalance_cost", imbalance=ratios, **changes)
        assert np.all(np.diff(cost) > -1e-12) and np.all(cost <= ratios - 1 + 1e-12)


def test_few_rows_make_uneven_experts_read_more():
    """At one sequence per GPU and EP8 not every slot is touched, so a busier GPU reads more; at the published point none does."""
    few = {"ep": 8, "batch": 1, "rows_per_sequence": 1.0, "redundant_experts": 0}
    assert catalogue.value("slowest_time_weights", **few) > catalogue.value("time_weights", **few)
    assert catalogue.value("slowest_time_weights") == pytest.approx(catalogue.value("time_weights"), rel=1e-4)


def test_the_parts_of_80_percent_multiply_to_it():
    left = catalogue.value("share_left_by_lockstep") * catalogue.value("filled_share_that_explains")
    assert left == pytest.approx(load_facts().number("eplb.total"))
    spread = catalogue.value("rows_spread_that_explains")
    slower = 1 + spread * catalogue.value("largest_deviation") / 60**0.5  # 60 sequences, claim decode.sequences
    assert 1 / (1.09 * slower) == pytest.approx(0.8)  # claims eplb.decode_ratio and eplb.total


@pytest.mark.parametrize("imbalance", [0.99, float("nan")])
def test_a_ratio_below_one_is_refused(imbalance):
    with pytest.raises(InputError, match="imbalance"):
        catalogue.value("imbalance_cost", imbalance=imbalance)


# ---- figures and page -----------------------------------------------------------------------------------------------------

CHANGES = ({}, {"bg": 2, "re": 16}, {"bg": 64, "re": 0}, {"bg": 12, "bs": 0}, {"bs": 31, "im": 4}, {"ep": 384, "b": 1})


@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("figure", (balance.heat_map, balance.replay, balance.held_out, balance.chance, balance.cost),
                         ids=lambda figure: figure.__name__)
def test_a_figure_stands_for_any_scenario(figure, changes):
    scenario = make_scenario("published", changes)
    made = figure(scenario)
    meta = made.layout.meta
    assert meta["alt"].endswith(".") and meta["table"]["rows"] and set(meta["sources"]) <= set(load_facts().sources)
    assert "nan" not in meta["alt"].lower()
    assert draw(figure, scenario, "published")["layout"]["meta"]["alt"] == meta["alt"]


def test_movable_figures_have_a_frame_for_each_step():
    heat, chance = balance_movable.heat_by_step(make_scenario()), balance_movable.chance_by_ep(make_scenario())
    assert len(heat.frames) == 16 and heat.layout.sliders[0].active == 5
    assert [step.label for step in chance.layout.sliders[0].steps] == ["8", "16", "32", "64", "128"]
    assert len({frame.layout.meta["alt"] for frame in heat.frames}) == 16


def test_the_page_says_what_its_figures_show():
    scenario, fields = make_scenario(), {"texts": "law"}
    said = PAGE.finding(scenario, "published", fields)
    run = routing.run("law", scenario)
    assert f"{run.after[10]:.2f} with the balancer" in said and "8 copies of 64 experts" in said


@settings(max_examples=10)
@given(gpus=st.integers(2, 64), copies=st.integers(0, 3))
def test_any_number_of_gpus_can_be_replayed(gpus, copies):
    run = routing.run("intent", make_scenario("published", {"bg": gpus, "re": copies}))
    assert np.all(run.after >= 1 - 1e-12)
