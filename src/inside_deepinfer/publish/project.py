"""Where the parts of the checkout are, and a key that changes whenever a page could change."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from inside_deepinfer.facts import UserError
from inside_deepinfer.facts.store import data_folder

PACKAGE = Path(__file__).resolve().parents[1]
IGNORED = {"__pycache__", ".ipynb_checkpoints"}


def root() -> Path:
    """The checkout that holds ``book/``: INSIDE_DEEPINFER_ROOT, else around the package, else around the current folder."""
    named = os.environ.get("INSIDE_DEEPINFER_ROOT")
    candidates = [Path(named)] if named else [PACKAGE.parents[1], Path.cwd(), *Path.cwd().parents]
    for folder in candidates:
        if (folder / "book" / "_config.yml").is_file():
            return folder
    raise UserError(f"no book to build here: {candidates[0] / 'book' / '_config.yml'} is missing (run this in a checkout)")


def default_output() -> Path:
    """Where the built book lies: ``build/book`` of the checkout."""
    return root() / "build" / "book"


def files(folder: Path) -> Iterable[Path]:
    """All files below ``folder`` in a stable order, without caches."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not IGNORED.intersection(path.parts):
            yield path


@lru_cache(maxsize=1)
def state_key() -> str:
    """Hash of everything that a cell or a role can read: the package, the facts and the pinned versions.

    Left out are the dashboard, which stands above the figures, and the look of the pages: neither can change a value.
    """
    lock = root() / "requirements.lock"
    code = [path for path in files(PACKAGE) if not {"explorer", "static"} & set(path.relative_to(PACKAGE).parts)]
    return hash_of([*code, *files(data_folder()), *([lock] if lock.is_file() else [])])


@lru_cache(maxsize=1)
def look_key() -> str:
    """Hash of our scripts and styles."""
    return hash_of(files(PACKAGE / "publish" / "static"))


def hash_of(paths: Iterable[Path], salt: str = "") -> str:
    """Sixteen digits that change when a name or a byte changes."""
    digest = hashlib.sha256(salt.encode())
    for path in paths:
        digest.update(f"{path.parent.name}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def commit() -> str:
    """Short commit id of the checkout, with a plus where files differ from it; a sentence where there is none."""
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(root()), *arguments], capture_output=True, text=True, timeout=20, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        name = git("rev-parse", "--short=12", "HEAD")
        return (name + ("+ (files changed since)" if git("status", "--porcelain") else "")) if name else "no commit yet"
    except (OSError, subprocess.SubprocessError):
        return "unknown (git cannot be asked)"
