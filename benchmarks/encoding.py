"""Encoding speed of long conversations, with one thread and with all.

    python benchmarks/encoding.py [--turns 20 200 400] [--repeat 3] [--csv encoding.csv]

One run gives the whole table. It needs about 3 GB of memory for the largest conversation.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

COLUMNS = ("threads", "turns", "characters", "tokens", "segments_s", "whole_s", "whole_recipe_s", "ratio", "ratio_recipe")


def child(turns: list[int], repeat: int) -> None:
    """Measure in this process and print one JSON line per conversation."""
    from inside_deepinfer.tokens.speed import measure, sizes

    for count, characters in sizes():
        if count in turns:
            t = measure(count, characters, repeat)
            print(json.dumps([t.turns, t.characters, t.tokens, t.segments, t.whole, t.whole_recipe, t.ratio, t.ratio_recipe]),
                  flush=True)


def machine() -> str:
    """Processor name and usable cores."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return f"{name}, {cores()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, nargs="+", default=[20, 200, 400])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.turns, options.repeat)
        return
    rows = []
    print(f"machine: {machine()}; fastest of {options.repeat}")
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.3 * cores():
        print(f"warning: something else runs here (load {os.getloadavg()[0]:.1f}); the times will be too long and uneven")
    print(f"{'threads':>7} {'turns':>5} {'characters':>10} {'tokens':>9} {'segments':>10} {'whole':>10} {'whole*':>10} "
          f"{'ratio':>6} {'ratio*':>6}")
    for threads in dict.fromkeys((1, cores())):
        command = [sys.executable, __file__, "--child", "--repeat", str(options.repeat), "--turns", *map(str, options.turns)]
        environment = os.environ | {"RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            for line in process.stdout or ():
                turns, characters, tokens, segments, whole, own, ratio, ratio_own = json.loads(line)
                rows.append((threads, turns, characters, tokens, segments, whole, own, ratio, ratio_own))
                print(f"{threads:>7} {turns:>5} {characters:>10,} {tokens:>9,} {segments * 1e3:>7.1f} ms {whole * 1e3:>7.1f} ms "
                      f"{own * 1e3:>7.1f} ms {ratio:>6.2f} {ratio_own:>6.2f}", flush=True)
        if process.returncode:
            sys.exit(process.returncode)
    print("whole: Hugging Face tokenizers; whole*: deepseek-recipe's own tokenizer on the same prompt")
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle)
            writer.writerow(COLUMNS)
            writer.writerows([*row[:4], *(f"{value:.4g}" for value in row[4:])] for row in rows)


if __name__ == "__main__":
    main()
