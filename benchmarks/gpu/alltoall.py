"""(f) All-to-all between two cards against message size (NCCL, one process a card)."""

import os
import sys

import rig

torch = rig.load_torch()


def main() -> None:
    import torch.distributed as dist

    rank, out = int(os.environ["RANK"]), rig.arguments(__doc__)
    torch.cuda.set_device(rank)
    rig.need_memory(torch, 2 * rig.GIB)
    dist.init_process_group("nccl")
    world = dist.get_world_size()
    rows = []
    for exponent in range(12, 30):  # 4 KiB to 512 MiB per card
        size = 2**exponent
        source = torch.randint(0, 127, (size,), dtype=torch.int8, device="cuda")
        target = torch.empty_like(source)
        dist.barrier()
        timed = rig.seconds(torch, lambda a=target, b=source: dist.all_to_all_single(a, b), repeats=20,
                            inner=max(1, min(50, 2**26 // size)), warm_up=5)
        rows.append({"bytes": size, "cards": world, "bytes_to_others": size * (world - 1) // world, **timed})
    if rank == 0:
        rig.write(out, "alltoall", torch, rows, "bytes_to_others leave each card, one direction")
    dist.destroy_process_group()


if __name__ == "__main__":
    if torch.cuda.device_count() < 2:
        sys.exit("Two cards are needed for the link measurement; nothing was measured.")
    if "RANK" not in os.environ:
        sys.exit("Run it as: torchrun --nproc-per-node 2 benchmarks/gpu/alltoall.py --out FOLDER")
    main()
