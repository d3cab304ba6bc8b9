"""Bind every claim to the numbers that check it, and collect verdict, chain, evidence and problems."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.audit.rules import DRIFT, Comparison, compare, verdict
from inside_deepinfer.facts import Quantity, UserError, digits, load_facts, show
from inside_deepinfer.facts.records import Check, Claim
from inside_deepinfer.facts.units import scale
from inside_deepinfer.scenario import make_scenario, parameter_name


@dataclass(frozen=True)
class Finding:
    """One audited claim.

    Attributes:
        computed: the numbers the check computed, in the unit of what they are compared with.
        target: what they were compared with: the claim itself, or the number that the check names.
        shown: further numbers that belong beside them.
        rule: one sentence: which rule gave the verdict.
        evidence: documents, re-runs and failed comparisons, each with its sources.
        problems: what makes the row itself wrong (drift, unnamed evidence); empty in a sound audit.
    """

    claim: Claim
    verdict: str
    rule: str
    computed: tuple[Quantity, ...] = ()
    target: Quantity | None = None
    comparisons: tuple[Comparison, ...] = ()
    shown: tuple[Quantity, ...] = ()
    evidence: tuple[dict[str, Any], ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.claim.id

    @property
    def expected_verdict(self) -> str:
        return self.claim.expected_verdict

    @property
    def changed(self) -> bool:
        """True where the verdict is not the recorded one, or the row itself is wrong."""
        return self.verdict != self.expected_verdict or bool(self.problems)

    @property
    def sources(self) -> tuple[str, ...]:
        """Articles, everything under the computed numbers, and the evidence, each once."""
        under = [source for part in self.computed for source in part.all_sources()]
        named = [source for item in self.evidence for source in item["sources"]]
        return tuple(dict.fromkeys([*(f"article-{number}" for number in self.claim.articles), *under, *named]))


def audit_claim(claim: Claim) -> Finding:
    """Check one claim; also works for a claim that is not in ``data/`` (tests)."""
    check = claim.check
    if check is None:
        word, rule = verdict(claim, ())
        return Finding(claim, word, rule, evidence=tuple(_documents(claim)))
    computed, shown, target, unit = _evaluate(claim, check)
    computed = tuple(_in_unit(claim, part, unit) for part in computed)
    numbers = [value for part in computed for value in _numbers(claim, part)]
    comparisons = compare(claim, check, numbers, _numbers(claim, target) if target is not None else [], unit)
    word, rule = verdict(claim, comparisons, unit)
    evidence = [*_documents(claim), *_failures(comparisons, computed, target)]
    problems = list(_drift(check, numbers))
    if word == "conflict" and not any(item["says"] == "contradicts" and item["sources"] for item in evidence):
        problems.append("a conflict without named evidence: the computed number rests on no source")
    return Finding(claim, word, rule, computed, target, comparisons, shown, tuple(evidence), tuple(problems))


def audit() -> list[Finding]:
    """Every claim in ``data/claims.yaml``, in its order."""
    return list(_audit(load_facts().folder))


def finding(name: str) -> Finding:
    """The finding of one claim; an unknown id is an error that names close ones."""
    facts = load_facts()
    if name not in facts.claims:
        near = get_close_matches(name, list(facts.claims), n=3, cutoff=0.4)
        hint = f"; close: {', '.join(near)}" if near else ""
        raise UserError(f"no claim is called {name!r}{hint} (audit lists them all)")
    return audit_claim(facts.claims[name])


@lru_cache(maxsize=2)
def _audit(folder: Path) -> tuple[Finding, ...]:
    """Kept per folder of facts: pages and tables ask for the same rows many times."""
    return tuple(audit_claim(claim) for claim in load_facts().claims.values())


def _evaluate(claim: Claim, check: Check) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...], Quantity | None, str]:
    """Computed numbers, numbers shown beside them, the target, and the unit to compare in."""
    arrays = {parameter_name(key): np.asarray(value, dtype=float) for key, value in check.set.items() if isinstance(value, list)}
    single = {key: value for key, value in check.set.items() if not isinstance(value, list)}
    scenario = make_scenario(check.preset, single)
    wanted = [*check.computes, *check.shows, *([check.against] if check.against else [])]
    found = catalogue.evaluate(wanted, scenario, check.preset, **arrays)
    if check.against:
        target: Quantity | None = found[check.against]
    elif check.relation == "within":
        target = None
    else:
        target = load_facts().quantity(claim.id) if claim.id in load_facts().claims else Quantity(
            claim.id, claim.value, claim.unit, claim.kind)
        if target.value is None:
            raise UserError(f"claim {claim.id} prints no value, so its check must say what to compare against")
    unit = target.unit if target is not None else claim.unit or found[check.computes[0]].unit
    return tuple(found[name] for name in check.computes), tuple(found[name] for name in check.shows), target, unit


def _in_unit(claim: Claim, part: Quantity, unit: str) -> Quantity:
    """The quantity in the unit of comparison; only decimal prefixes may differ."""
    if part.unit == unit:
        return part
    factor = scale(part.unit, unit)
    if factor is None:
        raise UserError(f"claim {claim.id}: {part.name} is in {part.unit!r}, which cannot be compared with {unit!r}")
    return replace(part, value=np.multiply(part.value, factor) if np.ndim(part.value) else part.value * factor, unit=unit)


def _numbers(claim: Claim, part: Quantity) -> list[float]:
    try:
        numbers = np.asarray(part.value, dtype=float).ravel()
    except (TypeError, ValueError):
        raise UserError(f"claim {claim.id}: {part.name} is {part.value!r}, which is no number") from None
    if not np.isfinite(numbers).all():
        raise UserError(f"claim {claim.id}: {part.name} is not finite")
    return numbers.tolist()


def _drift(check: Check, numbers: list[float]) -> Iterable[str]:
    for value, recorded in zip(numbers, check.expected, strict=True):
        if abs(value - recorded) > DRIFT * abs(recorded):
            yield f"computed {digits(value, 6)} where {digits(recorded, 6)} was recorded"


def _documents(claim: Claim) -> Iterable[dict[str, Any]]:
    for item in claim.evidence:
        yield {"says": item.says, "by": item.by, "sources": [item.source], "text": item.text}


def _failures(comparisons: tuple[Comparison, ...], computed: tuple[Quantity, ...],
              target: Quantity | None) -> Iterable[dict[str, Any]]:
    """A failed comparison is evidence too: the computed number with the sources under it."""
    failed = next((item for item in comparisons if not item.holds), None)
    if failed is None:
        return
    sources = dict.fromkeys(source for part in computed for source in part.all_sources())
    sources |= dict.fromkeys(target.all_sources() if target is not None else ())
    names = ", ".join(part.name for part in computed)
    text = f"{names} gives {show(failed.computed, computed[0].unit)}; allowed is {failed.allowed}"
    yield {"says": "contradicts", "by": "arithmetic", "sources": list(sources), "text": text}
