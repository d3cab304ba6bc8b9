"""(c, why) What makes a layer slower than its experts one by one: uneven token counts, tokens from memory, or the mix."""

import rig
from experts import HIDDEN, RING, WIDTH, product, tokens_of, torch, weights
from layer import draws

LEAST_EP = 16  # smaller groups have fewer tokens per expert than the layers that miss their prediction
ROUND = (64, 128, 192, 256, 384, 512)  # sizes that experts.py has too
SCAN = tuple(range(128, 401, 8))  # multiples of 8, through the sizes of the worst layer


def graph_of_counts(ring: list, precision: str, counts: list[int], own: bool = False):
    """As many turns over ``counts`` as the ring has fresh weights for, captured; ``own`` tokens for every expert."""
    turns = len(ring) // len(counts)  # as in layer.py
    order = [count for _ in range(turns) for count in counts]
    shared = {n: (tokens_of(precision, n, HIDDEN), tokens_of(precision, n, WIDTH)) for n in set(counts)}
    inputs = [(tokens_of(precision, n, HIDDEN), tokens_of(precision, n, WIDTH)) if own else shared[n] for n in order]

    def step():
        for (gate, up, down), (wide, narrow) in zip(ring[:len(order)], inputs, strict=True):
            product(precision, wide, gate)
            product(precision, wide, up)
            product(precision, narrow, down)

    return rig.graph_of(torch, step)


def times(ring: list, precision: str, counts: list[int], own: bool = False) -> dict[str, float]:
    """One turn over ``counts``, experts in a row; ``own`` tokens for every expert, else those of its count."""
    turns = len(ring) // len(counts)
    timed = rig.seconds(torch, graph_of_counts(ring, precision, counts, own), inner=3)
    return timed | {key: timed[key] / turns for key in ("seconds", "seconds_min", "seconds_max")}


def kernels(ring: list, precision: str, sizes: list[int]) -> dict[int, list[list[str]]]:
    """Names of the kernels that the library chooses for gate and down at each size; empty where the profiler sees nothing."""
    mark = torch.zeros(16, device="cuda")
    pairs = [(size, tokens_of(precision, size, width), ring[0][part]) for size in sizes for width, part in ((HIDDEN, 0), (WIDTH, 2))]
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        for _, x, w in pairs:
            product(precision, x, w)
            mark.add_(1.0)
        torch.cuda.synchronize()
    found, group = [], []
    for event in sorted((e for e in seen.events() if e.device_type.name == "CUDA"), key=lambda e: e.time_range.start):
        if "elementwise" in event.name:
            found.append(group)
            group = []
        elif "Memset" not in event.name:
            group.append(event.name[:120])
    if len(found) != len(pairs):
        return {}
    return {size: found[2 * number:2 * number + 2] for number, size in enumerate(sizes)}


def main() -> None:
    out = rig.arguments(__doc__)
    rig.need_memory(torch, 8 * rig.GIB)
    rows = []
    for precision in ("bf16", "fp8"):
        layers = [counts for kind, ep, counts in draws() if kind == precision and ep >= LEAST_EP]
        drawn = sorted({count for counts in layers for count in counts if count})
        ring = weights(precision, max(RING, *(len(counts) for counts in layers)))
        sizes = sorted({*drawn, *ROUND, *SCAN})
        chosen = kernels(ring, precision, sizes)
        for size in sizes:
            rows.append({"what": "alone", "precision": precision, "tokens_per_expert": [size], "kernels": chosen.get(size, []),
                         **times(ring[:RING], precision, [size])})
            if size in drawn:
                rows.append({"what": "alone, own tokens", "precision": precision, "tokens_per_expert": [size],
                             **times(ring[:RING], precision, [size], own=True)})
        for counts in layers:
            if 0 in counts:
                continue
            for what, multiple in (("layer", 1), ("layer, padded to 16", 16), ("layer, padded to 64", 64), ("layer, padded to 128", 128)):
                padded = [-(-count // multiple) * multiple for count in counts]
                rows.append({"what": what, "precision": precision, "tokens_per_expert": counts, "computed": padded,
                             **times(ring, precision, padded)})
        del ring
        torch.cuda.empty_cache()
    rig.write(out, "uneven", torch, rows, f"as experts.py and layer.py, EP{LEAST_EP} and more; kernels: gate, then down")


if __name__ == "__main__":
    main()
