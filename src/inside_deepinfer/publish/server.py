"""One server for everything: the book at /, the dashboard at /explore/<page>, the health report at /health."""

from __future__ import annotations

import errno
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import tornado.httpserver
import tornado.netutil
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from panel.io.application import build_applications
from tornado.ioloop import IOLoop, PeriodicCallback

from inside_deepinfer.explorer import session, shell
from inside_deepinfer.explorer.pages import all_pages
from inside_deepinfer.explorer.state import TOO_LONG
from inside_deepinfer.facts import UserError, require_between
from inside_deepinfer.publish import handlers
from inside_deepinfer.scenario import MAX_QUERY

UNUSED_AFTER_MS = 15_000  # a closed tab's session is dropped after this
CHECK_EVERY_MS = 5_000
MAX_MESSAGE = session.MAX_FRAME  # bytes of one websocket message
STOP_WITHIN = 5.0  # seconds a child process gets to end


def _say(text: str) -> None:
    print(text, flush=True)  # a pipe must not hold the address back


def serve(port: int = 8080, host: str = "127.0.0.1", book: Path | None = None, processes: int = 1,
          say: Callable[[str], None] = _say) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        port: 0 picks a free one.
        host: address to listen on; 0.0.0.0 for everyone in the network.
        book: folder of the built book; without it / leads to the dashboard.
        processes: more than one forks; sessions need no stickiness, because the state of a page is its address.
        say: where the address is announced.

    Raises:
        UserError: the port is in use or not allowed, or the book's folder has no front page.
    """
    if book is not None and not (book / "index.html").is_file():
        raise UserError(f"{book} holds no built book: index.html is missing")
    sockets = bind(host, port)
    address = f"http://{'localhost' if host in ('0.0.0.0', '::', '127.0.0.1') else host}:{sockets[0].getsockname()[1]}/"
    say(f"Inside DeepInfer is at {address} (book and dashboard; Ctrl-C stops it)")
    if processes > 1:
        _fork(sockets, book, host, processes)
    else:
        _run(sockets, book, host)


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets on the wanted port; one clear sentence where it cannot be had."""
    require_between("port", port, 0, 65535)
    try:
        return tornado.netutil.bind_sockets(port, host)
    except socket.gaierror:
        raise UserError(f"{host} is no address of this machine") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"port {port} is in use: stop what runs there, or choose another with --port") from None
        if error.errno == errno.EACCES:
            raise UserError(f"port {port} is not allowed for this user: choose one above 1023 with --port") from None
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


class Front(BokehTornado):
    """Bokeh's application, with a look at the address first."""

    def find_handler(self, request: Any, **kwargs: Any) -> Any:
        """Tidy addresses that would reach the dashboard in a form it cannot answer: a slash at the end, a monstrous query."""
        tidy = request.path.rstrip("/") if request.path.startswith("/explore/") else request.path
        query = request.query
        if request.path.startswith("/explore/") and len(query) > MAX_QUERY and not tidy.endswith("/ws"):
            tidy, query = tidy or "/", TOO_LONG
        if (tidy, query) != (request.path, request.query):
            to = tidy + (f"?{query}" if query else "")
            return self.get_handler_delegate(request, handlers.Elsewhere, dict(to=to))
        return super().find_handler(request, **kwargs)


def application(book: Path | None = None, origins: set[str] = frozenset({"*"})) -> Front:  # type: ignore[assignment]
    """Book and dashboard as one Tornado application, not yet listening."""
    in_book = book is not None and (book / "_inside" / "plotly.min.js").is_file()
    shell.SURROUNDINGS.plotly = "../_inside/plotly.min.js" if in_book else "../explore/assets/plotly.min.js"
    shell.SURROUNDINGS.book = ".." if book is not None else ""
    apps = build_applications({f"/explore/{slug}": shell.app(slug) for slug in all_pages()}, location=False,
                              title={f"/explore/{slug}": shell.title_of(page) for slug, page in all_pages().items()})
    front = Front(
        apps, extra_patterns=handlers.patterns(book, time.time()), use_index=False, compress_response=True, include_headers=[],
        include_cookies=[], extra_websocket_origins=origins, unused_session_lifetime_milliseconds=UNUSED_AFTER_MS,
        check_unused_sessions_milliseconds=CHECK_EVERY_MS, websocket_max_message_size_bytes=MAX_MESSAGE,
        default_handler_class=handlers.Missing, log_function=handlers.log_request)
    front.add_transform(handlers.Headers)
    return front


def origins_of(host: str, port: int) -> set[str]:
    """Which pages may open the websocket: our own. Open to a network, readers call this machine by names we cannot know;
    there is no login and nothing private behind the socket, so any name will do then.
    """
    if host in ("0.0.0.0", "::", ""):
        return {"*"}
    return {f"{name}:{port}" for name in (host, "localhost", "127.0.0.1")}


def _run(sockets: list[socket.socket], book: Path | None, host: str, parent: int = 0) -> None:
    """One process: listen until told to stop."""
    loop = IOLoop(make_current=True)
    front = application(book, origins_of(host, sockets[0].getsockname()[1]))
    http = tornado.httpserver.HTTPServer(front, xheaders=True)
    http.add_sockets(sockets)
    server = BaseServer(loop, front, http)
    server.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.asyncio_loop.add_signal_handler(number, loop.stop)  # type: ignore[attr-defined]
    if parent:
        PeriodicCallback(lambda: os.getppid() == parent or loop.stop(), 1000).start()
    loop.start()
    server.stop(wait=False)


def _fork(sockets: list[socket.socket], book: Path | None, host: str, processes: int) -> None:
    """Several processes on the same sockets; when one ends, or this one is told to, all end."""
    children = set()
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _run(sockets, book, host, os.getppid())
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.add(child)

    told = []

    def end(*signals: Any) -> None:
        told.extend(signals[:1])
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    first, status = os.wait()
    children.discard(first)
    end()
    deadline = time.monotonic() + STOP_WITHIN
    while children and time.monotonic() < deadline:
        gone, _ = os.waitpid(-1, os.WNOHANG)
        children.discard(gone)
        time.sleep(0.02)
    for child in children:
        os.kill(child, signal.SIGKILL)
    if os.waitstatus_to_exitcode(status) and not told:
        raise UserError(f"a server process ended by itself (code {os.waitstatus_to_exitcode(status)}); see its messages above")
