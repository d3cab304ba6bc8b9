"""The shell: one Panel component per visitor that carries messages, and the document around it.

Why not ``panel_material_ui.Page`` with one widget per control (the arrangement tried first, design/stack.md): every visitor then
holds about a hundred Bokeh models, and the page's busy indicator watches a global state, so that each event of one visitor wakes
all others. Here a visitor holds one model without properties; the browser sends the state it wants and gets the view back
(``session.py``). Nothing subscribes to anything global, so nothing can outlive its session, and ``tests/test_explorer_shell.py``
keeps it that way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
import panel as pn
from bokeh.document import Document
from bokeh.events import Event
from panel.custom import JSComponent
from panel.io.state import set_curdoc

from inside_deepinfer.explorer import background, session, state
from inside_deepinfer.explorer.page import Page
from inside_deepinfer.explorer.pages import page_of
from inside_deepinfer.figures.theme import PALETTE

HERE = Path(__file__).parent / "static"
PANEL_PLOTLY = Path(pn.__file__).parent / "dist" / "bundled" / "plotlyplot"


@dataclass
class Surroundings:
    """What the server around the pages offers; set once when it starts."""

    plotly: str = ""  # address of plotly.js; Panel's own copy where left empty
    book: str = ""  # address of the book; no links to chapters where left empty


SURROUNDINGS = Surroundings()
pn.config.browser_info = False  # eight messages per visitor about things we do not ask


class Assets:
    """Files of our own that Panel's resource handler may serve; it serves nothing that is not listed."""

    _js = [f"static/{path.name}" for path in sorted(HERE.glob("*.js"))]
    _css = [f"static/{path.name}" for path in sorted(HERE.glob("*.css"))]


class Wire(JSComponent):
    """One visitor's line to the server: a message comes in, the answer goes out; nothing is kept in between."""

    _esm = """
    export function render({ model }) {
      window.deepinfer_wire = model
      window.dispatchEvent(new Event("deepinfer-wire"))
      const nothing = document.createElement("span")
      nothing.hidden = true
      return nothing
    }
    """

    def __init__(self, page: Page, **params: Any):
        super().__init__(**params)
        self._page = page

    def _update_design(self, *_: Any) -> None:
        # nothing here has a look; a design would link Panel's style sheets, and by their CDN address whenever the websocket
        # reaches another process, or another session, than the one that wrote the page
        self._design = None

    def _get_properties(self, doc: Document | None) -> dict[str, Any]:
        return super()._get_properties(doc) | {"stylesheets": []}

    def _handle_msg(self, data: Any) -> None:
        if not self._page.prepare:
            self._send_msg(session.answer(self._page, data))
        elif not background.run(len(data) if isinstance(data, str) else 0, partial(self._answer, data)):
            self._send_msg(session.busy(self._page, data))

    def _answer(self, data: Any) -> None:
        # from a thread, Panel hands the message to the loop of the visitor's document
        self._send_msg(session.answer(self._page, data))

    def _process_bokeh_event(self, doc: Document, event: Event) -> None:
        # without the global busy counter, which every event of every visitor would otherwise change
        with set_curdoc(doc):
            self._process_event(event)


def app(slug: str) -> Callable[[], Wire]:
    """What a server calls for each visitor of a page: sets up the document, returns its one component."""
    page = page_of(slug)

    def visitor() -> Wire:
        doc = pn.state.curdoc
        context = doc.session_context
        arguments = context.request.arguments if context is not None and context.request is not None else {}
        query = state.request_query(arguments)
        opening = session.opening(page, query)
        doc.title = title_of(page)
        doc.template = template()
        doc.template_variables.update(
            page=page, palette=PALETTE, opening=opening.replace("<", "\\u003c"), query=query, plotly=plotly_address(),
            assets=f"{up()}/components/{Assets.__module__}/{Assets.__name__}", version=version(), book=SURROUNDINGS.book)
        return Wire(page, sizing_mode="fixed", width=0, height=0)

    return visitor


def page_alone(file: str) -> None:
    """Serve the page that a file in ``dashboards/`` is named after, from ``panel serve``."""
    slug = Path(file).stem
    app(slug)().servable(title=title_of(page_of(slug)))


def title_of(page: Page) -> str:
    """What the browser's tab says."""
    return f"{page.title} · Inside DeepInfer"


def up() -> str:
    """Relative path from a page to the server's root."""
    return str(pn.state.rel_path or ".")


def plotly_address() -> str:
    """Where plotly.js is: the copy that the book uses too, else the one Panel brings."""
    if SURROUNDINGS.plotly:
        return SURROUNDINGS.plotly
    bundled = sorted(PANEL_PLOTLY.glob("plotly-*.min.js"))[-1]
    return f"{up()}/static/extensions/panel/bundled/plotlyplot/{bundled.name}"


@lru_cache(maxsize=1)
def version() -> str:
    """Changes with any of our static files, so that browsers may keep them."""
    digest = sha256()
    for path in sorted(HERE.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@lru_cache(maxsize=1)
def template() -> jinja2.Template:
    """The HTML document around the component; everything put into it is escaped unless it is our own script."""
    return jinja2.Environment(autoescape=True).from_string((HERE / "page.html").read_text(encoding="utf-8"))
