"""(c, why) A layer and its experts one by one, both on a card that rested and on one that has been computing for half a second."""

import statistics
import time

import rig
from experts import RING, torch, weights
from layer import draws
from uneven import graph_of_counts

EPS = (64, 128)
REPEATS, INNER = 9, 10  # times of each graph in turn, replays per time
REST, WORK = 0.5, 0.5  # seconds before each time


def prepare(state: str, work) -> None:
    """Let the card rest, or keep it busy with ``work``."""
    if state == "rested":
        time.sleep(REST)
        return
    until = time.monotonic() + WORK
    while time.monotonic() < until:
        for _ in range(INNER):
            work()
        torch.cuda.synchronize()


def once(graph) -> float:
    """Seconds of one replay, from ``INNER`` in a row."""
    return rig.seconds(torch, graph, repeats=1, inner=INNER, warm_up=0)["seconds"]


def main() -> None:
    out = rig.arguments(__doc__)
    rig.need_memory(torch, 8 * rig.GIB)
    rows = []
    for precision, ep, counts in draws():
        if ep not in EPS:
            continue
        ring = weights(precision, RING)
        layer, turns = graph_of_counts(ring, precision, counts), RING // len(counts)
        alone = {count: graph_of_counts(ring, precision, [count]) for count in set(counts)}
        for state in ("rested", "working"):
            found: dict[str, list[float]] = {"layer": [], "experts": []}
            for _ in range(REPEATS):  # in turn, so that both meet the same clock
                prepare(state, layer)
                found["layer"].append(once(layer) / turns)
                one_by_one = 0.0
                for count in counts:
                    if state == "rested":
                        prepare(state, layer)
                    one_by_one += once(alone[count]) / RING
                found["experts"].append(one_by_one)
            prepare(state, layer)
            mhz = float(rig.clocks()["sm_mhz"])
            for what, times in found.items():
                rows.append({"what": what, "state": state, "precision": precision, "ep": ep, "tokens_per_expert": counts, "sm_mhz": mhz,
                             "seconds": statistics.median(times), "seconds_min": min(times), "seconds_max": max(times),
                             "repeats": REPEATS, "inner": INNER})
        del ring, layer, alone
        torch.cuda.empty_cache()
    rig.write(out, "warm", torch, rows, f"rested: {REST} s without work before each time; working: after {WORK} s of the layer")


if __name__ == "__main__":
    main()
