"""``inside-deepinfer audit``: the table of verdicts, the chain behind one of them, or all of it as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from inside_deepinfer.audit import Finding

PIPED_WIDTH = 200  # into a file or a pipe nothing is folded
STYLE = {"reproduced": "green", "consistent": "cyan", "conflict": "bold red", "identity": "yellow", "unverifiable": "dim"}


def audit(
    claim: Annotated[str, typer.Argument(help="Show the chain behind this claim only.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of objects.")] = False,
    rules: Annotated[bool, typer.Option("--rules", help="Print the rules that give the verdicts.")] = False,
) -> None:
    """Recompute every published number. Exit code 1 when a verdict is not the recorded one."""
    from inside_deepinfer import audit as checks

    if rules:
        typer.echo(checks.RULES)
        return
    found = [checks.finding(claim)] if claim else checks.audit()
    if as_json:
        typer.echo(json.dumps([checks.as_record(row) for row in found], ensure_ascii=False, indent=2, allow_nan=False))
    elif claim:
        for line in _chain(found[0]):
            typer.echo(line)
    else:
        _table(found)
    changed = [row for row in found if row.changed]
    for row in changed:
        why = "; ".join([f"{row.verdict} instead of {row.expected_verdict}: {row.rule}"] * (row.verdict != row.expected_verdict)
                        + list(row.problems))
        typer.echo(f"changed: {row.id} is {why}", err=True)
    if changed:
        raise typer.Exit(1)


def _table(found: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from inside_deepinfer.commands import chain
    from inside_deepinfer.facts import load_facts

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    table = Table(box=None, pad_edge=False, expand=False)
    for name in ("claim", "verdict", "printed", "computed", "art."):
        table.add_column(name, no_wrap=name in ("claim", "verdict"), justify="left", overflow="fold")
    for row in found:
        computed = " / ".join(chain.shown(part) for part in row.computed)
        printed = "" if row.claim.value is None else chain.shown(load_facts().quantity(row.id))
        table.add_row(row.id, Text(row.verdict, STYLE[row.verdict]), Text(printed), Text(computed), " ".join(row.claim.articles))
    console.print(table)
    counts = Counter(row.verdict for row in found)
    console.print(f"{len(found)} claims: " + ", ".join(f"{counts[name]} {name}" for name in STYLE))


def _chain(row: Finding) -> Iterator[str]:
    from inside_deepinfer.commands import chain
    from inside_deepinfer.facts import load_facts, show

    claim = row.claim
    yield f"{claim.id}: {claim.statement}"
    yield f"  {claim.kind}, article {', '.join(claim.articles)}; chapter {claim.chapter}"
    if claim.value is not None:
        step = "" if claim.printed_step is None else f" (printed step {show(claim.printed_step, claim.unit)})"
        yield f"  printed   {'about ' if claim.about else ''}{chain.shown(load_facts().quantity(claim.id))}{step}"
    if row.computed:
        yield "  computed  " + " / ".join(chain.shown(part) for part in row.computed)
    if claim.check is not None and claim.check.against and row.target is not None:
        yield f"  against   {row.target.name} = {chain.shown(row.target)}"
    yield f"  verdict   {row.verdict} (recorded: {claim.expected_verdict}): {row.rule}"
    if claim.note:
        yield f"  note      {claim.note}"
    seen: set[str] = set()
    parts = [*row.computed, *([row.target] if claim.check is not None and claim.check.against and row.target else [])]
    if parts:
        yield "chain"
    for part in parts:
        yield from chain.lines(part, "  ", seen)
    if row.shown:
        yield "beside it"
    for part in row.shown:
        yield from chain.lines(part, "  ", seen)
    if row.evidence:
        yield "evidence"
    for item in row.evidence:
        yield f"  {item['says']} it ({item['by']}: {', '.join(item['sources'])}): {item['text']}"
    yield "sources"
    yield from chain.source_lines(row.sources, "  ")
    if claim.see:
        yield f"see also {', '.join(claim.see)}"


