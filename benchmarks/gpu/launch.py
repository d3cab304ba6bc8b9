"""(e) Launch overhead per kernel, one by one and by graph replay, for a step of 40 layers."""

import time

import rig

LAYERS = 40  # data/models/deepseek-v4.1-flash.yaml

torch = rig.load_torch()
out = rig.arguments(__doc__)
tiny = torch.zeros(1024, device="cuda")
rows = []
for kernels in (5, 10, 20, 40):  # per layer

    def step(count: int = kernels * LAYERS) -> None:
        for _ in range(count):
            tiny.add_(1.0)

    for what, work in (("eager", step), ("graph", rig.graph_of(torch, step))):
        timed = rig.seconds(torch, work, repeats=20)
        rows.append({"what": what, "kernels_per_layer": kernels, "layers": LAYERS, "kernels": kernels * LAYERS, **timed})
    replay = rig.graph_of(torch, step)
    torch.cuda.synchronize()
    taken = []
    for _ in range(20):
        started = time.perf_counter()
        replay()
        taken.append(time.perf_counter() - started)
        torch.cuda.synchronize()
    taken.sort()
    rows.append({"what": "graph, host time of the call", "kernels_per_layer": kernels, "layers": LAYERS,
                 "kernels": kernels * LAYERS, "seconds": taken[10], "seconds_min": taken[0], "seconds_max": taken[-1],
                 "repeats": 20, "inner": 1})
rig.write(out, "launch", torch, rows, "a kernel that adds 1 to 1,024 floats; its own work is far below a microsecond")
