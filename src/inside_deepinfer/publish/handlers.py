"""Request handlers around the dashboard: book files, libraries, index of the pages, health, and our own "not found"."""

from __future__ import annotations

import gzip
import logging
import os
import re
import time
from collections import OrderedDict
from html import escape
from pathlib import Path
from typing import Any

import plotly
from bokeh.embed.bundle import extension_dirs
from bokeh.settings import settings
from tornado.httputil import HTTPHeaders
from tornado.web import HTTPError, OutputTransform, RequestHandler, StaticFileHandler

import inside_deepinfer
from inside_deepinfer.explorer import shell
from inside_deepinfer.explorer.pages import all_pages
from inside_deepinfer.figures.theme import PALETTE
from inside_deepinfer.publish.reader_file import ReaderFile

log = logging.getLogger(__name__)
TEXT = {".js", ".mjs", ".css", ".html", ".svg", ".json", ".txt", ".xml", ".map", ".csv", ".ipynb", ".md"}
LARGE = {".js", ".css", ".woff2"}  # libraries: kept by browsers for a day without asking
KEPT_BYTES = 24 * 2**20  # compressed copies in memory
DAY = 86_400
POLICY = ("default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
          "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' blob:; frame-ancestors 'self'; object-src 'none'; "
          "base-uri 'self'")
_squeezed: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()


def squeezed(path: str) -> bytes:
    """The gzipped file, compressed once per change: plotly.js on the fly would hold the loop for 150 ms per visitor."""
    stat = os.stat(path)
    key = (path, stat.st_mtime_ns, stat.st_size)
    if key not in _squeezed:
        _squeezed[key] = gzip.compress(Path(path).read_bytes(), 6)
        while sum(map(len, _squeezed.values())) > KEPT_BYTES and len(_squeezed) > 1:
            _squeezed.popitem(last=False)
    _squeezed.move_to_end(key)
    return _squeezed[key]


class Files(StaticFileHandler):
    """Static files with gzip from memory, revalidation for pages and a day for libraries."""

    async def get(self, path: str, include_body: bool = True) -> None:
        self.path = self.parse_url_path(path)
        absolute = self.validate_absolute_path(self.root, self.get_absolute_path(self.root, self.path))
        if absolute is None:
            return
        accepts = "gzip" in self.request.headers.get("Accept-Encoding", "") and "Range" not in self.request.headers
        if "Range" in self.request.headers:
            self.set_header("Content-Encoding", "identity")  # a part of a file must not be compressed on its way
        if not accepts or Path(absolute).suffix not in TEXT:
            await super().get(path, include_body)
            return
        self.absolute_path = absolute
        self.modified = self.get_modified_time()
        self.set_headers()
        if self.should_return_304():
            self.set_status(304)
            return
        body = squeezed(absolute)
        self.set_header("Content-Encoding", "gzip")
        self.set_header("Vary", "Accept-Encoding")
        self.set_header("Content-Length", len(body))
        if include_body:
            self.write(body)

    def set_extra_headers(self, path: str) -> None:
        if "v" in self.request.arguments:
            return  # named by its content: kept for good (get_cache_time)
        if Path(self.absolute_path or "").suffix in LARGE and os.path.getsize(self.absolute_path or "") > 200_000:
            self.set_header("Cache-Control", f"public, max-age={DAY}")
        else:
            self.set_header("Cache-Control", "no-cache")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        self.finish(error_page(status_code, self.request.path))


class Library(Files):
    """Scripts of Bokeh, Panel and plotly: /static/..., /static/extensions/<name>/... and /explore/assets/plotly.min.js."""

    def initialize(self) -> None:  # type: ignore[override]
        self.default_filename = None
        self.root = str(settings.bokehjs_path())

    def parse_url_path(self, url_path: str) -> str:
        if url_path == "plotly.min.js":
            self.root = str(Path(plotly.__file__).parent / "package_data")
        elif url_path.startswith("extensions/"):
            _, name, url_path = (url_path + "//").split("/", 2)
            if name not in extension_dirs:
                raise HTTPError(404)
            self.root = str(extension_dirs[name])
        return super().parse_url_path(url_path.rstrip("/"))


class Health(RequestHandler):
    """What an operator, a load balancer and the book's embed script ask."""

    def initialize(self, started: float) -> None:
        self.started = started

    def get(self) -> None:
        contexts = self.application._applications.values()  # type: ignore[attr-defined]
        sessions = [session for context in contexts for session in context.sessions]
        self.set_header("Cache-Control", "no-store")
        self.write(dict(status="ok", version=inside_deepinfer.__version__, sessions=len(sessions),
                        connections=sum(session.connection_count for session in sessions), memory_mb=round(memory_mb(), 1),
                        cpu_s=round(time.process_time(), 3),
                        uptime_s=round(time.time() - self.started), process=os.getpid(), pages=list(all_pages())))


def memory_mb() -> float:
    """Resident memory of this process in MB (10**6 bytes); the peak where the system does not tell the present."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, ValueError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


class Index(RequestHandler):
    """/explore: the pages and their questions."""

    def initialize(self, book: bool) -> None:
        self.book = book

    def get(self) -> None:
        items = "".join(f'<li><a href="/explore/{page.slug}">{escape(page.title)}</a><br>{escape(page.question)}</li>'
                        for page in all_pages().values())
        back = '<p><a href="/index.html">Back to the book</a></p>' if self.book else ""
        self.finish(small_page("Dashboard", f"<h1>Dashboard</h1><ul>{items}</ul>{back}"))


class Missing(RequestHandler):
    """Our own 404."""

    def prepare(self) -> None:
        raise HTTPError(404)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        self.finish(error_page(status_code, self.request.path))


class Elsewhere(RequestHandler):
    """One address that is known under another: /explore/fleet/ is /explore/fleet, / without a book is /explore."""

    def initialize(self, to: str) -> None:
        self.to = to

    def get(self, *_: str) -> None:
        self.redirect(self.to)

    head = get


class Headers(OutputTransform):
    """Headers of every answer: nothing is guessed, nothing is loaded from elsewhere, nobody else frames us."""

    def __init__(self, request: Any):
        pass

    def transform_first_chunk(self, status_code: int, headers: HTTPHeaders, chunk: bytes,
                              finishing: bool) -> tuple[int, HTTPHeaders, bytes]:
        if headers.get("Content-Encoding") == "identity":
            del headers["Content-Encoding"]
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "same-origin"
        headers["Server"] = "inside-deepinfer"
        if headers.get("Content-Type", "").startswith("text/html"):
            headers["Content-Security-Policy"] = POLICY
        return status_code, headers, chunk


def patterns(book: Path | None, started: float) -> list[tuple[Any, ...]]:
    """Routes beside the dashboard's own; the book is what remains."""
    routes: list[tuple[Any, ...]] = [
        (r"/health", Health, dict(started=started)),
        (r"/explore", Index, dict(book=book is not None)),
        (r"/explore/assets/(plotly\.min\.js)", Library),
        (r"/explore/([a-z-]+)/file", ReaderFile),
        (r"/static/(.*)", Library),
        # the addresses of Panel's own resource handler, which would import any module that an address names
        (rf"/components/{re.escape(shell.Assets.__module__)}/Assets/_(?:js|css)/static/([\w-]+\.(?:js|css))", Files,
         dict(path=str(shell.HERE))),
    ]
    if book is None:
        return [*routes, (r"/(?:index\.html)?", Elsewhere, dict(to="/explore"))]
    return [*routes, (r"/((?!explore/).*)", Files, dict(path=str(book), default_filename="index.html"))]


def small_page(title: str, body: str) -> str:
    """A page of one screen in the colours of the book; ``body`` is HTML of our own, everything foreign in it escaped."""
    light, dark = ("".join(f"--{role}:{pair[theme]};" for role, pair in PALETTE.items()) for theme in (0, 1))
    colours = f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}--page:#14181e}}}}"
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · Inside DeepInfer</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
            f"<style>{colours}html{{color-scheme:light dark;background:var(--page,#fff);color:var(--ink);"
            "font:1rem/1.6 system-ui,sans-serif}body{max-width:42rem;margin:10vh auto;padding:0 1.2rem;overflow-wrap:anywhere}"
            "a{color:var(--blue)}li{margin:.6rem 0}code{font-size:.9em}</style></head>"
            f"<body><main>{body}</main></body></html>")


def error_page(status: int, path: str) -> str:
    """What a wrong address shows; the address is text, cut short."""
    if status != 404:
        return small_page("Error", f"<h1>This did not work ({status})</h1><p><a href='/'>To the front page</a></p>")
    shown = escape(path if len(path) <= 80 else path[:79] + "…")
    return small_page("Not found", f"<h1>There is no page at this address</h1><p><code>{shown}</code></p>"
                                   "<p><a href='/'>To the front page</a> or <a href='/explore'>to the dashboard</a></p>")


def log_request(handler: RequestHandler) -> None:
    """Only what went wrong on our side is worth a line."""
    if handler.get_status() >= 500:
        log.error("%s %s: %s", handler.request.method, handler.request.path, handler.get_status())
