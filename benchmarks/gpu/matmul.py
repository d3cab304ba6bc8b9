"""(b, check) One large square product in BF16 and FP8, to compare with what others measured on the same card."""

import rig
from experts import product, tokens_of, torch

SIDE = 8192


def main() -> None:
    out = rig.arguments(__doc__)
    rig.need_memory(torch, 2 * rig.GIB)
    rows = []
    for precision in ("bf16", "fp8"):
        x, w = (tokens_of(precision, SIDE, SIDE) for _ in range(2))
        timed = rig.seconds(torch, lambda x=x, w=w, p=precision: product(p, x, w.t()), repeats=20, inner=10)
        rows.append({"precision": precision, "side": SIDE, "flop": 2 * SIDE**3, **timed})
    rig.write(out, "matmul", torch, rows, "random data; zeros would run faster")


if __name__ == "__main__":
    main()
