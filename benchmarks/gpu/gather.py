"""(d) Gathered reads of 512 entries of 288 bytes against contiguous ones, by the same Triton kernel."""

import rig

torch = rig.load_torch()
try:
    import triton
    import triton.language as tl
except ImportError:
    raise SystemExit("Triton is not installed here; the gather measurement needs it.") from None

ENTRY, TOP = 288, 512  # bytes of one FP4 KV entry with its scales; entries per query
WORDS = ENTRY // 4


@triton.jit
def read_entries(data, index, out, words: tl.constexpr, padded: tl.constexpr, top: tl.constexpr, block: tl.constexpr):
    query = tl.program_id(0)
    lanes = tl.arange(0, padded)
    total = tl.zeros((padded,), dtype=tl.int32)
    for start in range(0, top, block):
        rows = tl.load(index + query * top + start + tl.arange(0, block)).to(tl.int64)
        values = tl.load(data + rows[:, None] * words + lanes[None, :], mask=lanes[None, :] < words, other=0)
        total += tl.sum(values, axis=0)
    tl.store(out + query * padded + lanes, total)


def main() -> None:
    out = rig.arguments(__doc__)
    entries = 24_000_000  # 6.9 GB, far beyond the L2
    rig.need_memory(torch, entries * ENTRY * 2)
    data = torch.randint(0, 2**31 - 1, (entries * WORDS,), dtype=torch.int32, device="cuda")
    rows = []
    for queries in (16, 64, 240, 960, 3840):
        result = torch.empty(queries * 128, dtype=torch.int32, device="cuda")
        first = torch.randint(0, entries - TOP, (queries, 1), device="cuda")
        contiguous = (first + torch.arange(TOP, device="cuda")).to(torch.int32)
        gathered = torch.randint(0, entries, (queries, TOP), device="cuda", dtype=torch.int32).sort(dim=1).values
        for what, index in (("contiguous", contiguous), ("gathered", gathered)):
            flat = index.reshape(-1).contiguous()

            def step(flat=flat, result=result, queries=queries):
                read_entries[(queries,)](data, flat, result, WORDS, 128, TOP, 32)

            timed = rig.seconds(torch, rig.graph_of(torch, step), inner=5)
            rows.append({"what": what, "queries": queries, "entries": TOP, "entry_bytes": ENTRY,
                         "bytes_moved": queries * TOP * ENTRY, **timed})
    rig.write(out, "gather", torch, rows, "one program per query; contiguous: 512 neighbouring entries at a random place")


if __name__ == "__main__":
    main()
