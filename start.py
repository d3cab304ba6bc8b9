#!/usr/bin/env python3
"""The one entry for people: ``python3 start.py`` builds and serves, ``python3 start.py test`` runs all the tests.

Needs Python 3.11 or newer and nothing else (that is why it is no Makefile): it makes its own environment in .venv from
the hash-pinned requirements.lock, and tells what it is doing while it does it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "installed-from"
LOCK = ROOT / "requirements.lock"
PIP = [str(PYTHON), "-m", "pip", "--disable-pip-version-check"]
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
    return subprocess.call([str(PYTHON), "-m", "inside_deepinfer", command, *rest], env=environment())


def install() -> str | None:
    """Make or refresh .venv; returns what went wrong, or None."""
    wanted = hashlib.sha256(LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted:
        return None
    started = time.monotonic()
    say("making the environment in .venv (once; well under a minute with a quick connection)")
    shutil.rmtree(VENV, ignore_errors=True)
    say("1 of 3: creating .venv")
    if not run_with_progress([sys.executable, "-m", "venv", str(VENV)]):
        return undo("creating .venv failed (on Debian: apt-get install python3-venv)")
    say("2 of 3: installing the pinned packages, hashes checked")
    if not (install_with_uv() or install_with_pip()):
        return undo("installing the packages failed")
    say("3 of 3: installing this project")
    if not run_with_progress([*PIP, "install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)]):
        return undo("installing this project failed")
    STAMP.write_text(wanted)
    say(f"environment ready after {time.monotonic() - started:.0f} s")
    return None


def install_with_uv() -> bool:
    """The quick way: uv itself from the lock, then everything at once, compiled; it draws its own progress."""
    with tempfile.TemporaryDirectory() as folder:
        only_uv = Path(folder) / "uv.lock"
        only_uv.write_text(re.search(r"^uv==(?:.*\\\n)+.*\n", LOCK.read_text(encoding="utf-8"), re.MULTILINE)[0], encoding="utf-8")
        if not run_with_progress([*PIP, "install", "--no-deps", "--require-hashes", "-r", str(only_uv)]):
            return False
    uv = [str(PYTHON), "-m", "uv", "pip", "install", "--python", str(PYTHON), "--compile-bytecode"]
    return subprocess.call([*uv, "--no-deps", "--require-hashes", "-r", str(LOCK)]) == 0


def install_with_pip() -> bool:
    """The slow way, where uv cannot be had or cannot reach the packages that pip can."""
    say("   trying again with pip")
    return run_with_progress([*PIP, "install", "--progress-bar", "off", "--require-hashes", "--no-deps", "-r", str(LOCK)])


def undo(problem: str) -> str:
    shutil.rmtree(VENV, ignore_errors=True)
    return f"{problem}; the lines above say why. Nothing was left behind."


def run_with_progress(step: list[str]) -> bool:
    """Run one step; says how many packages have come, and shows the step's own words only where it fails."""
    packages = sum(line[:1].isalnum() for line in LOCK.read_text(encoding="utf-8").splitlines())
    seen, words = 0, []
    with subprocess.Popen(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as running:
        for line in running.stdout or ():
            words.append(line)
            if line.startswith("Collecting "):
                seen += 1
                if seen % 40 == 0:
                    say(f"   {seen} of {packages} packages fetched")
            elif seen and line.startswith("Installing collected"):
                say(f"   {seen} packages fetched; unpacking them")
    if running.returncode != 0:
        print("".join(words[-20:]), file=sys.stderr)
    return running.returncode == 0


def test(arguments: list[str]) -> int:
    """Lint and all tests; the last line is pytest's own."""
    browser = find_browser() or install_browser()
    if browser is None:
        return fail("the browser tests need Chromium. Install it, then run this again:\n"
                    "  Debian or Ubuntu: sudo apt-get install chromium\n"
                    "  or set CHROMIUM to the path of a Chromium or Chrome that you have.")
    if subprocess.call([str(PYTHON), "-m", "ruff", "check", "."], cwd=ROOT) != 0:
        return fail("ruff found something; the lines above say what.")
    return subprocess.call([str(PYTHON), "-m", "pytest", *(arguments or ["-n", "2", "--dist", "loadfile"])], cwd=ROOT,
                           env=environment() | {"CHROMIUM": browser})


def environment() -> dict[str, str]:
    """Bytecode is kept: without it every notebook kernel and every server would compile all packages again."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


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
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"]):
        if subprocess.call([apt, *step], env=quiet, stdout=subprocess.DEVNULL) != 0:
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
