"""Real routing: how many tokens of a text each expert received, as loads that the balancer can be tried on.

The table is a small summary of the expert choices that DeepSeek published with ESFT: a smaller, older model (64 experts, 6 per
token), four tasks, windows of 256 consecutive tokens. A window stands for a step, and a window is far smaller than a step in
production, so its chance fluctuation is larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from inside_deepinfer.facts import FactError, InputError, derived, load_facts, require
from inside_deepinfer.facts.store import read_points
from inside_deepinfer.serving import expert_balance as eb

CURVE = "esft-routing"


@lru_cache(maxsize=2)
def _tasks(folder: Path) -> dict[str, np.ndarray]:
    """Loads of each task: windows x layers x experts."""
    facts = load_facts()
    columns = read_points(folder / "measured", facts.curves[CURVE])
    sent = facts.number("esft.window") * facts.number("esft.active")
    rows: dict[str, dict[float, list[np.ndarray]]] = {}
    for number, (task, layer, counts) in enumerate(zip(columns["task"], columns["layer"], columns["counts"], strict=True), start=1):
        row = np.array(counts.split(), dtype=float)
        if len(row) != facts.number("esft.experts") or row.sum() != sent:
            raise FactError(facts.curves[CURVE].file, CURVE, "counts", f"row {number} is not 64 counts that sum to {sent:g}")
        rows.setdefault(task, {}).setdefault(layer, []).append(row)
    return {task: np.stack([np.stack(windows) for windows in layers.values()], axis=1) for task, layers in rows.items()}


def tasks() -> tuple[str, ...]:
    """Names of the tasks, in the order of the table."""
    return tuple(_tasks(load_facts().folder))


def task_loads(task: str) -> np.ndarray:
    """Tokens per window, layer and expert of one task; the array is shared, do not write into it."""
    found = _tasks(load_facts().folder)
    if task not in found:
        raise InputError("task", task, " or ".join(found))
    return found[task]


def copies_needed(experts: int, gpus: int, per_gpu: int) -> int:
    """Copies in all for ``per_gpu`` on each GPU, rounded up so that slots divide over the GPUs, as the released engine does."""
    if per_gpu < 0 or per_gpu != int(per_gpu):
        raise InputError("redundant experts per GPU", per_gpu, "a whole number of at least 0")
    if gpus < 1 or gpus != int(gpus):
        raise InputError("gpus", gpus, "a whole number of at least 1")
    return int(-(-(experts + per_gpu * gpus) // gpus) * gpus - experts)


@dataclass(frozen=True)
class Split:
    """Slowest over mean of a placement fitted on the first half of a task.

    Attributes:
        before: the initial layout, on the second half.
        in_sample: on the windows it was fitted on.
        held_out: on the second half of the same task.
        other: on the other tasks, mean.
    """

    task: str
    before: float
    in_sample: float
    held_out: float
    other: float


def split(loads: dict[str, np.ndarray], task: str, gpus: int, per_gpu: int, by: str = "peaks") -> Split:
    """Fit on the first half of ``task``, look at its second half and at the other tasks.

    Args:
        loads: windows x layers x experts by task; the layers are the same in all.
    """
    own = loads[task]
    half, (_, layers, experts) = len(own) // 2, own.shape
    copies = copies_needed(experts, gpus, per_gpu)
    fitted, first = eb.rebalance(own[:half], gpus, copies, by), eb.contiguous(layers, experts, gpus, copies)
    others = [eb.slowest_over_mean(other, fitted) for name, other in loads.items() if name != task]
    return Split(task, eb.slowest_over_mean(own[half:], first), eb.slowest_over_mean(own[:half], fitted),
                 eb.slowest_over_mean(own[half:], fitted), float(np.mean(others)))


@lru_cache(maxsize=64)
def splits(gpus: int, per_gpu: int, by: str = "peaks") -> tuple[Split, ...]:
    """The split of every task of the shipped counts."""
    loads = {task: task_loads(task) for task in tasks()}
    return tuple(split(loads, task, gpus, per_gpu, by) for task in loads)


def _mean_of_splits(field: str, experts: Any, gpus: Any, per_gpu: Any) -> Any:
    held = task_loads(tasks()[0]).shape[2]
    require(experts == held, "esft.experts", experts, f"{held}, as in the counts")

    def mean(group: Any, copies: Any) -> float:
        return float(np.mean([getattr(one, field) for one in splits(int(group), int(copies))]))

    found = np.vectorize(mean, otypes=[float])(gpus, per_gpu)
    return float(found) if found.ndim == 0 else found


_USES = {"experts": "esft.experts"}


@derived(label="slowest over mean of the initial layout, real counts", unit="ratio", uses=_USES, words=True,
         formula="experts and copies in order over balance_gpus GPUs, second half of each task, mean of the tasks")
def balance_before(experts: Any, balance_gpus: Any, redundant_experts: Any) -> Any:
    """Nothing is moved: experts in order, then copies of the first ones."""
    return _mean_of_splits("before", experts, balance_gpus, redundant_experts)


@derived(label="slowest over mean on the steps that were fitted, real counts", unit="ratio", uses=_USES, words=True,
         formula="balanced on the first half of each task and looked at there, mean of the tasks")
def balance_in_sample(experts: Any, balance_gpus: Any, redundant_experts: Any) -> Any:
    """Flatters: the placement was chosen for these very steps."""
    return _mean_of_splits("in_sample", experts, balance_gpus, redundant_experts)


@derived(label="slowest over mean on later steps of the same task, real counts", unit="ratio", uses=_USES, words=True,
         formula="balanced on the first half of each task, looked at on the second, mean of the tasks")
def balance_held_out(experts: Any, balance_gpus: Any, redundant_experts: Any) -> Any:
    """What a balancer gets that looks back and serves forward, while the traffic stays the same."""
    return _mean_of_splits("held_out", experts, balance_gpus, redundant_experts)


@derived(label="slowest over mean on other tasks, real counts", unit="ratio", uses=_USES, words=True,
         formula="balanced on the first half of each task, looked at on the other tasks, mean")
def balance_other_task(experts: Any, balance_gpus: Any, redundant_experts: Any) -> Any:
    """What a balancer gets when the traffic becomes another one before it has rebalanced."""
    return _mean_of_splits("other", experts, balance_gpus, redundant_experts)
