"""What a control needs to know about its parameter, all of it from the Scenario declaration."""

from __future__ import annotations

from math import log
from typing import Any

from inside_deepinfer.explorer.provenance import source_entry, unit_text
from inside_deepinfer.facts import Quantity, load_facts
from inside_deepinfer.scenario import FactChoice, FactInteger, Scenario, allowed

SLIDER_STEPS = 400
SMALL_SHARE = 0.1  # a default below this share of the range sits too far left on a straight slider
DEFAULT_AT = 0.35  # where such a default is put


def specification(name: str) -> dict[str, Any]:
    """Label, unit, bounds, step and slider scale of one parameter.

    scale ``linear``, ``log``, or ``power``: value = low + (high - low) * position**exponent, for ranges that start at 0 and whose
    usual values are small against the upper bound (prices).
    """
    parameter = Scenario.param[name]
    fact = load_facts().quantity(parameter.fact)
    common = dict(name=name, key=parameter.key, label=str(parameter.label), doc=parameter.doc, allowed=allowed(name),
                  origin=[source_entry(source) for source in fact.sources], note=fact.note)
    if isinstance(parameter, FactChoice):
        return common | dict(options=list(parameter.objects))
    low, high = parameter.bounds
    share = (parameter.default - low) / (high - low)
    scale, exponent = "linear", 1.0
    if parameter.log:
        scale = "log"
    elif 0 < share < SMALL_SHARE:
        scale, exponent = "power", round(log(share) / log(DEFAULT_AT), 3)
    steps = SLIDER_STEPS if scale != "linear" else min(SLIDER_STEPS * 5, round((high - low) / parameter.step))
    return common | dict(
        unit=unit_text(parameter.unit, "price"), raw_unit=parameter.unit, low=low, high=high, step=parameter.step, scale=scale,
        exponent=exponent, steps=steps, whole=isinstance(parameter, FactInteger))


def current(quantity: Quantity) -> dict[str, Any]:
    """The value of a control now, and whose value it is."""
    return dict(value=quantity.value, kind=quantity.kind, sources=[source_entry(source)["title"] for source in quantity.sources])
