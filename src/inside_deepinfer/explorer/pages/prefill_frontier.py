"""Prefill frontier: how many new tokens before the reader waits too long?"""

from __future__ import annotations

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.page import Number, Page
from inside_deepinfer.facts import digits, percent, show
from inside_deepinfer.figures import prefill_frontier
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.cards import get_card
from inside_deepinfer.serving.prefill_frontier import LOADS, PROMPTS_AT_LOAD, prompts_drawn
from inside_deepinfer.studies.prefill_curves import targets

NEVER = 1.0  # load from which waiting has no end


def finding(scenario: Scenario, preset: str) -> str:
    """Throughput and waiting at the scenario's load, or that there is no end of waiting; and the load that would meet the targets."""
    names = ["prefill_capacity", "network_load", "load_at_mean_target", "load_at_p99_target"]
    capacity, fed, *loads = (float(found.value) for found in catalogue.evaluate(names, scenario, preset).values())
    card, load, most = get_card(scenario.card).name, scenario.prefill_load, min(loads)
    mean_target, tail_target = targets()
    within = "no simulated load keeps both reported targets" if most == 0 else (
        f"both are kept up to a load of {percent(most, 0)}, which is {digits(most * capacity, 3)} new tokens per second"
        + (" at least, the highest load that is simulated for it" if most >= LOADS[-1] else ""))
    if load >= min(NEVER, fed):
        within = within.replace("both are", "both reported targets are")
        why = "it" if load >= NEVER else "the network brings the cached tokens too slowly, so that it"
        return f"At {percent(load, 0)} load the queue is unstable: {why} grows without end, and no waiting time exists; {within}."
    waits = catalogue.evaluate(["first_token_mean", "first_token_p99"], scenario, preset)
    mean, tail = (float(found.value) for found in waits.values())
    kept = {(True, True): "keeps both reported targets", (True, False): "keeps the reported mean and misses the 99th percentile",
            (False, True): "keeps the reported 99th percentile and misses the mean", (False, False): "misses both reported targets"}
    over = f" of {prompts_drawn(PROMPTS_AT_LOAD, scenario.burst):,} prompts, and more the longer one looks" if load > LOADS[-1] else ""
    text = (f"At {percent(load, 0)} load one {card} computes {digits(load * capacity, 3)} new tokens per second; the first token comes "
            f"after {show(mean, 's', 3)} on average and {show(tail, 's', 3)} at the 99th percentile{over}, which "
            f"{kept[mean <= mean_target, tail <= tail_target]}; {within}.")
    return text.replace(" ms", "\u00a0ms").replace(" %", "\u00a0%")  # large type breaks lines often


PAGE = Page(
    slug="prefill-frontier",
    title="Prefill frontier",
    question="How many new tokens per second before the reader waits too long?",
    chapter="prefill-frontier",
    primary=("hit_rate", "prefill_load", "card"),
    folded={"Prompts and arrivals": ("input_tokens", "input_sigma", "burst"),
            "Engine": ("prefill_chunk", "overlap", "model", "efficiencies"),
            "Link": ("dispatch_format", "combine_format", "scaleup_domain")},
    numbers=(Number("prefill_capacity", beside="prefill.throughput_new"),
             Number("prefill_capacity_cached", beside="prefill.throughput_cached"),
             Number("first_token_mean", beside="prefill.ttft_mean"),
             Number("first_token_p99", beside="prefill.ttft_p99"),
             Number("throughput_within_targets", label="new tokens within both targets"),
             Number("load_at_mean_target", label="load at which the mean is met", show="percent"),
             Number("load_at_p99_target", label="load at which P99 is met", show="percent"),
             Number("replay_gain", label="gain of bounded replay", show="percent")),
    figures=(prefill_frontier.frontier, prefill_frontier.hit_rates),
    finding=finding,
)
