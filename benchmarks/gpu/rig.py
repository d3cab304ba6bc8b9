"""What every GPU measurement shares: the machine's description, timing by CUDA events, and one small result file."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

GIB = 2**30


def in_one_line(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """What a script prints where it fails: memory, a product that the library or the card lacks, a folder that cannot be written."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    print(f"{Path(sys.argv[0]).stem}: {kind.__name__}: {' '.join(str(error).split())[:300]}; nothing was written.", file=sys.stderr)


def load_torch() -> Any:
    """PyTorch with a usable GPU, or one clear line."""
    sys.excepthook = in_one_line
    try:
        import torch
    except (ImportError, OSError):  # the second where a library that it is linked to is missing
        sys.exit("PyTorch is not installed here, or cannot be loaded; these measurements need it (and an NVIDIA GPU).")
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no NVIDIA GPU here; nothing was measured.")
    torch.manual_seed(1)
    return torch


def need_memory(torch: Any, bytes_needed: float) -> None:
    """Stop with one line where the card has too little free memory."""
    free, _ = torch.cuda.mem_get_info()
    if free < bytes_needed:
        sys.exit(f"{bytes_needed / GIB:.1f} GiB of free GPU memory are needed, {free / GIB:.1f} GiB are free.")


def clocks() -> dict[str, Any]:
    """SM and memory clock as nvidia-smi reads them now; empty where it cannot."""
    fields = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")
    try:
        out = subprocess.run(["nvidia-smi", "-i", "0", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
                             capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(("sm_mhz", "memory_mhz", "celsius", "watt"), (part.strip() for part in out.split(",")), strict=False))


def machine(torch: Any) -> dict[str, Any]:
    """Card, driver and libraries of this run."""
    properties = torch.cuda.get_device_properties(0)
    try:
        driver = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=driver_version", "--format=csv,noheader"],
                                capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        driver = "unknown"
    try:
        import triton
        triton_version = triton.__version__
    except ImportError:
        triton_version = "none"
    return {
        "card": properties.name, "cards": torch.cuda.device_count(), "memory_bytes": properties.total_memory,
        "multiprocessors": properties.multi_processor_count, "l2_bytes": getattr(properties, "L2_cache_size", None),
        "driver": driver, "cuda": torch.version.cuda, "torch": torch.__version__, "triton": triton_version,
        "python": sys.version.split()[0],
    }


def seconds(torch: Any, work: Callable[[], Any], repeats: int = 20, inner: int = 1, warm_up: int = 3) -> dict[str, float]:
    """Median and spread of the time of one ``work()``, by CUDA events; each repeat times ``inner`` calls."""
    for _ in range(warm_up):
        work()
    torch.cuda.synchronize()
    taken = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(inner):
            work()
        end.record()
        end.synchronize()
        taken.append(start.elapsed_time(end) / 1e3 / inner)
    taken.sort()
    return {"seconds": taken[len(taken) // 2], "seconds_min": taken[0], "seconds_max": taken[-1], "repeats": repeats,
            "inner": inner}


def graph_of(torch: Any, work: Callable[[], Any]) -> Callable[[], None]:
    """``work`` captured as one CUDA graph, so that launch overhead of the host is out of the measurement."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()

    def replay(kept: Any = work) -> None:  # the graph reads the tensors of ``work``, which must live as long
        graph.replay()

    return replay


def write(out: Path, what: str, torch: Any, rows: list[dict[str, Any]], note: str) -> Path:
    """One JSON file per measurement; an existing file is never overwritten by a failed run (written aside, then moved)."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{what}.json"
    check_target(target, torch.cuda.get_device_properties(0).name)
    content = {"measurement": what, "date": datetime.date.today().isoformat(), "machine": machine(torch),
               "clocks_after": clocks(), "note": note, "rows": rows}
    aside = target.with_suffix(".part")
    aside.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(aside, target)
    print(f"{what}: {len(rows)} rows -> {target}", flush=True)
    return target


def check_target(target: Path, card: str = "") -> None:
    """Stop where something else than an earlier result of this script (on this card) would be overwritten."""
    if not target.exists():
        return
    try:
        there = json.loads(target.read_text(encoding="utf-8"))
        measurement, other = there["measurement"], there["machine"]["card"]
    except (OSError, ValueError, LookupError, TypeError):
        sys.exit(f"{target} is there and is no result of these scripts; nothing was overwritten.")
    if measurement != target.stem or (card and other != card):
        sys.exit(f"{target} is there and holds {measurement} of {other}; nothing was overwritten.")


def arguments(doc: str) -> Path:
    """The one option of every script: where the result goes; a file in the way is said before anything is measured."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--out", type=Path, required=True, help="folder for the result file")
    out = parser.parse_args().out
    check_target(out / f"{Path(sys.argv[0]).stem}.json")
    return out
