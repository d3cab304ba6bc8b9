"""A number with its chain, as the side panel shows it: formula with numbers, inputs, kinds, sources."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from inside_deepinfer.facts import CATALOGUE, KIND_MEANING, Quantity, digits, load_facts, show

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def unit_text(unit: str, currency: str) -> str:
    """A unit for a reader; ``price/Mtoken`` is written in the currency of the scenario."""
    return unit.replace("price/", f"{currency}/").replace("*", "·")


def value_text(quantity: Quantity, currency: str, significant: int = 4) -> str:
    """The value with its unit."""
    if np.size(quantity.value) > 4:
        return f"{np.size(quantity.value)} values"
    return show(quantity.value, quantity.unit, significant).replace("price/", f"{currency}/")


def source_entry(source: str) -> dict[str, str]:
    """Title, address and date of a source."""
    entry = load_facts().sources[source]
    return dict(id=entry.id, title=entry.title, url=entry.url, date=entry.date, kind=entry.kind)


def named_inputs(quantity: Quantity) -> dict[str, Quantity]:
    """Inputs of a derived value by the names that its formula uses."""
    entry = CATALOGUE.get(quantity.name)
    if entry is None:
        return {part.name: part for part in quantity.inputs}
    by_node = {part.name: part for part in quantity.inputs}
    return {parameter: by_node[node] for parameter, node in entry.inputs.items() if node in by_node}


def with_numbers(quantity: Quantity, significant: int = 6) -> str:
    """The formula with the numbers in place; empty where the formula is a sentence or the inputs are no numbers."""
    entry = CATALOGUE.get(quantity.name)
    if not quantity.formula or (entry is not None and entry.words):
        return ""
    inputs = named_inputs(quantity)

    def number(match: re.Match[str]) -> str:
        part = inputs.get(match.group())
        if part is None:
            return match.group()
        return digits(part.value, significant) if isinstance(part.value, (int, float)) else str(part.value)

    return _NAME.sub(number, quantity.formula)


def chain(quantity: Quantity, currency: str = "price") -> dict[str, Any]:
    """Every part of the chain once, by name, for the side panel."""
    parts = {part.name: _part(part, currency) for part in quantity.walk()}
    return dict(root=quantity.name, parts=parts, sources={source: source_entry(source) for source in quantity.all_sources()})


def _part(part: Quantity, currency: str) -> dict[str, Any]:
    return dict(name=part.name, label=part.label or part.name, text=value_text(part, currency, 6), kind=part.kind,
                meaning=KIND_MEANING[part.kind], formula=part.formula, numbers=with_numbers(part), note=part.note,
                inputs=[dict(name=inner.name, called=called) for called, inner in named_inputs(part).items()],
                sources=list(part.sources))


def leaf_kinds(quantity: Quantity) -> list[str]:
    """Kinds of the values that a number rests on, each once."""
    return list(dict.fromkeys(part.kind for part in quantity.walk() if not part.inputs))
