"""Decode frontier: throughput against speed per user, where the scenario lies on it, and what its step is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.page import Block, Number, Page, Prose
from inside_deepinfer.facts import digits, show
from inside_deepinfer.figures import decode_frontier
from inside_deepinfer.figures.hbm import clause
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving import links
from inside_deepinfer.serving.step_budget import precision_notice
from inside_deepinfer.studies.decode_curves import frontier

BEYOND = {"memory": "More sequences", "speed": "More speed"}


def finding(scenario: Scenario, preset: str) -> str:
    """Throughput, speed per user, the step behind both, and the same per GPU of the cluster."""
    names = ("fitting_throughput_per_decode_gpu", "modelled_user_speed", "decode_step_time", "counted_step_time", "binding_resource",
             "throughput_per_cluster_gpu")
    each, speed, step, counted, binds, cluster = (
        quantity.value for quantity in catalogue.evaluate(names, scenario, preset).values())
    text = (f"With {scenario.batch:,} sequences per GPU at EP{scenario.ep} one decode GPU writes {digits(each)} tokens per second, and "
            f"each user sees {digits(speed, 3)}; the step takes {show(step, 's', 3)}, of which {show(counted, 's', 3)} are counted, "
            f"{clause(str(binds))}. Shared with the prefill GPUs it is {digits(cluster)} per GPU of the cluster.")
    return text.replace(" ms", "\u00a0ms")


def time_budget(scenario: Scenario, preset: str) -> Any:
    """The parts of a step that can exist."""
    catalogue.evaluate(["fitting_step_time"], scenario, preset)
    return decode_frontier.time_budget(scenario, preset)


def body(scenario: Scenario, preset: str) -> Sequence[Block]:
    """What lies beyond the curve and why, and what the layout costs that its name does not say."""
    curve = frontier(scenario, preset)
    blocks = [Prose(f"{region.reason[0].upper()}{region.reason[1:]}.", title=BEYOND[region.kind]) for region in curve.regions]
    notices = {"Scale-up domain": curve.notice, "Precision": precision_notice(scenario.model, scenario.card)}
    blocks += [Prose(text if text.endswith(".") else f"{text}.", tone="warn", title=title) for title, text in notices.items() if text]
    left = f"{show(scenario.uncounted_time, 's', 3)} of every step are one fitted number, and nobody outside knows what fills them."
    return [*blocks, Prose(left, title="Not counted")]


PAGE = Page(
    slug="decode-frontier",
    title="Decode frontier",
    question="How many tokens does one GPU write, and how fast does each user see them?",
    chapter="decode-frontier",
    primary=("batch", "ep", "context"),
    folded={"Card and model": ("card", "model", "redundant_experts"),
            "Acceptance": ("tokens_per_step", "rows_per_sequence"),
            "Step": ("efficiencies", "uncounted_time", "overlap", "selection_overlap"),
            "Link": links.PARAMETERS,
            "Cluster": ("pd_ratio",)},
    numbers=(Number("fitting_throughput_per_decode_gpu", label="output per decode GPU", beside="decode.benchmark"),
             Number("fitting_throughput_per_cluster_gpu", label="output per GPU of the cluster"),
             Number("fitting_modelled_user_speed", label="speed per user", beside="decode.user_speed"),
             Number("fitting_inter_token_latency", label="time between tokens"),
             Number("fitting_decode_step_time", label="step time", beside="decode.step_time"),
             Number("largest_batch", label="most sequences per GPU that fit")),
    figures=(decode_frontier.operating_curve, time_budget),
    finding=finding,
    body=body,
)
