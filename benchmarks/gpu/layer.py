"""(c) The routed experts of one layer on one GPU for EP 2 to 128, with realistic numbers of tokens per expert."""

import rig
from experts import HIDDEN, WIDTH, product, tokens_of, torch, weights

EXPERTS, TOP = 384, 6  # data/models/deepseek-v4.1-flash.yaml
SEQUENCES, ROWS = 60, 4  # per GPU: published sequences; golden row and three verified drafts


def draws() -> list[tuple[str, int, list[int]]]:
    """Precision, EP and tokens per expert of every layer, the same on every card."""
    generator = torch.Generator().manual_seed(7)
    popularity = torch.exp(0.3 * torch.randn(EXPERTS, generator=generator))  # uneven, as real routing is
    popularity /= popularity.sum()
    found = []
    for precision in ("bf16", "fp8"):
        for ep in (2, 4, 8, 16, 32, 64, 128):
            drawn = torch.multinomial(popularity, SEQUENCES * ROWS * ep * TOP, replacement=True, generator=generator)
            found.append((precision, ep, torch.bincount(drawn, minlength=EXPERTS)[:EXPERTS // ep].tolist()))
    return found


def main() -> None:
    out = rig.arguments(__doc__)
    rig.need_memory(torch, 20 * rig.GIB)
    rows = []
    size = {"bf16": 2, "fp8": 1}
    for precision, ep, counts in draws():
        local = len(counts)
        ring = weights(precision, max(local, 12))
        turns = len(ring) // local  # small slices repeat with fresh weights, so that the L2 never holds them
        inputs = {n: (tokens_of(precision, n, HIDDEN), tokens_of(precision, n, WIDTH)) for n in set(counts) if n}

        def step(ring=ring, counts=counts, inputs=inputs, precision=precision, local=local, turns=turns):
            for turn in range(turns):
                for (gate, up, down), count in zip(ring[turn * local:(turn + 1) * local], counts, strict=True):
                    if count:
                        wide, narrow = inputs[count]
                        product(precision, wide, gate)
                        product(precision, wide, up)
                        product(precision, narrow, down)

        timed = rig.seconds(torch, rig.graph_of(torch, step), inner=3)
        for key in ("seconds", "seconds_min", "seconds_max"):
            timed[key] /= turns
        rows.append({"precision": precision, "ep": ep, "experts": local, "tokens_per_expert": counts,
                     "weight_bytes_per_expert": 3 * HIDDEN * WIDTH * size[precision], **timed})
        del ring, inputs
        torch.cuda.empty_cache()
    rig.write(out, "layer", torch, rows,
              f"{SEQUENCES} sequences x {ROWS} rows per GPU, top-{TOP} of {EXPERTS}, log-normal popularity 0.3")


if __name__ == "__main__":
    main()
