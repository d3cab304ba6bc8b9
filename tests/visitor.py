"""Visitors of the dashboard without a browser: they open the page, keep its websocket, and move sliders over Bokeh's protocol.

Used by tests (sessions end, nothing leaks) and by benchmarks/dashboard_load.py.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import websockets

TOKEN = re.compile(r'"token":"([^"]+)"')
SERVER = """
import sys
from pathlib import Path
from inside_deepinfer.publish import server
server.serve(int(sys.argv[1]), book=Path(sys.argv[2]) if sys.argv[2] else None, processes=int(sys.argv[3]))
"""


@contextmanager
def running(book: Path | None = None, processes: int = 1, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server in a process of its own; yields its address (without a slash at the end) and the process."""
    child = subprocess.Popen([sys.executable, "-c", SERVER, str(port), str(book or ""), str(processes)], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stderr is not None
        line = child.stdout.readline()
        found = re.search(r"http://localhost:\d+", line)
        assert found, line + child.stderr.read()
        address = found[0].replace("localhost", "127.0.0.1")
        deadline = time.monotonic() + 60
        while True:
            try:
                health(address)
                break
            except OSError:
                assert child.poll() is None and time.monotonic() < deadline, child.stderr.read() if child.poll() else "no answer"
                time.sleep(0.1)
        yield address, child
    finally:
        child.terminate()
        try:
            child.wait(timeout=15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def health(address: str) -> dict[str, Any]:
    """What /health says."""
    with urlopen(f"{address}/health", timeout=10) as answer:
        return json.loads(answer.read())


class Visitor:
    """One open page. ``ask`` sends a message of the page's protocol and waits for the answer."""

    def __init__(self, address: str, page: str, query: str = ""):
        self.address, self.page, self.query = address, page, query
        self.html = ""

    async def __aenter__(self) -> Visitor:
        path = f"/explore/{self.page}"
        self.html = await asyncio.to_thread(self._fetch, f"{self.address}{path}" + (f"?{self.query}" if self.query else ""))
        token = TOKEN.search(self.html)
        assert token, self.html[:500]
        self.socket = await websockets.connect(
            self.address.replace("http://", "ws://") + path + "/ws", subprotocols=["bokeh", token[1]],  # type: ignore[list-item]
            max_size=2**24, open_timeout=60, ping_interval=None)
        await self._message()  # ACK
        await self._send("PULL-DOC-REQ", {})
        reply = await self._message()
        self.model = reply[2]["doc"]["roots"][0]["id"]
        self.document = reply[2]["doc"]
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.socket.close()

    @staticmethod
    def _fetch(url: str) -> str:
        with urlopen(url, timeout=60) as answer:
            return answer.read().decode()

    async def ask(self, **message: Any) -> dict[str, Any]:
        """The page's answer to one message."""
        return await self.ask_text(json.dumps(dict(dict(id=1, op="view", query=self.query), **message)))

    async def ask_text(self, text: str) -> dict[str, Any]:
        values = {"type": "map", "entries": [["model", {"id": self.model}], ["data", text]]}
        event = {"kind": "MessageSent", "msg_type": "bokeh_event",
                 "msg_data": {"type": "event", "name": "data_event", "values": values}}
        await self._send("PATCH-DOC", {"events": [event]})
        while True:
            header, _, content = await self._message()
            if header["msgtype"] == "ERROR":
                raise AssertionError(content)
            if header["msgtype"] == "PATCH-DOC":
                entries = dict(content["events"][0]["msg_data"]["values"]["entries"])
                return json.loads(entries["data"])

    async def _send(self, kind: str, content: dict[str, Any]) -> None:
        for part in ({"msgid": uuid.uuid4().hex, "msgtype": kind}, {}, content):
            await self.socket.send(json.dumps(part))

    async def _message(self) -> list[Any]:
        return [json.loads(await asyncio.wait_for(self.socket.recv(), 60)) for _ in range(3)]
