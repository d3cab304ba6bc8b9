"""Run the chapters before Sphinx reads them: several at once, each in a kernel of its own, results into the cache."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

QUIET_KERNEL = ["--IPKernelApp.log_level=40"]


@dataclass(frozen=True)
class Failure:
    """A cell that failed: where, and the last line of what it said."""

    notebook: str
    line: int
    error: str


def find(book: Path, names: Iterable[str]) -> dict[str, Path]:
    """Those of the named documents that are notebooks, with their files."""
    found = {}
    for name in names:
        path = book / f"{name}.md"
        if path.is_file() and is_myst_markdown_notebook(path.read_text(encoding="utf-8")):
            found[name] = path
    return found


def run_all(notebooks: dict[str, Path], cache_path: Path, workers: int, timeout: int,
            told: Callable[[str, str], None]) -> list[Failure]:
    """Execute every notebook that the cache does not hold yet; returns the failures.

    Args:
        told: called with ("started" | "cached" | "finished", name).
    """
    cache_path.mkdir(parents=True, exist_ok=True)
    cache = get_cache(str(cache_path))
    todo: list[tuple[str, Path, NotebookNode]] = []
    for name, path in notebooks.items():
        notebook = read_myst_markdown_notebook(path.read_text(encoding="utf-8"), add_source_map=True, path=str(path))
        try:
            cache.match_cache_notebook(notebook)
            told("cached", name)
        except KeyError:
            todo.append((name, path, notebook))
    return asyncio.run(_run_some(todo, cache, workers, timeout, told)) if todo else []


async def _run_some(todo: list[tuple[str, Path, NotebookNode]], cache: Any, workers: int, timeout: int,
                    told: Callable[[str, str], None]) -> list[Failure]:
    free = asyncio.Semaphore(workers)
    failures: list[Failure] = []

    async def one(name: str, path: Path, notebook: NotebookNode) -> None:
        async with free:
            told("started", name)
            began = time.perf_counter()
            failure = await _run(name, path, notebook, timeout)
            if failure:
                failures.append(failure)
            else:
                bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": time.perf_counter() - began})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            told("finished", name)

    await asyncio.gather(*(one(*job) for job in todo))
    return failures


async def _run(name: str, path: Path, notebook: NotebookNode, timeout: int) -> Failure | None:
    client = NotebookClient(notebook, timeout=timeout, kernel_name=notebook.metadata.get("kernelspec", {}).get("name", "python3"),
                            resources={"metadata": {"path": str(path.parent.resolve())}}, extra_arguments=QUIET_KERNEL,
                            record_timing=False)  # times in the cells would change their hash
    try:
        await client.async_execute()
    except CellExecutionError as error:
        return Failure(name, _line_of_failure(notebook), f"{error.ename}: {error.evalue}")
    except CellTimeoutError:
        return Failure(name, _line_of_failure(notebook), f"a cell ran longer than {timeout} s")
    except (DeadKernelError, RuntimeError) as error:
        return Failure(name, _line_of_failure(notebook), f"the kernel died: {error}")
    return None


def _line_of_failure(notebook: NotebookNode) -> int:
    """Line of the cell that failed: the first with an error output, else the first that did not finish."""
    lines = notebook.metadata.get("source_map", [])
    code = [(at, cell) for at, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    for at, cell in code:
        if any(output.output_type == "error" for output in cell.outputs):
            return lines[at]
    for at, cell in code:
        if cell.execution_count is None:
            return lines[at]
    return 0
