"""(b) The three products of one expert (5120 x 2304) in BF16 and FP8 against tokens per expert."""

import rig

HIDDEN, WIDTH = 5120, 2304  # data/models/deepseek-v4.1-flash.yaml
RING = 12  # weights of several experts in turn, so that the L2 never holds the next one

torch = rig.load_torch()


def weights(precision: str, count: int) -> list:
    """``count`` experts: gate and up (5120 -> 2304) and down (2304 -> 5120), random values, column-major."""
    made = []
    for _ in range(count):
        trio = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16).mul_(k**-0.5).t()
                for k, n in ((HIDDEN, WIDTH), (HIDDEN, WIDTH), (WIDTH, HIDDEN))]
        if precision == "fp8":
            trio = [w.t().contiguous().to(torch.float8_e4m3fn).t() for w in trio]
        made.append(trio)
    return made


def product(precision: str, x, w):
    """x @ w in the given precision, BF16 out; FP8 with one scale per tensor."""
    if precision == "bf16":
        return x @ w
    return torch._scaled_mm(x, w, scale_a=ONE, scale_b=ONE, out_dtype=torch.bfloat16, use_fast_accum=True)


ONE = torch.ones((), device="cuda")


def tokens_of(precision: str, count: int, width: int):
    x = torch.randn(count, width, device="cuda", dtype=torch.bfloat16)
    return x.to(torch.float8_e4m3fn) if precision == "fp8" else x


def main() -> None:
    out = rig.arguments(__doc__)
    rig.need_memory(torch, 8 * rig.GIB)
    rows = []
    for precision, size in (("bf16", 2), ("fp8", 1)):
        ring = weights(precision, RING)
        for tokens in (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096):
            wide, narrow = tokens_of(precision, tokens, HIDDEN), tokens_of(precision, tokens, WIDTH)

            def step(ring=ring, wide=wide, narrow=narrow, precision=precision):
                for gate, up, down in ring:
                    product(precision, wide, gate)
                    product(precision, wide, up)
                    product(precision, narrow, down)

            timed = rig.seconds(torch, rig.graph_of(torch, step), inner=3)
            for key in ("seconds", "seconds_min", "seconds_max"):
                timed[key] /= RING
            rows.append({"precision": precision, "tokens": tokens, "weight_bytes": 3 * HIDDEN * WIDTH * size,
                         "flop": 2 * 3 * HIDDEN * WIDTH * tokens, "products": 3, **timed})
    rig.write(out, "experts", torch, rows, "time of the three products of one expert, from a graph that runs 12 experts in turn")


if __name__ == "__main__":
    main()
