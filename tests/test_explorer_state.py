"""The state of a page is its address: nothing is lost on the way, nothing foreign gets in unseen."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer.explorer import state
from inside_deepinfer.explorer.page import Field, Page
from inside_deepinfer.explorer.pages import all_pages, page_of
from inside_deepinfer.facts import load_facts
from inside_deepinfer.scenario import FactChoice, encode, make_scenario, parameters

FLEET = page_of("fleet")
WITH_FIELDS = Page(slug="test", title="Test", question="Does it?", chapter="tokens", primary=(), finding=lambda *_: "Yes.", fields=(
    Field("text", "Text", "What to encode.", default="hello", max_length=20),
    Field("mode", "Mode", "How.", default="chat", options=("chat", "thinking"))))

HOSTILE = {
    "script": "h=%3Cscript%3Ealert(1)%3C/script%3E",
    "image": "T=%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
    "unknown key with markup": "%3Cb%20onmouseover%3Dalert(1)%3E=1",
    "not a number": "h=NaN&T=nan&L=-nan",
    "infinite": "h=inf&T=-inf&L=Infinity&pd=1e999",
    "wrong type": "h=true&cur=EUR&m=../../etc/passwd&b=1.5",
    "out of range": "h=1.5&T=-1&pd=0&fx=0",
    "given twice": "h=0.5&h=0.6&h=0.7",
    "unknown preset": "preset=nix&preset=%00&preset=published",
    "unicode": "h=%E2%85%98&T=%D9%A1%D9%A2&%F0%9F%90%8B=%F0%9F%90%8B&L=%EF%BC%91",
    "not utf-8": "h=%FF%FE&%C3%28=1",
    "control characters": "h=0.5%00%0A&x%1B%5B31m=%1B%5B2J",
    "empty": "h=&T=&=&&&;;",
    "very long value": "h=" + "9" * 3000,
    "very long": "h=0.5&x=" + "a" * 9000,
    "many keys": "&".join(f"k{n}=1" for n in range(400)),
    "nested compare": "a=" + quote("a=" + quote("h=2&a=h%3D3")),
    "compare with markup": "a=" + quote("h=<svg onload=alert(1)>"),
    "view and theme": "view=admin&theme=%3Cstyle%3E&view=",
    "prototype": "__proto__=1&constructor=1&toString=1",
    "template": "h={{7*7}}&T=${7*7}&L=%7B%7Brange.constructor%7D%7D",
}


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("slug", all_pages())
def test_every_rejected_part_of_a_hostile_link_is_said_and_the_scenario_stays_valid(slug: str, query: str) -> None:
    page = page_of(slug)
    found = state.read(query, page)
    assert found.notices or query == HOSTILE["nested compare"]
    assert all(len(notice) < 400 and notice.isprintable() for notice in found.notices)
    for name, parameter in parameters().items():
        value = getattr(found.scenario, name)
        if isinstance(parameter, FactChoice):
            assert value in parameter.objects
        else:
            assert parameter.bounds[0] <= value <= parameter.bounds[1]
    assert not state.read(state.address(found, page), page).notices


def test_a_notice_names_the_parameter_what_was_given_and_what_was_used_instead() -> None:
    found = state.read("h=2", FLEET)
    published = load_facts().quantity("prefill.hit_rate").value
    assert found.scenario.hit_rate == published
    assert len(found.notices) == 1
    for part in ("Cache hit rate", "h = “2”", "0 to 0.995", f"used instead: {published:g}"):
        assert part in found.notices[0]


@settings(max_examples=60)
@given(hit=st.floats(0, 0.995), ratio=st.floats(0.05, 20), preset=st.sampled_from(sorted(load_facts().presets)))
def test_an_address_leads_back_to_the_same_scenario(hit: float, ratio: float, preset: str) -> None:
    written = encode(make_scenario(preset, {"h": f"{hit:.12g}", "pd": f"{ratio:.12g}"}), preset)
    found = state.read(written, FLEET)
    assert not found.notices
    assert found.preset == preset
    assert state.address(found, FLEET) == written


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_no_text_whatever_breaks_the_reading_of_an_address(text: str) -> None:
    found = state.read(text, WITH_FIELDS)
    assert not state.read(state.address(found, WITH_FIELDS), WITH_FIELDS).notices


@pytest.mark.parametrize(("typed", "value"), [
    (" 0.5 ", 0.5), ("1e2", None), ("0,5", None), ("", None), ("abc", None), ("NaN", None), ("-0.1", None), (".25", 0.25)])
def test_typed_hit_rates_are_taken_as_they_are_or_refused_with_a_notice(typed: str, value: float | None) -> None:
    before = state.read("h=0.7", FLEET)
    after = state.change(before, FLEET, {"hit_rate": typed})
    assert after.scenario.hit_rate == (0.7 if value is None else value)
    assert bool(after.notices) == (value is None)
    if value is None:
        assert "kept: 0.7" in after.notices[0]


@pytest.mark.parametrize(("typed", "value"), [
    ("155,000,000,000,000", 155e12), ("155 000 000 000 000", 155e12), ("1.55e14", 155e12), ("15,5000", None)])
def test_thousands_separators_are_understood_and_a_misplaced_comma_is_not_guessed_at(typed: str, value: float | None) -> None:
    after = state.change(state.read("T=2e13", FLEET), FLEET, {"tokens_per_day": typed})
    assert after.scenario.tokens_per_day == (value or 2e13)


def test_a_preset_replaces_the_scenario_and_an_unknown_one_changes_nothing() -> None:
    before = state.read("h=0.7", FLEET)
    other = next(name for name in load_facts().presets if name != "published")
    assert state.address(state.change(before, FLEET, {"preset": other}), FLEET) == f"preset={other}"
    kept = state.change(before, FLEET, {"preset": "<b>nix"})
    assert state.address(kept, FLEET) == "h=0.7"
    assert "<b>nix" in kept.notices[0]


def test_changing_a_state_leaves_the_old_one_alone() -> None:
    before = state.read("h=0.7", FLEET)
    state.change(before, FLEET, {"hit_rate": "0.9"})
    assert before.scenario.hit_rate == 0.7


def test_fields_of_a_page_are_in_the_address_only_where_they_differ_and_long_text_is_cut_with_a_notice() -> None:
    assert state.address(state.read("text=hello", WITH_FIELDS), WITH_FIELDS) == ""
    long = state.read(urlencode({"text": "<" * 30, "mode": "odd"}), WITH_FIELDS)
    assert long.fields == {"text": "<" * 20, "mode": "chat"}
    assert len(long.notices) == 2
    changed = state.change(long, WITH_FIELDS, {"text": "a&b=c", "mode": "thinking"})
    assert state.read(state.address(changed, WITH_FIELDS), WITH_FIELDS).fields == {"text": "a&b=c", "mode": "thinking"}


def test_scenario_a_of_a_comparison_is_cleaned_like_any_other() -> None:
    found = state.read("h=0.5&a=" + quote("h=2&pd=3"), FLEET)
    assert found.compare == "pd=3"
    assert found.notices[0].startswith("In scenario A: Cache hit rate")


def test_the_reserved_words_of_the_address_meet_no_scenario_key() -> None:
    keys = {parameter.key for parameter in parameters().values()} | set(parameters())
    fields = {entry.key for page in all_pages().values() for entry in page.fields}
    reserved = set(state.OWN_KEYS) | {state.COMPARE_KEY, "preset"}
    assert not keys & reserved
    assert not fields & (keys | reserved)
