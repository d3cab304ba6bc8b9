"""What stands in data/ is plausible, agrees with itself, and follows from what it was read from."""

from __future__ import annotations

import re

import numpy as np
import pytest

from inside_deepinfer import catalogue
from inside_deepinfer.facts import load_facts

CARDS = sorted(load_facts().cards.values(), key=lambda card: card.id)
by_card = pytest.mark.parametrize("card", CARDS, ids=[card.id for card in CARDS])


# ---- cards: a slip of a unit, a sparse peak, a link counted both ways -----------------------------------------------------

@by_card
def test_memory_is_that_of_one_card(card):
    assert 80e9 <= card.hbm_bytes <= 300e9


@by_card
def test_bandwidth_is_terabytes_per_second(card):
    assert 1e12 <= card.hbm_bandwidth <= 20e12
    assert 0.01 <= card.hbm_bytes / card.hbm_bandwidth <= 0.1, "seconds to read the whole memory once"


@by_card
def test_peaks_double_from_format_to_format(card):
    """Dense peaks: FP8 is twice BF16; FP4 twice FP8, up to 3.2 times on Blackwell Ultra."""
    assert 100e12 <= card.bf16_flops <= 5000e12
    assert card.fp8_flops == pytest.approx(2 * card.bf16_flops, rel=0.05)
    assert card.fp4_flops is None or 1.95 <= card.fp4_flops / card.fp8_flops <= 3.2


@by_card
def test_arithmetic_per_byte_is_that_of_an_accelerator(card):
    assert 100 <= card.fp8_flops / card.hbm_bandwidth <= 1500


@by_card
def test_the_link_is_counted_one_way_and_is_slower_than_memory(card):
    assert 100e9 <= card.scaleup_bandwidth <= 1100e9
    assert card.scaleup_bandwidth < card.hbm_bandwidth


@by_card
def test_domain_and_power(card):
    assert card.scaleup_domain in (None, 8, 72, 8192)
    assert card.power is None or 300 <= card.power <= 2000


def test_peaks_that_the_released_engine_assumes_are_those_of_the_cards():
    facts, cards = load_facts(), load_facts().cards
    assert cards["gb200"].bf16_flops == cards["gb300"].bf16_flops == facts.number("deepinfer.bf16_peak.sm100_arm")
    assert cards["b200"].bf16_flops == cards["b300"].bf16_flops == facts.number("deepinfer.bf16_peak.sm100_x86")
    assert cards["ascend-950pr"].bf16_flops == cards["ascend-950dt"].bf16_flops == facts.number("deepinfer.bf16_peak.ascend")
    assert facts.number("deepinfer.fp8_over_bf16") == 2


def test_what_is_reached_stays_below_the_peak_of_the_card():
    table = load_facts().points("matmul-reached")
    for row in table.itertuples():
        card = load_facts().cards[row.card]
        assert row.peak == {"BF16": card.bf16_flops, "FP8": card.fp8_flops}[row.format]
        assert 0.6 < row.reached / row.peak < 0.9


def test_a_decode_instance_fits_the_domain_of_the_default_card():
    facts = load_facts()
    assert facts.cards[facts.quantity("scenario.card").value].scaleup_domain >= facts.number("scenario.ep")


# ---- prices ----------------------------------------------------------------------------------------------------------------

def test_a_miss_never_costs_less_than_a_hit_and_output_never_less_than_a_miss():
    facts = load_facts()
    for row in facts.prices.values():
        assert row.cache_hit < row.cache_miss < row.output, row.id
    for row in facts.vendor_prices.values():
        assert row.cache_read is None or row.cache_read < row.input, row.id
        assert row.output is None or row.input < row.output, row.id


def test_peak_is_twice_off_peak():
    facts = load_facts()
    rows = [row for row in facts.prices.values() if row.window == "peak"]
    assert len(rows) == 6
    for row in rows:
        other = facts.prices[row.id.removesuffix("peak") + "off-peak"]
        assert (other.window, other.effective, other.currency) == ("off-peak", row.effective, row.currency)
        for field in ("cache_hit", "cache_miss", "output"):
            assert getattr(row, field) == pytest.approx(facts.number("price.peak_factor") * getattr(other, field))


@pytest.mark.parametrize("currency", ["cny", "usd"])
def test_scenario_prices_are_those_of_the_list(currency):
    facts, row = load_facts(), load_facts().prices[f"v41-{currency}-off-peak"]
    prices = [facts.number(f"price.v41.{currency}.{part}") for part in ("hit", "miss", "output")]
    assert prices == [row.cache_hit, row.cache_miss, row.output] and row.currency == currency.upper()


def test_prices_that_the_articles_print_are_those_of_the_list():
    facts = load_facts()
    assert facts.number("price.hit") == facts.number("price.v41.cny.hit")
    assert facts.number("price.miss") == facts.number("price.v41.cny.miss")
    ours, row = facts.vendor_prices["deepseek-v41"], facts.prices["v41-usd-off-peak"]
    assert (ours.cache_read, ours.input, ours.output) == (row.cache_hit, row.cache_miss, row.output)


def test_the_two_lists_imply_one_exchange_rate():
    facts = load_facts()
    yuan, dollar = facts.prices["v41-cny-off-peak"], facts.prices["v41-usd-off-peak"]
    for field in ("cache_hit", "cache_miss", "output"):
        assert getattr(yuan, field) / getattr(dollar, field) == pytest.approx(facts.number("rate.cny_per_usd_list"))


def test_share_of_peak_hours():
    facts = load_facts()
    share = 7 / 24 * 5 / 7  # 09:00-12:00 and 14:00-18:00, Monday to Friday: DeepSeek's price page
    assert catalogue.value("peak_hours_share") == pytest.approx(share)
    assert facts.number("price.peak_share_average_week") == pytest.approx(share, abs=1e-9)


def test_history_begins_with_v3_and_ends_with_v41():
    history = sorted(load_facts().prices.values(), key=lambda row: row.effective)
    assert (history[0].model, history[-1].model) == ("V3", "V4.1-Flash")
    assert all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", row.effective) for row in history)
    third = [row for row in history if row.source.startswith("price-third")]
    assert all("third party" in row.note for row in third), "a price that DeepSeek's own page does not show says so"


def test_rental_prices():
    facts = load_facts()
    for row in facts.rentals.values():
        assert 1 < row.low <= row.high < 20, row.id
        assert row.gpu == "mixed" or row.gpu.lower() in facts.cards, row.id


# ---- published points ------------------------------------------------------------------------------------------------------

def test_sources_and_cards_named_in_tables_exist():
    facts = load_facts()
    for name, curve in facts.curves.items():
        table = facts.points(name)
        if "source" in curve.columns:
            assert set(table.source) <= set(facts.sources), name
        if "card" in curve.columns:
            assert {card.lower() for card in table.card} <= {*facts.cards, "mi300x", "mi325x"}, name


def test_shares_lie_between_0_and_1_and_other_numbers_are_positive():
    facts = load_facts()
    for name, curve in facts.curves.items():
        table = facts.points(name)
        for column, declared in curve.columns.items():
            if not declared.text:
                numbers = table[column].dropna()
                assert (numbers >= 0).all() and (declared.unit != "ratio" or (numbers <= 1).all()), f"{name}.{column}"


def test_dspark_frontier_agrees_with_its_marked_points_and_with_the_load_figure():
    facts = load_facts()
    frontier, marked, load = (facts.points(f"dspark-{name}") for name in ("fig7-pareto", "fig7-anchors", "fig8-load"))
    assert frontier.conc_per_gpu.to_numpy() == pytest.approx(frontier.tok_s_gpu / frontier.tok_s_user, abs=0.06)
    both = marked.merge(frontier, on=["model", "spec", "tok_s_user"], suffixes=("", "_read"))
    assert len(both) == 8 and both.tok_s_gpu_read.to_numpy() == pytest.approx(both.tok_s_gpu, rel=0.005)
    for (model, spec), line in frontier.groupby(["model", "spec"]):
        there = load[(load.model == model) & (load.spec == spec)]
        inside = line[line.conc_per_gpu.between(15 if "Flash" in model else 5, 200)]
        read = np.interp(inside.conc_per_gpu, there.conc_per_gpu, there.tok_s_gpu)
        assert read == pytest.approx(inside.tok_s_gpu, rel=0.03 if "Flash" in model else 0.21), (model, spec)


def test_gains_that_the_dspark_paper_prints():
    """60, 85, 57 and 78 % faster at equal throughput; 51, 661, 52 and 406 % more at equal speed."""
    marked = load_facts().points("dspark-fig7-anchors")
    mtp, dspark = (marked[marked.spec == spec] for spec in ("MTP-1", "DSpark-5"))
    equal_throughput = mtp.merge(dspark, on=["model", "tok_s_gpu"])
    equal_speed = mtp.merge(dspark, on=["model", "tok_s_user"])
    faster = (equal_throughput.tok_s_user_y / equal_throughput.tok_s_user_x - 1).round(2)
    more = (equal_speed.tok_s_gpu_y / equal_speed.tok_s_gpu_x - 1).round(2)
    assert faster.tolist() == [0.60, 0.85, 0.57, 0.78] and more.tolist() == [0.51, 6.61, 0.52, 4.06]


def test_acceptance_by_position_gives_the_accepted_length_of_the_table():
    facts = load_facts()
    chance, table = facts.points("dspark-fig2-acceptance"), facts.points("dspark-table1-accepted")
    table = table[table.target == "Qwen3-4B"].set_index("drafter")
    benchmarks = {"math": ["gsm8k", "math", "aime25"], "code": ["mbpp", "humaneval", "lcb"],
                  "chat": ["mt_bench", "alpaca", "arena_hard"]}
    for row in chance.itertuples():
        length = 1 + np.cumprod([getattr(row, f"p{n}") for n in range(1, 8)]).sum()
        assert length == pytest.approx(table.loc[row.drafter, benchmarks[row.domain]].mean(), rel=0.01)


def test_measured_rates_follow_from_measured_times():
    facts = load_facts()
    alone = facts.points("h100-v41-isolated")
    assert alone.prefill_tok_s_8gpu.to_numpy() == pytest.approx(alone.input_tokens / alone.ttft_p50, rel=0.007)
    assert alone.time_per_prompt_token.to_numpy() == pytest.approx(1 / alone.prefill_tok_s_8gpu, rel=0.002)
    traced = facts.points("inferencex-v41-gb300")
    assert traced.tok_s_user.to_numpy() == pytest.approx(1 / traced.tpot_mean, rel=0.001)
    recipe = facts.points("dynamo-v41-agentic")
    assert recipe.out_tok_s_gpu.to_numpy() == pytest.approx(recipe.total_out_tok_s / recipe.gpus, rel=0.001)
    warm = facts.points("h100-v41-prefix").set_index(["state", "distinct_prefixes"]).out_tok_s_8gpu
    gain = warm["prewarmed", 16] / warm["cache off", 1]
    assert gain == pytest.approx(facts.number("h100.prefill_gain_from_cache"), abs=0.05)


def test_flop_per_token_adds_up():
    table = load_facts().points("deepinfer-flop-per-token").dropna(subset=["attention"])
    parts = table.attention + table.moe_router_mhc_engram + table.logits
    assert parts.to_numpy() == pytest.approx(table.total_fp8eq, abs=2e7)  # each is rounded to 10 MFLOP


def test_anchors_are_the_claims_of_the_articles():
    facts = load_facts()
    anchors = facts.points("deepinfer-anchors").set_index("phase")
    assert anchors.tok_s_gpu["prefill, new tokens"] == facts.number("prefill.throughput_new")
    assert anchors.tok_s_gpu["prefill, cached tokens counted"] == facts.number("prefill.throughput_cached")
    assert anchors.hit_rate["prefill, cached tokens counted"] == facts.number("prefill.hit_rate")
    assert anchors.input_tokens["prefill, cached tokens counted"] == facts.number("prefill.input_mean")
    assert anchors.tok_s_gpu["decode, benchmark"] == facts.number("decode.benchmark")
    online = anchors.loc["decode, online"]
    assert [online.tok_s_gpu, online.tok_s_user, online.sequences_per_gpu] == [
        facts.number("decode.throughput"), facts.number("decode.user_speed"), facts.number("decode.sequences")]


def test_hit_rates_rise_with_retention():
    table = load_facts().points("mooncake-retention")
    for column in table.columns[1:]:
        assert (np.diff(table[column].dropna()) >= 0).all()
    assert (table.conversation_from_write.dropna() <= table.conversation[table.conversation_from_write.notna()]).all()


def test_the_day_of_v3_and_r1_adds_up():
    """Cost from nodes and price; revenue from tokens and R1 prices; the profit over cost that DeepSeek printed."""
    facts = load_facts()
    number = {name: facts.number(f"v3r1.{name}") for name in (
        "mean_nodes", "gpus_per_node", "gpu_hour_cost", "cost_per_day", "revenue_per_day", "cost_profit_margin", "input_tokens",
        "cached_tokens", "output_tokens")}
    hours = number["mean_nodes"] * number["gpus_per_node"] * 24
    assert hours * number["gpu_hour_cost"] == pytest.approx(number["cost_per_day"])
    price, million = facts.prices["r1-usd"], 1e6
    revenue = (number["cached_tokens"] * price.cache_hit + (number["input_tokens"] - number["cached_tokens"]) * price.cache_miss
               + number["output_tokens"] * price.output) / million
    assert revenue == pytest.approx(number["revenue_per_day"], rel=0.001)  # tokens are printed to the billion
    profit = number["revenue_per_day"] / number["cost_per_day"] - 1
    assert profit == pytest.approx(number["cost_profit_margin"], abs=0.005)
    assert number["cached_tokens"] / number["input_tokens"] == pytest.approx(0.563, abs=0.0005)  # as printed there


def test_workloads_that_keep_both_pools_full():
    facts = load_facts()
    cached = facts.number("prefill.throughput_cached")
    assert facts.number("workload.input_output_ratio") == pytest.approx(cached / facts.number("decode.throughput"))
    assert facts.number("workload.input_output_ratio_benchmark") == pytest.approx(cached / facts.number("decode.benchmark"))


# ---- words -----------------------------------------------------------------------------------------------------------------

def test_glossary():
    terms = load_facts().glossary.values()
    assert len(terms) >= 60
    assert len({term.term.lower() for term in terms}) == len(terms)
    for term in terms:
        assert term.meaning.endswith(".") and term.meaning.count(". ") == 0, f"{term.id}: one sentence"
        japanese = re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", term.japanese)
        assert japanese or term.japanese == term.term, f"{term.id}: {term.japanese}"


def test_errata_name_things_that_exist():
    facts = load_facts()
    ids = {*facts.claims, *facts.facts, *facts.cards, *facts.prices, *facts.sources}
    prefixes = {name.split(".")[0] for name in {*facts.claims, *facts.facts}}
    for entry in facts.errata.values():
        for name in re.findall(r"\b[a-z0-9]+\.[a-z0-9_.]+\b", entry.where):
            named = name.split(".")[0] in prefixes and not name.endswith((".yaml", ".csv"))
            assert not named or name in ids, f"{entry.id}: {name}"
        assert entry.was != entry.now and entry.why.endswith(".")
