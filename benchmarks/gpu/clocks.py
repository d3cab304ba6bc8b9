"""(b, check) Clock and power while the large products of matmul.py follow each other for seconds."""

import datetime
import statistics
import subprocess
import time

import rig
from experts import product, tokens_of, torch
from matmul import SIDE

WINDOW, LENGTH, INNER = 0.1, 3.0, 10  # seconds of a row, seconds of products, products between two times
FIELDS = "timestamp,clocks.sm,power.draw.instant,power.limit,clocks_event_reasons.active"


def watch() -> subprocess.Popen:
    """nvidia-smi, reading the card every 20 ms until it is stopped."""
    return subprocess.Popen(["nvidia-smi", "-i", "0", f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits", "-lms", "20"],
                            stdout=subprocess.PIPE, text=True)


def readings(text: str) -> list[tuple[float, float, float, float, int]]:
    """Time of day (s), SM clock (MHz), power and its limit (W), and the bits of the reasons why the clock is held down."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        try:
            day = datetime.datetime.strptime(parts[0], "%Y/%m/%d %H:%M:%S.%f").timestamp()
            found.append((day, float(parts[1]), float(parts[2]), float(parts[3]), int(parts[4], 16)))
        except (ValueError, IndexError):
            continue
    return found


def main() -> None:
    out = rig.arguments(__doc__)
    rig.need_memory(torch, 2 * rig.GIB)
    rows = []
    for precision in ("bf16", "fp8"):
        x, w = (tokens_of(precision, SIDE, SIDE) for _ in range(2))
        product(precision, x, w.t())
        torch.cuda.synchronize()
        smi = watch()
        time.sleep(2)  # cool, and nvidia-smi is up
        began, marks = time.time(), [torch.cuda.Event(enable_timing=True)]
        marks[0].record()
        while time.time() < began + LENGTH:
            for _ in range(INNER):
                product(precision, x, w.t())
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
            if len(marks) > 3:
                marks[-3].synchronize()  # never far ahead of the card
        torch.cuda.synchronize()
        smi.terminate()
        seen = readings(smi.communicate()[0])
        ends = [marks[0].elapsed_time(mark) / 1e3 for mark in marks]
        for number in range(round(LENGTH / WINDOW)):
            low, high = number * WINDOW, (number + 1) * WINDOW
            taken = sorted((after - before) / INNER for before, after in zip(ends, ends[1:], strict=False) if low < after <= high)
            here = [row for row in seen if low < row[0] - began <= high]
            if taken and here:
                rows.append({"precision": precision, "side": SIDE, "flop": 2 * SIDE**3, "until": high,
                             "sm_mhz": statistics.median(row[1] for row in here), "watt": statistics.median(row[2] for row in here),
                             "limit_watt": here[0][3], "reasons": [f"{row[4]:#x}" for row in here],
                             "seconds": taken[len(taken) // 2], "seconds_min": taken[0], "seconds_max": taken[-1],
                             "repeats": len(taken), "inner": INNER})
    rig.write(out, "clocks", torch, rows, "until: seconds since the first product, from a card at rest; reasons: bits of nvidia-smi")


if __name__ == "__main__":
    main()
