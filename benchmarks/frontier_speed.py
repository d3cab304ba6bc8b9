"""How long a full decode frontier of 1,000 points takes, with its non-dominated filter and its limits.

    python benchmarks/frontier_speed.py [--peer FOLDER]

Prints the median of 21 runs and exits with 1 above the limit of 5 ms. With ``--peer`` it also runs one frontier of NVIDIA's
aiconfigurator from the environment that ``benchmarks/peers/aiconfigurator.py`` made there, and prints the ratio.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.studies.decode_curves import frontier

BATCHES, LIMIT_MS, RUNS = np.arange(1.0, 1001.0), 5.0, 21


def median_ms() -> tuple[float, float]:
    """Median wall and processor time of a frontier in milliseconds, over two scenarios that were seen before."""
    scenarios = [make_scenario(changes={"context": 70_000 + 10 * (run % 2)}) for run in range(RUNS)]
    for scenario in scenarios[:2]:
        frontier(scenario, batch=BATCHES)
    wall, busy = [], []
    for scenario in scenarios:
        start = time.perf_counter(), time.process_time()
        frontier(scenario, batch=BATCHES)
        wall.append(1000 * (time.perf_counter() - start[0]))
        busy.append(1000 * (time.process_time() - start[1]))
    return statistics.median(wall), statistics.median(busy)


def cold_ms() -> float:
    """The first frontier of a scenario never seen before, where nothing is kept."""
    scenario = make_scenario(changes={"context": 50_001})
    start = time.perf_counter()
    frontier(scenario, batch=BATCHES)
    return 1000 * (time.perf_counter() - start)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="folder of the peer's environment")
    given = parser.parse_args()
    median, busy = median_ms()
    print(f"{BATCHES.size:,} points: median {median:.2f} ms of {RUNS} runs, {busy:.2f} ms of processor time (limit {LIMIT_MS:.0f} ms); "
          f"new scenario {cold_ms():.1f} ms")
    if given.peer:
        sys.path.insert(0, str(Path(__file__).parent / "peers"))
        from aiconfigurator import FRONTIER, run

        seconds, points, _ = run(given.peer, FRONTIER)
        print(f"aiconfigurator: {points} points in {seconds:.1f} s, {1000 * seconds / median:,.0f} times as long")
    sys.exit(median > LIMIT_MS)
