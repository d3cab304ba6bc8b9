"""``inside-deepinfer tokens``: what becomes of a text on its way to token ids."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inside_deepinfer.facts import InputError

if TYPE_CHECKING:
    from inside_deepinfer.tokens.encoded import Encoded


def tokens(
    text: Annotated[str | None, typer.Argument(help="The text; - reads standard input.", show_default=False)] = None,
    carrier: Annotated[str, typer.Option(help="Where the text stands in the request: user, system, tool-name, tool-description, "
                                              "tool-parameter, tool-arguments, tool-result, assistant, reasoning, json-schema, "
                                              "image.")] = "user",
    pipeline: Annotated[str, typer.Option(help="How the request becomes ids: recipe, whole-prompt, split-special, template, "
                                               "delete, nfkc-delete, escape.")] = "recipe",
    spelling: Annotated[str, typer.Option(help="How control tokens in the text are written; exact leaves them.")] = "exact",
    file: Annotated[Path | None, typer.Option(help="Read the text from a UTF-8 file.", show_default=False)] = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="Every pipeline, carrier and spelling; without a text, the source "
                                                          "article's.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Encode a text that arrives in one part of a request, and say which control tokens it put into the prompt.

    Everything runs here: no model, no key, no network.
    """
    given = _given(text, file)
    if matrix:
        _print_matrix(given, as_json)
        return
    if given is None:
        raise InputError("text", None, "a text, - for standard input, or --file")
    from inside_deepinfer.tokens.laboratory import encode

    encoded = encode(given, carrier, pipeline, spelling)
    if as_json:
        _print_json(encoded.record())
    else:
        _print_words(encoded)


def _given(text: str | None, file: Path | None) -> str | None:
    if file is not None and text is not None:
        raise InputError("text", text[:40], "either a text or --file")
    if file is not None:
        try:
            with file.open("rb") as handle:
                return _read(handle)
        except OSError as error:
            raise InputError("file", str(file), f"a file that can be read ({error.strerror})") from None
    return _read(sys.stdin.buffer) if text == "-" else text


def _read(handle: Any) -> str:
    """At most one byte more than is allowed, so that a huge input is refused and not loaded."""
    from inside_deepinfer.tokens.texts import TooLarge, limit

    raw = handle.read(limit() + 1)
    if len(raw) > limit():
        raise TooLarge(f"the text is larger than the laboratory takes: allowed are {limit():,} bytes")
    return raw.decode("utf-8", "surrogateescape")  # the laboratory replaces what is no text, and says so


def _print_json(content: Any) -> None:
    print(json.dumps(content, ensure_ascii=True))  # no control character reaches a terminal


def _print_words(encoded: Encoded) -> None:
    from inside_deepinfer.tokens.strip import LABELS
    from inside_deepinfer.tokens.visible import visible

    print(f"{encoded.carrier} through {encoded.pipeline}: {encoded.sentence}")
    for notice in encoded.notices:
        print(f"note: {notice}")
    if encoded.closes_frame:
        from inside_deepinfer.tokens.carriers import CARRIERS

        print(f"warning: the text spells {CARRIERS[encoded.carrier].closes}, which ends its place and is ordinary text: what follows "
              "stands where the user speaks")
    if encoded.refusal:
        print(f"the API layer refuses this request ({visible(encoded.refusal)}); shown is the encoder without that check")
    print(f"{len(encoded.ids):,} tokens, control tokens by position:")
    for token in encoded.control:
        kind = "injected" if token.owner == "data" else "template"
        print(f"  {token.position:>7}  {token.id:>6}  {visible(token.spelling)}  ({LABELS[kind]})")
    print("turns:")
    for turn in encoded.turns:
        opened = ", opened by the text" if turn.owner == "data" else ""
        print(f"  {turn.start:>7} to {turn.stop}  {turn.role}{opened}")


def _print_matrix(text: str | None, as_json: bool) -> None:
    from inside_deepinfer.tokens.matrix import matrix

    table = matrix(text)
    if as_json:
        _print_json(json.loads(table.to_json(orient="records")))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for name, rows in table.groupby("pipeline", sort=False):
        wide = rows.pivot(index="spelling", columns="carrier", values="injected")
        order, carriers = list(dict.fromkeys(rows.spelling)), list(dict.fromkeys(rows.carrier))
        shown = Table(title=f"{name}: injected control tokens", title_justify="left")
        shown.add_column("spelling")
        for carrier in carriers:
            shown.add_column(carrier, justify="right")
        for spelling in order:
            shown.add_row(spelling, *("–" if wide.isna().loc[spelling, c] else str(wide.loc[spelling, c]) for c in carriers))
        console.print(shown)
