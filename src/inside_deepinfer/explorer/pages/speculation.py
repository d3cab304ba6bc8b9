"""Speculation: how many guesses are worth checking at this load?"""

from __future__ import annotations

from typing import Any

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.page import Number, Page
from inside_deepinfer.facts import digits, load_facts, percent
from inside_deepinfer.figures import speculation
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving import links


def _must_fit(scenario: Scenario, preset: str) -> None:
    """What does not fit in HBM is shown as the reason, never as a curve."""
    catalogue.value("fitting_batch", scenario, preset)


def by_load(scenario: Scenario, preset: str) -> Any:
    """Checked drafts and tokens against load, for sequences that fit."""
    _must_fit(scenario, preset)
    return speculation.schedule_by_load(scenario, preset)


def objective(scenario: Scenario, preset: str) -> Any:
    """What another row is worth at this load."""
    _must_fit(scenario, preset)
    return speculation.objective(scenario, preset)


def policies(scenario: Scenario, preset: str) -> Any:
    """What fixed lengths and a threshold lose."""
    _must_fit(scenario, preset)
    return speculation.policies(scenario, preset)


def finding(scenario: Scenario, preset: str) -> str:
    """How many drafts are worth a row, and what that gains."""
    names = ["scheduled_drafts", "scheduled_tokens", "tokens_all_verified", "schedule_gain", "gain_over_no_drafter"]
    drafts, tokens, every, gain, over_none = (
        float(found.value) for found in catalogue.evaluate(names, scenario, preset).values())
    length = int(load_facts().number("spec.draft_length"))
    text = (f"With {scenario.batch} sequences per GPU, and a guess kept with {percent(scenario.acceptance_mean, 0)} once those before it "
            f"were, tokens per second are most if {digits(drafts, 3)} of {length} guesses are checked: {digits(tokens, 3)} tokens per step "
            f"instead of {digits(every, 3)}, {percent(gain)} more per second than checking all and {percent(abs(over_none), 0)} "
            f"{'less' if over_none < 0 else 'more'} than without a draft model.")
    return text.replace(" %", "\u00a0%")  # large type breaks lines often


PAGE = Page(
    slug="speculation",
    title="Speculation",
    question="How many guesses are worth checking?",
    chapter="speculation",
    primary=("batch", "acceptance_mean", "acceptance_spread"),
    folded={"Machine": ("card", "ep", "redundant_experts", "model"),
            "Step": ("efficiencies", "context", "uncounted_time", "overlap", "selection_overlap"),
            "Link": links.PARAMETERS},
    numbers=(Number("scheduled_drafts", label="guesses checked per sequence"),
             Number("scheduled_rows", label="rows per sequence"),
             Number("scheduled_tokens", label="tokens per step"),
             Number("tokens_all_verified", label="tokens per step, all checked"),
             Number("schedule_gain", label="gain over checking all", show="percent"),
             Number("gain_over_threshold", label="gain over a threshold", show="percent"),
             Number("gain_over_no_drafter", label="gain over no draft model", show="percent")),
    figures=(by_load, objective, policies),
    finding=finding,
)
