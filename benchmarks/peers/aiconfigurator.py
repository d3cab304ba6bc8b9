"""NVIDIA's aiconfigurator on the question of chapter 8, in an environment of its own.

    python benchmarks/peers/aiconfigurator.py --env FOLDER [--install] [--only NAME] [--csv table.csv]

Runs each command of ``COMMANDS`` once and prints wall time, exit code and what it answers: the best point of its frontier, or the
line with which it refuses. ``--install`` makes the environment first (about 1 GB; needs a package index). The answers of 2026-11-29
are in data/measured/aiconfigurator_v4_flash.csv. It has no V4.1-Flash and no EP64; its throughput is over all GPUs of the cluster.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

VERSION = "0.12.0"
LIMIT = 900  # seconds; a command took about 50 on a quiet machine
V3, V4, V41 = "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4.1-Flash"
LONG = ["--isl", "77000", "--osl", "800", "--prefix", "73920", "--ttft", "1000", "--tpot", "20", "--serving-mode", "disagg"]


def _default(model: str, *more: str, backend: str = "sglang", gpus: int = 128) -> list[str]:
    return ["cli", "default", "--model-path", model, "--total-gpus", str(gpus), "--system", "gb200", "--backend", backend,
            "--no-color", *more]


FRONTIER = _default(V4, *LONG)
COMMANDS = {
    "V3, 4,000 in and 1,000 out": _default(V3, "--isl", "4000", "--osl", "1000", "--ttft", "2000", "--tpot", "50", backend="trtllm"),
    "V4-Flash, 77,000 in, 96 % cached": FRONTIER,
    "the same with 5 drafts, 2.21 accepted": _default(V4, *LONG, "--nextn", "5", "--nextn-accepted", "2.21"),
    "V4.1-Flash": _default(V41, *LONG),
}


def install(folder: Path) -> float:
    """Make the environment; seconds."""
    start = time.perf_counter()
    venv.create(folder, with_pip=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", f"aiconfigurator=={VERSION}"], check=True)
    return time.perf_counter() - start


def run(folder: Path, command: list[str]) -> tuple[float, int, str]:
    """Seconds, points of the frontier, and what was answered."""
    with tempfile.TemporaryDirectory() as results:
        start = time.perf_counter()
        try:
            done = subprocess.run([str(folder / "bin" / "aiconfigurator"), *command, "--save-dir", results], capture_output=True,
                                  text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return time.perf_counter() - start, 0, f"no answer within {LIMIT} s"
        seconds = time.perf_counter() - start
        points = sum(max(sum(1 for _ in path.open()) - 1, 0) for path in Path(results).rglob("pareto.csv"))
    return seconds, points, answer(done.returncode, done.stdout + done.stderr)


def answer(code: int, text: str) -> str:
    """The best point, or the last line that says why there is none."""
    found = [re.search(pattern, text) for pattern in (r"([\d.,]+) tokens/s/gpu", r"User Throughput: ([\d.,]+) tokens/s/user")]
    if code == 0 and all(found):
        return f"{found[0].group(1)} token/s per cluster GPU at {found[1].group(1)} per user"
    lines = [line.strip() for line in text.splitlines() if re.search(r"error|not |no ", line, re.I)]
    return f"exit code {code}: {(lines or ['no answer'])[-1][:160]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", type=Path, required=True, help="folder of the environment")
    parser.add_argument("--install", action="store_true", help="make it first")
    parser.add_argument("--only", choices=list(COMMANDS), help="one command")
    parser.add_argument("--csv", type=Path, help="write the table here")
    given = parser.parse_args()
    if given.install:
        print(f"installed in {install(given.env):.1f} s")
    if not (given.env / "bin" / "aiconfigurator").exists():
        sys.exit(f"no aiconfigurator in {given.env}; make it with --install")
    rows = []
    for name in [given.only] if given.only else COMMANDS:
        seconds, points, said = run(given.env, COMMANDS[name])
        rows.append((name, f"{seconds:.1f}", points, said))
        print(f"{name}: {seconds:.1f} s, {points} frontier points; {said}", flush=True)
    if given.csv:
        with given.csv.open("w", newline="") as file:
            csv.writer(file).writerows([("question", "seconds", "points", "answer"), *rows])
