"""HBM and experts: what a decode step reads, which resource binds, and whether it fits at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.page import Block, Number, Page, Prose, Table
from inside_deepinfer.facts import NotPossible, digits, load_facts, percent, show
from inside_deepinfer.facts.gpu_runs import gpu_problems
from inside_deepinfer.figures import hbm, hbm_capacity, hbm_movable
from inside_deepinfer.figures.theme import KIND_MARK
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving import links
from inside_deepinfer.serving.step_budget import precision_notice, rows_notice
from inside_deepinfer.studies.decode_curves import domain_notice
from inside_deepinfer.studies.machine_world import in_decimal
from inside_deepinfer.studies.measured import carried_over, listing
from inside_deepinfer.studies.step_inputs import step_inputs

EXCHANGED = ("exchange_bytes_per_token", "exchange_bytes_per_step", "card_domain", "crossing_copies", "crossing_bytes_per_step",
             "time_exchange")


def bytes_and_time(scenario: Scenario, preset: str) -> Any:
    """Bytes and times of a step that can exist."""
    catalogue.value("fitting_batch", scenario, preset)  # or the reason why there is no such step
    return hbm_movable.bytes_and_time(scenario, preset)


def finding(scenario: Scenario, preset: str) -> str:
    """Bytes read, share of bandwidth, and what binds."""
    catalogue.value("fitting_batch", scenario, preset)
    names = ["hbm_read_bytes_per_step", "hbm_total_bytes_per_step", "counted_step_time", "card_bandwidth", "binding_resource",
             "experts_per_gpu"]
    weights, total, step, bandwidth, binds, experts = (
        quantity.value for quantity in catalogue.evaluate(names, scenario, preset).values())
    text = (f"At EP{scenario.ep} a GPU holds {digits(experts)} experts per layer and reads {digits(weights / 1e9, 3)} GB of weights "
            f"and {digits((total - weights) / 1e9, 3)} GB besides per step; the counted parts take {show(step, 's', 3)}, "
            f"{hbm.clause(binds)}, and reading uses {percent(total / step / bandwidth, 0)} of what HBM could deliver in that time.")
    return text.replace(" GB", "\u00a0GB").replace(" ms", "\u00a0ms").replace(" %", "\u00a0%")  # large type breaks lines often


def _exchange(scenario: Scenario, preset: str) -> list[Block]:
    """What dispatch and combine send, and what of it leaves the scale-up domain; or why that cannot be said."""
    title = "What crosses the link"
    try:
        found = catalogue.evaluate(EXCHANGED, scenario, preset)
    except NotPossible as reason:
        return [Prose(str(reason), tone="warn", title=title)]
    rows = [[quantity.label, in_decimal(float(quantity.value), quantity.unit)] for quantity in found.values()]
    beyond = domain_notice(scenario.card, scenario.ep, scenario.scaleup_domain)
    return [Table(name="exchange", title=title, columns=("number", "value"), rows=rows, search=False),
            *([Prose(beyond, tone="warn", title="Beyond the domain")] if beyond else [])]


def _inputs(scenario: Scenario, preset: str) -> list[Block]:
    """Every input of the step budget with its kind, and whose measured shares are used; or why there are none."""
    try:
        found, carried = step_inputs(scenario, preset), carried_over(scenario)
    except NotPossible as reason:
        return [Prose(str(reason), tone="warn", title="What the times rest on")]
    sources = load_facts().sources
    rows = [[entry.label, show(entry.value, entry.unit), entry.kind, sources[entry.sources[0]].title if entry.sources else "you"]
            for entry in found]
    table = Table(name="step-inputs", title="What the times rest on", columns=("input", "value", "kind", "from"), rows=rows,
                  filters=("kind",), marks={"kind": KIND_MARK})
    tone = "warn" if "assumption" in carried else "plain"
    return [*([Prose(carried, tone=tone, title="Efficiencies")] if carried else []), table]


def body(scenario: Scenario, preset: str) -> Sequence[Block]:
    """What the card lacks, every input of the step budget with its kind, and the cards that were measured."""
    warnings = {"Precision": precision_notice(scenario.model, scenario.card),
                "Rows": rows_notice(scenario.model, scenario.rows_per_sequence)}
    left_out = Prose("Left out: uneven load between GPUs, waiting at synchronisation points, sampling, work of the CPU.",
                     title="What the step leaves out")
    cards = Table(name="measured-cards", title="Cards that were measured", search=False, rows=listing(),
                  columns=("folder", "card", "date", "driver", "versions", "measured", "gives efficiencies of"))
    return [*(Prose(text, tone="warn", title=title) for title, text in warnings.items() if text),
            left_out, *_exchange(scenario, preset), *_inputs(scenario, preset), cards,
            *(Prose(line, tone="warn", title="Not used") for line in gpu_problems()),
            Prose("Run the scripts in benchmarks/gpu on a card of yours and put the files into data/measured/gpu/<card>: this page "
                  "then lists it, and \"measured\" uses it for that card.", title="Another card")]


PAGE = Page(
    slug="hbm",
    title="HBM and experts",
    question="What does a decode step read, and what limits it?",
    chapter="hbm",
    primary=("ep", "batch", "card"),
    folded={"Model and sequences": ("model", "context", "rows_per_sequence", "redundant_experts"),
            "Step": ("efficiencies", "step_time", "overlap", "selection_overlap"),
            "Link": links.PARAMETERS},
    numbers=("experts_per_gpu",
             Number("weight_bytes_per_gpu", label="weights held per GPU", show="decimal"),
             Number("hbm_read_bytes_per_step", label="weights read per step", show="decimal", beside="hbm.weights", same=("model", "ep")),
             Number("feasible_hbm_share", label="share of HBM bandwidth for weights", show="percent", beside="hbm.share_mean",
                    same=("model", "ep", "step_time")),
             Number("hbm_total_bytes_per_step", label="all bytes read per step", show="decimal"),
             Number("fitting_step_time", label="counted step time", beside="decode.step_time",
                    same=("model", "ep", "batch")),
             Number("fitting_binding_resource", label="resource that binds"),
             Number("largest_batch", label="most sequences per GPU that fit")),
    figures=(bytes_and_time, hbm.binding_map, hbm_capacity.capacity_map),
    finding=finding,
    body=body,
)
