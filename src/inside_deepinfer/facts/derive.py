"""The catalogue of derived numbers: each is a plain function whose parameter names are its inputs.

Apache Hamilton resolves functions by parameter name in the same way; this needs only the few lines below on
``graphlib``, keeps the functions free of a framework, and returns the chain beside the value (2026-11-29).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from inside_deepinfer.facts.errors import UserError
from inside_deepinfer.facts.quantity import Quantity
from inside_deepinfer.facts.store import load_facts


@dataclass(frozen=True)
class Derivation:
    """One entry of the catalogue: how a named number is computed, and how it is shown."""

    name: str
    label: str
    unit: str
    formula: str
    function: Callable[..., Any]
    inputs: Mapping[str, str]  # parameter of the function -> node name (dotted: a fact id)
    listed: bool = True
    words: bool = False  # the formula is a sentence, not an expression a test can evaluate

    @property
    def doc(self) -> str:
        return inspect.getdoc(self.function) or ""


CATALOGUE: dict[str, Derivation] = {}


def derived(*, label: str, unit: str, formula: str, uses: Mapping[str, str] | None = None, name: str = "",
            listed: bool = True, words: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a derived number and return it unchanged.

    Args:
        label: what a reader calls the number, lower case.
        unit: unit of the result.
        formula: the formula with the names of the inputs.
        uses: inputs whose node name differs from the parameter name, e.g. ``{"capacity": "storage.capacity"}``.
        name: node name, where it differs from the function's.
        listed: False for helper nodes that are not numbers (a model shape).
        words: True where the formula is a sentence.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        node = name or function.__name__
        if node in CATALOGUE and CATALOGUE[node].function.__code__ is not function.__code__:
            raise ValueError(f"derived number {node} is defined twice")
        renamed = dict(uses or {})
        parameters = {p: renamed.pop(p, p) for p in inspect.signature(function).parameters}
        if renamed:
            raise ValueError(f"{node}: uses names no parameter: {', '.join(renamed)}")
        CATALOGUE[node] = Derivation(node, label, unit, formula, function, parameters, listed, words)
        return function

    return register


@cache
def order_of(name: str) -> tuple[str, ...]:
    """Names of the derived numbers that ``name`` needs, inputs first, itself last."""
    graph: dict[str, tuple[str, ...]] = {}
    todo = [name]
    while todo:
        node = todo.pop()
        if node in CATALOGUE and node not in graph:
            graph[node] = tuple(CATALOGUE[node].inputs.values())
            todo.extend(graph[node])
    try:
        return tuple(node for node in TopologicalSorter(graph).static_order() if node in CATALOGUE)
    except CycleError as error:
        raise UserError(f"derived numbers depend on each other: {' -> '.join(error.args[1])}") from None


def resolve(names: Iterable[str], given: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Compute several derived numbers over the same leaves, sharing what they have in common."""
    return resolve_into(names, dict(given))


def resolve_into(names: Iterable[str], known: dict[str, Quantity]) -> dict[str, Quantity]:
    """As :func:`resolve`; everything computed on the way stays in ``known``, for the next question about the same leaves."""
    for name in names:
        if name in known:
            continue
        if name not in CATALOGUE:
            known[name] = load_facts().quantity(name)
            continue
        for node in order_of(name):
            if node not in known:
                known[node] = _compute(CATALOGUE[node], known)
    return {name: known[name] for name in names}


def _compute(entry: Derivation, known: dict[str, Quantity]) -> Quantity:
    for node in entry.inputs.values():
        if node not in known:
            known[node] = load_facts().quantity(node)
    inputs = {parameter: known[node] for parameter, node in entry.inputs.items()}
    value = entry.function(**{parameter: quantity.value for parameter, quantity in inputs.items()})
    unit = in_currency(entry.unit, known["currency"].value) if "currency" in known else entry.unit
    return Quantity(entry.name, value, unit, "derived", (), tuple(inputs.values()), entry.formula, entry.label)


def in_currency(unit: str, currency: str) -> str:
    """A unit of money in the scenario's own currency: ``price/Mtoken`` is ``CNY/Mtoken`` or ``USD/Mtoken``."""
    return f"{currency}/{unit.removeprefix('price/')}" if unit.startswith("price/") else unit
