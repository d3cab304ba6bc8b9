"""A value that knows its unit, its kind and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

Kind = Literal["reported", "measured", "config", "estimate", "assumption", "experiment", "design", "derived", "choice"]
KINDS: tuple[str, ...] = get_args(Kind)

KIND_MEANING = {
    "reported": "stated by DeepSeek itself, or by a maker about its own card; nobody outside can check it directly",
    "measured": "measured by a named third party or by us",
    "config": "read from the public model configuration or the released source",
    "estimate": "arithmetic of an article's author, a constant that somebody's tool takes, or a value that we fitted",
    "assumption": "a value somebody had to choose; the source says who",
    "experiment": "an article author ran it",
    "design": "how the system works, as stated or read from its source",
    "derived": "computed here from the inputs listed with it",
    "choice": "set by you in this scenario",
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of the book with its provenance.

    Attributes:
        name: fact id (dotted) or name of a scenario parameter or derived number.
        value: a float, an array, a string, or None where the source gives none.
        unit: unit in SI terms as in ``facts.units``.
        kind: one of :data:`KINDS`.
        sources: ids in ``data/sources.yaml``; empty for derived values (their inputs have them).
        inputs: the quantities a derived value was computed from.
        formula: the formula with input names, for derived values.
    """

    name: str
    value: Any
    unit: str
    kind: str
    sources: tuple[str, ...] = ()
    inputs: tuple[Quantity, ...] = ()
    formula: str = ""
    label: str = ""
    note: str = ""

    def walk(self) -> Iterator[Quantity]:
        """This quantity and everything below it, each name once, parents first."""
        seen: set[str] = set()
        stack = [self]
        while stack:
            here = stack.pop(0)
            if here.name not in seen:
                seen.add(here.name)
                yield here
                stack.extend(here.inputs)

    def all_sources(self) -> tuple[str, ...]:
        """Every source id the value rests on, in order of first use."""
        return tuple(dict.fromkeys(source for part in self.walk() for source in part.sources))
