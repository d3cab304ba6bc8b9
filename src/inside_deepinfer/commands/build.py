"""``inside-deepinfer build``: the book as static pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def build(
    output: Annotated[Path | None, typer.Option(help="Folder for the pages; build/book where left out.", show_default=False)]
    = None,
    force: Annotated[bool, typer.Option("--force", help="Run every notebook again and make every page anew.")] = False,
    lenient: Annotated[bool, typer.Option("--lenient", help="Build although there are warnings; a failing cell still stops it.")]
    = False,
) -> None:
    """Build the book, or only what changed since the last time, and print its folder."""
    from inside_deepinfer.publish.commands import build as run

    typer.echo(run(output, force=force, strict=not lenient))
