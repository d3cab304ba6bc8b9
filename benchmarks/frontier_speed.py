"""How long a full decode frontier of 1,000 points takes, with its non-dominated filter and its limits.

    python benchmarks/frontier_speed.py

Prints the median of 21 runs and exits with 1 above the limit of 5 ms. ``benchmarks/peers/aiconfigurator.py`` puts NVIDIA's
aiconfigurator beside it in one run and prints the ratio.
"""

from __future__ import annotations

import statistics
import sys
import time

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
    median, busy = median_ms()
    print(f"{BATCHES.size:,} points: median {median:.2f} ms of {RUNS} runs, {busy:.2f} ms of processor time (limit {LIMIT_MS:.0f} ms); "
          f"new scenario {cold_ms():.1f} ms")
    sys.exit(median > LIMIT_MS)
