"""``inside-deepinfer trace``: what a prefix cache of any size and any retention would make of a trace of requests."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from inside_deepinfer.cache.report import Report

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50,
          "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}


def trace(
    files: Annotated[list[Path], typer.Argument(help="Mooncake JSON lines or CSV, plain or .gz.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    figure: Annotated[Path | None, typer.Option(help="Write the figures to this .html file.", show_default=False)] = None,
    definition: Annotated[str, typer.Option(help="whole: every request counts; last-half: the first half only fills the cache "
                                                 "(what kvcache-simulator 0.1.3 prints).")] = "whole",
    count: Annotated[str, typer.Option(help="tokens, blocks or requests.")] = "tokens",
    rule: Annotated[str, typer.Option(help="plain: all that is stored; v4.1: multiples of 128 up to L - 134; "
                                           "v4.1-state-missing: 128 less.")] = "plain",
    retention: Annotated[str, typer.Option(help="Retention times, e.g. 10s,5min,3d,inf.", show_default=False)] = "",
    capacity: Annotated[str, typer.Option(help="Capacities, e.g. 8GiB,100TiB.", show_default=False)] = "",
    block_size: Annotated[int | None, typer.Option(help="Tokens per block; inferred where left out.", show_default=False)] = None,
    model: Annotated[str, typer.Option(help="Model whose KV bytes per token turn capacities into blocks.")] = "",
    bytes_per_token: Annotated[float | None, typer.Option(help="KV bytes per token, in place of a model's.",
                                                          show_default=False)] = None,
    time_unit: Annotated[str, typer.Option(help="Unit of timestamp: ms or s.")] = "ms",
    sample: Annotated[float, typer.Option(help="Look at this share of the blocks and state an error bound (1: all).")] = 1.0,
    joined: Annotated[bool, typer.Option("--joined", help="The files are consecutive parts of one trace; else each has a cache "
                                                          "of its own.")] = False,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Spread the files over this Dask scheduler.",
                                             show_default=False)] = None,
    max_damaged: Annotated[float, typer.Option(help="Share of damaged lines that is tolerated.")] = 0.05,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Read traces once and answer for every retention time and every capacity: hit rates, reuse times, distinct blocks.

    Damaged lines are left out, counted and named. Memory stays bounded: about 4 bytes per distinct block (more where ids are
    hashes) and 16 per request.
    """
    from inside_deepinfer import catalogue
    from inside_deepinfer.cache.distributed import Reading, analyse_files
    from inside_deepinfer.cache.reuse import Definition, Question
    from inside_deepinfer.cache.sampling import Sample
    from inside_deepinfer.facts.errors import InputError

    if definition not in ("whole", "last-half"):
        raise InputError("definition", definition, "whole or last-half")
    if figure is not None and figure.suffix != ".html":
        raise InputError("figure", str(figure), "a name that ends in .html")
    asked: dict[str, Any] = {}
    if retention:
        asked["retentions"] = tuple(_amounts("retention", retention, _SECONDS))
    if capacity:
        asked["capacities"] = tuple(_amounts("capacity", capacity, _BYTES))
    kv_bytes = bytes_per_token if bytes_per_token is not None else catalogue.value(
        "kv_bytes_per_token", **({"model": model} if model else {}))
    warm_up = 0.5 if definition == "last-half" else 0.0
    question = Question(definition=Definition(count, warm_up, rule), sample=Sample(sample), **asked)
    reading = Reading(kv_bytes=kv_bytes, block_tokens=block_size, time_unit=time_unit, max_damaged=max_damaged)
    with _progress(quiet or dask is not None) as progress:
        report = analyse_files(files, question, reading, joined=joined, dask=dask, progress=progress)
    if figure is not None:
        _write_figures(report, figure)
    if as_json:
        print(json.dumps(report.as_json()))
    else:
        _print_words(report)


def _amounts(name: str, text: str, units: dict[str, float]) -> Iterator[float]:
    """``5min,3d`` as numbers in the base unit; a bare number is in the base unit, ``inf`` is infinite."""
    from inside_deepinfer.facts.errors import InputError

    for part in text.split(","):
        part = part.strip()
        unit = next((unit for unit in sorted(units, key=len, reverse=True) if part.endswith(unit)), "")
        try:
            yield float(part.removesuffix(unit)) * units.get(unit, 1)
        except ValueError:
            raise InputError(name, part, f"a number and one of {', '.join(units)}, or inf") from None


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Bytes read, on standard error, where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    with Progress(TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
                  console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def _print_words(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table

    from inside_deepinfer.facts.units import digits, percent, show, span

    way = ", ".join(f"{percent(report.hit_rate(weight), 2)} of {weight}" for weight in ("tokens", "blocks", "requests"))
    print(f"{report.requests_seen:,} requests over {span(report.seconds)}, {digits(report.mean_input_tokens)} input tokens on "
          f"average, blocks of {report.block_tokens} tokens, {digits(report.kv_bytes)} B of KV per token")
    print(f"hit rate without limits: {way}")
    print(f"definition: {report.definition}")
    print(f"distinct blocks: {report.distinct_blocks / report.sample.used_rate:,.0f}; reuse within: "
          + (", ".join(f"{percent(share, 0)} {span(seconds)}" for share, seconds in report.reuse_quantiles().items()) or "none"))
    if report.damage and report.damage.lines:
        print(f"damaged lines left out: {report.damage.lines:,} of {report.damage.read:,} ({report.damage})")
    error = not report.sample.full
    if error:
        print(f"sampled: {percent(report.sample.used_rate, 3)} of the blocks; the error is three standard errors")
    for title, keys, rates, bounds in (
            ("retention", [span(seconds) for seconds in report.retentions], report.at_retentions(), report.retention_error()),
            ("capacity", [show(size, "B") for size in report.capacities], report.at_capacities(), report.capacity_error())):
        table = Table(title=None)
        table.add_column(title, justify="right")
        table.add_column(f"hit {report.definition.weight}", justify="right")
        if error:
            table.add_column("error", justify="right")
        for key, rate, bound in zip(keys, rates, bounds, strict=True):
            table.add_row(key, percent(rate, 2), *([f"± {percent(bound, 2)}"] if error else []))
        Console().print(table)


def _write_figures(report: Report, path: Path) -> None:
    """One page that needs nothing else: plotly's script is in it."""
    from inside_deepinfer.figures.cache import trace_figures

    parts = [figure.to_html(full_html=False, include_plotlyjs=number == 0, config={"displaylogo": False})
             for number, figure in enumerate(trace_figures(report))]
    path.write_text("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Trace</title></head><body>\n"
                    + "\n".join(parts) + "\n</body></html>\n", encoding="utf-8")
