"""Work that would hold up the server's loop: one thread for short messages, one for long ones, and a bound on what waits.

The tokenizers give Python's lock back while they encode, so a long text in a thread leaves the loop free for other visitors. Two
threads, so that nobody with a sentence waits behind somebody with a megabyte.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

log = logging.getLogger(__name__)
SHORT = 65_536  # characters of a message
MOST_WAITING = {"short": 64, "long": 4}  # a long text takes seconds


class Lane:
    """One thread and its queue."""

    def __init__(self, name: str):
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"explorer-{name}")
        self._most = MOST_WAITING[name]
        self._waiting: set[Future[None]] = set()

    def take(self, job: Callable[[], None]) -> bool:
        """Run ``job`` later; False where too many wait. Called from the server's loop only."""
        self._waiting = {future for future in self._waiting if not future.done()}
        if len(self._waiting) >= self._most:
            return False
        future = self._pool.submit(job)
        future.add_done_callback(_report)
        self._waiting.add(future)
        return True


@cache
def lane(name: str) -> Lane:
    """The lane of that name in this process; made when first used, so that forked servers have their own."""
    return Lane(name)


def run(size: int, job: Callable[[], None]) -> bool:
    """Run ``job`` in the lane for a message of ``size`` characters; False where too many wait."""
    return lane("short" if size <= SHORT else "long").take(job)


def _report(future: Future[None]) -> None:
    error = future.exception()
    if error is not None:  # the job answers its visitor itself; what is left is a visitor who has gone
        log.warning("an answer could not be delivered: %s", type(error).__name__)
