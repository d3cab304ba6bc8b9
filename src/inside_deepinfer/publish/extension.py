"""The Sphinx extension of the book: roles, directives, pages, assets; ``_config.yml`` names it under extra_extensions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from inside_deepinfer.publish import assets, blocks, pages
from inside_deepinfer.publish.audit_table import AuditTable
from inside_deepinfer.publish.claims import (
    ClaimRole,
    ConclusionRole,
    SignRole,
    claim_badge,
    depart_claim,
    visit_claim,
)
from inside_deepinfer.publish.figure_html import MIME
from inside_deepinfer.publish.live import Live, live, skip, visit_live
from inside_deepinfer.publish.number_role import NumberRole, depart_number, ignore, number, visit_number
from inside_deepinfer.publish.project import look_key, root, state_key
from inside_deepinfer.publish.status import BuildStatus, build_status, visit_build_status
from inside_deepinfer.publish.system_map import SystemMap
from inside_deepinfer.publish.tables import (
    ErrataTable,
    GlossaryTable,
    KindsTable,
    ParametersTable,
    SourcesTable,
    VerdictsTable,
)

DIRECTIVES = {
    "live": Live, "system-map": SystemMap, "audit-table": AuditTable, "build-status": BuildStatus,
    "sources-table": SourcesTable, "parameters-table": ParametersTable, "glossary-table": GlossaryTable,
    "errata-table": ErrataTable, "kinds-table": KindsTable, "verdicts-table": VerdictsTable,
}


def cache_folder() -> Path:
    """Executed notebooks, in a folder named by everything their cells can read (cell code alone is no key)."""
    return root() / "build" / "notebooks" / state_key()


def configure(app: Sphinx, config: Config) -> None:
    """Settings that depend on the state of the checkout, and those that every build of the book shares."""
    config.nb_execution_cache_path = str(cache_folder())
    config.inside_state, config.inside_look = state_key(), look_key()
    config.nb_mime_priority_overrides = [("html", MIME, 5), *config.nb_mime_priority_overrides]
    config.mathjax_path = f"../{assets.FOLDER}/{assets.MATHJAX}"
    settings = dict(config.mathjax3_config or {})
    settings["options"] = dict(settings.get("options", {}), enableMenu=False)  # the menu would load more files
    config.mathjax3_config = settings
    config.templates_path = [*config.templates_path, str(Path(__file__).parent / "templates")]
    config.html_sidebars = {"**": ["book-title.html", "search-button-field.html", "sbt-sidebar-nav.html"]}


def copy_assets(app: Sphinx) -> None:
    """Before any page is written, so that their checksums can be part of the addresses."""
    if app.builder.format == "html":
        assets.copy(Path(app.outdir))


def page_assets(app: Sphinx) -> None:
    """Our style after the theme's; our scripts deferred."""
    for name in ("theme.css", "book.css"):
        app.add_css_file(f"../{assets.FOLDER}/{name}", priority=900)
    for name in ("theme.js", "book.js", "figures.js"):
        app.add_js_file(f"../{assets.FOLDER}/{name}", loading_method="defer", priority=900)


def forget(_app: Sphinx, env: Any, docname: str) -> None:
    """A page that is read again may no longer hold the audit table."""
    if getattr(env, "inside_audit_page", "") == docname:
        env.inside_audit_page = ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_config_value("inside_state", "", "env")  # pages are read again
    app.add_config_value("inside_look", "", "html")  # pages are written again
    app.connect("config-inited", configure, priority=900)
    app.connect("builder-inited", copy_assets)
    app.connect("builder-inited", page_assets)
    app.connect("env-purge-doc", forget)
    for name, role in (("num", NumberRole()), ("claim", ClaimRole()), ("conclusion", ConclusionRole()), ("sign", SignRole())):
        app.add_role(name, role)
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    plain: Any = (ignore, ignore)
    app.add_node(number, html=(visit_number, depart_number), latex=plain, text=plain, texinfo=plain, man=plain)
    app.add_node(claim_badge, html=(visit_claim, depart_claim), latex=plain, text=plain, texinfo=plain, man=plain)
    app.add_node(live, html=(visit_live, None), latex=(skip, None), text=(skip, None), texinfo=(skip, None), man=(skip, None))
    app.add_node(build_status, html=(visit_build_status, None), latex=(skip, None), text=(skip, None), texinfo=(skip, None),
                 man=(skip, None))
    blocks.register(app)
    app.connect("doctree-resolved", pages.without_thebe, priority=900)
    app.connect("doctree-resolved", pages.scrolling_tables, priority=910)
    app.connect("html-page-context", pages.offer_notebook, priority=400)
    app.connect("html-page-context", pages.add_popovers, priority=450)
    app.connect("html-page-context", pages.drop_scripts, priority=900)
    nodes._add_node_class_names(["number", "claim_badge", "live", "build_status", "block", "folded"])
    return {"version": "1", "env_version": 1, "parallel_read_safe": False, "parallel_write_safe": True}
