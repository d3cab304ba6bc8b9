"""``inside-deepinfer``: every command is a function in its own module, imported only when it is called.

A user error is one line on standard error and exit code 2; it never leaves a traceback.
"""

from __future__ import annotations

import importlib
import sys
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperGroup

# only typer is imported here: `audit` and `value` must not wait for plotly, panel or sphinx, and damaged facts are
# found (and reported in one line) while a command runs, not while this module is imported

# command -> module:function (or a typer.Typer with further commands), and the line that --help shows
COMMANDS = {
    "audit": ("inside_deepinfer.commands.audit:audit", "Check every published number; exit code 1 when a verdict changed."),
    "value": ("inside_deepinfer.commands.value:value", "Print any derived number with its chain, for a scenario."),
    "build": ("inside_deepinfer.commands.build:build", "Build the book as static pages."),
    "serve": ("inside_deepinfer.commands.serve:serve", "Build where needed, then serve book and dashboard on one port."),
    "trace": ("inside_deepinfer.commands.trace:trace", "Replay request traces: hit rate for every retention and capacity."),
    "validate": ("inside_deepinfer.commands.validate:validate", "Compare the models with curves that others measured."),
    "frontier": ("inside_deepinfer.commands.frontier:frontier", "Print the decode or prefill frontier of a scenario."),
    "simulate": ("inside_deepinfer.commands.simulate:simulate", "Simulate prefill and decode event by event: waiting and token times."),
    "tokens": ("inside_deepinfer.commands.tokens:tokens", "Encode a text and say which control tokens it smuggles in."),
}


class Commands(TyperGroup):
    """Loads a command when it is called for, and turns user errors into one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from inside_deepinfer.facts.errors import UserError

        if cmd_name not in COMMANDS:
            near = get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UserError(f"no command is called {cmd_name!r}{hint} (there are {', '.join(COMMANDS)})")
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        found = getattr(importlib.import_module(module), name)
        if not isinstance(found, typer.Typer):
            single = typer.Typer(add_completion=False, rich_markup_mode=None)
            single.command(cmd_name)(found)
            found = single
        command = typer.main.get_command(found)
        command.name = cmd_name
        return command

    def invoke(self, ctx: Any) -> Any:
        from inside_deepinfer.facts.errors import UserError

        try:
            return super().invoke(ctx)
        except UserError as error:
            problem = str(error)
        except BrokenPipeError:
            raise
        except OSError as error:
            problem = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        typer.echo(f"error: {' '.join(problem.split())}", err=True)
        raise typer.Exit(2)


app = typer.Typer(cls=Commands, add_completion=False, no_args_is_help=True, rich_markup_mode=None,
                  pretty_exceptions_enable=False)


@app.callback()
def inside_deepinfer() -> None:
    """How DeepSeek serves V4.1-Flash: every published number recomputed, as a book and a live dashboard."""


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="inside-deepinfer", args=sys.argv[1:])
