"""The pattern of a chapter as directives: predict, leaves-out, world, takeaway, exercise and answer."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

ANSWER_TAG = "tag_answer"


class block(nodes.General, nodes.Element):
    """A box of the chapter pattern: ``tag`` is aside, section, ... and ``label`` what it announces itself as."""


class folded(nodes.General, nodes.Element):
    """A <details>; ``summary`` is its visible line."""


class _Block(SphinxDirective):
    """Base: a labelled box around parsed Markdown."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    kind = ""
    heading = ""

    def title(self) -> list[nodes.Node]:
        """The box's heading: its fixed name, then the argument, both parsed."""
        line = nodes.paragraph(classes=["block-title"])
        line += nodes.strong(text=self.heading)
        if self.arguments:
            words, problems = self.state.inline_text(self.arguments[0], self.lineno)
            line += [nodes.Text(" "), *words]
            return [line, *problems]
        return [line]

    def body(self, lines: list[str] | None = None, skipped: int = 0) -> list[nodes.Node]:
        """Parse the content, or a part of it that starts ``skipped`` lines in."""
        holder = nodes.container()
        content = self.content if lines is None else self.content[skipped:skipped + len(lines)]
        self.state.nested_parse(content, self.content_offset + skipped, holder)
        return holder.children

    def run(self) -> list[nodes.Node]:
        box = block("", *self.title(), *self.body(), classes=["block", f"block-{self.kind}"], label=self.heading)
        self.set_source_info(box)
        return [box]


class Takeaway(_Block):
    """The number and its condition, nothing new."""

    kind, heading = "takeaway", "Takeaway"


class World(_Block):
    """Published or measured points beside the model, with the error."""

    kind, heading = "world", "Check against the world"


class Exercise(_Block):
    """A question that names all its inputs."""

    kind, heading = "exercise", "Exercise"


class LeavesOut(_Block):
    """Caveats, folded, each with its sign."""

    kind, heading = "leaves-out", "What this leaves out"

    def run(self) -> list[nodes.Node]:
        return [folded("", *self.body(), classes=["block", "block-leaves-out"], summary=self.heading)]


class Answer(_Block):
    """A folded answer; cells tagged ``answer`` that follow move into it."""

    kind, heading = "answer", "Answer"

    def run(self) -> list[nodes.Node]:
        return [folded("", *self.body(), classes=["answer"], summary=self.heading)]


class Predict(_Block):
    """A question before the number; the answer is hidden until the reader opens it."""

    kind, heading = "predict", "Predict first."

    def run(self) -> list[nodes.Node]:
        lines = list(self.content)
        rule = next((at for at, text in enumerate(lines) if text.strip() == "---"), None)
        if rule is None and not self.arguments:
            raise self.error("predict needs a question: as its title, or in its body above a line ---")
        question = self.body(lines[:rule]) if rule is not None else []
        answer = self.body(lines[rule + 1:], rule + 1) if rule is not None else self.body()
        hidden = folded("", *answer, classes=["answer"], summary="Show the answer")
        return [block("", *self.title(), *question, hidden, classes=["block", "block-predict"], label=self.heading)]


class MoveAnswers(SphinxTransform):
    """Put cells tagged ``answer`` into the folded answer before them (a cell cannot stand inside a directive)."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        for cell in [node for node in self.document.findall(nodes.container) if ANSWER_TAG in node.get("classes", ())]:
            parent, at = cell.parent, cell.parent.index(cell)
            before = parent[at - 1] if at else None
            if isinstance(before, block) and "block-exercise" in before["classes"]:
                before = folded("", classes=["answer"], summary="Answer")
                parent.insert(at, before)
            if isinstance(before, folded) and "answer" in before["classes"]:
                parent.remove(cell)
                before.append(cell)
            else:
                self.document.reporter.warning("a cell tagged answer must follow an exercise or an answer", base_node=cell)


def visit_block(translator: Any, node: block) -> None:
    translator.body.append(translator.starttag(node, "div", role="group", **{"aria-label": node["label"]}))


def depart_block(translator: Any, _: block) -> None:
    translator.body.append("</div>\n")


def visit_folded(translator: Any, node: folded) -> None:
    translator.body.append(translator.starttag(node, "details"))
    translator.body.append(f"<summary>{translator.encode(node['summary'])}</summary>\n")


def depart_folded(translator: Any, _: folded) -> None:
    translator.body.append("</details>\n")


def passed(_translator: Any, _node: nodes.Node) -> None:
    """Other builders print the children."""


def register(app: Sphinx) -> None:
    """Add nodes, directives and the transform."""
    for kind, enter, leave in ((block, visit_block, depart_block), (folded, visit_folded, depart_folded)):
        other = (passed, passed)
        app.add_node(kind, html=(enter, leave), latex=other, text=other, texinfo=other, man=other)
    for name, directive in (("predict", Predict), ("leaves-out", LeavesOut), ("world", World), ("takeaway", Takeaway),
                            ("exercise", Exercise), ("answer", Answer)):
        app.add_directive(name, directive)
    app.add_transform(MoveAnswers)
