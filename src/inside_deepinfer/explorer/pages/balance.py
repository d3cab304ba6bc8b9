"""Balance: which GPU the step waits for, before and after copies are made and experts are moved."""

from __future__ import annotations

from collections.abc import Mapping

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.page import Field, Number, Page
from inside_deepinfer.facts import percent
from inside_deepinfer.figures import balance
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.studies import routing


def finding(scenario: Scenario, preset: str, fields: Mapping[str, str]) -> str:
    """The ratio of this step and of the whole replay, and what the latter would cost a decode step."""
    run = routing.run(fields[balance.FIELD], scenario)
    step = int(scenario.balance_step)
    placement = run.placements[0][1]
    slots = len(placement.expert[0]) // placement.gpus
    mean = float(run.after[run.moves[0]:].mean())
    cost = float(catalogue.value("imbalance_cost", scenario, preset, imbalance=mean))
    return (f"On {placement.gpus} GPUs with {slots} slots each ({run.copies} copies of 64 experts) the busiest GPU has "
            f"{run.before[step]:.2f} times the mean at step {step} in the initial layout and {run.after[step]:.2f} with the balancer, "
            "all layers together. "
            f"Over the replay it is {mean:.2f} once weights have moved; that ratio would make the counted decode step at "
            f"EP{scenario.ep} {percent(cost)} longer.")


PAGE = Page(
    slug="balance",
    title="Balance",
    question="Which GPU does everybody wait for?",
    chapter="expert-balance",
    primary=("balance_gpus", "redundant_experts", "balance_step"),
    folded={"Balancer": ("balance_window", "balance_interval"),
            "What a ratio costs in decode": ("imbalance", "ep", "batch", "rows_per_sequence", "overlap", "card")},
    numbers=(Number("balance_before", label="initial layout, slowest over mean"),
             Number("balance_held_out", label="balanced, later steps of the same task"),
             Number("balance_other_task", label="balanced, but traffic is another task"),
             Number("chance_imbalance", label="by chance alone in decode", beside="eplb.decode_ratio"),
             Number("imbalance_cost", label="longer decode step at the set ratio", show="percent")),
    figures=(balance.heat_map, balance.replay, balance.cost),
    finding=finding,
    fields=(Field(key=balance.FIELD, label="texts", default=routing.IN_TURN, options=routing.texts(),
                  doc="Whose routing is replayed: one task, or the four tasks one after the other, so that the traffic changes."),),
)
