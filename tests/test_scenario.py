"""Scenarios: parameters declared once, presets, links that survive, bad input that is reported and never used."""

from __future__ import annotations

import math
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, load_facts
from inside_deepinfer.scenario import (
    MAX_NOTICES,
    FactChoice,
    FactInteger,
    Scenario,
    allowed,
    decode,
    encode,
    make_scenario,
    names_by_key,
    parameters,
    parse,
    preset_values,
    quantities,
)

PRESETS = list(load_facts().presets)

# Links that people saved hold these keys. A new parameter adds a line; no line ever changes or goes.
KEYS = {
    "T": "tokens_per_day", "h": "hit_rate", "L": "input_tokens", "io": "input_output_ratio", "pn": "prefill_throughput_new",
    "dt": "decode_throughput", "pd": "pd_ratio", "sc": "store_capacity", "sg": "store_per_gpu", "rd": "retention_days",
    "dr": "drives_per_server", "ds": "data_shards", "ps": "parity_shards", "ph": "price_hit", "pm": "price_miss",
    "po": "price_output", "cur": "currency", "fx": "cny_per_usd", "pk": "peak_share", "gc": "gpu_cost", "ic": "infra_cost",
    "m": "model", "c": "card", "ep": "ep", "re": "redundant_experts", "ctx": "context", "b": "batch", "st": "step_time",
    "rw": "rows_per_sequence", "ov": "overlap", "rc": "retention_chat_days", "ssd": "ssd_price", "ru": "reuse_probability",
    "so": "selection_overlap", "df": "dispatch_format", "cf": "combine_format", "sd": "scaleup_domain", "sb": "scaleout_bandwidth",
    "xd": "crossing",
}


# ---- the declaration -------------------------------------------------------------------------------------------------------

def test_keys_are_stable():
    now = {parameter.key: name for name, parameter in parameters().items()}
    assert {key: now.get(key) for key in KEYS} == KEYS
    assert all(len(key) <= 3 and key.isalnum() for key in now)
    assert not set(now) & {"preset", "theme", "view", "compare", "a", "name"}


def test_every_parameter_is_complete_and_its_default_is_a_fact_within_its_bounds():
    facts = load_facts()
    for name, parameter in parameters().items():
        assert parameter.label and parameter.doc and parameter.group and parameter.key, name
        assert parameter.default == facts.quantity(parameter.fact).value, name
        assert parse(name, parameter.default) == parameter.default == parse(name, str(parameter.default))
        if isinstance(parameter, FactChoice):
            assert parameter.default in parameter.objects and len(parameter.objects) > 1, name
        else:
            low, high = parameter.bounds
            assert low <= parameter.default <= high and parameter.step > 0 and (low > 0 or not parameter.log), name
            assert parameter.unit, name


def test_whole_numbers_are_whole():
    for name, parameter in parameters().items():
        if isinstance(parameter, FactInteger):
            assert type(parameter.default) is int and type(getattr(make_scenario(), name)) is int, name
            with pytest.raises(InputError, match="a whole number from"):
                parse(name, parameter.default + 0.5)
            with pytest.raises(ValueError, match="whole number"):
                setattr(make_scenario(), name, parameter.default + 0.5)


@pytest.mark.parametrize("given", ["", "abc", "nan", "inf", "-inf", None, [], True, "1e999", "0x10", "1;2"])
def test_what_is_no_number_is_refused_with_what_is_allowed(given):
    with pytest.raises(InputError) as caught:
        parse("hit_rate", given)
    assert str(caught.value).endswith("allowed is 0 to 0.995") and "hit_rate" in str(caught.value)


def test_allowed_in_words():
    assert allowed("currency") == "CNY or USD"
    assert allowed("redundant_experts") == "a whole number from 0 to 16 expert/GPU"
    assert allowed("input_tokens") == "256 to 1.048576 million token"


# ---- presets ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_loads_and_only_names_what_it_changes(preset):
    scenario, entry = make_scenario(preset), load_facts().presets[preset]
    assert entry.doc.endswith(".") and entry.label
    for name, value in preset_values(preset).items():
        assert getattr(scenario, name) == value
    changed = {name for name, parameter in parameters().items() if getattr(scenario, name) != parameter.default}
    assert (not changed) == (preset == "published")
    assert not entry.set or entry.source, "values typed in a preset need a source"


def test_presets_that_the_book_needs():
    assert PRESETS[:5] == ["published", "config-corrected", "off-peak", "peak", "average-week"]
    assert {"my-cluster", "chatbot", "agents"} <= set(PRESETS)


@pytest.mark.parametrize(("preset", "expected"), [
    # claims.yaml, fleet.revenue_theory: 36.71 with the yuan list, 37.2 with 14,466 token/s, 39.1 with the dollar list;
    # twice that at peak, and 1 + 7/24 * 5/7 of it over a week
    ("published", 36.71), ("config-corrected", 37.18), ("off-peak", 39.10), ("peak", 78.19), ("average-week", 47.24),
])
def test_revenue_of_the_price_presets(preset, expected):
    assert catalogue.value("revenue_per_cluster_gpu_hour", preset=preset) == pytest.approx(expected, abs=0.005)


def test_peak_prices_are_not_counted_twice():
    at_peak = make_scenario("peak")
    row = load_facts().prices["v41-usd-peak"]
    factor = catalogue.value("price_factor", at_peak, "peak")
    assert [factor * price for price in (at_peak.price_hit, at_peak.price_miss, at_peak.price_output)] == pytest.approx(
        [row.cache_hit, row.cache_miss, row.output])


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(InputError, match="preset = 'cheap' is not possible: allowed is published, config-corrected"):
        make_scenario("cheap")


# ---- links -----------------------------------------------------------------------------------------------------------------

def value_of(name: str) -> st.SearchStrategy:
    parameter = parameters()[name]
    if isinstance(parameter, FactChoice):
        return st.sampled_from(parameter.objects)
    low, high = parameter.bounds
    return st.integers(low, high) if isinstance(parameter, FactInteger) else st.floats(low, high)


changes = st.fixed_dictionaries({}, optional={name: value_of(name) for name in parameters()})


@given(st.sampled_from(PRESETS), changes)
def test_a_link_gives_its_scenario_back(preset, changed):
    scenario = make_scenario(preset, changed)
    link = encode(scenario, preset)
    again, same_preset, notices = decode(link)
    assert same_preset == preset and not notices
    for name in parameters():
        here, there = getattr(scenario, name), getattr(again, name)
        assert here == there if isinstance(here, (str, int)) else math.isclose(here, there, rel_tol=1e-11, abs_tol=1e-300), name
    assert encode(again, preset) == link, "a link copied from its own page stays as it is"


@given(st.sampled_from(PRESETS), changes)
def test_a_link_holds_only_what_differs(preset, changed):
    base = make_scenario(preset)
    pairs = dict(parse_qsl(encode(make_scenario(preset, changed), preset)))
    differs = {parameters()[name].key for name, value in changed.items() if value != getattr(base, name)}
    assert set(pairs) == differs | ({"preset"} if preset != "published" else set())


def test_links_read_as_a_person_would_write_them():
    assert encode(make_scenario()) == ""
    assert encode(make_scenario("peak"), "peak") == "preset=peak"
    assert encode(make_scenario(changes={"h": 0.8, "pd": 2, "card": "gb300"})) == "h=0.8&pd=2&c=gb300"
    assert encode(make_scenario(changes={"h": 0.1 + 0.2})) == "h=0.3"
    assert encode(make_scenario(changes={"T": 3.1e14})) == "T=3.1e14"


def test_going_back_to_the_published_value_survives_in_a_preset():
    link = encode(make_scenario("peak", {"pk": 0}), "peak")
    assert link == "preset=peak&pk=0" and decode(link)[0].peak_share == 0


def test_long_names_and_a_question_mark_are_understood():
    scenario, preset, notices = decode("?preset=off-peak&hit_rate=0.8&ep=128")
    assert (scenario.hit_rate, scenario.ep, preset, notices) == (0.8, 128, "off-peak", [])


@pytest.mark.parametrize(("query", "notice"), [
    ("h=1", "h = '1' was not used (allowed is 0 to 0.995); used instead: 0.96"),
    ("h=-0.1", "h = '-0.1' was not used (allowed is 0 to 0.995); used instead: 0.96"),
    ("h=", "h = '' was not used (allowed is 0 to 0.995); used instead: 0.96"),
    ("h=nan", "h = 'nan' was not used (allowed is 0 to 0.995); used instead: 0.96"),
    ("ep=2.5", "ep = '2.5' was not used (allowed is a whole number from 1 to 384 GPU); used instead: 64"),
    ("cur=EUR", "cur = 'EUR' was not used (allowed is CNY or USD); used instead: CNY"),
    ("T=0", "T = '0' was not used (allowed is 1 billion to 10,000 trillion token/day); used instead: 155 trillion"),
    ("h=0.8&h=0.9", "h = '0.9' was not used (given twice); used instead: 0.8"),
    ("h=0.8&hit_rate=0.9", "hit_rate = '0.9' was not used (given twice); used instead: 0.8"),
    ("preset=cheap", "preset = 'cheap' was not used (there is no such preset); used instead: published"),
    ("preset=peak&preset=agents", "preset = 'agents' was not used (given twice); used instead: peak"),
    ("zz=1", "'zz' = '1' was not used (there is no such parameter); used instead: nothing"),
    ("%3Cimg%20onerror%3Dx%3E=1", "'<img onerror=x>' = '1' was not used (there is no such parameter); used instead: nothing"),
])
def test_bad_parts_are_reported_with_what_was_used_instead(query, notice):
    _, _, notices = decode(query)
    assert [str(part) for part in notices] == [notice]


def test_one_bad_part_does_not_spoil_the_others():
    scenario, preset, notices = decode("preset=off-peak&h=9&pd=2&zz=1")
    assert (scenario.hit_rate, scenario.pd_ratio, preset, len(notices)) == (0.96, 2.0, "off-peak", 2)


def test_keys_of_others_are_left_to_them():
    assert decode("theme=dark&h=0.8&view=big", ignore=frozenset({"theme", "view"}))[2] == []


def test_an_endless_link_is_cut_short():
    scenario, preset, notices = decode("h=0.8&" + "x" * 10_000)
    assert len(notices) == 1 and "longer than" in str(notices[0]) and encode(scenario) == "" and preset == "published"
    _, _, notices = decode("&".join(f"a{n}=1" for n in range(500)))
    assert len(notices) == MAX_NOTICES + 1 and "480 more parts" in str(notices[-1])


@given(st.text(max_size=300) | st.lists(st.tuples(st.sampled_from([*names_by_key(), "preset", "x"]), st.text(max_size=20)),
                                        max_size=6).map(lambda pairs: "&".join(f"{key}={value}" for key, value in pairs)))
def test_no_link_breaks_anything(query):
    scenario, preset, notices = decode(query)
    assert isinstance(scenario, Scenario) and preset in load_facts().presets
    for name, parameter in parameters().items():
        value = getattr(scenario, name)
        assert value in parameter.objects if isinstance(parameter, FactChoice) else parse(name, value) == value
    for notice in notices:
        assert len(str(notice)) < 1200 and str(notice).isprintable()


# ---- where values come from ------------------------------------------------------------------------------------------------

def test_published_values_keep_kind_and_source_of_their_facts():
    facts = load_facts()
    for name, quantity in quantities(make_scenario()).items():
        fact = facts.quantity(parameters()[name].fact)
        unit = parameters()[name].unit.replace("price/", "CNY/")  # a price is shown in the scenario's currency
        assert (quantity.kind, quantity.sources, quantity.unit) == (fact.kind, fact.sources, unit)


def test_values_of_a_preset_say_where_they_come_from():
    found = quantities(make_scenario("off-peak"), "off-peak")
    assert (found["price_hit"].kind, found["price_hit"].sources) == ("reported", ("price-deepseek-usd",))
    found = quantities(make_scenario("my-cluster"), "my-cluster")
    assert (found["decode_throughput"].kind, found["decode_throughput"].sources) == ("assumption", ("dynamo-recipe",))
    assert found["model"].kind == "config", "what the preset leaves alone keeps its own source"


def test_a_readers_change_is_a_choice_in_every_preset():
    for preset in PRESETS:
        found = quantities(make_scenario(preset, {"h": 0.123}), preset)
        assert (found["hit_rate"].kind, found["hit_rate"].sources, found["hit_rate"].value) == ("choice", (), 0.123)
    back = quantities(make_scenario("off-peak", {"cur": "CNY"}), "off-peak")["currency"]
    assert (back.kind, back.sources) == ("reported", ("price-deepseek-cny",)), "going back to the published value is no choice"
