"""Load on one server process: 50 visitors who move one slider a second each; 200 sessions opened and closed.

    python benchmarks/dashboard_load.py [--visitors 50] [--seconds 30] [--sessions 200] [--processes 1] [--same]

Prints the 50th, 95th and 99th percentile from slider to the new figures (server and wire, without drawing), and the growth of
resident memory after the first 100 sessions. Every visitor moves to values nobody had before, so that no answer is ready;
``--same`` lets all share 20 positions, as in a meeting where everybody follows the speaker.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from visitor import Visitor, health, running

PAGES = ("fleet", "cache-prices", "revenue")
SETTLE = 25.0  # s until the server has dropped closed sessions


async def visit(address: str, number: int, seconds: float, same: bool, waits: list[float]) -> None:
    """One visitor: opens a page and moves the hit rate once a second, out of step with the others."""
    chance = random.Random(number)
    await asyncio.sleep(chance.random() * 5)
    async with Visitor(address, PAGES[number % len(PAGES)]) as visitor:
        await asyncio.sleep(chance.random())
        for _ in range(int(seconds)):
            rate = chance.randrange(1, 21) / 25 if same else chance.uniform(0.3, 0.99)
            began = time.perf_counter()
            answer = await visitor.ask(changes={"hit_rate": f"{rate:.6f}"})
            took = time.perf_counter() - began
            assert answer["view"]["figures"][0]["data"], answer
            waits.append(took)
            await asyncio.sleep(max(0.0, 1.0 - took))


async def load(address: str, visitors: int, seconds: float, same: bool) -> list[float]:
    """Waits of all visitors together, in seconds."""
    waits: list[float] = []
    await asyncio.gather(*(visit(address, number, seconds, same, waits) for number in range(visitors)))
    return waits


async def come_and_go(address: str, sessions: int) -> list[tuple[int, float]]:
    """Memory after every 20 sessions, each opened, used twice, closed."""
    seen = []
    for number in range(sessions):
        async with Visitor(address, PAGES[number % len(PAGES)]) as visitor:
            for _ in range(2):
                await visitor.ask(changes={"hit_rate": f"{random.uniform(0.3, 0.99):.6f}"})
        if (number + 1) % 20 == 0:
            seen.append((number + 1, health(address)["memory_mb"]))
    await asyncio.sleep(SETTLE)
    seen.append((sessions, health(address)["memory_mb"]))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--same", action="store_true")
    options = parser.parse_args()
    with running(processes=options.processes) as (address, _):
        if options.visitors:
            before = health(address)["cpu_s"]
            waits = np.array(asyncio.run(load(address, options.visitors, options.seconds, options.same))) * 1000
            middle, late, last = np.percentile(waits, [50, 95, 99])
            print(f"{options.visitors} visitors, {len(waits)} moves, {options.processes} process(es): "
                  f"median {middle:.0f} ms, p95 {late:.0f} ms, p99 {last:.0f} ms, longest {waits.max():.0f} ms; "
                  f"server CPU per move, page loads included: {1000 * (health(address)['cpu_s'] - before) / len(waits):.1f} ms")
        if options.sessions:
            seen = asyncio.run(come_and_go(address, options.sessions))
            at_100 = next((memory for number, memory in seen if number >= 100), seen[0][1])
            print("memory (MB) after sessions: " + ", ".join(f"{number}: {memory:.1f}" for number, memory in seen))
            print(f"growth after the first 100: {seen[-1][1] - at_100:.1f} MB; sessions left: {health(address)['sessions']}")


if __name__ == "__main__":
    main()
