"""The process that reads a reader's file: file on standard input, JSON on standard output, then it ends.

A process and not a thread, so that other visitors never wait for Python's lock, memory has a limit that the system enforces, and
whatever a hostile file does ends with the process. Nothing of the file is written anywhere.

    python -m inside_deepinfer.explorer.file_reader SLUG QUERY < FILE
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from traceback import format_tb
from typing import Any

MOST_MEMORY = 3 * 2**30  # bytes of address space
MOST_SECONDS = 120  # of processor time


def answer(slug: str, query: str, data: bytes) -> dict[str, Any]:
    """Blocks and figures of the page's answer, or ``problem``: why there is none."""
    from inside_deepinfer.explorer import state, view
    from inside_deepinfer.explorer.pages import page_of
    from inside_deepinfer.explorer.plain import plain
    from inside_deepinfer.facts import UserError
    from inside_deepinfer.figures.drawing import draw

    page = page_of(slug)
    assert page.upload is not None
    try:
        now = state.read(query, page)
        found = page.upload.read(io.BytesIO(data), now.scenario, now.preset)
        figures = [view.drawn(draw(function)) for function in found.figures]
        return dict(blocks=[plain(block) for block in found.blocks], figures=figures)
    except UserError as error:
        return dict(problem=str(error))
    except MemoryError:
        return dict(problem="the file needs more memory than is allowed here; the command line has no such limit")
    except Exception as error:  # its words might hold parts of the file
        print(f"page {slug}: file failed: {type(error).__name__}\n{''.join(format_tb(error.__traceback__))}", file=sys.stderr)
        return dict(problem=view.BROKEN)


def limit_this_process() -> None:
    """Lower priority than the server, bounded memory and time; where a system knows no such limits, none."""
    with suppress(ImportError, OSError, ValueError, AttributeError):
        import resource

        os.nice(5)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))


def main() -> None:
    limit_this_process()
    slug, query = sys.argv[1:3]
    found = answer(slug, query, sys.stdin.buffer.read())
    from inside_deepinfer.explorer.view import written

    sys.stdout.write(written(found))


if __name__ == "__main__":
    main()
