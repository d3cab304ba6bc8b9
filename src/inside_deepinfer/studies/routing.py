"""A balancer run over the real routing counts, step by step, with the placement of every step: for heat maps and curves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, NotPossible, require
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving import expert_balance as eb
from inside_deepinfer.serving.routing_counts import Split, copies_needed, split, task_loads, tasks

IN_TURN = "in turn"  # the tasks one after the other: traffic that changes
STEPS = 32  # windows that every task has
SHOWN_LAYER = 2  # of the five layers of the counts, the middle one


def texts() -> tuple[str, ...]:
    """What can be replayed: one task alone, or all in turn."""
    return (IN_TURN, *tasks())


@lru_cache(maxsize=8)
def text_loads(name: str) -> np.ndarray:
    """Steps x layers x experts of one task, or of all in turn, each for an equal part of the steps."""
    if name not in texts():
        raise InputError("texts", name, " or ".join(texts()))
    if name != IN_TURN:
        return task_loads(name)[:STEPS]
    part = STEPS // len(tasks())
    return np.concatenate([task_loads(task)[number * part:(number + 1) * part] for number, task in enumerate(tasks())])


@dataclass(frozen=True)
class Run:
    """One replay.

    Attributes:
        loads: steps x layers x experts.
        placements: (first step that it serves, placement), in order; the first is the initial layout.
        before, after: slowest over mean of each step, all layers, with the initial layout and with the balancer.
    """

    loads: np.ndarray
    copies: int
    placements: tuple[tuple[int, eb.Placement], ...]
    before: np.ndarray
    after: np.ndarray

    @property
    def moves(self) -> list[int]:
        return [start for start, _ in self.placements[1:]]

    def serving(self, step: int) -> eb.Placement:
        """The placement that serves ``step``."""
        require(0 <= step < len(self.loads), "step", step, f"0 to {len(self.loads) - 1}")
        return next(placement for start, placement in reversed(self.placements) if start <= step)


def run(name: str, scenario: Scenario) -> Run:
    """The replay of ``name`` with the scenario's GPUs, copies, statistics and interval."""
    return _run(name, int(scenario.balance_gpus), int(scenario.redundant_experts), int(scenario.balance_window),
                int(scenario.balance_interval))


@lru_cache(maxsize=64)
def _run(name: str, gpus: int, per_gpu: int, window: int, interval: int) -> Run:
    loads = text_loads(name)
    if window > interval:
        raise NotPossible(f"the statistics of {window} steps would be longer than the {interval} steps between two rebalances")
    steps, layers, experts = loads.shape
    copies = copies_needed(experts, gpus, per_gpu)
    placements = [(0, eb.contiguous(layers, experts, gpus, copies))]
    for step in range(max(1, interval // 4), steps, interval):  # as serving.expert_balance.replay moves
        placements.append((step, eb.rebalance(loads[max(0, step - window):step], gpus, copies)))
    ends = [start for start, _ in placements[1:]] + [steps]
    after = np.concatenate([ratios(loads[start:end], placement) for (start, placement), end in zip(placements, ends, strict=True)])
    return Run(loads, copies, tuple(placements), ratios(loads, placements[0][1]), after)


def ratios(loads: np.ndarray, placement: eb.Placement) -> np.ndarray:
    """Slowest over mean of each step, all layers together."""
    per_gpu = eb.gpu_loads(loads, placement)
    return per_gpu.max(axis=2).sum(axis=1) / per_gpu.mean(axis=2).sum(axis=1)


def slots(loads: np.ndarray, placement: eb.Placement, layer: int = SHOWN_LAYER) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loads, experts and their copies, slot by slot: each slots per GPU x GPUs, the busiest slot of a GPU in the first row.

    Args:
        loads: layers x experts of one step.
    """
    by_gpu = placement.expert[layer][np.argsort(placement.gpu[layer], kind="stable")].reshape(placement.gpus, -1)
    copies = placement.copies[layer][by_gpu]
    share = loads[layer][by_gpu] / copies
    order = np.argsort(-share, axis=1, kind="stable")
    return tuple(np.take_along_axis(part, order, axis=1).T for part in (share, by_gpu, copies))  # type: ignore[return-value]


def made_up_loads(steps: int, layers: int, drift: float = 0.0, seed: int = 1) -> np.ndarray:
    """Made-up routing of the model's own size: popularity of the assumed spread, chance as large as the counted rows make it."""
    experts, rows, active, spread = (quantity.value for quantity in catalogue.evaluate(
        ["routed_experts", "routed_rows", "active_experts", "balance.popularity_spread"]).values())
    return eb.generated_loads(steps, layers, int(experts), int(rows * active), spread=spread, steadiness=rows * active / experts,
                              drift=drift, seed=seed)


def halves(gpus: int, per_gpu: int) -> tuple[Split, ...]:
    """The splits with each half of a task summed to a single step, which is how the older public balancer was measured."""
    loads = {task: np.stack([half.sum(axis=0) for half in np.array_split(task_loads(task)[:STEPS], 2)]) for task in tasks()}
    return tuple(split(loads, task, gpus, per_gpu) for task in loads)
