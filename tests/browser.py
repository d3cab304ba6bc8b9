"""What every browser test needs: a page with the network cut, what it logged, and what it drew.

Use it through the ``chrome`` fixture of conftest.py::

    with opened(chrome, url, width=375, theme="dark") as view:
        view.check()                      # console clean, no foreign request, nothing wider than the page, axe clean
        assert view.drawn() == view.islands()
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

WIDTHS = (1280, 375)
THEMES = ("light", "dark")
SLOW = 90_000  # ms; a busy machine is no failure
LOCAL_SCHEMES = ("file", "data", "blob", "about", "chrome")

# walks through shadow roots too, because Bokeh keeps its plots in them
DEEP = """
const deep = (root, selector) => {
  const found = [...root.querySelectorAll(selector)];
  for (const part of root.querySelectorAll('*')) if (part.shadowRoot) found.push(...deep(part.shadowRoot, selector));
  return found;
};
"""
TRACE_MARKS = ".cartesianlayer g.trace, .hm image, .contourlayer .contour, .pielayer g.trace, .sankey, .treemaplayer .trace, " \
    ".sunburstlayer .trace, .table .table-control-view, .polarlayer g.trace"
PLOTS = DEEP + """
() => deep(document, '.js-plotly-plot').map(plot => ({
  name: (plot._fullLayout?.meta || {}).name || '',
  traces: (plot._fullData || []).filter(trace => trace.visible === true).length,
  drawn: plot.querySelectorAll(`MARKS`).length,
  box: plot.getBoundingClientRect().toJSON(),
  paper: plot._fullLayout?.paper_bgcolor, ink: plot._fullLayout?.font?.color,
}))
""".replace("MARKS", TRACE_MARKS)
ISLANDS = """
() => [...document.querySelectorAll('script[type="application/vnd.plotly.v1+json"]')].map(island => {
  const figure = JSON.parse(island.textContent);
  // a class that does not occur keeps its place in the legend and leaves no marks
  const empty = trace => trace.x && (trace.x.length === 0 || trace.x.bdata === '');
  const shown = figure.data.filter(trace => trace.visible !== false && !empty(trace));
  return {name: figure.layout?.meta?.name || '', traces: shown.length};
})
"""
# rows that look like those above them: the contrast of every cell would take most of the time of all tests
ALIKE = [[".figure-data tbody tr:nth-child(n+4)"], ["table.audit tbody tr:nth-child(n+16)"]]
TOO_WIDE = """
() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = part => { for (let up = part.parentElement; up && up !== document.body; up = up.parentElement)
    if (/auto|scroll|hidden|clip/.test(getComputedStyle(up).overflowX)) return true; return false; };
  return [...document.body.querySelectorAll('*')].filter(part => part.getBoundingClientRect().right > width + 1 && !scrolls(part))
    .slice(0, 5).map(part => `${part.tagName.toLowerCase()}.${part.className} is ${Math.round(part.getBoundingClientRect().right)} wide`)
    .concat(`page ${document.documentElement.scrollWidth} > ${width}`);
}
"""


def executable() -> str:
    """Chromium on this machine, or the one that INSIDE_DEEPINFER_CHROMIUM names."""
    named = os.environ.get("INSIDE_DEEPINFER_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not found:
        raise RuntimeError("no Chromium found: install it, or name it in INSIDE_DEEPINFER_CHROMIUM")
    return found


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser that can reach this machine and nothing else."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable(), args=[
            "--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"])
        yield browser
        browser.close()


@dataclass
class View:
    """An open page and what it did since."""

    page: Page
    home: str
    console: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def listen(self) -> None:
        self.page.on("console", self._logged)
        self.page.on("pageerror", lambda error: self.console.append(f"page error: {error}"))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("websocket", lambda socket: self._asked(socket.url))

    def _logged(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert"):
            self.console.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _asked(self, url: str) -> None:
        self.requests.append(url)
        parts = urlsplit(url)
        if parts.scheme not in LOCAL_SCHEMES and parts.netloc != self.home:
            self.foreign.append(url)

    def plots(self) -> list[dict[str, Any]]:
        """Every plotly plot of the page, shadow roots included: name, visible traces, drawn marks, box, colours."""
        return self.page.evaluate(PLOTS)

    def islands(self) -> list[tuple[str, int]]:
        """Name and number of visible traces of every figure that the page carries as JSON."""
        return [(island["name"], island["traces"]) for island in self.page.evaluate(ISLANDS)]

    def drawn(self, timeout: float = SLOW) -> list[tuple[str, int]]:
        """Scroll through the page until every figure is drawn; name and number of traces that left marks in the SVG."""
        self.page.evaluate("document.querySelectorAll('details:not(.live-embed)').forEach(part => part.open = true)")
        for figure in self.page.query_selector_all("figure.figure-live"):
            figure.scroll_into_view_if_needed()
        self.page.wait_for_function(
            "() => document.querySelectorAll('script[type=\"application/vnd.plotly.v1+json\"]').length"
            " === document.querySelectorAll('.js-plotly-plot .main-svg:first-child').length", timeout=timeout)
        return [(plot["name"], min(plot["traces"], plot["drawn"])) for plot in self.plots()]

    def theme(self) -> str:
        return self.page.evaluate("document.documentElement.dataset.theme") or ""

    def set_theme(self, theme: str, button: str = ".theme-switch-button:visible") -> None:
        """Press the page's own theme button until the page has that theme."""
        for _ in range(4):
            if self.theme() == theme:
                break
            self.page.locator(button).first.click()
        else:
            raise AssertionError(f"the theme button does not lead to {theme}")
        self.page.mouse.move(1, 1)  # away from the button, whose tooltip would stay
        self.page.evaluate("document.activeElement.blur()")
        self.page.wait_for_timeout(250)

    def too_wide(self) -> list[str]:
        """What makes the page scroll sideways; empty where it does not."""
        return self.page.evaluate(TOO_WIDE)

    def axe(self) -> list[str]:
        """Accessibility violations of axe-core, one line per element."""
        self.page.wait_for_timeout(100)
        # without preload, which asks for the style sheets again and may not do so from a folder
        options = {"resultTypes": ["violations"], "preload": False}
        found = Axe().run(self.page, context={"exclude": ALIKE}, options=options).response["violations"]
        return [f"{rule['id']} ({rule['impact']}): {node['target']} {node['failureSummary'].splitlines()[-1].strip()}"
                for rule in found for node in rule["nodes"]]

    def problems(self, axe: bool = True) -> list[str]:
        """Everything that must not happen on any page, in words."""
        found = [*self.console, *(f"foreign request: {url}" for url in self.foreign), *self.too_wide()]
        return found + (self.axe() if axe else [])

    def check(self, axe: bool = True) -> None:
        problems = self.problems(axe)
        assert not problems, f"{self.page.url}:\n  " + "\n  ".join(problems)

    def shoot(self, path: Path | str, full: bool = True) -> None:
        """A picture to look at."""
        self.page.screenshot(path=str(path), full_page=full)


@contextmanager
def opened(browser: Browser, url: str, *, width: int = 1280, height: int = 900, theme: str = "light",
           wait: str = "load", **context: Any) -> Iterator[View]:
    """A page at ``url`` in a fresh profile; everything it logs and asks for is recorded.

    Args:
        url: http address, file address, or a path of a file.
        width: 1280 for a desk, 375 for a phone (then with touch).
        theme: what the operating system prefers when the page opens.
    """
    if "://" not in url:
        url = Path(url).resolve().as_uri()
    phone = width < 600
    profile = browser.new_context(viewport={"width": width, "height": 812 if phone else height}, has_touch=phone,
                                  color_scheme=theme, reduced_motion="reduce", **context)
    profile.set_default_timeout(SLOW)
    page = profile.new_page()
    view = View(page, urlsplit(url).netloc)
    view.listen()
    try:
        page.goto(url, wait_until=wait)
        yield view
    finally:
        profile.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        return None


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A folder on a free local port, without the dashboard; yields the address without a slash at the end."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
