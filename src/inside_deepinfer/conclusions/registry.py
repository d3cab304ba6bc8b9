"""Sentences of the book that state a result, each with the test that must hold for it to stay in print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Conclusion:
    """One sentence and the condition under which it is true."""

    id: str
    sentence: str
    holds: Callable[[], bool]

    @property
    def chapter(self) -> str:
        return self.id.split(".")[0]


CONCLUSIONS: dict[str, Conclusion] = {}


def conclusion(id: str, sentence: str) -> Callable[[Callable[[], bool]], Callable[[], bool]]:
    """Register ``sentence`` under ``chapter.slug``; the decorated function returns whether it holds today."""

    def register(holds: Callable[[], bool]) -> Callable[[], bool]:
        if id in CONCLUSIONS:
            raise ValueError(f"conclusion {id} is registered twice")
        CONCLUSIONS[id] = Conclusion(id, sentence, holds)
        return holds

    return register
