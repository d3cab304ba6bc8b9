"""Which input moves a result most: every input a step down and a step up, in one vectorised evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from inside_deepinfer.facts import InputError, NotPossible, require_between


@dataclass(frozen=True, slots=True)
class Swing:
    """What one input does to a result.

    Attributes:
        name: the input.
        complement: True where 1 minus the input was moved (a share near 1: the miss rate, not the hit rate).
        low, high: values of the input at a step down and a step up.
        at_low, at_high: results there, in the unit of the result.
        base: the result at the scenario.
    """

    name: str
    complement: bool
    low: float
    high: float
    at_low: float
    at_high: float
    base: float

    @property
    def span(self) -> float:
        """Largest distance between any two of the three results."""
        results = (self.at_low, self.at_high, self.base)
        return max(results) - min(results)

    @property
    def elasticity(self) -> float:
        """Percent of result per percent of the moved input, over the whole step; 0 where a kink makes both ends equal."""
        moved = 1 - self.low if self.complement else self.low
        raised = 1 - self.high if self.complement else self.high
        middle = 0.5 * (moved + raised)
        if self.base == 0:
            raise NotPossible("the result is 0, so no input moves it by a percentage")
        return (self.at_high - self.at_low) / self.base / ((raised - moved) / middle)


def swings(result: Callable[[Mapping[str, np.ndarray]], Any], base: Mapping[str, float], step: float = 0.1,
           complements: Iterable[str] = (), bounds: Mapping[str, tuple[float, float]] | None = None) -> list[Swing]:
    """Move every input by ``step`` down and up, alone, and rank them by what the result does; largest first.

    Args:
        result: from arrays of inputs to the array of results; called once.
        base: values of the inputs to move; inputs at 0 have no relative step and are left out.
        step: relative step, 0.1 is 10 %.
        complements: inputs of which 1 minus the value is moved.
        bounds: range of each input; a step beyond it is cut there.

    Raises:
        InputError: step outside 0.001 to 0.9, or no input left to move.
    """
    require_between("step", step, 0.001, 0.9)
    complements, bounds = frozenset(complements), bounds or {}
    names = [name for name, value in base.items() if (1 - value if name in complements else value) != 0]
    if not names:
        raise InputError("inputs", sorted(base), "at least one input other than 0")
    columns = {name: np.full(2 * len(names) + 1, float(base[name])) for name in names}
    for place, name in enumerate(names):
        value = base[name]
        low, high = (1 - (1 - value) * (1 + step), 1 - (1 - value) * (1 - step)) if name in complements \
            else (value * (1 - step), value * (1 + step))
        columns[name][2 * place:2 * place + 2] = np.clip([low, high], *bounds.get(name, (-np.inf, np.inf)))
    results = np.broadcast_to(np.asarray(result(columns), dtype=float), 2 * len(names) + 1)
    found = [Swing(name, name in complements, float(columns[name][2 * n]), float(columns[name][2 * n + 1]),
                   float(results[2 * n]), float(results[2 * n + 1]), float(results[-1])) for n, name in enumerate(names)]
    return sorted(found, key=lambda swing: -swing.span)
