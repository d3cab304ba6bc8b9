"""``inside-deepinfer serve``: book and dashboard on one local port."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets the network in.")] = "127.0.0.1",
    processes: Annotated[int, typer.Option(min=1, max=64, help="How many server processes share the port.")] = 1,
    book: Annotated[Path | None, typer.Option(help="Serve this folder of pages and build nothing.", show_default=False)] = None,
) -> None:
    """Build the book where needed, then serve it together with the dashboard until Ctrl-C."""
    from inside_deepinfer.facts import require_between

    require_between("port", port, 0, 65535)
    from inside_deepinfer.publish.server import bind
    from inside_deepinfer.publish.server import serve as run

    for socket in bind(host, port):  # a port in use is told before minutes are spent on the book
        socket.close()
    if book is None:
        from inside_deepinfer.publish.commands import build

        book = build()
    run(port, host, book, processes, say=typer.echo)
