"""Generated traffic for what no public trace spans: agents over working days, and chat with its tail of days.

A session is one growing prompt. Every request of it repeats what came before (which the store holds, if it still does) and adds
something new; agents' sessions pause over nights and weekends, chat comes back after hours or days. All numbers are assumptions
in data/facts/cache.yaml; :func:`calibrated` changes two of them, in the open, until mean input and hit rate are the published
ones.

Left out: sessions that branch, contexts that are summarised when full, popular documents that several sessions share. Each would
add misses or hits of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from inside_deepinfer.cache.blocks import apply_rule, grain, longest_input, suffix
from inside_deepinfer.cache.hit_curve import HitCurve, curve_of
from inside_deepinfer.cache.last_touch import mix
from inside_deepinfer.facts import InputError, NotPossible, load_facts, require_positive
from inside_deepinfer.facts.arrays import scalar
from inside_deepinfer.facts.units import DAYS_PER_WEEK, SECONDS_PER_DAY, SECONDS_PER_HOUR

SESSIONS = 4000


@dataclass(frozen=True)
class Workload:
    """One kind of traffic. Tokens, seconds, hours; the meaning of each field is the label of its fact.

    Attributes:
        name: ``agents`` or ``chat``.
        output: mean output tokens of a request; the next request repeats them, and the store already holds them.
        output_stored: False where only prompts are stored, as a trace of prompt blocks shows it.
    """

    name: str
    shared: float
    first: float
    step: float
    turns: float
    output: float
    gap: float
    gap_sigma: float
    return_share: float
    return_hours: float
    return_sigma: float
    hours: float
    days: float
    output_stored: bool = True

    def __post_init__(self) -> None:
        for name in ("first", "step", "gap", "return_hours"):
            require_positive(name, getattr(self, name))
        for name, low, high in (("shared", 0, longest_input()), ("output", 0, longest_input()), ("turns", 1, 1e4),
                                ("hours", 1, 24), ("days", 1, 7), ("return_share", 0, 1), ("gap_sigma", 0, 5),
                                ("return_sigma", 0, 5)):
            if not low <= getattr(self, name) <= high:
                raise InputError(name, getattr(self, name), f"{low:g} to {high:g}")


@dataclass(frozen=True)
class Requests:
    """Requests of many sessions, session by session, in the order of their times within each.

    Attributes:
        session, turn: which session, which request of it (from 0); shape (requests,).
        time: seconds since the start of the session's week.
        gap: seconds since the session's last request; infinite for its first.
        input_tokens, output_tokens: whole tokens.
        known: tokens of the prompt that the session's last request put into the store.
        shared: tokens that every session begins with; always in the store, because somebody used them a moment ago.
    """

    session: np.ndarray
    turn: np.ndarray
    time: np.ndarray
    gap: np.ndarray
    input_tokens: np.ndarray
    output_tokens: np.ndarray
    known: np.ndarray
    shared: int


def workload(name: str) -> Workload:
    """The assumed traffic called ``agents`` or ``chat``, before calibration."""
    if name not in ("agents", "chat"):
        raise InputError("workload", name, "agents or chat")
    facts = load_facts()
    given = {field.name: facts.number(f"workload.{name}.{field.name}") for field in fields(Workload)
             if field.name not in ("name", "output", "output_stored")}
    output = facts.number("prefill.input_mean") / facts.number("workload.input_output_ratio")
    return Workload(name=name, output=output, **given)


def generate(load: Workload, sessions: int = SESSIONS, seed: int = 0) -> Requests:
    """Sessions with random lengths, pauses and token counts.

    The draws of a request depend on seed, session and turn alone, so that a changed input changes nothing but its effect.
    """
    if not isinstance(sessions, (int, np.integer)) or sessions < 1:
        raise InputError("sessions", sessions, "a whole number of at least 1")
    each = np.arange(sessions)
    turns = _geometric((each + 0.5) / sessions, load.turns)  # evenly spread, so that the mean is right with few sessions
    session = np.repeat(each, turns)
    begins = np.concatenate([[0], np.cumsum(turns)[:-1]])
    turn = np.arange(len(session)) - begins[session]
    away = _uniform(seed, 2, session, turn)
    normal = np.sqrt(-2 * np.log1p(-_uniform(seed, 3, session, turn))) * np.cos(2 * np.pi * _uniform(seed, 4, session, turn))
    more, said = (-np.log1p(-_uniform(seed, channel, session, turn)) for channel in (5, 6))
    new = np.ceil(np.where(turn == 0, load.first, load.step * more)).astype(np.int64)
    output = np.ceil(load.output * said).astype(np.int64)
    before = np.where(turn == 0, 0, np.concatenate([[0], output[:-1]]))
    shared = int(load.shared)
    length = shared + _within(new + before, begins, session)
    fits = length <= longest_input()
    known = np.where(turn == 0, 0, length - new - (0 if load.output_stored else before))

    pause = np.where(away < load.return_share, load.return_hours * SECONDS_PER_HOUR * np.exp(load.return_sigma * normal),
                     load.gap * np.exp(load.gap_sigma * normal))
    begun = _uniform(seed, 1, each, 0) * load.hours * SECONDS_PER_HOUR * load.days  # at any moment of presence in a week
    present = begun[session] + _within(np.where(turn == 0, 0.0, pause), begins, session)
    time = on_the_clock(present, load.hours, load.days)
    gap = np.where(turn == 0, np.inf, np.diff(time, prepend=0.0))
    return Requests(*(column[fits] for column in (session, turn, time, gap, length, output, known)), shared)


def on_the_clock(present: Any, hours: float, days: float) -> np.ndarray:
    """Seconds of presence as seconds of the clock: ``hours`` a day on ``days`` days a week; the rest are nights and weekends."""
    day, second = np.divmod(present, hours * SECONDS_PER_HOUR)
    week, weekday = np.divmod(day, days)
    return (week * DAYS_PER_WEEK + weekday) * SECONDS_PER_DAY + second


def hit_tokens(requests: Requests, retention_days: float, block: int | None = None) -> np.ndarray:
    """Tokens of each request that hit when everything is kept that long; block rule applied, by default with the store's block."""
    if not retention_days >= 0:
        raise InputError("retention_days", retention_days, "0 or more days")
    kept = (requests.gap <= retention_days * SECONDS_PER_DAY) & (retention_days > 0)
    stored = np.where(kept, np.maximum(requests.known, requests.shared), requests.shared if retention_days > 0 else 0)
    return apply_rule(stored, requests.input_tokens, grain() if block is None else block, suffix())


def hit_rate(requests: Requests, retention_days: Any) -> Any:
    """Hit rate in tokens for one retention or an array of them (infinite allowed), for all of them in one pass over the gaps."""
    return curve_of(requests, grain()).at(retention_days)


@dataclass(frozen=True)
class Calibration:
    """Two workloads that together give a mean input and a hit rate, and how close they come.

    Attributes:
        agent_share: share of requests that are agents'.
        mean_input, hit_rate: of both together, agents kept 3 days and chat 7.
    """

    agents: Workload
    chat: Workload
    agent_share: float
    mean_input: float
    hit_rate: float
    wanted_input: float
    wanted_hit_rate: float

    @property
    def workloads(self) -> dict[str, Workload]:
        return {"agents": self.agents, "chat": self.chat}


@lru_cache(maxsize=8)
def calibrated(seed: int = 0, sessions: int = SESSIONS, rounds: int = 60) -> Calibration:
    """Agents' requests per session and new input per request such that both kinds together match the published mean and hits.

    Longer sessions raise the mean input, smaller steps raise the hit rate; each round scales both by what is missing.
    Everything else stays as assumed.
    """
    facts = load_facts()
    agents, chat, share = workload("agents"), workload("chat"), facts.number("workload.agents.request_share")
    mean, rate = facts.number("prefill.input_mean"), facts.number("prefill.hit_rate")
    days = {"agents": facts.number("storage.retention_agent"), "chat": facts.number("storage.retention_chat")}
    of_chat = _means(generate(chat, sessions, seed), days["chat"])
    for _ in range(rounds):
        of_agents = _means(generate(agents, sessions, seed), days["agents"])
        both = share * of_agents + (1 - share) * of_chat  # input and missed tokens of a mean request
        if abs(both[0] / mean - 1) < 5e-4 and abs(both[1] / both[0] - (1 - rate)) < 5e-5:
            return Calibration(agents, chat, share, float(both[0]), float(1 - both[1] / both[0]), mean, rate)
        missed = ((1 - rate) * mean - (1 - share) * of_chat[1]) / share
        wanted = (mean - (1 - share) * of_chat[0]) / share - agents.shared - agents.first
        if missed <= 0 or wanted <= 0:
            raise NotPossible("chat alone has more input or misses than the published total leaves for agents")
        step = agents.step * (missed / of_agents[1]) ** 0.7
        grown = (of_agents[0] - agents.shared - agents.first) / (agents.turns * (agents.step + agents.output))
        turns = agents.turns + 0.7 * (wanted / (grown * (step + agents.output)) - agents.turns)
        agents = replace(agents, step=float(step), turns=float(max(1.0, turns)))
    raise NotPossible(f"calibration did not settle within {rounds} rounds")


@lru_cache(maxsize=4)
def calibrated_requests(name: str, sessions: int = SESSIONS) -> Requests:
    """Requests of the calibrated ``agents`` or ``chat``, kept because figures ask for them again and again."""
    if name not in ("agents", "chat"):
        raise InputError("workload", name, "agents or chat")
    return generate(calibrated().workloads[name], sessions)


@lru_cache(maxsize=64)
def calibrated_curve(name: str, block: int) -> HitCurve:
    """Hit rate of the calibrated ``agents`` or ``chat`` at any retention, for one block size."""
    return curve_of(calibrated_requests(name), block)


def of_mix(number: Callable[[float, float, int], float], agent_days: Any, chat_days: Any, block: Any) -> Any:
    """``mixed_life`` or ``mixed_reuse`` for retentions and blocks that may be arrays."""
    require_positive("retention_days", agent_days)
    require_positive("retention_chat_days", chat_days)
    require_positive("block_tokens", block)
    return scalar(np.vectorize(lambda agents, chat, size: number(float(agents), float(chat), int(size)), otypes=[float])(
        agent_days, chat_days, block))


@lru_cache(maxsize=64)
def mixed_life(agent_days: float, chat_days: float, block: int) -> float:
    """Mean days between the writing of a token and its eviction, agents and chat together, each kept so long after the last use.

    Longer than the retentions, because a use starts them anew; the store holds so many days of what is written (Little's law).
    """
    share = calibrated().agent_share
    parts = [(part, calibrated_curve(kind, block), days) for part, kind, days in (
        (share, "agents", agent_days), (1 - share, "chat", chat_days))]
    kept = sum(part * curve.kept_per_request(days) for part, curve, days in parts)
    return kept / sum(part * curve.written_per_request(days) for part, curve, days in parts)


@lru_cache(maxsize=64)
def mixed_reuse(agent_days: float, chat_days: float, block: int) -> float:
    """Share of the tokens written to the store that are read at least once before they are dropped, agents and chat together."""
    share = calibrated().agent_share
    parts = [part * _read_and_written(calibrated_requests(kind), days, block) for part, kind, days in (
        (share, "agents", agent_days), (1 - share, "chat", chat_days))]
    read, written = np.sum(parts, axis=0)
    return float(read / written)


def _read_and_written(requests: Requests, retention_days: float, block: int) -> np.ndarray:
    """Tokens per request that are written and read again, and that are written.

    A request writes what follows its hit, output included; the session's next request reads of that what its own hit covers.
    """
    hit, end = hit_tokens(requests, retention_days, block), requests.input_tokens + requests.output_tokens
    follows = requests.session[1:] == requests.session[:-1]
    read = np.where(follows, np.clip(np.minimum(hit[1:], end[:-1]) - hit[:-1], 0, None), 0)
    return np.array([read.sum(), (end - hit).sum()]) / len(hit)


def retention_balance(kind: str, short_days: float, long_days: float, block: int, reuse_that_pays: float) -> tuple[float, float]:
    """What keeping one kind of traffic longer gains, and the gain that would pay for it, both as hit rate of its own input.

    Args:
        reuse_that_pays: cost of a token-day in the store over the cost of computing a token (break_even_reuse_per_day).
    """
    curve = calibrated_curve(kind, block)
    kept = curve.kept_per_request(long_days, short_days) * curve.requests / curve.input_tokens
    return curve.at(long_days) - curve.at(short_days), kept * reuse_that_pays


def _means(requests: Requests, retention_days: float) -> np.ndarray:
    """Mean input and mean missed tokens of a request."""
    missed = requests.input_tokens - hit_tokens(requests, retention_days)
    return np.array([requests.input_tokens.mean(), missed.mean()])


def _uniform(seed: int, channel: int, session: np.ndarray, turn: Any) -> np.ndarray:
    """Random numbers in [0, 1) that are a function of their place."""
    place = session.astype(np.int64) * np.int64(2**20) + turn
    return (mix(mix(place + 1) ^ mix(np.full(1, 64 * seed + channel + 1))) >> np.uint64(11)) * 2.0**-53


def _geometric(uniform: np.ndarray, mean: float) -> np.ndarray:
    if mean <= 1:
        return np.ones(len(uniform), dtype=np.int64)
    return np.maximum(1, np.ceil(np.log1p(-uniform) / np.log1p(-1 / mean))).astype(np.int64)


def _within(values: np.ndarray, begins: np.ndarray, session: np.ndarray) -> np.ndarray:
    """Running sum within each session."""
    total = np.cumsum(values)
    return total - (total - values)[begins][session]
