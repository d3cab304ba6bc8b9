"""Which input of a derived number moves it most: every scenario parameter it rests on, a tenth down and up."""

from __future__ import annotations

from inside_deepinfer import catalogue
from inside_deepinfer.facts.derive import order_of
from inside_deepinfer.scenario import FactChoice, FactInteger, Scenario, parameters
from inside_deepinfer.serving.sensitivity import Swing, swings


def money_swings(scenario: Scenario, preset: str, result: str, step: float = 0.1) -> list[Swing]:
    """How far every numeric input of ``result`` moves it; the hit rate is moved by its misses, which are what costs work."""
    needed = {node for name in order_of(result) for node in catalogue.CATALOGUE[name].inputs.values()}
    moved = {name: parameter for name, parameter in parameters().items()
             if name in needed and not isinstance(parameter, (FactChoice, FactInteger))}
    return swings(lambda columns: catalogue.value(result, scenario, preset, **columns),
                  {name: getattr(scenario, name) for name in moved}, step, ("hit_rate",),
                  {name: parameter.bounds for name, parameter in moved.items()})
