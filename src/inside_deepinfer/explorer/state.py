"""The state of a page is its address: reading one, changing it, and writing it back.

Nothing else is kept, so a copied link, a reload and a second server process all show the same page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from inside_deepinfer.explorer.page import Page
from inside_deepinfer.facts import InputError, load_facts, show
from inside_deepinfer.scenario import (
    MAX_QUERY,
    Notice,
    Scenario,
    decode,
    defaults,
    encode,
    make_scenario,
    names_by_key,
    parameters,
    parse,
    preset_values,
)

VIEWS = ("full", "stakeholder", "embed")
THEMES = ("light", "dark", "auto")
OWN_KEYS = {"theme": THEMES, "view": VIEWS}
COMPARE_KEY = "a"
TOO_LONG = "toolong=1"  # what a server puts in the place of a query it will not carry
QUOTES = "\"'"
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([,\u202f\u00a0 ]\d{3})+(\.\d+)?")


@dataclass(frozen=True)
class State:
    """Scenario, preset and page fields, with what had to be said about the way there."""

    scenario: Scenario
    preset: str
    fields: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    compare: str | None = None  # query of scenario A
    view: str = "full"
    theme: str = ""

    def arguments(self) -> tuple[Any, ...]:
        """What a page's functions are called with."""
        return (self.scenario, self.preset, dict(self.fields)) if self.fields else (self.scenario, self.preset)


def address(state: State, page: Page) -> str:
    """The query string of a state: only what differs from the preset and from the page's own defaults, and nothing private."""
    own = [(entry.key, state.fields[entry.key]) for entry in page.fields
           if not entry.private and state.fields[entry.key] != entry.default]
    return "&".join(part for part in (encode(state.scenario, state.preset), urlencode(own)) if part)


def read(query: str, page: Page) -> State:
    """The state of an address; whatever cannot be used is said in ``notices``, with what was used instead."""
    own = frozenset(entry.key for entry in page.fields)
    if query == TOO_LONG:
        query, too_long = "", ["The link was too long and was not used; used instead: the published preset."]
    else:
        too_long = []
    scenario, preset, rejected = decode(query, own | OWN_KEYS.keys() | {COMPARE_KEY})
    notices = too_long + [describe(notice) for notice in rejected]
    pairs = [] if len(query) > MAX_QUERY else parse_qsl(query.lstrip("?"), keep_blank_values=True, errors="replace")
    fields = {entry.key: entry.default for entry in page.fields}
    chosen: dict[str, str] = {}
    compare = None
    for key, given in pairs:
        if key in own:
            notices += set_field(page, fields, key, given)
        elif key in OWN_KEYS and given in OWN_KEYS[key]:
            chosen[key] = given
        elif key in OWN_KEYS:
            notices.append(f"{key} = {quoted(given)} was not used: allowed is {' or '.join(OWN_KEYS[key])}.")
        elif key == COMPARE_KEY:
            compare = given
    if compare is not None:
        other, other_preset, about_a = decode(compare, own | OWN_KEYS.keys() | {COMPARE_KEY})
        notices += ["In scenario A: " + describe(notice) for notice in about_a]
        compare = encode(other, other_preset)
    return State(scenario, preset, fields, tuple(notices), compare, chosen.get("view", "full"), chosen.get("theme", ""))


def change(state: State, page: Page, changes: Mapping[str, Any]) -> State:
    """The state after a reader changed something; an input that cannot be used is kept out, and said."""
    notices: list[str] = []
    preset, scenario = state.preset, state.scenario
    fields = dict(state.fields)
    if "preset" in changes:
        wanted = str(changes["preset"])
        if wanted in load_facts().presets:
            preset, scenario = wanted, make_scenario(wanted)
        else:
            notices.append(f"There is no preset {quoted(wanted)}; kept: {load_facts().presets[preset].label}.")
    values = {name: value for name, (_, default) in defaults().items() if (value := getattr(scenario, name)) != default}
    for key, given in changes.items():
        if key == "preset":
            continue
        if key in fields:
            notices += set_field(page, fields, key, str(given))
            continue
        name = names_by_key().get(key)
        if name is None:
            notices.append(f"{quoted(key)} is no input of this page.")
            continue
        try:
            values[name] = parse(name, cleaned(given))
        except InputError as error:
            notices.append(f"{label_of(name)}: {quoted(given)} was not used, allowed is {error.allowed}; "
                           f"kept: {shown(name, getattr(scenario, name), scenario.currency)}.")
    return replace(state, scenario=Scenario(**values), preset=preset, fields=fields, notices=tuple(notices))


def with_private(state: State, page: Page, given: Mapping[str, Any]) -> State:
    """The state with the private fields that a message carries beside the address."""
    private = {entry.key: str(given[entry.key]) for entry in page.fields if entry.private and entry.key in given}
    return replace(state, fields={**state.fields, **private})


def set_field(page: Page, fields: dict[str, str], key: str, given: str) -> list[str]:
    """Put a page field in place; returns the notice if it cannot be used."""
    entry = next(entry for entry in page.fields if entry.key == key)
    if entry.options and given not in entry.options:
        return [f"{entry.label}: {quoted(given)} was not used, allowed is {' or '.join(entry.options)}; kept: {fields[key]}."]
    if len(given) > entry.max_length and entry.private:
        return [f"{entry.label}: a link holds at most {entry.max_length} characters; this one was not used."]
    if len(given) > entry.max_length:
        fields[key] = given[:entry.max_length]
        return [f"{entry.label}: only the first {entry.max_length} characters were used."]
    fields[key] = given
    return []


def cleaned(given: Any) -> Any:
    """Typed text without surrounding space and thousands separators; a decimal comma stays and is refused."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    return re.sub(r"[,\u202f\u00a0 ]", "", text) if _THOUSANDS.fullmatch(text) else text


def describe(notice: Notice) -> str:
    """A notice of the codec in the words of the page."""
    name = names_by_key().get(notice.key)
    if notice.key == "link":
        return f"The link: {quoted(notice.given)} was not used: {notice.reason}; used instead: {notice.used}."
    if notice.key == "preset":
        return f"Start from: preset = {quoted(notice.given)} was not used: {notice.reason}; " \
               f"used instead: {load_facts().presets[notice.used].label}."
    if name is None:
        return f"{quoted(notice.key.strip(QUOTES))} = {quoted(notice.given)} was not used: {notice.reason}."
    return f"{label_of(name)}: {notice.key} = {quoted(notice.given)} was not used: {notice.reason}; used instead: {notice.used}."


def differences(state: State) -> list[tuple[str, Any, Any]]:
    """Parameters in which a scenario differs from its preset: name, preset's value, value."""
    base = preset_values(state.preset)
    pairs = ((name, base.get(name, default), getattr(state.scenario, name)) for name, (_, default) in defaults().items())
    return [(name, was, value) for name, was, value in pairs if value != was]


def label_of(name: str) -> str:
    """A parameter's label with a capital letter, to begin a sentence."""
    label = str(parameters()[name].label)
    return label[:1].upper() + label[1:]


def shown(name: str, value: Any, currency: str = "price") -> str:
    """A parameter's value for a reader."""
    return show(value, parameters()[name].unit, 6).replace("price/", f"{currency}/")


def quoted(given: Any, most: int = 60) -> str:
    """Foreign text in quotation marks, short, on one line."""
    text = "".join(letter if letter.isprintable() else "\ufffd" for letter in str(given))
    return f"“{text if len(text) <= most else text[:most - 1] + '…'}”"


def request_query(arguments: Mapping[str, Sequence[bytes]]) -> str:
    """The query string behind a server's parsed arguments, in a form that :func:`read` takes."""
    return urlencode([(key, value.decode("utf-8", "replace")) for key, values in arguments.items() for value in values])
