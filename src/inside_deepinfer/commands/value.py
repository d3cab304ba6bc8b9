"""``inside-deepinfer value``: any derived number for a scenario, with its chain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inside_deepinfer.facts.errors import UserError

if TYPE_CHECKING:
    from inside_deepinfer.facts import Quantity
    from inside_deepinfer.scenario import Scenario


def value(
    name: Annotated[str, typer.Argument(help="A derived number, a scenario parameter, or the id of a fact or claim.")] = "",
    preset: Annotated[str, typer.Option(help="Start from this preset.")] = "published",
    changes: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a parameter; may be repeated.")]
    = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    names: Annotated[bool, typer.Option("--list", help="List every derived number with unit and meaning.")] = False,
) -> None:
    """Print a derived number for a scenario, with formula, inputs and sources."""
    from inside_deepinfer import catalogue
    from inside_deepinfer.scenario import make_scenario

    if names:
        _list(catalogue.names(), as_json)
        return
    if not name:
        raise UserError("say which number (--list names them all)")
    pairs = _pairs(changes or [])
    quantity = catalogue.quantity(name, preset, pairs)
    notices = _notices(quantity, make_scenario(preset, pairs))

    from inside_deepinfer.commands import chain

    if as_json:
        try:
            data = chain.as_data(quantity) | {"notices": notices}
            text = json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)
        except ValueError:
            raise UserError(f"{name} or one of its inputs is not finite in this scenario") from None
        typer.echo(text)
        return
    for line in chain.lines(quantity):
        typer.echo(line)
    for notice in notices:
        typer.echo(f"notice: {notice}")
    typer.echo("sources")
    for line in chain.source_lines(quantity.all_sources(), "  "):
        typer.echo(line)


def _notices(quantity: Quantity, scenario: Scenario) -> list[str]:
    """What card and model of the scenario cannot do as it asks, where the number rests on the times of a step."""
    from inside_deepinfer.serving.step_budget import precision_notice, rows_notice

    if not any(part.name == "counted_step_time" for part in quantity.walk()):
        return []
    said = (precision_notice(scenario.model, scenario.card), rows_notice(scenario.model, scenario.rows_per_sequence))
    return [notice for notice in said if notice]


def _pairs(changes: list[str]) -> dict[str, str]:
    """``key=value`` texts as a mapping; a key without a value, or given twice, is an error."""
    from inside_deepinfer.scenario import parameter_name

    pairs: dict[str, str] = {}
    for text in changes:
        key, equals, given = (part.strip() for part in text.partition("="))
        if not equals or not key:
            raise UserError(f"--set {text!r} is not KEY=VALUE, for example --set hit_rate=0.8")
        if not given:
            raise UserError(f"--set {key}= has no value, and a missing value does not count as 0")
        name = parameter_name(key)
        if name in pairs:
            raise UserError(f"--set gives {name} twice")
        pairs[name] = given
    return pairs


def _list(entries: dict[str, Any], as_json: bool) -> None:
    if as_json:
        rows = [{"name": name, "unit": entry.unit, "label": entry.label, "formula": entry.formula,
                 "inputs": list(entry.inputs.values())} for name, entry in entries.items()]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    width = max(len(name) for name in entries)
    units = max(len(entry.unit) for entry in entries.values())
    for name, entry in entries.items():
        typer.echo(f"{name:<{width}}  {entry.unit:<{units}}  {entry.label}")
