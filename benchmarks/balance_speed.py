"""How long one rebalance takes: 40 layers, 384 experts on 448 slots of 64 GPUs, 100 steps of statistics."""

import statistics
import time

from inside_deepinfer.serving import expert_balance as eb

loads = eb.generated_loads(steps=100, layers=40, experts=384, tokens=64 * 60 * 4 * 6, spread=0.6, steadiness=5.0)
taken = []
for _ in range(5):
    start = time.process_time()
    placement = eb.rebalance(loads, gpus=64, redundant=64)
    taken.append(time.process_time() - start)
before, after = (eb.slowest_over_mean(loads, p) for p in (eb.contiguous(40, 384, 64, 64), placement))
print(f"rebalance: median {statistics.median(taken):.2f} s (min {min(taken):.2f}, max {max(taken):.2f}) of 5 runs")
print(f"slowest over mean: contiguous {before:.3f}, rebalanced {after:.3f} on the same steps")
