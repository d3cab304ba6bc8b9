"""Waiting in line: closed forms that the simulation is checked against, and an honest "unstable" where none exists."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, require_not_negative, require_positive


def load(arrival_rate: Any, service_time: Any, servers: int = 1) -> Any:
    """Offered load per server; at 1 or above the queue grows without end and :class:`NotPossible` says so."""
    rho = require_positive("arrival_rate", arrival_rate) * require_positive("service_time", service_time) / servers
    if np.any(np.asarray(rho) >= 1):
        raise NotPossible(f"the queue is unstable: requests bring {np.max(rho):.3g} times the work that {servers} "
                          f"server{'s' if servers > 1 else ''} can do, so waiting grows without end")
    return rho


def mean_wait(arrival_rate: Any, service_time: Any, variation: Any = 1.0) -> Any:
    """Mean time in line of M/G/1, seconds (Pollaczek and Khinchine).

    Args:
        arrival_rate: requests per second (Poisson).
        service_time: mean seconds per request.
        variation: squared coefficient of variation of the service time: 1 for M/M/1, 0 for M/D/1.
    """
    rho = load(arrival_rate, service_time)
    return rho * service_time / (1 - rho) * (1 + require_not_negative("variation", variation)) / 2


def wait_percentile(arrival_rate: Any, service_time: Any, share: Any) -> Any:
    """Time in line that ``share`` of the requests stay below in M/M/1, seconds; 0 where they need not wait."""
    rho = load(arrival_rate, service_time)
    rest = 1 - np.asarray(share, dtype=float)
    rate = (1 - rho) / service_time
    with np.errstate(divide="ignore"):
        return np.maximum(0.0, np.log(rho / rest) / rate)


def wait_probability(servers: int, arrival_rate: float, service_time: float) -> float:
    """Probability that a request has to wait with several servers (Erlang C)."""
    rho = load(arrival_rate, service_time, servers)
    offered = rho * servers
    blocking = 1.0
    for busy in range(1, servers + 1):
        blocking = offered * blocking / (busy + offered * blocking)
    return blocking / (1 - rho * (1 - blocking))
