"""The appendix as directives: sources, parameters, glossary and errata, straight from ``data/`` and the scenario."""

from __future__ import annotations

from collections import Counter
from html import escape

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from inside_deepinfer.facts import load_facts, show
from inside_deepinfer.publish.number_role import breakable, kind_mark
from inside_deepinfer.scenario import allowed, parameters

SOURCES_PAGE = "appendix/sources"


def html_table(name: str, columns: list[str], rows: list[tuple[str, list[str]]]) -> str:
    """A table that scrolls in its own box; ``rows`` are (anchor or empty, cells as HTML)."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(f'<tr{f" id={chr(34)}{anchor}{chr(34)}" if anchor else ""}>' + "".join(f"<td>{cell}</td>" for cell in cells)
                   + "</tr>" for anchor, cells in rows)
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}"><table class="plain">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")


def link(url: str, text: str) -> str:
    """A link to another host: never followed by the page itself."""
    return f'<a href="{escape(url)}" rel="noreferrer">{escape(text)}</a>' if url else escape(text)


class _Table(SphinxDirective):
    """Base: a directive without arguments that writes HTML."""

    def html(self) -> str:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", self.html(), format="html")]

    def page(self, name: str) -> str:
        """Address of another page of the book, from this one."""
        return self.env.app.builder.get_relative_uri(self.env.docname, name)


class SourcesTable(_Table):
    """Every source, with what it is and how many facts and claims rest on it; rows are ``#source-ID``."""

    def html(self) -> str:
        facts = load_facts()
        used = Counter(fact.source for fact in facts.facts.values())
        claims = Counter(f"article-{number}" for claim in facts.claims.values() for number in claim.articles)
        rows = []
        for source in facts.sources.values():
            rests = [f"{count} {word}{'s' if count > 1 else ''}" for count, word in
                     ((used[source.id], "fact"), (claims[source.id], "claim")) if count]
            note = f"<br><small>{escape(source.note)}</small>" if source.note else ""
            rows.append((f"source-{source.id}", [link(source.url, source.title) + note, escape(source.kind), escape(source.date),
                                                 ", ".join(rests)]))
        return html_table("Sources", ["Source", "What it is", "Date", "What rests on it"], rows)


class ParametersTable(_Table):
    """Every adjustable parameter, from its one declaration; rows are ``#parameter-NAME``."""

    def html(self) -> str:
        facts, rows = load_facts(), []
        for name, parameter in parameters().items():
            fact = facts.quantity(parameter.fact)
            sources = ", ".join(f'<a href="{self.page(SOURCES_PAGE)}#source-{source}">{escape(facts.sources[source].title)}</a>'
                                for source in fact.sources)
            rows.append((f"parameter-{name}", [
                f"<strong>{escape(parameter.label)}</strong><br><small>{escape(parameter.doc)}</small>",
                f"<code>{escape(parameter.key)}</code><br><code>{breakable(name)}</code>",
                escape(show(parameter.default, parameter.unit)), escape(allowed(name)),
                f"{kind_mark(fact.kind)} {escape(fact.kind)}<br><small>{sources}</small>"]))
        columns = ["Parameter", "Key and name", "Published value", "Allowed", "Where the value is from"]
        return html_table("Parameters", columns, rows)


class GlossaryTable(SphinxDirective):
    """All terms, English and Japanese, as Sphinx's own glossary, so that {term} leads here."""

    def run(self) -> list[nodes.Node]:
        lines = ["```{glossary}"]
        for term in sorted(load_facts().glossary.values(), key=lambda entry: entry.term.lower()):
            lines += [*dict.fromkeys((term.term, term.japanese)), f"  {term.meaning}", ""]
        return self.parse_text_to_nodes("\n".join([*lines, "```", ""]))


class ErrataTable(_Table):
    """What we corrected, newest first."""

    def html(self) -> str:
        errata = sorted(load_facts().errata.values(), key=lambda entry: entry.date, reverse=True)
        rows = [(f"erratum-{entry.id}", [escape(entry.date), escape(entry.where), escape(entry.was), escape(entry.now),
                                         escape(entry.why)]) for entry in errata]
        return html_table("Errata", ["Date", "Where", "Was", "Is now", "Why"], rows)


class KindsTable(_Table):
    """The kinds of value with their marks: the legend of every number and figure."""

    def html(self) -> str:
        from inside_deepinfer.facts import KIND_MEANING

        rows = [("", [kind_mark(kind), f"<strong>{kind}</strong>", escape(meaning)]) for kind, meaning in KIND_MEANING.items()]
        return html_table("Kinds of value", ["Mark", "Kind", "Meaning"], rows)


class VerdictsTable(_Table):
    """The verdicts of the audit with their marks."""

    def html(self) -> str:
        from inside_deepinfer.publish.verdicts import MEANING

        rows = [("", [f'<span class="badge verdict-{name}">{name}</span>', escape(meaning)]) for name, meaning in MEANING.items()]
        return html_table("Verdicts", ["Verdict", "Meaning"], rows)
