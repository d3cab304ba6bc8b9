"""Many values of one parameter for a scenario: what does not depend on it is computed once and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from inside_deepinfer import catalogue
from inside_deepinfer.facts import Quantity, load_facts
from inside_deepinfer.facts.derive import CATALOGUE, order_of, resolve_into
from inside_deepinfer.scenario import Scenario, parameters, quantities


def sweep(wanted: tuple[str, ...], scenario: Scenario, preset: str, swept: Mapping[str, Any],
          changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Values of derived numbers where some scenario parameters are arrays.

    Args:
        wanted: names of derived numbers.
        swept: parameter, derived number or fact id -> array.
        changes: parameters, derived numbers or fact ids to hold at another value (hashable).
    """
    given = unreached(wanted, scenario, preset, tuple(swept), changes)
    given |= {name: Quantity(name, value, "", "choice") for name, value in swept.items()}
    return {name: quantity.value for name, quantity in resolve_into(wanted, given).items()}


def unreached(wanted: tuple[str, ...], scenario: Scenario, preset: str, swept: tuple[str, ...],
              changes: Mapping[str, Any] | None = None) -> dict[str, Quantity]:
    """Leaves, and of the numbers that ``wanted`` needs those that the swept ones do not reach."""
    known = None if changes else catalogue.known_numbers(scenario, preset)
    if known is None:
        free = frozenset(swept)  # so that moving a swept parameter finds what was kept
        values = tuple(None if name in free else getattr(scenario, name) for name in parameters())
        known = _base(load_facts().folder, preset, values, tuple(sorted((changes or {}).items())))
    held = frozenset(name for name in changes or {} if name in CATALOGUE)
    outside, inside = _split(wanted, swept, held)
    resolve_into(outside, known)
    return {name: quantity for name, quantity in known.items() if name not in inside}


@lru_cache(maxsize=128)
def _base(folder: Path, preset: str, values: tuple[Any, ...], changes: tuple[tuple[str, Any], ...]) -> dict[str, Quantity]:
    """Leaves; what is computed from them stays in here."""
    given = quantities(SimpleNamespace(**dict(zip(parameters(), values, strict=True))), preset)  # type: ignore[arg-type]
    for name, value in changes:
        known = given.get(name)
        given[name] = replace(known, value=value, kind="choice", sources=()) if known else Quantity(name, value, "", "choice")
    return given


@lru_cache(maxsize=256)
def _split(wanted: tuple[str, ...], swept: tuple[str, ...], held: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Derived numbers that the swept ones do not reach, inputs first, and the names that they reach, themselves included."""
    needed = dict.fromkeys(node for name in wanted for node in order_of(name))
    reached, outside = set(swept), []
    # what another question left among the kept numbers must go too where it is reached
    for node in dict.fromkeys((*needed, *(node for name in CATALOGUE for node in order_of(name)))):
        if node in reached or node in held:
            continue
        if reached & set(CATALOGUE[node].inputs.values()):
            reached.add(node)
        elif node in needed:
            outside.append(node)
    return tuple(outside), frozenset(reached)
