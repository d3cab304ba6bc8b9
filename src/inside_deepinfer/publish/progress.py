"""What a person sees while the book is built: a bar for each phase, or plain lines where nobody watches."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

PHASES = {"starting": "starting", "running": "running notebooks", "reading": "reading pages", "writing": "writing pages",
          "publishing": "publishing"}


def console() -> Console:
    """Where people read: standard error, so that nothing mixes with a command's output."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """One line for a person."""
    console().print(text, markup=False)


class Progress:
    """Turns the worker's events into bars, and keeps what went wrong."""

    def __init__(self) -> None:
        self.console = console()
        self.bars = Bars(TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                         TextColumn("{task.fields[page]}"), console=self.console, transient=False)
        self.failures: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self.problems: list[str] = []
        self._task: Any = None

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        if self.console.is_terminal:
            self.bars.stop()

    def say(self, text: str) -> None:
        """One line, above the bars."""
        self.console.print(text, markup=False)

    def show(self, event: dict[str, Any]) -> None:
        """One event of the worker."""
        match event["event"]:
            case "phase":
                self._phase(event["name"], event.get("total"))
            case "notebook":
                self._notebook(event["what"], event["name"])
            case "page":
                self._advance(event["name"])
            case "failure":
                self.failures.append(event)
            case "warning":
                self.warnings.append(event["text"])
            case "problem":
                self.problems.append(event["text"])

    def _phase(self, name: str, total: int | None) -> None:
        self._close()
        if self.console.is_terminal:
            self._task = self.bars.add_task(PHASES[name], total=total, page="")
        else:
            self.say(PHASES[name] + (f" ({total})" if total else ""))

    def _notebook(self, what: str, name: str) -> None:
        if what == "started":
            if self.console.is_terminal:
                self.bars.update(self._task, page=name)
            else:
                self.say(f"  {name}")
        else:
            self._advance(name)

    def _advance(self, name: str) -> None:
        if self._task is not None:
            self.bars.update(self._task, advance=1, page=name)

    def _close(self) -> None:
        if self._task is not None:
            task = self.bars.tasks[self._task]
            self.bars.update(self._task, total=max(task.completed, 1), completed=max(task.completed, 1), page="")
            self._task = None
