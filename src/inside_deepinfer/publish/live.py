"""The directive {live}: the way from a chapter to the dashboard page with exactly this chapter's scenario."""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import urlencode

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from inside_deepinfer.facts import UserError, load_facts
from inside_deepinfer.scenario import encode, make_scenario, parameter_name, parameters

# pages of the dashboard and their names; explorer/pages has one module for each (a test compares the two)
PAGES = {
    "fleet": "Fleet", "cache-prices": "Cache prices", "revenue": "Revenue", "kv-store": "KV store", "hbm": "HBM and experts",
    "decode-frontier": "Decode frontier", "prefill-frontier": "Prefill frontier", "speculation": "Speculation",
    "balance": "Balance", "tokens": "Token laboratory", "audit": "Audit",
}


class live(nodes.General, nodes.Element):
    """A link to the dashboard; ``page``, ``query`` and ``words`` say where and with what."""


class Live(SphinxDirective):
    """``{live} PAGE`` with lines ``preset: NAME``, ``set: key=value ...`` and, for inputs of that page alone, ``fields: ...``."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        page = self.arguments[0].strip()
        if page not in PAGES:
            raise self.error(f"no dashboard page is called {page!r}: expected {', '.join(PAGES)}")
        settings = self._settings()
        preset = settings.get("preset", "published")
        try:
            changes = dict(part.split("=", 1) for part in settings.get("set", "").split())
            scenario = make_scenario(preset, changes)
            words = [f"{parameters()[parameter_name(key)].label} {value}" for key, value in changes.items()]
            fields = dict(part.split("=", 1) for part in settings.get("fields", "").split())
            words += [f"{_field(page, key, value)} {value}" for key, value in fields.items()]
        except (UserError, ValueError) as error:
            raise self.error(f"live: {error}") from None
        query = "&".join(part for part in (encode(scenario, preset), urlencode(fields)) if part)
        node = live("", page=page, query=query, preset=load_facts().presets[preset].label, words=words)
        self.set_source_info(node)
        return [node]

    def _settings(self) -> dict[str, str]:
        found = {}
        for line in self.content:
            key, colon, value = line.partition(":")
            if line.strip():
                if not colon or key.strip() not in ("preset", "set", "fields"):
                    raise self.error(f"live: expected 'preset: NAME', 'set: key=value ...' or 'fields: ...', not {line!r}")
                found[key.strip()] = value.strip()
        return found


def _field(page: str, key: str, value: str) -> str:
    """Label of an input that belongs to one page; what that page would refuse is an error here."""
    from inside_deepinfer.explorer.pages import page_of

    for entry in page_of(page).fields:
        if entry.key == key and value in entry.options:
            return entry.label.lower()
    raise UserError(f"the page {page} has no input {key} that takes {value}")


def visit_live(translator: Any, node: live) -> None:
    up = "../" * translator.builder.current_docname.count("/")
    address = f"{up}explore/{node['page']}" + (f"?{node['query']}" if node["query"] else "")
    name = escape(PAGES[node["page"]])
    about = escape("; ".join([node["preset"].lower(), *node["words"]]))
    translator.body.append(
        f'<div class="live" data-page="{node["page"]}">'
        f'<p><a class="live-link" href="{escape(address)}">Change it live: {name}</a> '
        f'<span class="live-about">opens with this chapter\'s scenario ({about})</span></p>'
        f'<details class="live-embed" hidden><summary>Open it here</summary><div class="live-frame"></div></details>'
        '<p class="live-offline" hidden>The dashboard needs its server: start it with '
        '<code>inside-deepinfer serve</code>, then follow the link above from there.</p></div>\n')
    raise nodes.SkipNode


def skip(_translator: Any, _node: nodes.Node) -> None:
    """Print has no dashboard."""
    raise nodes.SkipNode
