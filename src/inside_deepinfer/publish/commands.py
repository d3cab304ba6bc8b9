"""``build``: the whole book from nothing, or only what changed, with nothing half-written."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from inside_deepinfer.facts import UserError
from inside_deepinfer.publish import staging
from inside_deepinfer.publish.progress import Progress, say
from inside_deepinfer.publish.project import commit, default_output, files, hash_of, look_key, root, state_key

KEPT_CACHES = 2  # the cache of this state and of the one before
WORKERS = min(4, os.cpu_count() or 1)


def build(output: Path | None = None, force: bool = False, strict: bool = True) -> Path:
    """Build the book and return its folder.

    Args:
        output: where to put it; ``build/book`` of the checkout where left out.
        force: run every notebook again and make every page anew.
        strict: treat every warning as an error. A failing cell is an error in any case.

    Raises:
        UserError: one line naming the notebook, page or folder at fault; the old book is then still there.
    """
    began = time.monotonic()
    output = (output or default_output()).resolve()
    key = source_key()
    try:
        staging.check(output)
        if not force and staging.published_key(output) == key:
            say(f"the book in {output} is up to date")
            return output
        with staging.work_folder(output, force) as work:
            if force:
                shutil.rmtree(root() / "build" / "notebooks" / state_key(), ignore_errors=True)
            _make(work, strict, staging.log_of(output))
            staging.publish(work, output, key)
        _forget_old_caches()
    except OSError as error:
        raise staging.not_built(error, output) from None
    say(f"the book is in {output} ({time.monotonic() - began:.0f} s)")
    return output


def source_key() -> str:
    """Hash of everything a page is made from, prose and look included."""
    prose = [path for folder in (root() / "book", root() / "notebooks") for path in files(folder)]
    return hash_of(prose, f"{state_key()} {look_key()} {commit()}")


def _make(work: Path, strict: bool, log: Path) -> None:
    """Run the worker and show what it does; raise where it found something wrong."""
    options = json.dumps({"book": str(root() / "book"), "workers": WORKERS})
    with tempfile.TemporaryDirectory() as empty, log.open("w", encoding="utf-8") as noise, Progress() as progress:
        child = subprocess.Popen([sys.executable, "-m", "inside_deepinfer.publish.worker", str(work), options],
                                 stdout=subprocess.PIPE, stderr=noise, text=True, encoding="utf-8", env=_environment(empty),
                                 start_new_session=True)
        try:
            assert child.stdout is not None
            for line in child.stdout:
                progress.show(json.loads(line))
            code = child.wait()
        except BaseException:
            _end(child)
            raise
    _judge(progress, code, strict, log)


def _judge(progress: Progress, code: int, strict: bool, log: Path) -> None:
    for failure in progress.failures:
        progress.say(f"failed: {failure['notebook']}.md, cell at line {failure['line']}: {failure['error']}")
    for warning in progress.warnings:
        progress.say(warning)
    if progress.failures:
        names = ", ".join(f"{failure['notebook']}.md" for failure in progress.failures)
        first = progress.failures[0]
        raise UserError(f"the book was not built: {names} failed ({first['error']} in the cell at line {first['line']})")
    if progress.problems:
        raise UserError(f"the book was not built: {progress.problems[0]}")
    if progress.warnings and strict:
        count = len(progress.warnings)
        raise UserError(f"the book was not built: {count} warning{'s' if count > 1 else ''}, the first: {progress.warnings[0]}")
    if code:
        raise UserError(f"the book was not built: the builder ended with code {code}, see {log}")


def _environment(empty: str) -> dict[str, str]:
    """The same environment for every reader: no personal start-up files, figures as JSON, one thread per kernel."""
    fixed = {"IPYTHONDIR": empty, "JUPYTER_CONFIG_DIR": empty, "JUPYTER_PREFER_ENV_PATH": "1",
             "PLOTLY_RENDERER": "plotly_mimetype", "PYTHONHASHSEED": "0", "PYTHONIOENCODING": "utf-8",
             "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    return {**os.environ, **fixed}


def _end(child: subprocess.Popen[str]) -> None:
    """End the worker and the kernels that it started."""
    try:
        os.killpg(child.pid, signal.SIGTERM)
        child.wait(timeout=10)
    except ProcessLookupError:
        pass
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _forget_old_caches() -> None:
    caches = sorted((path for path in (root() / "build" / "notebooks").glob("*") if path.is_dir()),
                    key=lambda path: path.stat().st_mtime, reverse=True)
    for path in caches[KEPT_CACHES:]:
        if path.name != state_key():
            shutil.rmtree(path, ignore_errors=True)
