"""Many values of one parameter for a scenario: what does not depend on it is computed once and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from inside_deepinfer import catalogue  # noqa: F401  (fills the catalogue of derived numbers)
from inside_deepinfer.facts import Quantity, load_facts, resolve
from inside_deepinfer.facts.derive import CATALOGUE, order_of
from inside_deepinfer.scenario import Scenario, parameters, quantities


def sweep(wanted: tuple[str, ...], scenario: Scenario, preset: str, swept: Mapping[str, Any],
          changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Values of derived numbers where some scenario parameters are arrays.

    Args:
        wanted: names of derived numbers.
        swept: parameter -> array.
        changes: parameters, derived numbers or fact ids to hold at another value (hashable).
    """
    values = tuple(getattr(scenario, name) for name in parameters())
    base = _base(load_facts().folder, preset, values, wanted, tuple(swept), tuple(sorted((changes or {}).items())))
    given = base | {name: Quantity(name, value, "", "choice") for name, value in swept.items()}
    return {name: quantity.value for name, quantity in resolve(wanted, given).items()}


@lru_cache(maxsize=128)
def _base(folder: Path, preset: str, values: tuple[Any, ...], wanted: tuple[str, ...], swept: tuple[str, ...],
          changes: tuple[tuple[str, Any], ...]) -> dict[str, Quantity]:
    """Leaves and all derived numbers that the swept parameters do not reach."""
    scenario = Scenario(**dict(zip(parameters(), values, strict=True)))
    given = quantities(scenario, preset)
    for name, value in changes:
        known = given.get(name)
        given[name] = replace(known, value=value, kind="choice", sources=()) if known else Quantity(name, value, "", "choice")
    for name in swept:
        given.pop(name)
    reached: set[str] = set(swept)
    for node in dict.fromkeys(node for name in wanted for node in order_of(name)):
        if node in given:
            continue
        if reached & set(CATALOGUE[node].inputs.values()):
            reached.add(node)
        else:
            given[node] = resolve([node], given)[node]
    return given
