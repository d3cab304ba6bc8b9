"""The role {num}: a number computed at build time, as a button that opens where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from html import escape
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from inside_deepinfer.facts import KIND_MEANING, UserError, load_facts
from inside_deepinfer.publish.chain import look_up, steps

COUNTS = {"reported": "reported", "measured": "measured", "config": "from the configuration", "estimate": "estimated",
          "assumption": "assumed", "experiment": "from an experiment", "design": "from the design", "choice": "chosen"}


class number(nodes.inline):
    """A printed number; ``steps`` holds its chain as plain dicts."""


class NumberRole(SphinxRole):
    """``{num}`NAME@PRESET key=value | FORMAT` ``; an unknown name is a warning at its line."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            quantity, text = look_up(self.text)
            chain = [asdict(step) for step in steps(quantity)]
        except UserError as error:
            return problem(self, str(error))
        node = number(self.rawtext, text, classes=["num", f"kind-{quantity.kind}"], kind=quantity.kind, steps=chain)
        self.set_source_info(node)
        return [node], []


def problem(role: SphinxRole, message: str) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Report a broken role at its page and line; ``-W`` makes it fail the build."""
    report = role.inliner.reporter.error(message, line=role.lineno)
    return [nodes.problematic(role.rawtext, role.rawtext)], [report]


def visit_number(translator: Any, node: number) -> None:
    """A button that works without a script: the popover is the browser's own."""
    translator.body.append(
        f'<button type="button" class="{" ".join(node["classes"])}" popovertarget="{node["steps"][0]["id"]}" '
        f'aria-haspopup="dialog" aria-describedby="about-{node["kind"]}">')


def depart_number(translator: Any, _: number) -> None:
    translator.body.append("</button>")


def ignore(_translator: Any, _node: nodes.Node) -> None:
    """For builders other than HTML: the text stands alone."""


def popovers(chain: Iterable[dict[str, Any]], source_page: Callable[[str], str]) -> str:
    """One popover for each step of all the chains of a page, each once.

    Args:
        source_page: address of a source's row in the appendix, by source id.
    """
    unique = {step["id"]: step for step in chain}
    kinds = sorted({step["kind"] for step in unique.values()})
    about = "".join(f'<span id="about-{kind}" hidden>{escape(KIND_MEANING[kind])}; opens its origin</span>' for kind in kinds)
    return about + "".join(_popover(step, unique, source_page) for step in unique.values())


def _popover(step: dict[str, Any], known: dict[str, dict[str, Any]], source_page: Callable[[str], str]) -> str:
    kind = step["kind"]
    parts = [
        f'<div popover id="{step["id"]}" class="chain" role="dialog" aria-labelledby="{step["id"]}-name" tabindex="-1" autofocus>',
        f'<p class="chain-name" id="{step["id"]}-name">{escape(step["label"])}</p>',
        f'<p class="chain-value"><strong>{escape(step["shown"])}</strong> {kind_mark(kind)}'
        f'<span class="chain-kind">{escape(KIND_MEANING[kind])}</span></p>',
    ]
    if step["formula"]:
        parts.append(f'<p class="chain-formula"><code>{breakable(step["formula"])}</code></p>')
    if step["numbers"]:
        parts.append(f'<p class="chain-formula">= <code>{escape(step["numbers"])}</code></p>')
    if step["inputs"]:
        rows = "".join(_input(known[name]) for name in step["inputs"])
        parts.append(f'<ul class="chain-inputs">{rows}</ul>')
    if step["rests_on"] and step["inputs"]:
        words = ", ".join(f"{count} {COUNTS.get(kind, kind)}" for kind, count in step["rests_on"].items())
        parts.append(f'<p class="chain-rests">Rests on values that are: {words}.</p>')
    if step["note"]:
        parts.append(f'<p class="chain-note">{escape(step["note"])}</p>')
    for name in step["sources"]:
        source = load_facts().sources[name]
        parts.append(f'<p class="chain-source">Source: <a href="{source_page(name)}">{escape(source.title)}</a>, '
                     f'{source.date}</p>')
    parts.append(f'<p class="chain-id"><code>{breakable(step["name"])}</code> '
                 f'<button class="chain-close" popovertarget="{step["id"]}" popovertargetaction="hide">Close'
                 '</button></p></div>')
    return "".join(parts)


def _input(step: dict[str, Any]) -> str:
    """Short, since a chapter has a thousand of them; book.js adds what a screen reader is told when the popover opens."""
    return (f'<li>{escape(step["label"])}: <button class="num kind-{step["kind"]}" popovertarget="{step["id"]}">'
            f'{escape(step["shown"])}</button></li>')


def kind_mark(kind: str) -> str:
    """The mark of a kind, for legends and tables; the word beside it says the same."""
    return f'<span class="mark kind-{kind}" aria-hidden="true"></span>'


def breakable(text: str) -> str:
    """A long name or formula that may wrap after an underscore or a dot."""
    return escape(text).replace("_", "_<wbr>").replace(".", ".<wbr>")
