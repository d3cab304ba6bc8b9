"""(a) HBM read and copy bandwidth against buffer size."""

import rig

torch = rig.load_torch()
out = rig.arguments(__doc__)
rig.need_memory(torch, 10 * rig.GIB)
rows = []
for exponent in range(20, 34):  # 1 MiB to 8 GiB: from inside the L2 to far beyond it
    size = 2**exponent
    source = torch.randint(-2**31, 2**31 - 1, (size // 4,), dtype=torch.int32, device="cuda")
    target = torch.empty_like(source)
    inner = max(1, min(200, 2**31 // size))
    copy = rig.seconds(torch, lambda a=target, b=source: a.copy_(b), inner=inner)
    floats = source.view(torch.float32).nan_to_num_(0, 0, 0)
    read = rig.seconds(torch, lambda b=floats: b.sum(), inner=inner)
    rows.append({"bytes": size, "what": "copy", "bytes_moved": 2 * size, **copy})
    rows.append({"bytes": size, "what": "read", "bytes_moved": size, **read})
    del source, target, floats
rig.write(out, "bandwidth", torch, rows, "copy counts bytes read and written; read is a sum over the buffer (two kernels)")
