"""POST /explore/<page>/file: a reader's own file goes to a process that reads it, the answer comes back, and nothing is kept.

The file's name is not sent at all, the address carries only the scenario, and nothing here writes to a log. A file is held in
memory once while it arrives, at most :data:`AT_ONCE` of them; one at a time is read.
"""

from __future__ import annotations

import asyncio
import os
import sys
from functools import cache
from typing import Any

from tornado.web import HTTPError, RequestHandler, stream_request_body

from inside_deepinfer.explorer import file_reader
from inside_deepinfer.explorer.pages import all_pages
from inside_deepinfer.explorer.view import BROKEN, written
from inside_deepinfer.facts.units import show

AT_ONCE = 4  # files in memory, per server process
ARRIVES_WITHIN = 300  # seconds
READ_WITHIN = 150  # seconds; the process itself stops after file_reader.MOST_SECONDS of processor time
KIND = "application/octet-stream"  # no form of another site can send this without asking first, and we do not answer that


@cache
def _one_at_a_time() -> asyncio.Semaphore:
    """One per server process, made when first used, so that forked servers have their own."""
    return asyncio.Semaphore(1)


@stream_request_body
class ReaderFile(RequestHandler):
    """Takes one file as the body of a POST; answers JSON: blocks and figures, or one line that says what was wrong."""

    in_memory = 0

    def prepare(self) -> None:
        self._held, self._task, self._refusal = False, None, (0, "")
        self._body = bytearray()
        page = all_pages().get(self.path_args[0])
        if self.request.method != "POST" or page is None or page.upload is None:
            raise HTTPError(404)
        self._most = page.upload.max_bytes
        size = int(self.request.headers.get("Content-Length", "0"))
        link: Any = self.request.connection
        link.set_body_timeout(ARRIVES_WITHIN)
        if size > self._most:
            link.set_max_body_size(size)  # received and dropped: closing at once would keep the answer from most browsers
            self._refusal = 413, self._too_large()
        elif self.request.headers.get("Content-Type", "") != KIND:
            self._refusal = 415, f"a file is sent as {KIND}"
        elif ReaderFile.in_memory >= AT_ONCE:
            self._refusal = 503, "too many files are being read here; try again in a moment"
        else:
            self._held = True
            ReaderFile.in_memory += 1

    def _too_large(self) -> str:
        return f"the file is too large: at most {show(self._most, 'B')} are taken here; the command line takes any size"

    def _say(self, text: str, status: int = 200) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-store")
        self.finish(text)

    def data_received(self, chunk: bytes) -> None:
        if self._held and len(self._body) <= self._most:  # without a stated length the end is not known before
            self._body += chunk

    async def post(self, slug: str) -> None:
        if len(self._body) > self._most:
            self._refusal = 413, self._too_large()
        elif self._held and not self._body:
            self._refusal = 200, "the file is empty: a trace has one request per line"
        status, why = self._refusal
        if why:
            self._say(written(dict(problem=why)), status)
            return
        data = bytes(self._body)
        self._body.clear()
        self._task = asyncio.ensure_future(_read(slug, self.request.query, data))
        try:
            answer = await self._task
        except asyncio.CancelledError:
            return  # the visitor has gone
        self._say(answer)

    def on_connection_close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._release()

    def on_finish(self) -> None:
        self._release()

    def _release(self) -> None:
        if getattr(self, "_held", False):
            self._held = False
            self._body.clear()
            ReaderFile.in_memory -= 1

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        why = "there is nothing that takes files at this address" if status_code == 404 else BROKEN
        self._say(written(dict(problem=why)), status_code)


async def _read(slug: str, query: str, data: bytes) -> str:
    """Let a process read the file; it is ended when it takes too long or when nobody waits for it any more."""
    async with _one_at_a_time():
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", file_reader.__name__, slug, query, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})
        try:
            out, _ = await asyncio.wait_for(child.communicate(data), READ_WITHIN)
        except TimeoutError:
            return written(dict(problem=f"reading took more than {READ_WITHIN} s; the command line has no such limit"))
        finally:
            if child.returncode is None:
                child.kill()
    if child.returncode or not out:
        return written(dict(problem="reading the file took too much time or memory; the command line has no such limit"))
    return out.decode()
