"""A quantity and all it rests on, flattened to plain records that a page can show one step at a time."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

from inside_deepinfer import catalogue
from inside_deepinfer.facts import CATALOGUE, Quantity, UserError, digits, show
from inside_deepinfer.facts.units import show_as, show_decimal

NUMBER = re.compile(r"^\s*(?P<name>[A-Za-z][\w.\-]*)(?:@(?P<preset>[\w\-]+))?(?P<changes>(?:\s+[\w.]+=\S+)*)\s*$")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Step:
    """One quantity of a chain, ready to be printed.

    Attributes:
        id: the same for the same name and value, so that a page carries each step once.
        inputs: ids of the steps it was computed from.
        numbers: the formula with the values in place of the names.
    """

    id: str
    name: str
    label: str
    shown: str
    kind: str
    formula: str = ""
    numbers: str = ""
    note: str = ""
    inputs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    rests_on: dict[str, int] = field(default_factory=dict)


def parse(text: str) -> tuple[str, str, dict[str, str], str]:
    """Split ``NAME@PRESET key=value ... | FORMAT`` into name, preset, changes and format (``.2f``, or ``GB .2f``)."""
    what, _, form = text.partition("|")
    match = NUMBER.match(what)
    if not match:
        raise UserError(f"{text!r} is no number: expected NAME, NAME@PRESET or NAME key=value, then maybe | FORMAT or | UNIT FORMAT")
    changes = dict(part.split("=", 1) for part in (match["changes"] or "").split())
    return match["name"], match["preset"] or "published", changes, form.strip()


def look_up(text: str) -> tuple[Quantity, str]:
    """The quantity that ``text`` names, and how it is printed."""
    name, preset, changes, form = parse(text)
    quantity = catalogue.quantity(name, preset, changes)
    if not form:
        return quantity, show(quantity.value, quantity.unit)
    try:
        wanted, _, digits_of = form.partition(" ")
        if digits_of:  # "GB .2f": in that unit, which is printed too
            return quantity, show_as(quantity.value, quantity.unit, wanted, digits_of)
        return quantity, format(quantity.value, form)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name} cannot be printed as {form!r}: {error}") from None


def substituted(quantity: Quantity) -> str:
    """The formula of a derived quantity with the numbers in place of the names; empty where it is a sentence."""
    entry = CATALOGUE.get(quantity.name)
    if entry is None or not quantity.formula or entry.words:
        return ""
    values = dict(zip(entry.inputs, quantity.inputs, strict=True))
    return IDENTIFIER.sub(lambda word: _plain(values[word[0]].value) if word[0] in values else word[0], quantity.formula)


def steps(quantity: Quantity) -> list[Step]:
    """The quantity and everything below it, itself first, each once."""
    return [_step(part) for part in quantity.walk()]


def _step(part: Quantity) -> Step:
    leaves: dict[str, int] = {}
    for below in part.walk():
        if not below.inputs and below is not part and below.kind != "derived":
            leaves[below.kind] = leaves.get(below.kind, 0) + 1
    return Step(_id(part), part.name, part.label or part.name, _both_units(part), part.kind, part.formula,
                substituted(part), part.note, tuple(_id(below) for below in part.inputs), part.sources, leaves)


def _both_units(part: Quantity) -> str:
    """The value; a capacity in binary and, where that is another number, in decimal units too, as texts may use either."""
    text = show(part.value, part.unit)
    if not isinstance(part.value, (int, float)) or "iB" not in text:
        return text
    return f"{text} = {show_decimal(part.value, part.unit)}"


def _id(part: Quantity) -> str:
    value = f"{part.name}|{part.kind}|{part.value!r}"
    return "n-" + hashlib.sha256(value.encode()).hexdigest()[:8]


def _plain(value: Any) -> str:
    return digits(float(value)) if isinstance(value, (int, float)) else str(value)
