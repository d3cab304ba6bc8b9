"""Chapters 6 and 7: their conclusions, the published sizes beside the counts, their figures, and the page HBM and experts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions import CONCLUSIONS
from inside_deepinfer.explorer import state, view
from inside_deepinfer.explorer.pages.hbm import PAGE
from inside_deepinfer.facts import UserError, load_facts
from inside_deepinfer.facts.units import show_as, show_decimal
from inside_deepinfer.figures import hbm_capacity, token_movable
from inside_deepinfer.publish.chain import look_up, steps
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.studies.machine_world import in_decimal, parameters_of_variants, published_counts, v3r1_step
from inside_deepinfer.studies.step_inputs import EXCHANGE, STEP, step_inputs

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
CHAPTERS = ("token-cost", "hbm")
MINE = [name for name, entry in CONCLUSIONS.items() if entry.chapter in CHAPTERS]


@pytest.mark.parametrize("name", MINE)
def test_the_book_may_still_say(name):
    assert CONCLUSIONS[name].holds(), f"no longer true: {CONCLUSIONS[name].sentence}"


@pytest.mark.parametrize(("name", "value", "source"), [
    ("counted_checkpoint_bytes", 510e9, "size of the public checkpoint, listed as 510 GB"),
    ("kv_bytes_with_keys_in_every_search", 1162, "the usual mistake: index keys in 8 layers"),
    ("engram_bytes_per_token", 2 * 24 * 264, "48 rows of 264 bytes"),
    ("kv_entry_size", 288, "released engine"), ("index_key_size", 68, "released engine"),
    ("decode_compute", 60 * 4.8 / 0.0133 * 41.595e9, "batch, rows, step time and estimator"),
    ("counted_burst_share", 1.8335, "14.67 GB in a millisecond at 8 TB/s"),
    ("v3r1_sequences_per_gpu", 14_800 / 8 / 21, "DeepSeek's account of 2025-02"),
])
def test_numbers_of_the_two_chapters(name, value, source):
    assert catalogue.value(name) == pytest.approx(value, rel=1e-3), source


def test_counts_stand_beside_what_was_published():
    rows = published_counts()
    assert len(rows) == 12 and all(abs(row.error) < 0.03 for row in rows)
    exact = {row.label: row for row in rows if row.unit.startswith("B")}
    assert exact["V4.1-Flash: KV bytes per token"].error == 0
    assert exact["V3/R1: KV bytes per token"].text(70_272) == "70,272 B/token"


def test_only_the_configurations_experts_give_the_reported_parameters():
    found = parameters_of_variants()
    assert found[384, 2304] == (catalogue.value("backbone_parameters"), catalogue.value("active_parameters_decode"))
    assert found[256, 2304][0] < 0.7 * found[384, 2304][0]
    # 256 experts of width 3456 hold as many parameters, but a token would use 6 * 3 * 5120 * (3456 - 2304) more in 40 layers
    wider = 40 * 3 * 5120 * (3456 - 2304)  # of each expert
    assert found[256, 3456][1] - found[384, 2304][1] == pytest.approx((6 + 1) * wider - 40 * 128 * 5120)  # shared expert; router
    assert abs(found[256, 3456][0] / 552e9 - 1) < 0.002 and round(found[256, 3456][1] / 1e9) == 21


def test_the_earlier_day_is_counted_between_full_overlap_and_none():
    (low, published), (high, _) = v3r1_step(1.0), v3r1_step(0.0)
    assert low < v3r1_step()[0] < high and low < published < high
    assert published == pytest.approx(1 / 21)


def test_bytes_can_be_printed_as_articles_print_them():
    assert show_as(14.668e9, "B/GPU", "GB") == "14.67 GB"
    assert show_as(551.88e9, "parameter", "billion", ".0f") == "552 billion"
    assert show_as(0.0133, "s", "ms", ".1f") == "13.3 ms"
    assert show_as(86_400, "s", "h", ".0f") == "24 h" and show_as(90, "s", "min", ".1f") == "1.5 min"
    assert show_as(1.103e12, "B/s", "TB/s", ".1f") == "1.1 TB/s"
    assert [show_decimal(size, "B/token") for size in (890, 70_272, 1_415_040)] == ["890 B/token", "70,272 B/token", "1.415 MB/token"]
    assert in_decimal(5.519e11, "parameter") == "551.9 billion"
    for unit, wanted in (("B/GPU", "GFLOP"), ("ratio", "GB"), ("B", "billion"), ("s", "GB")):
        with pytest.raises(ValueError, match="cannot be written"):
            show_as(1.0, unit, wanted)


def test_the_number_role_takes_a_unit_and_the_popover_names_both():
    quantity, text = look_up("hbm_read_bytes_per_step | GB .2f")
    assert text == "14.67 GB"
    assert steps(quantity)[0].shown == "13.66 GiB/GPU = 14.67 GB/GPU"
    with pytest.raises(UserError, match="cannot be printed"):
        look_up("hbm_share | GB .2f")


def test_the_movable_figure_of_chapter_6_ends_at_the_models_context():
    figure = token_movable.work_and_reads(make_scenario())
    labels = [step.label for step in figure.layout.sliders[0].steps]
    assert labels[0] == "1,024" and labels[-1] == "1,048,576" and "77,000" in labels
    short = token_movable.work_and_reads(make_scenario(changes={"model": "deepseek-v3", "context": 4096}))
    assert short.layout.sliders[0].steps[-1].label == "77,000"


def test_the_capacity_map_agrees_with_the_derived_numbers_and_gives_reasons():
    rows = hbm_capacity.capacity_map(make_scenario()).layout.meta["table"]["rows"]
    for card, ep, *_, most, verdict in rows:
        name = next(entry.id for entry in load_facts().cards.values() if entry.name == card)
        assert most == catalogue.value("largest_batch", card=name, ep=ep)
        assert (verdict == "fits") == (most >= 60)
        assert verdict == "fits" or verdict.startswith("not possible:")
    assert "at most 157" in hbm_capacity.capacity_map(make_scenario(changes={"ep": 2, "batch": 500})).layout.meta["alt"]


def test_inputs_of_the_step_name_kind_and_source():
    found = {quantity.name: quantity for quantity in step_inputs(make_scenario(changes={"overlap": 0.25}))}
    assert set(found) == {*EXCHANGE, *STEP}
    assert found["card_domain"].kind == "reported" and found["card_domain"].sources
    assert found["combine_format"].kind == "assumption" and found["overlap"].kind == "choice"


def test_a_chosen_domain_is_the_readers_choice():
    found = {quantity.name: quantity for quantity in step_inputs(make_scenario(changes={"scaleup_domain": 128}))}
    assert found["card_domain"].kind == "choice" and found["card_domain"].value == 128


def page(query: str) -> dict:
    return json.loads(view.results(PAGE, state.read(query, PAGE)))


def test_published_values_stand_only_beside_what_they_speak_of():
    """4.31 GB, 4 % and 13.3 ms belong to V4.1 at EP64; another model or group is not held against them."""
    def beside(query: str) -> set[str]:
        return {card["name"] for card in page(query)["numbers"] if card["beside"]}

    assert beside("") == {"hbm_read_bytes_per_step", "feasible_hbm_share", "fitting_step_time"}
    assert beside("b=30") == {"hbm_read_bytes_per_step", "feasible_hbm_share"}
    assert beside("ep=8") == beside("m=deepseek-v3&ctx=4096") == set()


def test_the_page_says_that_a_model_has_fewer_rows():
    said = [block.get("text", "") for block in page("m=deepseek-v3&ctx=4096")["blocks"]]
    assert any("DeepSeek-V3/R1 drafts 1 token per step, so a sequence brings at most 2 rows; 4.8" in text for text in said)
    assert not [block for block in page("")["blocks"] if block.get("title") == "Rows"]


def test_the_page_says_what_crosses_the_link():
    def exchange(query: str) -> dict[str, str]:
        return dict(next(block for block in page(query)["blocks"] if block.get("name") == "exchange")["rows"])

    assert exchange("")["all-to-all bytes per GPU and step"] == "1.097 GB/GPU"
    assert exchange("")["bytes that cross the scale-up domain per GPU and step"] == "0 B/GPU"
    assert exchange("ep=128")["bytes that cross the scale-up domain per GPU and step"] == "173.1 MB/GPU"
    said = {block.get("title"): block.get("text", "") for block in page("ep=128")["blocks"]}
    assert "EP128 needs more cards than the 72 of a GB200 scale-up domain" in said["Beyond the domain"]
    assert "Beyond the domain" not in {block.get("title") for block in page("ep=128&sd=128")["blocks"]}
    refused = {block.get("title"): block.get("text", "") for block in page("c=ascend-950pr")["blocks"]}
    assert "size of the scale-up domain" in refused["What crosses the link"]


def test_no_share_of_bandwidth_without_room():
    cards = {card["name"]: card for card in page("c=h200&ep=2&st=0.1")["numbers"]}
    assert "166.4 GB" in cards["feasible_hbm_share"]["reason"] and not cards["feasible_hbm_share"]["big"]


def test_the_page_shows_the_chapters_numbers():
    shown = page("")
    cards = {card["name"]: card for card in shown["numbers"]}
    assert (cards["hbm_read_bytes_per_step"]["big"], cards["hbm_read_bytes_per_step"]["beside"]["text"]) == ("14.67", "4.31 GB/GPU")
    assert cards["feasible_hbm_share"]["big"] == "13.79" and cards["fitting_binding_resource"]["big"] == "tensor cores"
    assert shown["finding"]["text"].startswith("At EP64 a GPU holds 7 experts")
    assert not [figure["reason"] for figure in shown["figures"] if figure["reason"]]


@pytest.mark.parametrize(("query", "reason"), [
    ("c=h200&ep=2", "what DeepSeek-V4.1-Flash keeps on every GPU is 166.4 GB"), ("b=4000", "at most 1,981 sequences"),
    ("ep=65", "a divisor of the 384 routed experts"), ("c=ascend-950pr", "scale-up domain")])
def test_what_cannot_be_is_a_reason_and_no_number(query, reason):
    shown = page(query)
    assert reason in shown["finding"]["reason"] and shown["finding"]["text"] is None
    cards = {card["name"]: card for card in shown["numbers"]}
    assert reason in cards["fitting_step_time"]["reason"] and not cards["fitting_step_time"]["big"]
    assert reason in shown["figures"][0]["reason"]


def test_a_card_without_fp4_says_so():
    assert "no FP4 units" in page("c=h200&ep=8")["blocks"][0]["text"]
    assert "FP4" not in page("")["blocks"][0]["text"]


def test_a_step_shorter_than_its_reads_is_refused():
    card = next(card for card in page("ep=8&st=0.001")["numbers"] if card["name"] == "feasible_hbm_share")
    assert "longer than the step time of 1 ms" in card["reason"] and not card["big"]
