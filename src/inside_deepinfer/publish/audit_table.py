"""The directive {audit-table}: every claim with its verdict, searchable and filterable without a server."""

from __future__ import annotations

from collections import Counter
from html import escape

from inside_deepinfer.audit import Finding
from inside_deepinfer.facts import Quantity, load_facts, show
from inside_deepinfer.publish.chain import substituted
from inside_deepinfer.publish.number_role import breakable, kind_mark
from inside_deepinfer.publish.tables import SOURCES_PAGE, _Table
from inside_deepinfer.publish.verdicts import VERDICTS, verdicts


class AuditTable(_Table):
    """Rows are ``#claim-ID``; the chain behind each row opens in place."""

    def html(self) -> str:
        self.env.inside_audit_page = self.env.docname  # type: ignore[attr-defined]
        self.explained: dict[tuple[str, str], str] = {}  # (name, value) of a derived number -> claim whose row has its chain
        found = verdicts()
        counts = Counter(finding.verdict for finding in found.values())
        summary = "".join(f'<li><span class="badge verdict-{name}">{name}</span> {counts[name]}</li>' for name in VERDICTS)
        rows = "".join(self._row(finding) for finding in found.values())
        return (
            f'<ul class="verdict-counts">{summary}</ul>'
            f"{self._controls()}"
            '<div class="scroll" tabindex="0" role="region" aria-label="All claims with their verdicts">'
            '<table class="audit"><thead><tr><th scope="col">Verdict</th><th scope="col">Claim</th>'
            f'<th scope="col">Printed</th><th scope="col">Computed</th></tr></thead><tbody>{rows}</tbody></table></div>')

    def _controls(self) -> str:
        facts = load_facts()
        kinds = sorted({claim.kind for claim in facts.claims.values()})
        articles = sorted({article for claim in facts.claims.values() for article in claim.articles})

        def choice(name: str, label: str, options: list[str]) -> str:
            items = "".join(f"<option>{escape(option)}</option>" for option in options)
            return f'<label>{label} <select data-filter="{name}"><option value="">all</option>{items}</select></label>'

        return (
            '<form class="audit-controls" hidden role="search" aria-label="Filter the claims">'
            '<label>Search <input type="search" data-filter="text" autocomplete="off" spellcheck="false"></label>'
            f'{choice("verdict", "Verdict", list(VERDICTS))}{choice("article", "Article", articles)}'
            f'{choice("kind", "Kind", kinds)}'
            f'<output class="audit-count" aria-live="polite">{len(facts.claims)} of {len(facts.claims)} claims</output>'
            '<button type="reset">Show all</button></form>')

    def _row(self, found: Finding) -> str:
        claim = found.claim
        computed = " / ".join(show(part.value, part.unit) for part in found.computed)
        printed = show(claim.value, claim.unit) if claim.value is not None else ""
        return (
            f'<tr id="claim-{claim.id}" data-verdict="{found.verdict}" data-article="{" ".join(claim.articles)}" '
            f'data-kind="{claim.kind}"><td data-label="Verdict"><span class="badge verdict-{found.verdict}">{found.verdict}'
            f'</span></td><td data-label="Claim">{escape(claim.statement)} <small class="claim-about">'
            f'<a href="#claim-{claim.id}"><code>{breakable(claim.id)}</code></a> '
            f'<span>{kind_mark(claim.kind)}{claim.kind}</span> <span>article {", ".join(claim.articles)}</span></small>'
            f"{self._details(found)}</td>"
            f'<td data-label="Printed" class="n">{escape(printed)}</td>'
            f'<td data-label="Computed" class="n">{escape(computed)}</td></tr>')

    def _details(self, found: Finding) -> str:
        claim = found.claim
        parts = [f"<p>{escape(_sentence(found.rule))}</p>"]
        parts += [self._chain(part, claim.id) for part in found.computed]
        if claim.check is not None and claim.check.against and found.target is not None:
            parts += ["<p>Compared with:</p>", self._chain(found.target, claim.id)]
        if found.shown:
            parts += ["<p>Beside it:</p>", *(self._chain(part, claim.id) for part in found.shown)]
        for item in found.evidence:
            how = {"rerun": "a re-run", "document": "a document", "arithmetic": "the calculation"}[item["by"]]
            names = " ".join(self._source(name) for name in item["sources"])
            verb = "Supported" if item["says"] == "supports" else "Contradicted"
            parts.append(f"<p>{verb} by {how}: {escape(item['text'])} {names}</p>")
        if claim.note:
            parts.append(f"<p>{escape(claim.note)}</p>")
        links = [f'<a href="#claim-{name}">{escape(name)}</a>' for name in claim.see]
        chapter = f"notebooks/{claim.chapter}"
        if chapter in self.env.found_docs and chapter != self.env.docname:
            links.append(f'<a href="{self.page(chapter)}">the chapter that explains it</a>')
        if links:
            parts.append(f"<p>See {', '.join(links)}.</p>")
        return f'<details><summary>Chain and evidence</summary><div class="audit-chain">{"".join(parts)}</div></details>'

    def _chain(self, quantity: Quantity, claim: str) -> str:
        """The chain of one number; a part that an earlier row explains is named with a link to that row."""
        lines, seen, todo = [], set(), [quantity]
        while todo:
            part = todo.pop(0)
            if part.name in seen:
                continue
            seen.add(part.name)
            key = (part.name, repr(part.value))
            elsewhere = self.explained.get(key, "") if part.inputs else ""
            if part.inputs and not elsewhere:
                self.explained[key] = claim
                todo += part.inputs
            lines.append(self._line(part, elsewhere if elsewhere != claim else ""))
        return f'<ul class="chain-list">{"".join(lines)}</ul>'

    def _line(self, part: Quantity, elsewhere: str) -> str:
        text = f"{escape(part.label or part.name)} = <strong>{escape(show(part.value, part.unit))}</strong>"
        if elsewhere:
            text += f' <a href="#claim-{elsewhere}">chain in {escape(elsewhere)}</a>'
        elif part.formula:
            numbers = substituted(part)
            text += f"<br><code>{breakable(part.formula)}</code>"
            text += f"<br>= <code>{escape(numbers)}</code>" if numbers else ""
        text += "".join(f" {self._source(source)}" for source in part.sources)
        return f'<li class="kind-{part.kind}">{text}</li>'

    def _source(self, name: str) -> str:
        return f'<a href="{self.page(SOURCES_PAGE)}#source-{name}">{escape(name)}</a>'


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
