"""Every derived number of the package for a scenario: what command line, chapters and dashboard call."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from inside_deepinfer.facts import CATALOGUE, NotPossible, Quantity, UserError
from inside_deepinfer.facts.derive import Derivation, resolve_into
from inside_deepinfer.scenario import Scenario, make_scenario, parameter_name, quantities

# the modules that define derived numbers; importing them fills the catalogue
MODULES = (
    "inside_deepinfer.model.counts",
    "inside_deepinfer.model.weights",
    "inside_deepinfer.model.kv",
    "inside_deepinfer.model.flops",
    "inside_deepinfer.serving.cards",
    "inside_deepinfer.serving.efficiencies",
    "inside_deepinfer.serving.measured_numbers",
    "inside_deepinfer.serving.hbm",
    "inside_deepinfer.serving.kv_reads",
    "inside_deepinfer.serving.links",
    "inside_deepinfer.serving.step_budget",
    "inside_deepinfer.serving.capacity",
    "inside_deepinfer.serving.machine_checks",
    "inside_deepinfer.cache.store",
    "inside_deepinfer.cache.blocks",
    "inside_deepinfer.cache.five_minute_rule",
    "inside_deepinfer.cache.erasure",
    "inside_deepinfer.serving.fleet",
    "inside_deepinfer.serving.prices",
    "inside_deepinfer.serving.article",
    "inside_deepinfer.serving.decode_frontier",
    "inside_deepinfer.serving.decode_band",
    "inside_deepinfer.serving.feasible",
    "inside_deepinfer.serving.prefill_frontier",
    "inside_deepinfer.serving.speculation",
    "inside_deepinfer.serving.proof",
    "inside_deepinfer.serving.reconcile",
    "inside_deepinfer.serving.v3r1",
    "inside_deepinfer.serving.routing_counts",
    "inside_deepinfer.serving.balance_cost",
    "inside_deepinfer.serving.pd_balance",
    "inside_deepinfer.numerics.rings",
    "inside_deepinfer.numerics.replay_numbers",
    "inside_deepinfer.numerics.card_bits",
    "inside_deepinfer.serving.availability",
    "inside_deepinfer.serving.outage",
    "inside_deepinfer.tokens.experiments",
    "inside_deepinfer.tokens.defences",
    "inside_deepinfer.tokens.speed_numbers",
)
for _module in MODULES:
    importlib.import_module(_module)


def names() -> dict[str, Derivation]:
    """All derived numbers a reader can ask for, by name."""
    return {name: entry for name, entry in sorted(CATALOGUE.items()) if entry.listed}


_SHARED: ContextVar[tuple[Scenario, str, dict[str, Quantity], dict[str, Quantity]] | None] = ContextVar("shared", default=None)


@contextmanager
def shared(scenario: Scenario, preset: str) -> Iterator[None]:
    """Within it every number of this scenario is computed once; the scenario must not be changed meanwhile.

    A dashboard page asks for cards, a sentence and figures that rest on the same numbers.
    """
    leaves = quantities(scenario, preset)
    token = _SHARED.set((scenario, preset, leaves, dict(leaves)))
    try:
        yield
    finally:
        _SHARED.reset(token)


def _kept(scenario: Scenario | None, preset: str) -> tuple[dict[str, Quantity], dict[str, Quantity]] | None:
    """Leaves of this scenario and all that was computed of it within :func:`shared`; None outside, or for another one."""
    now = _SHARED.get()
    return now[2:] if now is not None and now[0] is scenario and now[1] == preset else None


def known_numbers(scenario: Scenario, preset: str) -> dict[str, Quantity] | None:
    """All that was computed of this scenario within :func:`shared`; None outside, or for another one."""
    kept = _kept(scenario, preset)
    return None if kept is None else kept[1]


def evaluate(wanted: Iterable[str], scenario: Scenario | None = None, preset: str = "published",
             **arrays: Any) -> dict[str, Quantity]:
    """Several derived numbers for one scenario.

    Args:
        wanted: names of derived numbers, parameters or facts.
        scenario: a scenario; the preset's own where left out.
        preset: which preset the scenario started from (decides what counts as the reader's choice).
        arrays: scenario parameters to replace, also by arrays, to draw curves with the same functions.
    """
    kept = _kept(scenario, preset)
    if kept is None:
        given = quantities(scenario or make_scenario(preset), preset)
    else:
        leaves, known = kept
        given = dict(leaves) if arrays else known
    for key, value in arrays.items():
        name = parameter_name(key)
        value = np.asarray(value) if isinstance(value, (list, tuple)) else value
        given[name] = replace(given[name], value=value, kind="choice", sources=())
    wanted = list(wanted)
    for name in wanted:
        if name not in CATALOGUE and name not in given and "." not in name:
            near = get_close_matches(name, [*names(), *given], n=3)
            hint = f"; close: {', '.join(near)}" if near else ""
            raise UserError(f"no derived number is called {name!r}{hint} (--list names them all)")
    return resolve_into(wanted, given)


def value(name: str, scenario: Scenario | None = None, preset: str = "published", **arrays: Any) -> Any:
    """The bare value of one derived number; see :func:`evaluate`."""
    return evaluate([name], scenario, preset, **arrays)[name].value


# number -> the same number where it can exist: it raises NotPossible with the reason
ONLY_IF = {"counted_step_time": "fitting_step_time", "hbm_share": "feasible_hbm_share"}


def check_possible(quantity: Quantity, scenario: Scenario, preset: str = "published") -> None:
    """Raise NotPossible if the quantity rests on a step that cannot be: it does not fit in HBM, or is shorter than its reads."""
    for part in quantity.walk():
        if part.name in ONLY_IF and part.kind == "derived":
            try:
                evaluate([ONLY_IF[part.name]], scenario, preset)
            except NotPossible as reason:
                raise NotPossible(f"{quantity.name} is not possible in this scenario, because {reason}") from None


def quantity(name: str, preset: str = "published", changes: Mapping[str, Any] | None = None) -> Quantity:
    """One derived number with its chain, for a preset and changes to it; NotPossible where the number cannot exist."""
    scenario = make_scenario(preset, changes)
    with shared(scenario, preset):
        found = evaluate([name], scenario, preset)[name]
        check_possible(found, scenario, preset)
    return found
