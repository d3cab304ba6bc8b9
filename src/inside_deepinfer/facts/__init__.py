"""Ground floor: facts with their sources, units, and numbers that know their inputs."""

from inside_deepinfer.facts.derive import CATALOGUE, derived, resolve
from inside_deepinfer.facts.errors import (
    FactError,
    InputError,
    NotPossible,
    UserError,
    require,
    require_between,
    require_not_negative,
    require_positive,
)
from inside_deepinfer.facts.quantity import KIND_MEANING, KINDS, Quantity
from inside_deepinfer.facts.store import Facts, load_facts
from inside_deepinfer.facts.units import digits, percent, show

__all__ = [
    "CATALOGUE", "KINDS", "KIND_MEANING", "FactError", "Facts", "InputError", "NotPossible", "Quantity", "UserError",
    "derived", "digits", "load_facts", "percent", "require", "require_between", "require_not_negative",
    "require_positive", "resolve", "show",
]
