"""(g) Bits of one row of a matrix product when the batch around it changes, and the price of a product that keeps them."""

import rig

torch = rig.load_torch()
try:
    import triton
    import triton.language as tl
except ImportError:
    raise SystemExit("Triton is not installed here; the batch-invariant product needs it.") from None

HIDDEN, WIDTH = 5120, 2304  # data/models/deepseek-v4.1-flash.yaml


@triton.jit
def fixed_order(x, w, y, rows, n: tl.constexpr, k: tl.constexpr, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    """y = x @ w with one tile size and one order of summation for every batch."""
    i = tl.program_id(0) * bm + tl.arange(0, bm)
    j = tl.program_id(1) * bn + tl.arange(0, bn)
    total = tl.zeros((bm, bn), dtype=tl.float32)
    for start in range(0, k, bk):
        c = start + tl.arange(0, bk)
        a = tl.load(x + i[:, None] * k + c[None, :], mask=i[:, None] < rows, other=0.0)
        b = tl.load(w + c[:, None] * n + j[None, :])
        total = tl.dot(a, b, total)
    tl.store(y + i[:, None] * n + j[None, :], total.to(tl.bfloat16), mask=i[:, None] < rows)


def invariant(x, w):
    y = torch.empty(x.shape[0], w.shape[1], device="cuda", dtype=torch.bfloat16)
    grid = (triton.cdiv(x.shape[0], 64), w.shape[1] // 128)
    fixed_order[grid](x, w, y, x.shape[0], WIDTH, HIDDEN, 64, 128, 64, num_warps=4, num_stages=4)
    return y


def main() -> None:
    out = rig.arguments(__doc__)
    rig.need_memory(torch, rig.GIB)
    w = torch.randn(HIDDEN, WIDTH, device="cuda", dtype=torch.bfloat16).mul_(HIDDEN**-0.5)
    pool = torch.randn(4096, HIDDEN, device="cuda", dtype=torch.bfloat16)
    alone = {"library": pool[:1] @ w, "fixed order": invariant(pool[:1], w)}
    rows = []
    for batch in (1, 2, 3, 4, 8, 16, 17, 32, 64, 65, 128, 240, 256, 512, 1024, 2048, 4096):
        x = pool[:batch].contiguous()
        for what, work in (("library", lambda x=x: x @ w), ("fixed order", lambda x=x: invariant(x, w))):
            row = work()[:1]
            changed = int((row.view(torch.int16) != alone[what].view(torch.int16)).sum())
            biggest = float((row.float() - alone[what].float()).abs().max())
            timed = rig.seconds(torch, rig.graph_of(torch, work), inner=10)
            rows.append({"what": what, "batch": batch, "values": WIDTH, "values_changed": changed,
                         "largest_difference": biggest, **timed})
    rig.write(out, "batch_bits", torch, rows, "row 0 against the same row computed alone; 5120 x 2304 in BF16")


if __name__ == "__main__":
    main()
