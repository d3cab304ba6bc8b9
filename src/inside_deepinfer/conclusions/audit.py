"""What chapter 2 concludes. The audit is imported late: it needs the whole catalogue, the registry does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inside_deepinfer.conclusions.registry import conclusion

if TYPE_CHECKING:
    from inside_deepinfer.audit import Finding


@conclusion("audit.every-claim-has-a-verdict", "Every claim has a verdict, and every conflict names what it conflicts with.")
def _every_claim_has_a_verdict() -> bool:
    from inside_deepinfer.audit import audit
    from inside_deepinfer.facts import load_facts
    findings = audit()
    named = all(any(item["says"] == "contradicts" and item["sources"] for item in found.evidence)
                for found in findings if found.verdict == "conflict")
    return {found.id for found in findings} == set(load_facts().claims) and named


@conclusion("audit.arithmetic-mostly-right", "More than three quarters of the authors' own calculations can be reproduced from "
                                             "the inputs they state.")
def _arithmetic_mostly_right() -> bool:
    own = _said("estimate", "author")
    # a row that needs an exchange rate needs our inference: no article states one
    stated = [found for found in own if found.verdict == "reproduced" and "cny_per_usd" not in _under(found)]
    return len(own) >= 20 and len(stated) / len(own) > 0.75


@conclusion("audit.reports-cannot-be-checked", "More than half of what DeepSeek reports about itself cannot be checked from "
                                               "outside.")
def _reports_cannot_be_checked() -> bool:
    reported = [found.verdict for found in _said("reported", "deepseek")]
    return len(reported) >= 30 and reported.count("unverifiable") / len(reported) > 0.5


@conclusion("audit.experiments-hold", "No experiment of the articles was contradicted when it was run again or recomputed.")
def _experiments_hold() -> bool:
    return {found.verdict for found in _said("experiment", "author")} <= {"reproduced", "consistent"}


@conclusion("audit.other-document-agrees", "All four printed results of that account come out within a tenth of a percent.")
def _other_document_agrees() -> bool:
    from inside_deepinfer import catalogue
    from inside_deepinfer.facts import load_facts
    pairs = {"v3r1.mean_nodes": "v3r1_nodes", "v3r1.cost_per_day": "v3r1_cost_per_day",
             "v3r1.revenue_per_day": "v3r1_revenue_per_day", "v3r1.cost_profit_margin": "v3r1_cost_profit_margin"}
    return all(abs(catalogue.value(name) / load_facts().number(stated) - 1) < 1e-3 for stated, name in pairs.items())


@conclusion("audit.strict-rule", "By the strict rule two of the four would be conflicts, since the account rounds its inputs to three "
                                 "digits and prints its results with more.")
def _strict_rule() -> bool:
    from inside_deepinfer import catalogue
    from inside_deepinfer.facts import load_facts
    step = {"v3r1.mean_nodes": 0.01, "v3r1.cost_per_day": 1.0, "v3r1.revenue_per_day": 1.0, "v3r1.cost_profit_margin": 0.01}
    computed = {"v3r1.mean_nodes": "v3r1_nodes", "v3r1.cost_per_day": "v3r1_cost_per_day",
                "v3r1.revenue_per_day": "v3r1_revenue_per_day", "v3r1.cost_profit_margin": "v3r1_cost_profit_margin"}
    far = {name for name, one in step.items() if abs(catalogue.value(computed[name]) - load_facts().number(name)) > one / 2}
    return far == {"v3r1.mean_nodes", "v3r1.revenue_per_day"}


def _said(kind: str, speaker: str) -> list[Finding]:
    """Findings of one kind that this party says."""
    from inside_deepinfer.audit import audit
    return [found for found in audit() if found.claim.kind == kind and found.claim.speaker == speaker]


def _under(found: Finding) -> set[str]:
    """Everything that the computed numbers of a finding rest on."""
    return {part.name for computed in found.computed for part in computed.walk()}
