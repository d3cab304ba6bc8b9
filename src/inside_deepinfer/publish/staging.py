"""Nothing half-written: build in a work folder, publish by renaming, leave the old book alone until the new one is whole."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from inside_deepinfer.facts import UserError

MARKER = ".inside-deepinfer-book"  # tells our folder from one that happens to have the same name
DIRTY = "unfinished"


def not_built(error: OSError, output: Path) -> UserError:
    """One line for a disk that is full or a folder that may not be written."""
    where = f" ({error.filename})" if error.filename else ""
    old = "the old book is as it was" if (output / MARKER).is_file() else "nothing was left behind"
    return UserError(f"the book was not built: {(error.strerror or str(error)).lower()}{where}; {old}")


def check(output: Path) -> None:
    """Refuse to replace a folder that is no book of ours; bring back a book whose renaming was cut short."""
    aside = _aside(output)
    if not output.exists() and aside.is_dir():
        aside.rename(output)
    if output.exists() and not output.is_dir():
        raise UserError(f"{output} is a file: the book needs a folder")
    if output.is_dir() and any(output.iterdir()) and not (output / MARKER).is_file():
        raise UserError(f"{output} is not empty and holds no book of ours: choose another folder, or empty it yourself")


@contextmanager
def work_folder(output: Path, afresh: bool) -> Iterator[Path]:
    """The folder in which pages are made, for one build at a time; one that an earlier build left unfinished is not reused.

    It keeps its place between builds, because the pages' trees hold paths into it.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    work = output.parent / f".{output.name}.work"
    with _alone(output.parent / f".{output.name}.lock", output):
        if afresh or (work / DIRTY).exists():
            shutil.rmtree(work, ignore_errors=True)
        work.mkdir(exist_ok=True)
        (work / DIRTY).touch()
        try:
            yield work
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)  # a full disk wants its room back
            raise


@contextmanager
def _alone(lock: Path, output: Path) -> Iterator[None]:
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another build into {output} is running") from None
        yield


def log_of(output: Path) -> Path:
    """Where everything goes that the builder prints; kept when a build fails."""
    return output.parent / f".{output.name}.log"


def publish(work: Path, output: Path, key: str) -> None:
    """Put the finished pages in place of the old ones; on any failure the old ones stay."""
    new, aside = output.parent / f".{output.name}.new", _aside(output)
    shutil.rmtree(new, ignore_errors=True)
    try:
        shutil.copytree(work / "html", new, ignore=shutil.ignore_patterns(".buildinfo", "reports"))
        (new / MARKER).write_text(json.dumps({"state": key}), encoding="utf-8")
        _sync(new)
        shutil.rmtree(aside, ignore_errors=True)
        if output.exists():
            output.rename(aside)
        try:
            new.rename(output)
        except BaseException:
            if aside.exists():
                aside.rename(output)
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(aside, ignore_errors=True)
    (work / DIRTY).unlink(missing_ok=True)


def published_key(output: Path) -> str:
    """State of the sources that the book in ``output`` was made from; empty where there is none."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads((output / MARKER).read_text(encoding="utf-8"))["state"])
    return ""


def _aside(output: Path) -> Path:
    return output.parent / f".{output.name}.old"


def _sync(folder: Path) -> None:
    """Let a full disk show itself now and not after the renaming."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
