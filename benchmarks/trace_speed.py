"""How fast traces are replayed, how much memory that takes, and how both grow; beside kvcache-simulator and Dask.

    python benchmarks/trace_speed.py peer TRACE [TRACE ...] --peer VENV/bin/kvcache-simulator
    python benchmarks/trace_speed.py growth --requests 100000 1000000 10000000 --folder DIR
    python benchmarks/trace_speed.py dask TRACE TRACE ...

``peer`` runs our replay (every retention, every capacity) and kvcache-simulator's sweep of its default capacities alternately in one
run, each a process of its own, and compares the answers.
The peer is installed in a venv of its own (``pip install kvcache-simulator==0.1.3``); nothing here depends on it.
``growth`` writes generated chat traces (Mooncake format, blocks of 512 tokens) and replays each in a process of its own.
Every line printed is one measurement; times are seconds of the wall clock, CPU seconds beside them for busy machines.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

SEED, BLOCK, SPREAD_WEEKS = 1, 512, 4


def replay(path: str, hashed: bool) -> dict[str, float]:
    """Whole retention curve and whole capacity curve of one file, in this process; ``hashed`` turns ids into 64-bit hashes."""
    import numpy as np

    from inside_deepinfer.cache.last_touch import mix
    from inside_deepinfer.cache.reuse import Question, Replay
    from inside_deepinfer.cache.trace_format import TraceReader

    start, cpu = time.perf_counter(), time.process_time()
    reader, player = TraceReader(path, block_tokens=BLOCK), Replay(Question(), BLOCK, 890.0)
    for chunk in reader:
        if hashed:
            chunk.ids = mix(chunk.ids + 1).view(np.int64)
        player.add(chunk)
    report, seconds = player.report, time.perf_counter() - start
    return {"requests": report.requests_seen, "references": report.references, "distinct": report.distinct_blocks,
            "hit_rate": report.hit_rate(), "seconds": seconds, "cpu_seconds": time.process_time() - cpu,
            "requests_per_second": report.requests_seen / seconds,
            "peak_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def in_child(command: str, *arguments: object) -> dict[str, float]:
    """One measurement in a process of its own, so that peak memory is its own."""
    done = subprocess.run([sys.executable, __file__, command, *map(str, arguments)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def generate(path: Path, requests: int) -> None:
    """A chat trace of about that many requests."""
    from inside_deepinfer.cache.generated_trace import trace_chunks, write_trace
    from inside_deepinfer.cache.workloads import workload

    load = workload("chat")
    print(write_trace(path, trace_chunks(load, int(requests / load.turns), BLOCK, weeks=SPREAD_WEEKS, seed=SEED)), "requests")


def growth(sizes: list[int], folder: Path) -> None:
    """Requests per second and peak memory as the trace grows."""
    before: dict[str, dict[str, float]] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for size in sizes:
        path = folder / f"chat-{size}.jsonl"
        if not path.exists():
            subprocess.run([sys.executable, __file__, "generate", str(path), str(size)], check=True)
        for ids in ("numbered", "hashed"):
            found = in_child("replay", path, *(["--hashed"] if ids == "hashed" else []))
            found["file_MB"] = path.stat().st_size / 1e6
            if ids in before:
                for name in ("requests", "cpu_seconds", "peak_MB"):
                    found[f"growth_of_{name}"] = found[name] / before[ids][name]
            print(ids, json.dumps({key: round(value, 4) for key, value in found.items()}), flush=True)
            before[ids] = found


def cpu_of_children() -> float:
    """CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peer(traces: list[str], program: str, rounds: int) -> None:
    """Our replay (both curves, every capacity) beside the peer's sweep of its capacities, alternately."""
    sweep = [program, "run", "--block-size", str(BLOCK), "--model", "deepseek-v4-flash", "--policies", "lru", "--no-progress",
             "--format", "json", "--trace"]
    for trace in traces:
        found: dict[str, list[float]] = {}
        answer = {}
        for _ in range(rounds):
            for who, command in (("ours", [sys.executable, __file__, "replay", trace]), ("peer", [*sweep, trace])):
                start, cpu = time.perf_counter(), cpu_of_children()
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found.setdefault(f"{who}_process_seconds", []).append(time.perf_counter() - start)
                found.setdefault(f"{who}_process_cpu_seconds", []).append(cpu_of_children() - cpu)
                answer[who] = json.loads(done.stdout)
            found.setdefault("ours_replay_cpu_seconds", []).append(answer["ours"]["cpu_seconds"])
        print(json.dumps({"trace": Path(trace).name} | {name: [round(one, 2) for one in runs] for name, runs in found.items()}
                         | {"largest_difference_of_hit_rate": compare(trace, answer["peer"])}), flush=True)


def compare(trace: str, answer: dict) -> float:
    """Our LRU hit rates at the peer's capacities, over the last half of the requests, against the peer's."""
    from inside_deepinfer.cache.distributed import Reading, analyse
    from inside_deepinfer.cache.reuse import LAST_HALF, Question

    points = [(point["cacheBlocks"], point["results"]["lru"]["hitRate"]) for point in answer["points"]]
    report = analyse(trace, Question(capacities=tuple(float(blocks * BLOCK) for blocks, _ in points), definition=LAST_HALF),
                     Reading(kv_bytes=1.0))
    differences = [abs(mine - other) for mine, (_, other) in zip(report.at_capacities(), points, strict=True)]
    return max([*differences, abs(report.hit_rate() - answer["hitRateCeiling"])])


def dask(traces: list[str]) -> None:
    """One process against two Dask workers on the same files."""
    from distributed import LocalCluster

    from inside_deepinfer.cache.distributed import Reading, analyse_files
    from inside_deepinfer.cache.reuse import Question

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        answers, times = [], []
        for address in (cluster.scheduler_address, None, cluster.scheduler_address):  # the first run loads the workers
            start = time.perf_counter()
            answers.append(analyse_files(traces, Question(), Reading(kv_bytes=890.0), dask=address).as_json())
            times.append(time.perf_counter() - start)
    print(json.dumps({"files": len(traces), "requests": answers[0]["requests"], "one_process_seconds": round(times[1], 2),
                      "two_workers_seconds": round(times[2], 2), "equal": answers[0] == answers[1] == answers[2]}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("peer", "dask"):
        commands.add_parser(name).add_argument("traces", nargs="+")
    commands.choices["peer"].add_argument("--peer", required=True)
    commands.choices["peer"].add_argument("--rounds", type=int, default=3)
    grown = commands.add_parser("growth")
    grown.add_argument("--requests", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    grown.add_argument("--folder", type=Path, required=True)
    commands.add_parser("replay").add_argument("trace")
    commands.choices["replay"].add_argument("--hashed", action="store_true")
    made = commands.add_parser("generate")
    made.add_argument("path", type=Path)
    made.add_argument("count", type=int)
    given = parser.parse_args()
    if given.command == "peer":
        peer(given.traces, given.peer, given.rounds)
    elif given.command == "dask":
        dask(given.traces)
    elif given.command == "growth":
        growth(given.requests, given.folder)
    elif given.command == "generate":
        generate(given.path, given.count)
    else:
        print(json.dumps(replay(given.trace, given.hashed)))


if __name__ == "__main__":
    main()
