"""What happens to each page when it is written: its popovers, its notebook download, scripts that must not be there."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx.application import Sphinx

from inside_deepinfer.publish.number_role import number, popovers
from inside_deepinfer.publish.tables import SOURCES_PAGE

UNWANTED = ("thebe", "THEBE")


def add_popovers(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Append the origin of every number on the page, each once."""
    if doctree is None:
        return
    steps = [step for node in doctree.findall(number) for step in node["steps"]]
    if steps:
        sources = app.builder.get_relative_uri(pagename, SOURCES_PAGE)
        context["body"] += f'<div class="chains">{popovers(steps, lambda name: f"{sources}#source-{name}")}</div>'


def offer_notebook(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Let readers download the executed notebook, not its Markdown source.

    The copy that myst-nb writes has no outputs where they came from the cache, so we join the two ourselves.
    """
    if doctree is None or not app.env.metadata.get(pagename, {}).get("kernelspec"):
        return
    source = Path(app.env.doc2path(pagename))
    notebook = read_myst_markdown_notebook(source.read_text(encoding="utf-8"), path=str(source))
    cache = get_cache(app.env.mystnb_config.execution_cache_path)  # type: ignore[attr-defined]
    with suppress(KeyError):  # it failed: then there is nothing to offer
        _, notebook = cache.merge_match_into_notebook(notebook)
        target = Path(app.outdir) / "_sources" / f"{pagename}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target)
        context["ipynb_source"] = f"{pagename}.ipynb"


def drop_scripts(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: nodes.document | None) -> None:
    """thebe would load from another host, and declares a constant twice (an error on every page)."""
    def unwanted(script: Any) -> bool:
        text = f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', {}).get('body', '')}"
        return any(word in text for word in UNWANTED)

    context["script_files"] = [script for script in context.get("script_files", []) if not unwanted(script)]


def without_thebe(_app: Sphinx, doctree: nodes.document, _docname: str) -> None:
    """The configuration that sphinx-thebe writes into each page serves nobody here."""
    for node in [part for part in doctree.findall(nodes.raw) if "thebe" in part.astext()]:
        node.parent.remove(node)


def scrolling_tables(_app: Sphinx, doctree: nodes.document, _docname: str) -> None:
    """Put every written table, and every one that pandas wrote, into a box of its own that scrolls and takes the focus."""
    count = 0
    for node in list(doctree.findall(nodes.Element)):
        frame = isinstance(node, nodes.raw) and 'class="dataframe"' in node.astext()
        if not frame and not isinstance(node, nodes.table):
            continue
        count += 1
        start = f'<div class="scroll" tabindex="0" role="region" aria-label="Table {count} of this page">'
        if frame:
            table = re.sub(r"<style scoped>.*?</style>", "", node.astext(), flags=re.DOTALL)
            table = table.replace("<th></th>", "<td></td>").replace('border="1" ', "")  # an empty corner is no header
            node.replace_self(nodes.raw("", f"{start}{table}</div>", format="html", classes=node["classes"]))
        else:
            at = node.parent.index(node)
            node.parent.insert(at + 1, nodes.raw("", "</div>", format="html"))
            node.parent.insert(at, nodes.raw("", start, format="html"))
