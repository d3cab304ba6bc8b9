"""``inside-deepinfer frontier decode|prefill``: the points of a frontier for a scenario."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from inside_deepinfer.facts.errors import InputError, NotPossible

PHASES = ("decode", "prefill")


def frontier(
    phase: Annotated[str, typer.Argument(help="decode or prefill.")],
    preset: Annotated[str, typer.Option(help="Start from this preset.")] = "published",
    changes: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a parameter; may be repeated.")]
    = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print a frontier, what limits it, and (decode) its band."""
    if phase not in PHASES:
        raise InputError("phase", phase, " or ".join(PHASES))
    from inside_deepinfer.commands.value import _pairs
    from inside_deepinfer.scenario import make_scenario

    scenario = make_scenario(preset, _pairs(changes or []))
    data = decode(scenario, preset) if phase == "decode" else prefill(scenario, preset)
    if as_json:
        typer.echo(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False))
        return
    columns = list(data["points"][0])
    typer.echo("  ".join(f"{name:>18}" for name in columns))
    for point in data["points"]:
        typer.echo("  ".join(f"{_text(point[name]):>18}" for name in columns))
    for name in ("units", "limits", "notice", "targets"):
        for line in _lines(name, data.get(name)):
            typer.echo(line)


def decode(scenario: Any, preset: str) -> dict[str, Any]:
    """Points, band and limits of the decode frontier."""
    from inside_deepinfer import catalogue
    from inside_deepinfer.studies import decode_curves

    curve = decode_curves.frontier(scenario, preset)
    try:
        around = decode_curves.band(scenario, preset, curve.batch)
        low, high = (curve.batch * side for side in (around.slow, around.fast))
    except NotPossible:
        low = high = [None] * curve.batch.size
    points = [{"batch": int(batch), "user_speed": speed, "per_decode_gpu": one, "per_cluster_gpu": each, "inter_token_latency": gap,
               "step_time": step, "efficient": bool(keep), "band_low": below, "band_high": above}
              for batch, speed, one, each, gap, step, keep, below, above in zip(
                  curve.batch.tolist(), curve.user_speed.tolist(), curve.per_decode_gpu.tolist(), curve.per_cluster_gpu.tolist(),
                  curve.latency.tolist(), curve.step_time.tolist(), curve.efficient, low, high, strict=True)]
    names = ("throughput_per_decode_gpu", "modelled_user_speed", "decode_step_time", "step_fixed_time", "step_time_per_row",
             "step_fit_error", "benchmark_error")
    here = {name: float(quantity.value) for name, quantity in catalogue.evaluate(names, scenario, preset).items()}
    return {"phase": "decode", "preset": preset, "points": points, "operating_point": {"batch": scenario.batch} | here,
            "limits": {region.kind: region.reason for region in curve.regions}, "notice": curve.notice,
            "units": {"batch": "sequence/GPU", "user_speed": "token/(s*user)", "per_decode_gpu": "token/(s*GPU), decode GPUs",
                      "per_cluster_gpu": "token/(s*GPU), prefill and decode GPUs", "inter_token_latency": "s", "step_time": "s"}}


def prefill(scenario: Any, preset: str) -> dict[str, Any]:
    """Points of the prefill frontier and the loads that meet the reported targets."""
    from inside_deepinfer import catalogue
    from inside_deepinfer.studies import prefill_curves

    curve = prefill_curves.frontier(scenario, preset)
    points = [{"load": load, "new_per_gpu": new, "cached_per_gpu": cached, "ttft_mean": mean, "ttft_p99": tail}
              for load, new, cached, mean, tail in zip(curve.load.tolist(), curve.per_gpu.tolist(), curve.cached.tolist(),
                                                       curve.mean.tolist(), curve.p99.tolist(), strict=True)]
    names = ("load_at_mean_target", "load_at_p99_target", "throughput_within_targets", "prefill_error")
    targets = {name: float(quantity.value) for name, quantity in catalogue.evaluate(names, scenario, preset).items()}
    mean, tail = prefill_curves.targets()
    try:
        waits = catalogue.evaluate(("first_token_mean", "first_token_p99"), scenario, preset)
        here, notice = {name: float(quantity.value) for name, quantity in waits.items()}, ""
    except NotPossible as error:
        here, notice = {}, str(error)
    return {"phase": "prefill", "preset": preset, "capacity": curve.capacity, "points": points,
            "operating_point": {"load": scenario.prefill_load} | here, "notice": notice,
            "targets": {"ttft_mean": mean, "ttft_p99": tail} | targets,
            "units": {"new_per_gpu": "token/(s*GPU), new tokens", "cached_per_gpu": "token/(s*GPU), cached tokens counted",
                      "ttft_mean": "s", "ttft_p99": "s"}}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:,.5g}"


def _lines(name: str, content: Any) -> list[str]:
    if not content:
        return []
    if isinstance(content, dict):
        return [f"{name}: {key}: {value if isinstance(value, str) else _text(value)}" for key, value in content.items()]
    return [f"{name}: {content}"]
