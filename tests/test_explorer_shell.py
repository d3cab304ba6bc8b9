"""What made the first arrangement slow and leaky (design/stack.md), each with a guard; on a real server in this process."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import panel as pn
import pytest
import tornado.httpserver
import tornado.netutil
from bokeh.document import Document
from bokeh.server.server import BaseServer
from tornado.ioloop import IOLoop
from visitor import Visitor

from inside_deepinfer.explorer import shell
from inside_deepinfer.explorer.pages import all_pages
from inside_deepinfer.publish import server

ROUNDS = 12


@asynccontextmanager
async def here() -> AsyncIterator[tuple[str, BaseServer]]:
    """The server on a free port, on the running loop."""
    front = server.application()
    http = tornado.httpserver.HTTPServer(front)
    sockets = tornado.netutil.bind_sockets(0, "127.0.0.1")
    http.add_sockets(sockets)
    running = BaseServer(IOLoop.current(), front, http)
    running.start()
    try:
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}", running
    finally:
        running.stop(wait=False)
        await asyncio.sleep(0.05)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "UNUSED_AFTER_MS", 100)
    monkeypatch.setattr(server, "CHECK_EVERY_MS", 50)


async def until_gone(running: BaseServer) -> None:
    for _ in range(200):
        if not any(context.sessions for context in running._tornado._applications.values()):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("sessions of closed tabs are not dropped")


def alive(kind: type) -> int:
    gc.collect()
    return sum(isinstance(thing, kind) for thing in gc.get_objects())


def watchers() -> int:
    """Everything that waits for a change of Panel's global state."""
    found = getattr(pn.state._param__private, "watchers", {})
    return sum(len(group) for actions in found.values() for group in actions.values()) + len(pn.state._indicators)


def test_nothing_of_a_session_outlives_it() -> None:
    async def rounds(address: str, running: BaseServer, number: int) -> tuple[int, int, int]:
        for turn in range(number):
            async with Visitor(address, list(all_pages())[turn % 3]) as visitor:
                await visitor.ask(changes={"hit_rate": f"0.{500 + turn}"})
        await until_gone(running)
        await asyncio.sleep(0.1)
        return alive(shell.Wire), alive(Document), watchers()

    async def main() -> None:
        async with here() as (address, running):
            first = await rounds(address, running, 3)
            later = await rounds(address, running, ROUNDS)
            assert later == first, "Wire components, documents or watchers of the global state were left behind"
            left = {name: len(getattr(pn.state, name)) for name in (
                "_templates", "_views", "_fake_roots", "_stylesheets", "_change_callbacks", "_notifications", "_locations")}
            assert not any(left.values()), left

    asyncio.run(main())


def test_an_event_of_one_visitor_touches_no_global_state() -> None:
    seen: list[Any] = []
    watcher = pn.state.param.watch(seen.append, ["busy", "_busy_counter"])

    async def main() -> None:
        async with here() as (address, _), Visitor(address, "fleet") as one, Visitor(address, "fleet") as other:
            await one.ask(changes={"hit_rate": "0.61"})
            await other.ask(changes={"hit_rate": "0.62"})

    try:
        asyncio.run(main())
    finally:
        pn.state.param.unwatch(watcher)
    assert not seen


def test_a_visitor_costs_one_model_and_figures_travel_without_their_template() -> None:
    async def main() -> None:
        async with here() as (address, _), Visitor(address, "revenue", "h=0.9") as visitor:
            assert len(visitor.document["roots"]) == 1
            text = json.dumps(visitor.document)
            assert "http" not in text and "ImportedStyleSheet" not in text and len(text) < 6_000
            answer = await visitor.ask(changes={"hit_rate": "0.63"})
            figures = answer["view"]["figures"]
            assert len(figures) == 3 and all("template" not in figure["layout"] for figure in figures)
            assert len(json.dumps(answer)) < 60_000

    asyncio.run(main())


def test_what_a_link_says_is_in_the_page_as_text_and_never_as_markup() -> None:
    async def main() -> None:
        async with here() as (address, _):
            query = "h=%3C/script%3E%3Cscript%3Ealert(1)%3C/script%3E&%3Cimg%20src=x%20onerror=alert(2)%3E=1"
            async with Visitor(address, "fleet", query) as visitor:
                page = visitor.html
        assert "<script>alert" not in page and "<img" not in page
        opening = json.loads(re.search(r'id="opening">(.*?)</script>', page, re.DOTALL)[1])
        assert any("<script>alert(1)</script>" in notice for notice in opening["view"]["notices"])
        assert "cdn" not in page.lower() and "https://" not in re.sub(r'id="opening">.*?</script>', "", page, flags=re.DOTALL)

    asyncio.run(main())


def test_a_message_that_makes_no_sense_leaves_the_session_working() -> None:
    async def main() -> None:
        async with here() as (address, _), Visitor(address, "fleet") as visitor:
            assert (await visitor.ask_text("{")) == {"id": None, "problem": "the message is no JSON"}
            assert (await visitor.ask(op="chain", name="<b>"))["problem"]
            assert (await visitor.ask(changes={"hit_rate": "0.5"}))["view"]["query"] == "h=0.5"

    asyncio.run(main())


def test_visitors_who_ask_at_the_same_time_each_get_their_own_answer() -> None:
    async def main() -> None:
        async with here() as (address, _):
            visitors = [Visitor(address, "cache-prices") for _ in range(8)]
            await asyncio.gather(*(visitor.__aenter__() for visitor in visitors))
            answers = await asyncio.gather(*(visitor.ask(changes={"hit_rate": f"0.{70 + n}"}) for n, visitor in enumerate(visitors)))
            await asyncio.gather(*(visitor.__aexit__() for visitor in visitors))
        assert [answer["view"]["query"] for answer in answers] == [f"h=0.{70 + n}".rstrip("0") for n in range(8)]

    asyncio.run(main())
