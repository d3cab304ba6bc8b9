"""HBM reads, step budget, capacity and the bridge from the article's bytes: published values, properties, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, NotPossible, load_facts
from inside_deepinfer.model.shape import model_ids, without_draft
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving.capacity import check_fits, fit_notice
from inside_deepinfer.serving.cards import card_number, peak_flops
from inside_deepinfer.serving.hbm import slots_read, touched_share
from inside_deepinfer.serving.step_budget import PARTS, RESOURCES, precision_notice, rows_notice
from inside_deepinfer.studies.bridge import weight_bridge

V41, V4, V3 = "deepseek-v4.1-flash", "deepseek-v4-flash", "deepseek-v3"
EPS = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 384])
BATCH = st.integers(1, 4096)
ROWS = st.floats(1, 8)


def test_a_step_reads_14_7_gb_of_weights_and_14_percent():
    """Source: weights per GPU of the public configuration (16.0 GB) less the embedding; article 000 has 4.31 GB and 4 %."""
    names = ["hbm_read_bytes_per_step", "hbm_read_bandwidth", "hbm_share"]
    found = {name: quantity.value for name, quantity in catalogue.evaluate(names).items()}
    assert round(found["hbm_read_bytes_per_step"] / 1e9, 1) == 14.7
    assert round(found["hbm_read_bandwidth"] / 1e12, 1) == 1.1
    assert round(found["hbm_share"], 2) == 0.14


def test_reads_are_the_weights_less_the_embedding_when_every_expert_is_touched():
    weights, reads = (catalogue.value(name) for name in ("weight_bytes_per_gpu", "hbm_read_bytes_per_step"))
    assert weights - reads == pytest.approx(129_280 * 5120 * 2, rel=1e-6)  # vocabulary x hidden in BF16


def test_the_formula_for_distinct_experts():
    """N (1 - (1 - k/N)^B): 199.9 of 256 at 64 rows with 6 each, not min(N, B k)."""
    assert 256 * touched_share(6, 256, 64) == pytest.approx(199.9, abs=0.05)
    assert catalogue.value("distinct_experts", batch=1, rows_per_sequence=1, ep=1) == pytest.approx(6)


@given(experts=st.integers(1, 512), data=st.data())
def test_distinct_experts_stay_below_experts_and_choices(experts, data):
    active = data.draw(st.integers(1, experts))
    rows = data.draw(st.integers(1, 100_000))
    distinct = experts * float(touched_share(active, experts, rows))
    assert active * (1 - 1e-12) <= distinct <= min(experts, active * rows) * (1 + 1e-9)


@given(experts=st.integers(2, 512), more=st.integers(0, 1024), rows=st.integers(1, 10_000), data=st.data())
def test_more_slots_never_read_less(experts, more, rows, data):
    active = data.draw(st.integers(1, experts))
    few, many = (float(slots_read(experts, active, experts + extra, rows)) for extra in (more, more + 1))
    assert few <= many * (1 + 1e-12)
    assert many <= experts + more + 1 + 1e-9


@settings(max_examples=60)
@given(ep=EPS, redundant=st.integers(0, 8), batch=BATCH, rows=ROWS)
def test_reads_grow_with_copies_and_batch_and_never_exceed_what_is_held(ep, redundant, batch, rows):
    at = {"ep": ep, "rows_per_sequence": rows}
    less = catalogue.value("hbm_read_bytes_per_step", batch=batch, redundant_experts=redundant, **at)
    assert less <= catalogue.value("hbm_read_bytes_per_step", batch=batch, redundant_experts=redundant + 1, **at) * (1 + 1e-12)
    assert less <= catalogue.value("hbm_read_bytes_per_step", batch=batch + 1, redundant_experts=redundant, **at) * (1 + 1e-12)
    assert less <= catalogue.value("weight_bytes_per_gpu", redundant_experts=redundant, ep=ep) * (1 + 1e-12)


@given(ep=st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 192]), redundant=st.integers(0, 8),
       model=st.sampled_from(model_ids()))
def test_doubling_ep_never_raises_weights_per_gpu(ep, redundant, model):
    experts = catalogue.value("routed_experts", model=model)
    if experts % (2 * ep) == 0:
        one, two = (catalogue.value("weight_bytes_per_gpu", model=model, ep=e, redundant_experts=redundant) for e in (ep, 2 * ep))
        assert two <= one


@settings(max_examples=40)
@given(ep=EPS, batch=BATCH, redundant=st.integers(0, 4), context=st.integers(1, 1_048_576), rows=ROWS, overlap=st.floats(0, 1))
def test_the_bridge_conserves_bytes(ep, batch, redundant, context, rows, overlap):
    steps = weight_bridge(ep=ep, batch=batch, redundant_experts=redundant, context=context, rows_per_sequence=rows,
                          selection_overlap=overlap)
    totals = [step for step in steps if step.total]
    assert [step.name for step in totals] == ["article 000", "weights counted", "all reads"]
    assert float(totals[0].size) == pytest.approx(552e9 * 0.5 / ep)
    level = 0.0
    for step in steps:
        if step.total and level:
            assert float(step.size) == pytest.approx(level, rel=1e-12)
        level = float(step.size) if step.total else level + float(step.size)
    at = dict(ep=ep, batch=batch, redundant_experts=redundant, context=context, rows_per_sequence=rows, selection_overlap=overlap)
    assert level == pytest.approx(float(catalogue.value("hbm_total_bytes_per_step", **at)), rel=1e-12)


@pytest.mark.parametrize("model", model_ids())
def test_every_model_has_a_bridge(model):
    steps = weight_bridge(model=model)
    assert float(steps[-1].size) == pytest.approx(float(catalogue.value("hbm_total_bytes_per_step", model=model)))


def test_the_bridge_names_what_the_article_leaves_out():
    size = {step.name: float(step.size) / 1e9 for step in weight_bridge()}
    assert size["article 000"] == pytest.approx(4.3125)
    assert size["scales of the experts"] == pytest.approx(0.265, abs=0.001)
    assert size["redundant experts"] == pytest.approx(0.752, abs=0.001)
    assert size["attention on every GPU"] == pytest.approx(5.07, abs=0.01)
    assert {"shared expert", "head", "Engram projections", "KV entries", "index keys", "sliding windows"} <= set(size)


def test_live_kv_grows_with_context_and_batch_and_shrinks_with_shared_selections():
    contexts = np.array([1, 128, 1000, 77_000, 1_048_576])
    reads = catalogue.value("kv_read_bytes_per_step", context=contexts)
    assert np.all(np.diff(reads) > 0)
    assert catalogue.value("kv_read_bytes_per_step", batch=120) == pytest.approx(2 * catalogue.value("kv_read_bytes_per_step"))
    assert catalogue.value("kv_read_bytes_per_step", selection_overlap=1.0) < catalogue.value("kv_read_bytes_per_step")


def test_one_row_at_short_context_reads_every_entry_once():
    """At 100 tokens the selection (512) holds everything: 100 entries in 20 layers, 50 in 18, both with keys."""
    at = dict(context=100, batch=1, rows_per_sequence=1)
    assert catalogue.value("entry_read_bytes", **at) == (20 * 100 + 18 * 50) * 288
    assert catalogue.value("index_read_bytes", **at) == (3 * 50 + 5 * 100) * 68
    assert catalogue.value("window_read_bytes", **at) == 43 * 100 * 528


def test_v3_reads_its_whole_cache_once_per_step():
    reads = catalogue.value("kv_read_bytes_per_step", model=V3, context=4096, batch=10)
    assert reads == 70_272 * 4096 * 10


@settings(max_examples=60)
@given(ep=EPS, batch=BATCH, context=st.integers(1, 1_048_576), overlap=st.floats(0, 1),
       card=st.sampled_from(["h100", "h200", "b200", "b300", "gb200", "gb300", "ascend-950dt"]))
def test_the_step_lies_between_its_longest_part_and_the_sum(ep, batch, context, overlap, card):
    at = dict(ep=ep, batch=batch, context=context, overlap=overlap, card=card)
    found = {name: float(q.value) for name, q in catalogue.evaluate([*PARTS, "counted_step_time"], **at).items()}
    parts = [found[name] for name in PARTS]
    assert all(np.isfinite(parts)) and min(parts) >= 0
    assert max(parts) * (1 - 1e-12) <= found["counted_step_time"] <= sum(parts) * (1 + 1e-12)
    assert catalogue.value("binding_resource", **at) in RESOURCES


def test_less_overlap_never_makes_a_step_shorter():
    times = catalogue.value("counted_step_time", overlap=np.linspace(0, 1, 11))
    assert np.all(np.diff(times) <= 0)


def test_the_published_step_is_longer_than_what_is_counted():
    """13.3 ms (article 000) hold imbalance, synchronisation and sampling as well."""
    assert catalogue.value("counted_share_of_step") < 1
    assert catalogue.value("counted_step_time", overlap=0.0) < 13.3e-3


def test_binding_resource_over_a_map_is_what_it_is_point_by_point():
    eps, batches = np.array([4, 64, 128]), np.array([1, 60, 500])
    grid = catalogue.value("binding_resource", ep=eps[None, :], batch=batches[:, None])
    assert grid.shape == (3, 3)
    for row, batch in enumerate(batches.tolist()):
        for column, ep in enumerate(eps.tolist()):
            assert grid[row, column] == catalogue.value("binding_resource", ep=ep, batch=batch)


def test_a_sweep_is_one_call():
    batch, ep = np.arange(1, 12)[:, None, None], np.array([2, 64, 128])[:, None]
    card = np.array(["b200", "gb300", "h200", "gb200"])
    found = catalogue.evaluate(["hbm_total_bytes_per_step", "counted_step_time", "memory_share", "largest_batch"],
                               batch=batch, ep=ep, card=card)
    assert found["counted_step_time"].value.shape == found["memory_share"].value.shape == (11, 3, 4)
    for quantity in found.values():
        assert np.all(np.isfinite(quantity.value)) and np.all(quantity.value >= 0)


def test_arrays_of_cards():
    cards = np.array(["b200", "gb300", "b200"])
    times = catalogue.value("time_weights", card=cards)
    assert times[0] == times[2] == catalogue.value("time_weights", card="b200")
    assert times[1] == catalogue.value("time_weights", card="gb300")


@settings(max_examples=40)
@given(ep=EPS, context=st.integers(1, 1_048_576), card=st.sampled_from(sorted(load_facts().cards)))
def test_the_largest_batch_fits_and_one_more_does_not(ep, context, card):
    at = dict(ep=ep, context=context, card=card)
    most = float(catalogue.value("largest_batch", **at))
    if most >= 1:
        assert catalogue.value("memory_share", batch=most, **at) <= 1 + 1e-12
    assert catalogue.value("memory_share", batch=most + 1, **at) > 1


def fit(**changes: object) -> tuple:
    names = ["resident_bytes", "usable_memory", "memory_needed", "largest_batch"]
    scenario = make_scenario(changes=changes)
    return (scenario.model, scenario.card, *(float(q.value) for q in catalogue.evaluate(names, scenario).values()))


def test_what_does_not_fit_says_so_and_why():
    assert fit_notice(*fit()) == ""
    check_fits(*fit())
    with pytest.raises(NotPossible, match="before the first sequence"):
        check_fits(*fit(ep=2, card="h200"))
    with pytest.raises(NotPossible, match="at most [0-9,]+ sequences per GPU"):
        check_fits(*fit(batch=4096))
    assert catalogue.value("largest_batch", ep=2, card="h200", redundant_experts=0) == 0


def test_prefill_instances_drop_draft_experts():
    """Source: released engine; at EP2 that is what makes V4.1-Flash fit a smaller card."""
    gone = catalogue.value("weight_bytes_per_gpu", ep=2) - catalogue.value("prefill_weight_bytes_per_gpu", ep=2)
    assert gone == 3 * (64 + 1) * catalogue.value("expert_bytes")  # 128 experts over two GPUs, one copy each


@pytest.mark.parametrize(("changes", "named"), [
    ({"batch": 0}, "batch"), ({"batch": -1}, "batch"), ({"batch": float("nan")}, "batch"), ({"batch": "many"}, "batch"),
    ({"rows_per_sequence": 0}, "rows_per_sequence"), ({"step_time": 0}, "step_time"), ({"step_time": float("inf")}, "step_time"),
    ({"context": 2_000_000}, "context"), ({"overlap": 1.5}, "overlap"), ({"overlap": -0.1}, "overlap"),
    ({"selection_overlap": 2}, "selection_overlap"), ({"ep": 7}, "ep"), ({"redundant_experts": 1.5}, "redundant_experts"),
    ({"card": "tpu"}, "card"), ({"model": "gpt"}, "model"), ({"model": None}, "model"), ({"model": ["a"]}, "model"),
    ({"ep": "64"}, "ep"), ({"ep": float("inf")}, "ep"), ({"ep": -64}, "ep"), ({"scaleup_domain": 1.5}, "scaleup_domain"),
    ({"rows_per_sequence": float("nan")}, "rows_per_sequence"), ({"model": V3, "context": 200_000}, "context"),
])
def test_bad_input_names_itself_and_what_is_allowed(changes, named):
    with pytest.raises(InputError) as caught:
        catalogue.evaluate(["hbm_total_share", "counted_step_time", "memory_share"], **changes)
    assert caught.value.parameter == named
    assert caught.value.allowed


@pytest.mark.parametrize(("name", "changes", "named"), [
    ("largest_batch", {"model": V3, "context": 200_000}, "context"), ("memory_share", {"context": 0}, "context"),
    ("decode_compute", {"batch": float("nan")}, "batch"), ("decode_compute", {"rows_per_sequence": -1}, "rows_per_sequence"),
    ("routed_rows", {"ep": -64}, "ep"), ("crossing_bytes_per_step", {"ep": float("inf")}, "ep"),
    ("crossing_bytes_per_step", {"rows_per_sequence": float("nan")}, "rows_per_sequence")])
def test_bad_input_is_refused_by_each_number_that_takes_it(name, changes, named):
    with pytest.raises(InputError) as caught:
        catalogue.value(name, **changes)
    assert caught.value.parameter == named


def test_lists_work_wherever_arrays_do():
    assert catalogue.value("weight_bytes_per_gpu", ep=[2, 64]).tolist() == catalogue.value("weight_bytes_per_gpu",
                                                                                           ep=np.array([2, 64])).tolist()
    assert catalogue.value("card_memory", card=["h200", "b200"]).shape == (2,)


def test_rows_beyond_the_drafts_of_a_model_are_said():
    assert rows_notice(V41, 6.0) == "" and "at most 6 rows; 8 are" in rows_notice(V41, 8.0)
    assert rows_notice(V3, 2.0) == "" and "drafts 1 token per step" in rows_notice(V3, 4.8)
    assert rows_notice(without_draft(V3), 1.0) == "" and "drafts no tokens per step, so a sequence brings at most 1 row; 2 are" \
        in rows_notice(without_draft(V3), 2.0)


def test_deepeps_rates_leave_71_percent_of_the_link():
    """(726 + 740) / 2 GB/s * 7/8 of 900 GB/s (README of DeepEP v2; B200 in data/hardware)."""
    assert catalogue.value("deepep_link_share") == pytest.approx(733 * 7 / 8 / 900)
    assert catalogue.value("link_over_network") == pytest.approx(900 / 50)


def test_a_precision_the_card_lacks_is_refused_with_the_reason():
    with pytest.raises(NotPossible, match="H200 SXM has no FP4 peak"):
        peak_flops("h200", "fp4")
    with pytest.raises(InputError, match="precision"):
        peak_flops("h200", "fp6")
    assert peak_flops("gb200", "fp4") == 10.0e15
    assert "no FP4 units" in precision_notice(V41, "h200")
    assert precision_notice(V41, "gb200") == "" and precision_notice(V3, "h200") == ""


def test_a_number_a_card_lacks_is_named():
    with pytest.raises(NotPossible, match="scale-up domain"):
        card_number("ascend-950pr", "scaleup_domain")


def test_index_scores_take_twice_as_long_without_fp4():
    on = {card: catalogue.value("attention_flops_per_row", card=card) for card in ("h200", "gb200")}
    scores = 2.5 * 77_000 * 4096 + 4 * 16_384 * 4096  # keys of four full scans and four candidate scans, 32 heads x 128
    assert on["h200"] - on["gb200"] == pytest.approx(scores)
