"""``inside-deepinfer validate``: the models against curves that others measured."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def validate(
    as_json: Annotated[bool, typer.Option("--json", help="Print a list with one object per curve or set of points.")] = False,
) -> None:
    """Fit set and test set, mean error and worst point of every published curve and third-party measurement."""
    from inside_deepinfer.facts.units import digits, percent
    from inside_deepinfer.serving.validation import validate as run

    found = run()
    if as_json:
        typer.echo(json.dumps([entry.as_dict() for entry in found], ensure_ascii=False, indent=2, allow_nan=False))
        return
    wide = max(len(entry.id) for entry in found)
    for entry in found:
        error = f"{digits(entry.mean_abs_error, 2)} {entry.unit}" if entry.absolute else percent(entry.mean_abs_error)
        typer.echo(f"{entry.id:<{wide}}  {entry.role:<4}  {len(entry.points):>2} points  mean error {error}; worst at "
                   f"{entry.worst.at}: {digits(entry.worst.model, 4)} for {digits(entry.worst.published, 4)}")
        if entry.missing:
            typer.echo(f"{'':<{wide}}  missing: {entry.missing}")
