"""The token laboratory behind a real server: nobody waits for another visitor's text, and no text reaches the output."""

from __future__ import annotations

import asyncio
from typing import Any

from visitor import Visitor, running


def test_other_visitors_do_not_wait_for_a_long_text() -> None:
    text = "A line of a long log, with numbers 12345 and 67890.\n" * 15_000  # about 0.75 MiB

    async def both(address: str) -> list[str]:
        order: list[str] = []
        async with Visitor(address, "tokens") as long, Visitor(address, "fleet") as short:
            await long.ask(private={"text": "warm"})

            async def ask(name: str, visitor: Visitor, **message: Any) -> None:
                reply = await visitor.ask(**message)
                assert "view" in reply, reply
                order.append(name)

            job = asyncio.create_task(ask("long", long, private={"text": text}))
            await asyncio.sleep(0.05)
            await ask("short", short, changes={"hit_rate": "0.5"})
            await job
        return order

    with running() as (address, _):
        assert asyncio.run(both(address)) == ["short", "long"]


def test_no_text_reaches_the_servers_output() -> None:
    async def visit(address: str) -> None:
        async with Visitor(address, "tokens") as visitor:
            await visitor.ask(private={"text": "correcthorse"})
            await visitor.ask_text('{"op": "view", "private": {"text": "correcthorse"}, "changes": 5}')

    with running() as (address, child):
        asyncio.run(visit(address))
    assert "correcthorse" not in child.stdout.read() + child.stderr.read()
