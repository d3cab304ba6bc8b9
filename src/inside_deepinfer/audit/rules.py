"""The rules that turn a comparison and the documents into a verdict. No verdict is typed anywhere.

What is compared
    The computed numbers with the number that the article prints, or with another number that the check names (``against``).
    Units must be the same up to a decimal prefix.
One printed step
    One unit of the last digit that the article prints; the zeros at the end of a round whole number do not count as digits
    (36.7 has a step of 0.1, 1,200 one of 100, 1.00 one of 0.01).
Routes
    own inputs        at most half a printed step away (one whole step where the article says "about")  -> reproduced
    second route      within the relative tolerance, above, below or within the bound that the row states -> consistent
    by construction   equal: the same number in other words, so agreement is no evidence                 -> identity
    A comparison that fails, whatever the route                                                          -> conflict
Documents
    One that contradicts -> conflict, whatever the arithmetic says; a row without arithmetic is reproduced if a re-run
    supports it, consistent if a document supports it, unverifiable if there is neither.
A conflict names its evidence: the document, or the sources under the computed number. One that can name neither is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inside_deepinfer.facts import UserError, show
from inside_deepinfer.facts.records import Check, Claim

VERDICT_OF_ROUTE = {"own_inputs": "reproduced", "second_route": "consistent", "by_construction": "identity"}
ROUNDING = 1e-9  # room for the last bits of binary arithmetic, relative
YES_OR_NO = "yes = 1"  # unit of an experiment that either comes out or does not
DRIFT = 1e-3  # a computed number further from its recorded value than this has drifted, relative


@dataclass(frozen=True)
class Comparison:
    """One computed number beside the one it is held against."""

    computed: float
    target: float | None
    allowed: str
    holds: bool


def compare(claim: Claim, check: Check, computed: Sequence[float], target: Sequence[float],
            unit: str = "") -> tuple[Comparison, ...]:
    """Hold every computed number against its target.

    Args:
        claim: gives the printed step and whether the article says "about".
        check: gives route, relation, tolerance and bounds.
        computed: numbers in the unit of the target.
        target: one number for all, or one for each; empty for the relation ``within``.
        unit: their unit, for the sentence.
    """
    if check.relation == "within":
        low, high = check.within or (0.0, 0.0)
        allowed = f"from {_shown(low, unit)} to {_shown(high, unit)}" if low < high else f"exactly {_shown(low, unit)}"
        return tuple(Comparison(value, None, allowed, low <= value <= high) for value in computed)
    if len(target) not in (1, len(computed)):
        raise UserError(f"claim {claim.id}: {len(computed)} computed numbers cannot be held against {len(target)}")
    targets = list(target) * (len(computed) if len(target) == 1 else 1)
    steps = _steps(claim, len(computed))
    return tuple(_one(claim, check, value, goal, step, unit) for value, goal, step in zip(computed, targets, steps, strict=True))


def _one(claim: Claim, check: Check, value: float, goal: float, step: float | None, unit: str) -> Comparison:
    slack, shown = ROUNDING * abs(goal), _shown(goal, unit)
    if check.relation == "at_least":
        return Comparison(value, goal, f"at least {shown}", value >= goal - slack)
    if check.relation == "at_most":
        return Comparison(value, goal, f"at most {shown}", value <= goal + slack)
    if check.route == "own_inputs" and check.against is None and step is not None:
        room = step if claim.about else step / 2
        how = 'one printed step, as the article says "about"' if claim.about else "half a printed step"
        return Comparison(value, goal, f"{shown} give or take {_shown(room, unit)} ({how})", abs(value - goal) <= room + slack)
    if check.tolerance is not None and check.route != "by_construction":
        room = check.tolerance * abs(goal)
        return Comparison(value, goal, f"{shown} give or take {100 * check.tolerance:g} %", abs(value - goal) <= room + slack)
    return Comparison(value, goal, f"exactly {shown}", abs(value - goal) <= slack)


def _shown(value: float, unit: str) -> str:
    """A number in a sentence; the outcome of an experiment is a word."""
    return ("yes" if value else "no") if unit == YES_OR_NO else show(value, unit)


def _steps(claim: Claim, count: int) -> list[float | None]:
    step = claim.printed_step
    if isinstance(step, list):
        if len(step) != count:
            raise UserError(f"claim {claim.id}: {len(step)} printed steps for {count} computed numbers")
        return list(step)
    return [step] * count


def verdict(claim: Claim, comparisons: Sequence[Comparison], unit: str = "") -> tuple[str, str]:
    """The verdict of a claim and, in one sentence, the rule that gave it."""
    failed = [item for item in comparisons if not item.holds]
    if failed:
        return "conflict", f"computed {_shown(failed[0].computed, unit)}; allowed is {failed[0].allowed}"
    against = [item.source for item in claim.evidence if item.says == "contradicts"]
    if against:
        return "conflict", f"contradicted by {', '.join(dict.fromkeys(against))}"
    if comparisons and claim.check is not None:
        what = {"own_inputs": "recomputed from the claim's own inputs", "second_route": "a second route agrees",
                "by_construction": "the same number in other words"}[claim.check.route]
        shown = ", ".join(_shown(item.computed, unit) for item in comparisons)
        allowed = " / ".join(dict.fromkeys(item.allowed for item in comparisons))
        return VERDICT_OF_ROUTE[claim.check.route], f"{what}: computed {shown}; allowed is {allowed}"
    rerun = [item.source for item in claim.evidence if item.by == "rerun"]
    if rerun:
        return "reproduced", f"run again: {', '.join(dict.fromkeys(rerun))}"
    if claim.evidence:
        return "consistent", f"supported by {', '.join(dict.fromkeys(item.source for item in claim.evidence))}"
    return "unverifiable", "no arithmetic and no document at hand decides it"
