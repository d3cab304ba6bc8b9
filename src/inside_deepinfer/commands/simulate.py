"""``inside-deepinfer simulate``: prefill and decode, event by event, for a scenario."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import typer


def simulate(
    preset: Annotated[str, typer.Option(help="Start from this preset.")] = "published",
    changes: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a parameter; may be repeated.")]
    = None,
    prefill_gpus: Annotated[int, typer.Option(help="Cards that read prompts.")] = 4,
    decode_gpus: Annotated[int, typer.Option(help="Cards that write answers.")] = 4,
    ranks: Annotated[int | None, typer.Option(help="Decode cards that step together; all of them where left out.",
                                              show_default=False)] = None,
    load: Annotated[float, typer.Option(help="Work that arrives, over what the busier pool can do.")] = 0.7,
    requests: Annotated[int, typer.Option(help="How many requests arrive.")] = 600,
    together: Annotated[bool, typer.Option("--together", help="All cards do both: a prompt stops the decode steps.")] = False,
    cpu_open: Annotated[bool, typer.Option("--cpu-open", help="CPU work is not hidden behind the GPU.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the traffic.")] = 0,
    budget: Annotated[float | None, typer.Option(help="Seconds that need no asking (default: fact pd.simulation_budget).",
                                                 show_default=False)] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Run without asking, however long it takes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Simulate requests through prefill, transfer and decode; print waiting, first-token and inter-token times.

    A queue that would grow without end is refused with the reason. A run that is expected to take longer than the budget asks first.
    """
    from inside_deepinfer.commands.value import _pairs
    from inside_deepinfer.facts import NotPossible, load_facts, require, require_positive
    from inside_deepinfer.scenario import make_scenario
    from inside_deepinfer.serving import pd_simulation
    from inside_deepinfer.studies import pd

    for name, value in (("prefill-gpus", prefill_gpus), ("decode-gpus", decode_gpus), ("requests", requests)):
        require(value >= 1, name, value, "a whole number of at least 1")
    require_positive("load", load)
    scenario = make_scenario(preset, _pairs(changes or []))
    cluster = pd.cluster_of(scenario, preset, prefill_gpus, decode_gpus, None if together else ranks, overlap=not cpu_open)
    if together:
        cards = prefill_gpus + decode_gpus
        cluster = replace(cluster, prefill_gpus=1, decode_gpus=cards, ranks=cards if ranks is None else ranks, together=True)
    if load >= 1:
        raise NotPossible(f"the queue is unstable: requests bring {load:g} times the work that the busier pool can do, so waiting grows "
                          "without end")
    traffic = pd.traffic(scenario, cluster, load, requests, seed)
    about = pd.expected_seconds(cluster, traffic)
    allowed = load_facts().number("pd.simulation_budget") if budget is None else require_positive("budget", budget)
    typer.echo(f"expected: about {_span(about)} of computing", err=True)
    if about > allowed and not yes and not typer.confirm(
            f"That is more than the budget of {_span(allowed)}. Run it?", err=True):
        typer.echo("not run", err=True)
        raise typer.Exit(1)
    began = time.perf_counter()
    with _progress(quiet) as progress:
        seen = pd_simulation.simulate(cluster, traffic, progress=progress, allow_long=True)
    found = _summary(scenario, cluster, seen, load, time.perf_counter() - began)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        _print(found)


def _summary(scenario: Any, cluster: Any, seen: Any, load: float, took: float) -> dict[str, Any]:
    import numpy as np

    from inside_deepinfer.studies import pd

    most = pd.limits(scenario, cluster)
    quantiles = {name: dict(zip(("mean", "median", "p99"), map(float, (part.mean(), *np.quantile(part, (0.5, 0.99)))), strict=True))
                 for name, part in (("wait", seen.wait), ("ttft", seen.ttft), ("time_per_token", seen.token_gap),
                                    ("longest_gap", seen.worst_gap))}
    return {"requests": len(seen.ttft), "load": load, "simulated_seconds": float(seen.span), "seconds_taken": round(took, 3),
            "limit_prefill_requests_per_s": most.prefill, "limit_decode_requests_per_s": most.decode,
            "prefill_busy": float(seen.prefill_busy), "together": cluster.together, "seconds": quantiles}


def _print(found: dict[str, Any]) -> None:
    from inside_deepinfer.facts import digits, percent

    way = "all cards do both" if found["together"] else "prefill and decode apart"
    typer.echo(f"{found['requests']:,} requests in {digits(found['simulated_seconds'])} s, {way}, {percent(found['load'], 0)} load; "
               f"computed in {digits(found['seconds_taken'], 2)} s")
    typer.echo(f"limits: prefill {digits(found['limit_prefill_requests_per_s'])}, decode {digits(found['limit_decode_requests_per_s'])} "
               "requests per second")
    names = {"wait": "wait in line", "ttft": "time to first token", "time_per_token": "time per token", "longest_gap": "longest gap"}
    typer.echo(f"{'ms':<22}{'mean':>10}{'median':>10}{'99 %':>10}")
    for name, label in names.items():
        row = found["seconds"][name]
        typer.echo(f"{label:<22}" + "".join(f"{1e3 * row[key]:>10.1f}" for key in ("mean", "median", "p99")))


def _span(seconds: float) -> str:
    from inside_deepinfer.facts import digits

    return f"{digits(seconds, 2)} s" if seconds < 100 else f"{digits(seconds / 60, 2)} min"


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """Share of finished requests, on standard error, where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(TextColumn("requests finished"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn(),
                  console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=1.0)
        yield lambda share: bar.update(task, completed=share)
