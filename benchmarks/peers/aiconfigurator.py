"""NVIDIA's aiconfigurator and our model on the same questions, one after the other in one run.

    python benchmarks/peers/aiconfigurator.py --env FOLDER [--install] [--only WORD] [--csv table.csv]

Prints the machine, how long each takes to start, and for each question of questions.py both wall times, how many points of a frontier
came back, both answers (or the line with which a question is refused) and the ratio of the times; at the end our frontier of 1,000
points beside the peer's frontier. A command of the peer is a process, its start included; ours is a call, and its start is printed
apart. ``--install`` makes the environment first (about 1 GB; needs a package index). The answers of the last run are in
data/measured/aiconfigurator_runs.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import venv
from datetime import UTC, datetime
from pathlib import Path

from questions import CARD, Question, ours, questions

sys.path.insert(0, str(Path(__file__).parents[1]))
from frontier_speed import BATCHES, LIMIT_MS, cold_ms, median_ms

VERSION = "0.12.0"
LIMIT = 900  # seconds for a command
GPUS = 128
ARCHITECTURE = {"architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41"}
COLUMNS = ("question", "peer_s", "peer_points", "peer_answer", "our_s", "our_points", "our_answer", "ratio")


def install(folder: Path) -> float:
    """Make the environment; seconds."""
    start = time.perf_counter()
    venv.create(folder, with_pip=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", f"aiconfigurator=={VERSION}"], check=True)
    return time.perf_counter() - start


def command(question: Question, configuration: Path) -> list[str]:
    """The peer's command line; a model that it has no name for is given as a folder with its public configuration's architecture."""
    model = question.path or str(configuration)
    common = ["--model-path", model, "--system", CARD, "--backend", question.backend, "--no-color", "--isl", str(question.input), "--osl",
              str(question.output)]
    drafts = ["--nextn", str(question.drafts), "--nextn-accepted", f"{question.tokens - 1:.2f}"] if question.drafts else []
    if question.group:
        return ["cli", "estimate", "--estimate-mode", "static_gen", *common, *drafts, "--batch-size", str(question.batch), "--tp-size", "1",
                "--attention-dp-size", str(question.group), "--moe-tp-size", "1", "--moe-ep-size", str(question.group)]
    prefix = ["--prefix", str(question.cached), "--serving-mode", "disagg"] if question.cached else []
    return ["cli", "default", *common, *drafts, *prefix, "--total-gpus", str(GPUS), "--ttft", f"{1000 * question.first:g}", "--tpot",
            f"{1000 / question.slowest:g}"]


def peer(folder: Path, question: Question) -> tuple[float, int, str]:
    """Seconds, points of the frontier, and what was answered."""
    with tempfile.TemporaryDirectory() as place:
        configuration = Path(place, "configuration")
        configuration.mkdir()
        (configuration / "config.json").write_text(json.dumps(ARCHITECTURE))
        asked = [str(folder / "bin" / "aiconfigurator"), *command(question, configuration), "--save-dir", place]
        print("  $ aiconfigurator " + " ".join(asked[1:-2]).replace(place, "."), flush=True)
        start = time.perf_counter()
        try:
            done = subprocess.run(asked, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return time.perf_counter() - start, 0, f"no answer within {LIMIT} s"
        seconds = time.perf_counter() - start
        points = sum(max(sum(1 for _ in path.open()) - 1, 0) for path in Path(place).rglob("pareto.csv"))
    return seconds, points, answer(done.returncode, done.stdout + done.stderr)


def answer(code: int, text: str) -> str:
    """The best point, or the line that says why there is none; a substitution that the peer warns of is named."""
    found = [re.search(pattern, text) for pattern in (r"([\d.,]+) tokens/s/gpu", r"User Throughput: ([\d.,]+) tokens/s/user")]
    if code == 0 and all(found):
        return f"{found[0].group(1)} token/s per cluster GPU at {found[1].group(1)} per user"
    found = [re.search(pattern, text) for pattern in (r"tokens/s/gpu:\s+([\d.,]+)", r"tokens/s/user:\s+([\d.,]+)")]
    if code == 0 and all(found):
        instead = re.search(r"requested (EP\d+)\S*; using (EP\d+)", text)
        note = f" (communication of {instead[2]} in the place of {instead[1]})" if instead else ""
        return f"{found[0].group(1)} token/s per decode GPU at {found[1].group(1)} per user{note}"
    lines = [line.strip() for line in text.splitlines() if re.search(r"error|not |no ", line, re.I)]
    first = re.split(r"\. | for model=", (lines or [f"exit code {code}"])[-1])[0]
    return f"refused: {re.sub(r'^(Value)?Error: ', '', first)[:160]}"


def start_seconds(asked: list[str]) -> float:
    """How long a command takes to say how it is used."""
    start = time.perf_counter()
    subprocess.run(asked, capture_output=True, check=False, timeout=LIMIT)
    return time.perf_counter() - start


def machine() -> str:
    """Processor, cores and load, so that a later reader knows what the seconds mean."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", info.read_text()) if info.exists() else []
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}"


def compare(folder: Path, asked: list[Question]) -> list[tuple[object, ...]]:
    """Both on every question, the peer first."""
    rows: list[tuple[object, ...]] = []
    for question in asked:
        print(f"{question.name}:", flush=True)
        theirs, mine = peer(folder, question), ours(question)
        ratio = theirs[0] / mine[0]
        print(f"  aiconfigurator {theirs[0]:.1f} s, {theirs[1]} frontier points; {theirs[2]}\n"
              f"  ours {1000 * mine[0]:.1f} ms, {mine[1]:,} points; {mine[2]}\n  ratio of the times {ratio:,.0f}", flush=True)
        rows.append((question.name, f"{theirs[0]:.3g}", theirs[1], theirs[2], f"{mine[0]:.3g}", mine[1], mine[2], f"{ratio:.0f}"))
    return rows


def frontier_row(rows: list[tuple[object, ...]]) -> tuple[object, ...]:
    """Our frontier of 1,000 points beside the peer's quickest frontier of this run."""
    median, busy = median_ms()
    seconds, points = min((float(str(row[1])), int(str(row[2]))) for row in rows if row[2])
    print(f"our frontier of {BATCHES.size:,} points: median {median:.2f} ms, {busy:.2f} ms of processor time (limit {LIMIT_MS:.0f} ms), "
          f"new scenario {cold_ms():.1f} ms; the peer's frontier of {points} points: {seconds:.1f} s, {1000 * seconds / median:,.0f} times")
    return ("one frontier", f"{seconds:.1f}", points, f"{points} points", f"{median / 1000:.5f}", BATCHES.size, f"{BATCHES.size:,} points",
            f"{1000 * seconds / median:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", type=Path, required=True, help="folder of the environment")
    parser.add_argument("--install", action="store_true", help="make it first")
    parser.add_argument("--only", default="", help="only questions with this in their name")
    parser.add_argument("--csv", type=Path, help="write the table here")
    given = parser.parse_args()
    if given.install:
        print(f"installed in {install(given.env):.1f} s")
    tool = given.env / "bin" / "aiconfigurator"
    if not tool.exists():
        sys.exit(f"no aiconfigurator in {given.env}; make it with --install")
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine()}, aiconfigurator {VERSION}")
    print(f"start alone: aiconfigurator {start_seconds([str(tool), 'cli', 'default', '--help']):.1f} s, "
          f"inside-deepinfer {start_seconds([sys.executable, '-m', 'inside_deepinfer', 'frontier', 'decode']):.1f} s with a frontier")
    table = compare(given.env, [question for question in questions() if given.only in question.name])
    if any(row[2] for row in table):
        table.append(frontier_row(table))
    if given.csv:
        with given.csv.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *table])
    print(f"load at the end {os.getloadavg()[0]:.1f}")
