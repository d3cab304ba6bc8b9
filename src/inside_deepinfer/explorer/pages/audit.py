"""Audit: every published number with its verdict and the chain behind it. Does not depend on the scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from inside_deepinfer.explorer.page import Block, Page, Prose, Table
from inside_deepinfer.facts import Quantity, load_facts, show
from inside_deepinfer.figures.theme import KIND_MARK, VERDICT_MARK
from inside_deepinfer.scenario import Scenario

RELATION = {"at_least": "at least ", "at_most": "at most "}


def findings() -> Sequence[Any]:
    """The audit itself, loaded when the page is first opened."""
    from inside_deepinfer.audit import audit

    return audit()


def verdict_counts(scenario: Scenario, preset: str) -> Any:
    """Claims in each verdict, by who says them."""
    from inside_deepinfer.figures import audit as figures

    return figures.verdict_counts(findings())


def finding(scenario: Scenario, preset: str) -> str:
    """How many claims in each verdict."""
    count = Counter(found.verdict for found in findings())
    parts = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICT_MARK)
    changed = sum(found.changed for found in findings())
    end = f"; {changed} no longer as recorded" if changed else ""
    return f"Of {sum(count.values())} published statements: {parts}{end}."


def body(scenario: Scenario, preset: str) -> Sequence[Block]:
    """The table of all claims."""
    rows = [_row(found) for found in findings()]
    return [Table(
        name="audit", title="Every claim", rows=rows,
        columns=("claim", "verdict", "statement", "printed", "computed", "kind", "article", "chapter"),
        filters=("verdict", "kind", "chapter"), key="claim", details=details,
        marks={"verdict": VERDICT_MARK, "kind": KIND_MARK})]


def _row(found: Any) -> list[Any]:
    claim = found.claim
    relation = RELATION.get(claim.check.relation, "") if claim.check else ""
    printed = show(claim.value, claim.unit) if claim.value is not None else ""
    computed = "; ".join(show(part.value, part.unit) for part in found.computed)
    return [claim.id, found.verdict, claim.statement, printed and relation + printed, computed, claim.kind,
            ", ".join(claim.articles), claim.chapter]


def details(name: str) -> Sequence[Quantity | Prose]:
    """Rule, computed numbers with their chains, evidence and notes of one claim."""
    from inside_deepinfer.audit import finding as one

    found, facts = one(name), load_facts()
    parts: list[Quantity | Prose] = [Prose(found.claim.statement, title="Statement"),
                                     Prose(found.rule, title=f"Verdict: {found.verdict}")]
    parts += [Prose(problem, tone="warn", title="Problem") for problem in found.problems]
    parts += [*found.computed, *([found.target] if found.target is not None else []), *found.shown]
    for item in found.evidence:
        titles = "; ".join(facts.sources[source].title for source in item["sources"]) or "no source"
        tone = "warn" if item["says"] == "contradicts" else "good"
        parts.append(Prose(f"{item['text']} ({titles})", tone=tone, title=f"Evidence that {item['says']} it ({item['by']})"))
    if found.claim.note:
        parts.append(Prose(found.claim.note, title="Note"))
    if found.claim.see:
        parts.append(Prose(", ".join(found.claim.see), title="See also"))
    return parts


PAGE = Page(
    slug="audit",
    title="Audit",
    question="Which published numbers hold, and why?",
    chapter="audit",
    primary=(),
    figures=(verdict_counts,),
    finding=finding,
    body=body,
)
