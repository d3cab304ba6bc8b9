"""Which inputs of a generated workload decide what a longer retention gains: each is moved alone, everything else stays."""

from __future__ import annotations

from dataclasses import dataclass, replace

from inside_deepinfer.cache.workloads import SESSIONS, Workload, generate, hit_rate

_TIMES, _ADD = "times", "add"
# input -> (how it moves, low, high): what nobody knows is moved by a factor of two, spreads by half a unit, hours to the extremes
MOVES: dict[str, tuple[str, float, float]] = {
    "return_share": (_TIMES, 0.5, 2.0), "return_hours": (_TIMES, 0.5, 2.0), "return_sigma": (_ADD, -0.5, 0.5),
    "turns": (_TIMES, 0.5, 2.0), "step": (_TIMES, 0.5, 2.0), "output": (_TIMES, 0.5, 2.0), "shared": (_TIMES, 0.5, 2.0),
    "first": (_TIMES, 0.5, 2.0), "gap": (_TIMES, 0.5, 2.0), "gap_sigma": (_ADD, -0.5, 0.5), "hours": ("to", 8.0, 24.0),
}


@dataclass(frozen=True)
class Move:
    """What the loss of a shorter retention becomes when one input is low or high; values in the input's own unit."""

    input: str
    low: float
    high: float
    loss_low: float
    loss_high: float

    @property
    def reach(self) -> float:
        return abs(self.loss_high - self.loss_low)


def retention_loss(load: Workload, short_days: float, long_days: float, sessions: int = SESSIONS, seed: int = 0) -> float:
    """Hit rate lost by keeping ``short_days`` instead of ``long_days``; 0.01 is one point of this traffic's own input tokens."""
    requests = generate(load, sessions, seed)
    return float(hit_rate(requests, long_days) - hit_rate(requests, short_days))


def sensitivity(load: Workload, short_days: float, long_days: float, sessions: int = SESSIONS, seed: int = 0) -> list[Move]:
    """Every input of :data:`MOVES`, the one that moves the loss most first."""
    moves = []
    for name, (how, low, high) in MOVES.items():
        now = getattr(load, name)
        ends = [edge if how == "to" else now * edge if how == _TIMES else max(0.0, now + edge) for edge in (low, high)]
        if name == "turns":
            ends = [max(1.0, end) for end in ends]
        losses = [retention_loss(replace(load, **{name: end}), short_days, long_days, sessions, seed) for end in ends]
        moves.append(Move(name, *ends, *losses))
    return sorted(moves, key=lambda move: -move.reach)
