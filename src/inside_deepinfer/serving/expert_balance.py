"""Keeping experts busy: which experts get copies, and on which GPU each copy stands.

The released policy (deepinfer-sdist, deepinfer/model_executor/eplb/policy.py, described in words in our notes, section 1):
both steps minimise the sum over steps of the peak, not the total load. The older total-load policy stands beside it.
Two things are ours: no GPU gets two copies of one expert, and a layer that the initial layout serves better keeps it.
What is simplified: a token's choice among copies is an even split, and moving weights costs nothing. What a split that knows the
step could do is :func:`best_split`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inside_deepinfer.facts import InputError, require


@dataclass(frozen=True)
class Placement:
    """Where the copies of every layer's experts stand.

    Attributes:
        expert: layers x slots; the expert that a slot holds.
        gpu: layers x slots; the GPU that a slot is on.
        copies: layers x experts; number of copies.
        gpus: how many GPUs.
    """

    expert: np.ndarray
    gpu: np.ndarray
    copies: np.ndarray
    gpus: int


def check_loads(loads: np.ndarray) -> np.ndarray:
    """Loads as steps x layers x experts, finite, not negative, not all zero in a layer."""
    x = np.asarray(loads, dtype=float)
    require(x.ndim == 3 and x.size > 0, "loads", x.shape, "an array of steps x layers x experts")
    require(np.isfinite(x) & (x >= 0), "loads", "an array with NaN, infinite or negative entries", "finite numbers of at least 0")
    require(x.sum(axis=(0, 2)) > 0, "loads", "an array with a layer of zeros", "some load in every layer")
    return x


def check_sizes(experts: int, gpus: int, redundant: int) -> int:
    """Slots in all; ``redundant`` is the total number of extra copies, and slots must divide over the GPUs."""
    for name, value, low in (("experts", experts, 1), ("gpus", gpus, 1), ("redundant", redundant, 0)):
        if value != int(value) or value < low:
            raise InputError(name, value, f"a whole number of at least {low}")
    if (experts + redundant) % gpus:
        raise InputError("redundant", redundant, f"a number that makes {experts} experts + copies divide over {gpus} GPUs")
    if redundant > experts * (gpus - 1):
        raise InputError("redundant", redundant, f"at most {experts * (gpus - 1)}: more copies than GPUs would share a GPU")
    return experts + redundant


def contiguous(layers: int, experts: int, gpus: int, redundant: int = 0) -> Placement:
    """The initial layout: experts in order, then experts 0, 1, 2, ... again in the extra slots."""
    slots = check_sizes(experts, gpus, redundant)
    row = np.arange(slots) % experts
    copies = np.bincount(row, minlength=experts)
    return Placement(np.tile(row, (layers, 1)), np.tile(np.arange(slots) // (slots // gpus), (layers, 1)),
                     np.tile(copies, (layers, 1)), gpus)


def ring(layers: int, experts: int, gpus: int, per_gpu: int) -> Placement:
    """Experts in order; each GPU also holds an expert of each of the next ``per_gpu`` GPUs, so that copies chain all GPUs together."""
    check_sizes(experts, gpus, per_gpu * gpus)
    own = experts // gpus
    if experts % gpus or per_gpu > own:
        raise InputError("per_gpu", per_gpu, f"at most {own} copies a GPU, and experts that divide over {gpus} GPUs")
    home = np.arange(experts).reshape(gpus, own)
    next_ones = (np.arange(gpus)[:, None] + 1 + np.arange(per_gpu)) % gpus
    row = np.concatenate([home, home[next_ones, np.arange(per_gpu)]], axis=1).ravel()
    return Placement(np.tile(row, (layers, 1)), np.tile(np.repeat(np.arange(gpus), own + per_gpu), (layers, 1)),
                     np.tile(np.bincount(row, minlength=experts), (layers, 1)), gpus)


def replicate(loads: np.ndarray, redundant: int, gpus: int, by: str = "peaks") -> np.ndarray:
    """Copies of each expert: extra slots are given one at a time to the expert that lowers the objective most.

    Args:
        loads: steps x layers x experts.
        by: ``peaks`` lowers the sum over steps of the largest load per copy; ``total`` (older policy) splits the expert with
            the largest total load per copy.

    Returns:
        layers x experts, at least 1, at most ``gpus``.
    """
    x = np.ascontiguousarray(check_loads(loads).transpose(1, 0, 2), dtype=np.float32)  # layers x steps x experts
    layers, _, experts = x.shape
    copies = np.ones((layers, experts), dtype=int)
    rows = np.arange(layers)
    share = x.copy()
    for _ in range(redundant):
        full = copies >= gpus
        score = share.sum(axis=1) if by == "total" else _gain(share, x, copies)
        chosen = np.where(full, -np.inf, score).argmax(axis=1)
        copies[rows, chosen] += 1
        share[rows, :, chosen] = x[rows, :, chosen] / copies[rows, chosen][:, None]
    return copies


def _gain(share: np.ndarray, x: np.ndarray, copies: np.ndarray) -> np.ndarray:
    """By how much one more copy of each expert lowers the sum of peaks; layers x experts."""
    layers, steps, experts = share.shape
    top = share.argmax(axis=2)
    index = (np.arange(layers)[:, None], np.arange(steps)[None, :], top)
    peak = share[index]
    share[index] = -1.0
    second = share.max(axis=2)
    share[index] = peak
    halved = x[index] / (copies[np.arange(layers)[:, None], top] + 1)
    gain = np.zeros((layers, experts))
    np.add.at(gain, (np.arange(layers)[:, None], top), peak - np.maximum(second, halved))
    # among experts that gain nothing the busiest comes first, as the released tie-break does in effect
    return gain + 1e-9 * share.mean(axis=1)


def place(loads: np.ndarray, copies: np.ndarray, gpus: int, by: str = "peaks") -> Placement:
    """Put every copy on a GPU: busiest slots first, each on the GPU with room that raises the objective least.

    No GPU gets two copies of one expert: a GPU that holds one already is passed over.
    """
    x = check_loads(loads).transpose(1, 0, 2)
    layers, steps, experts = x.shape
    slots = int(copies[0].sum())
    require(copies.sum(axis=1) == slots, "copies", copies.sum(axis=1), "the same number in every layer")
    require(slots % gpus == 0, "copies", slots, f"a number of slots that divides over {gpus} GPUs")
    capacity = slots // gpus
    expert = np.stack([np.repeat(np.arange(experts), row) for row in copies])
    rows = np.arange(layers)
    share = (x / copies[:, None, :]).astype(np.float32)
    order = np.argsort(-share.sum(axis=1)[rows[:, None], expert], axis=1, kind="stable")
    expert = expert[rows[:, None], order]
    load, raised = np.zeros((2, layers, gpus, steps), dtype=np.float32)
    used, holds = np.zeros((layers, gpus), dtype=int), np.zeros((layers, gpus, experts), dtype=bool)
    gpu = np.empty_like(expert)
    for slot in range(slots):
        here = expert[:, slot]
        more = share[rows, :, here]
        if by == "total":
            cost = load.sum(axis=2)
        else:
            np.add(load, more[:, None, :], out=raised)
            np.maximum(raised, load.max(axis=1)[:, None, :], out=raised)
            cost = raised.sum(axis=2)
        taken = (used >= capacity) | holds[rows, :, here]
        chosen = np.where(taken, np.inf, cost).argmin(axis=1)
        for layer in np.flatnonzero(taken.all(axis=1)):
            chosen[layer] = _make_room(layer, slot, expert, gpu, load, used, holds, share, capacity)
        load[rows, chosen] += more
        used[rows, chosen] += 1
        holds[rows, chosen, here] = True
        gpu[:, slot] = chosen
    return Placement(expert, gpu, copies, gpus)


def _make_room(layer: int, slot: int, expert: np.ndarray, gpu: np.ndarray, load: np.ndarray, used: np.ndarray,
               holds: np.ndarray, share: np.ndarray, capacity: int) -> int:
    """Every GPU with room holds this expert: move the lightest fitting slot of another GPU there, and take its place."""
    here = expert[layer, slot]
    (open_gpus,) = np.nonzero(used[layer] < capacity)
    for earlier in range(slot - 1, -1, -1):
        source, moved = gpu[layer, earlier], expert[layer, earlier]
        fits = [g for g in open_gpus if not holds[layer, g, moved]]
        if holds[layer, source, here] or not fits:
            continue
        target = fits[0]
        weight = share[layer, :, moved]
        load[layer, source] -= weight
        load[layer, target] += weight
        used[layer, source] -= 1
        used[layer, target] += 1
        holds[layer, source, moved], holds[layer, target, moved] = False, True
        gpu[layer, earlier] = target
        return int(source)
    raise AssertionError("some slot can always move while copies of an expert are at most the number of GPUs")


def rebalance(loads: np.ndarray, gpus: int, redundant: int = 0, by: str = "peaks") -> Placement:
    """Replicate and place; a layer that the initial layout already serves better keeps that layout."""
    x = check_loads(loads)
    _, layers, experts = x.shape
    check_sizes(experts, gpus, redundant)
    new = place(x, replicate(x, redundant, gpus, by), gpus, by)
    old = contiguous(layers, experts, gpus, redundant)
    keep = peak_sums(x, old) < peak_sums(x, new)
    pick = keep[:, None]
    return Placement(np.where(pick, old.expert, new.expert), np.where(pick, old.gpu, new.gpu),
                     np.where(pick, old.copies, new.copies), gpus)


def gpu_loads(loads: np.ndarray, placement: Placement) -> np.ndarray:
    """Tokens per GPU: steps x layers x GPUs; an expert's tokens split evenly over its copies."""
    x = check_loads(loads)
    steps, layers, experts = x.shape
    require(placement.copies.shape == (layers, experts), "placement", placement.copies.shape, f"{layers} layers x {experts} experts")
    by_gpu = np.argsort(placement.gpu, axis=1, kind="stable")  # every GPU has the same number of slots
    expert = np.take_along_axis(placement.expert, by_gpu, axis=1)
    share = np.take_along_axis(x / placement.copies, np.broadcast_to(expert, (steps, *expert.shape)), axis=2)
    return share.reshape(steps, layers, placement.gpus, -1).sum(axis=3)


def peak_sums(loads: np.ndarray, placement: Placement) -> np.ndarray:
    """Sum over steps of the slowest GPU's load, per layer."""
    return gpu_loads(loads, placement).max(axis=2).sum(axis=0)


def slowest_over_mean(loads: np.ndarray, placement: Placement) -> float:
    """The served metric: sum of the slowest GPU's load over the sum of the mean load, over all steps and layers."""
    per_gpu = gpu_loads(loads, placement)
    return float(per_gpu.max(axis=2).sum() / per_gpu.mean(axis=2).sum())


def best_split(loads: np.ndarray, placement: Placement) -> np.ndarray:
    """Smallest possible load of the slowest GPU, steps x layers, if the rows of every step are split among copies knowing that step.

    A linear program per step and layer, as in DeepSeek's LPLB (github.com/deepseek-ai/LPLB); a row counts as divisible.
    """
    from scipy import optimize, sparse  # late: scipy takes half a second to import

    x = check_loads(loads)
    steps, layers, experts = x.shape
    require(placement.copies.shape == (layers, experts), "placement", placement.copies.shape, f"{layers} layers x {experts} experts")
    slowest = np.empty((steps, layers))
    for layer in range(layers):
        expert, gpu, slots = placement.expert[layer], placement.gpu[layer], placement.expert.shape[1]
        ones, every = np.ones(slots), np.arange(slots)
        # unknowns: rows of each slot, and last the load of the slowest GPU, which is made small
        whole = sparse.csr_array((ones, (expert, every)), shape=(experts, slots + 1))
        within = sparse.csr_array((np.r_[ones, -np.ones(placement.gpus)],
                                   (np.r_[gpu, np.arange(placement.gpus)], np.r_[every, np.full(placement.gpus, slots)])))
        for step in range(steps):
            found = optimize.linprog(np.r_[np.zeros(slots), 1.0], A_ub=within, b_ub=np.zeros(placement.gpus), A_eq=whole,
                                     b_eq=x[step, layer], method="highs")
            slowest[step, layer] = found.fun
    return slowest


def generated_loads(steps: int, layers: int, experts: int, tokens: int, *, spread: float, steadiness: float, drift: float = 0.0,
                    seed: int = 0) -> np.ndarray:
    """Made-up routing: log-normal popularity, each step drawn around it, slowly drifting.

    Args:
        tokens: expert choices per step and layer.
        spread: sigma of the logarithm of popularity; 0 is even.
        steadiness: concentration of each step around popularity (Dirichlet); large is calm.
        drift: sigma of the step-to-step change of the logarithm of popularity.
    """
    for name, value in (("steps", steps), ("layers", layers), ("experts", experts), ("tokens", tokens)):
        require(value >= 1 and value == int(value), name, value, "a whole number of at least 1")
    require(spread >= 0 and drift >= 0 and steadiness > 0, "spread, drift, steadiness", (spread, drift, steadiness), "0, 0, above 0")
    rng = np.random.default_rng(seed)
    log = rng.normal(scale=spread, size=(layers, experts)) + np.cumsum(rng.normal(scale=drift, size=(steps, layers, experts)), axis=0)
    popularity = np.exp(log)
    popularity /= popularity.sum(axis=2, keepdims=True)
    gamma = rng.gamma(popularity * steadiness * experts)
    return tokens * gamma / gamma.sum(axis=2, keepdims=True)


@dataclass(frozen=True)
class Replay:
    """A balancer run over a history: one value per step, summed over layers, and how often weights moved."""

    slowest_over_mean: np.ndarray
    moves: int


def replay(loads: np.ndarray, gpus: int, redundant: int, *, window: int, interval: int, by: str = "peaks") -> Replay:
    """Serve a history in order: every ``interval`` steps rebalance on the last ``window`` steps; the first after a quarter."""
    x = check_loads(loads)
    require(1 <= window <= interval, "window", window, f"1 to the interval, {interval}")
    steps, layers, experts = x.shape
    placement, moves = contiguous(layers, experts, gpus, redundant), 0
    next_move, ratio = max(1, interval // 4), np.empty(steps)
    start = 0
    for step in range(steps + 1):
        if step in (next_move, steps):
            per_gpu = gpu_loads(x[start:step], placement)
            ratio[start:step] = per_gpu.max(axis=2).sum(axis=1) / per_gpu.mean(axis=2).sum(axis=1)
            if step < steps:
                placement = rebalance(x[max(0, step - window):step], gpus, redundant, by)
                moves, start, next_move = moves + 1, step, step + interval
    return Replay(ratio, moves)
