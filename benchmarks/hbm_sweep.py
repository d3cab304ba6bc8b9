"""How long one sweep of HBM reads, step time and capacity takes: 1,000 batches x 7 EP values x 5 cards in one call.

    python benchmarks/hbm_sweep.py          prints the median of 21 runs; exits with 1 above the limit of 50 ms
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.scenario import make_scenario

BATCHES, EPS = np.arange(1, 1001), np.array([2, 4, 8, 16, 32, 64, 128])
CARDS = np.array(["b200", "b300", "gb200", "gb300", "h200"])
WANTED = ["hbm_read_bytes_per_step", "hbm_total_bytes_per_step", "counted_step_time", "memory_share", "largest_batch"]
LIMIT_MS = 50.0


def sweep() -> dict[str, object]:
    """One call; every result has the shape (1000, 7, 5) or broadcasts to it."""
    grid = {"batch": BATCHES[:, None, None], "ep": EPS[None, :, None], "card": CARDS[None, None, :]}
    found = catalogue.evaluate(WANTED, make_scenario(), **grid)
    return {name: quantity.value for name, quantity in found.items()}


def median_ms(runs: int = 21) -> float:
    """Median wall time of a sweep in milliseconds, after one run to warm caches."""
    sweep()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        sweep()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


if __name__ == "__main__":
    median = median_ms()
    points = BATCHES.size * EPS.size * CARDS.size
    print(f"{points:,} points, {len(WANTED)} numbers each: median {median:.1f} ms (limit {LIMIT_MS:.0f} ms)")
    sys.exit(median > LIMIT_MS)
