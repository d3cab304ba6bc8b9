"""The roles {claim}, {conclusion} and {sign}: what the audit says, what the book concludes, how a caveat leans."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from inside_deepinfer.conclusions import CONCLUSIONS
from inside_deepinfer.facts import UserError, load_facts
from inside_deepinfer.publish.number_role import problem
from inside_deepinfer.publish.verdicts import MEANING, verdicts

SIGNS = {"better": ("▲", "makes the result look better"), "worse": ("▼", "makes the result look worse"),
         "either": ("◆", "can move the result either way")}


class claim_badge(nodes.inline):
    """The verdict of one claim; a link once the page with the audit table is known."""


class ClaimRole(SphinxRole):
    """``{claim}`ID` ``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        name = self.text.strip()
        if name not in load_facts().claims:
            return problem(self, f"no claim is called {name!r} (data/claims.yaml)")
        verdict = verdicts()[name].verdict
        node = claim_badge(self.rawtext, verdict, claim=name, verdict=verdict)
        self.set_source_info(node)
        return [node], []


class ConclusionRole(SphinxRole):
    """``{conclusion}`chapter.slug` ``: the registered sentence, as long as it holds."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        name = self.text.strip()
        if name not in CONCLUSIONS:
            return problem(self, f"no conclusion is registered as {name!r}")
        entry = CONCLUSIONS[name]
        try:
            holds = entry.holds()
        except UserError as error:
            return problem(self, f"conclusion {name} cannot be checked: {error}")
        if not holds:
            return problem(self, f"conclusion {name} no longer holds: {entry.sentence}")
        return [nodes.inline(self.rawtext, entry.sentence, classes=["conclusion"])], []


class SignRole(SphinxRole):
    """``{sign}`better` ``: how a caveat moves the result."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        sign = self.text.strip()
        if sign not in SIGNS:
            return problem(self, f"{sign!r} is no sign: expected {', '.join(SIGNS)}")
        mark, words = SIGNS[sign]
        return [nodes.inline(self.rawtext, f"{mark} {words}", classes=["sign", f"sign-{sign}"])], []


def visit_claim(translator: Any, node: claim_badge) -> None:
    name, verdict = node["claim"], node["verdict"]
    statement = load_facts().claims[name].statement
    page = getattr(translator.builder.env, "inside_audit_page", "")
    title = f"{statement} — {verdict}: {MEANING[verdict]}"
    start = f'<span class="badge verdict-{verdict}" title="{escape(title)}">'
    if page:
        target = translator.builder.get_relative_uri(translator.builder.current_docname, page)
        start = f'<a class="badge verdict-{verdict}" href="{target}#claim-{name}" title="{escape(title)}">'
    translator.body.append(start + '<span class="visually-hidden">claim: </span>')


def depart_claim(translator: Any, _: claim_badge) -> None:
    translator.body.append("</a>" if getattr(translator.builder.env, "inside_audit_page", "") else "</span>")
