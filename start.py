#!/usr/bin/env python3
"""The one entry for people: ``python3 start.py`` builds and serves, ``python3 start.py test`` runs all the tests.

Needs Python 3.11 or newer and nothing else (that is why it is no Makefile): it makes its own environment in .venv from
the hash-pinned requirements.lock, and tells what it is doing while it does it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "installed-from"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HELP = """usage: python3 start.py [serve | build | test | audit | ...] [options]

  (nothing) or serve   build the book where needed and serve book and dashboard on one local port
  test                 run all the tests (installs Debian's chromium where it is missing and you may)
  anything else        a command of inside-deepinfer, e.g. audit, value, build; see: python3 start.py --help-commands
"""


def main(arguments: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - the reader may start it with an older one
        return fail(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]} ({sys.executable}).")
    command, *rest = arguments or ["serve"]
    if command in ("-h", "--help"):
        print(HELP)
        return 0
    problem = install()
    if problem:
        return fail(problem)
    if command == "test":
        return test(rest)
    if command == "--help-commands":
        command = "--help"
    return subprocess.call([str(PYTHON), "-m", "inside_deepinfer", command, *rest])


def install() -> str | None:
    """Make or refresh .venv; returns what went wrong, or None."""
    wanted = hashlib.sha256((ROOT / "requirements.lock").read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted:
        return None
    started = time.monotonic()
    say("making the environment in .venv (about half a minute, once)")
    shutil.rmtree(VENV, ignore_errors=True)
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    steps = (
        ("creating .venv", [sys.executable, "-m", "venv", str(VENV)]),
        ("installing the pinned packages, hashes checked",
         [*pip, "install", "--require-hashes", "--no-deps", "-r", str(ROOT / "requirements.lock")]),
        ("installing this project", [*pip, "install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)]),
    )
    for number, (name, step) in enumerate(steps, start=1):
        say(f"{number} of {len(steps)}: {name}")
        if subprocess.call(step) != 0:
            shutil.rmtree(VENV, ignore_errors=True)
            hint = " (on Debian: apt-get install python3-venv)" if number == 1 else ""
            return f"{name} failed; the lines above say why{hint}. Nothing was left behind."
    STAMP.write_text(wanted)
    say(f"environment ready after {time.monotonic() - started:.0f} s")
    return None


def test(arguments: list[str]) -> int:
    """Lint and all tests; the last line is pytest's own."""
    browser = find_browser() or install_browser()
    if browser is None:
        return fail("the browser tests need Chromium. Install it, then run this again:\n"
                    "  Debian or Ubuntu: sudo apt-get install chromium\n"
                    "  or set CHROMIUM to the path of a Chromium or Chrome that you have.")
    if subprocess.call([str(PYTHON), "-m", "ruff", "check", "."], cwd=ROOT) != 0:
        return fail("ruff found something; the lines above say what.")
    environment = os.environ | {"CHROMIUM": browser}
    return subprocess.call([str(PYTHON), "-m", "pytest", *(arguments or ["-n", "2"])], cwd=ROOT, env=environment)


def find_browser() -> str | None:
    named = os.environ.get("CHROMIUM")
    if named:
        return named if shutil.which(named) else None
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


def install_browser() -> str | None:
    """Debian's chromium, where apt-get exists and this user may install."""
    apt = shutil.which("apt-get")
    if os.environ.get("CHROMIUM") or apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    say("Chromium is missing; installing Debian's (about 20 s)")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"]):
        if subprocess.call([apt, *step], env=environment, stdout=subprocess.DEVNULL) != 0:
            return None
    return find_browser()


def say(text: str) -> None:
    print(f"[start] {text}", flush=True)


def fail(text: str) -> int:
    print(f"[start] {text}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
