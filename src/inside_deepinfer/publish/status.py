"""The directive {build-status}: how this copy of the book was made."""

from __future__ import annotations

import platform
from collections import Counter
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from inside_deepinfer.facts import load_facts
from inside_deepinfer.publish.project import commit, state_key
from inside_deepinfer.publish.tables import html_table
from inside_deepinfer.publish.verdicts import VERDICTS, verdicts

PACKAGES = ("inside-deepinfer", "jupyter-book", "sphinx", "myst-nb", "sphinx-book-theme", "plotly", "panel", "numpy",
            "pandas", "pydantic")


class build_status(nodes.General, nodes.Element):
    """Filled in when the page is written, because the run times are known only then."""


class BuildStatus(SphinxDirective):
    """Versions, commit, run time of every notebook, claims per verdict."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        return [build_status("")]


def visit_build_status(translator: Any, _: build_status) -> None:
    counts = Counter(verdict.verdict for verdict in verdicts().values())
    built = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    facts = load_facts()
    about = [("built", built), ("commit", commit()), ("state of package, facts and pins", state_key()),
             ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
             *((name, version(name)) for name in PACKAGES),
             ("facts", str(len(facts.facts))), ("claims", str(len(facts.claims))), ("sources", str(len(facts.sources)))]
    parts = ["<h2>What it was built from</h2>", html_table("What it was built from", ["What", "Value"], _rows(about))]
    parts += ["<h2>Claims per verdict</h2>", html_table("Claims per verdict", ["Verdict", "Claims"], [
        ("", [f'<span class="badge verdict-{name}">{name}</span>', str(counts[name])]) for name in VERDICTS])]
    runs = run_times(translator.builder.env)
    if runs:
        total = sum(seconds for _, seconds in runs)
        rows = [*((name, f"{seconds:.1f} s") for name, seconds in runs), ("all", f"{total:.1f} s")]
        parts += ["<h2>Run time of the notebooks</h2>",
                  html_table("Run time of the notebooks", ["Notebook", "Seconds"], _rows(rows))]
    translator.body.append("".join(parts))
    raise nodes.SkipNode


def run_times(env: Any) -> list[tuple[str, float]]:
    """Seconds that each notebook took when it last ran."""
    found = []
    for name, data in sorted(getattr(env, "nb_metadata", {}).items()):
        seconds = (data.get("exec_data") or {}).get("runtime")
        if seconds is not None:
            found.append((name, float(seconds)))
    return found


def _rows(pairs: list[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    return [("", [escape(name), escape(value)]) for name, value in pairs]
