"""The decode frontier of a scenario, what lies beyond it and why, and how wide it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from inside_deepinfer.facts import InputError, NotPossible, load_facts, show
from inside_deepinfer.model.shape import without_draft
from inside_deepinfer.scenario import Scenario, parameters
from inside_deepinfer.serving.capacity import fit_notice
from inside_deepinfer.serving.cards import get_card
from inside_deepinfer.serving.decode_band import INPUTS, UNCERTAIN, Band, band_of
from inside_deepinfer.serving.pareto import non_dominated
from inside_deepinfer.serving.step_budget import PARTS
from inside_deepinfer.studies.prepared import sweep, unreached

LIMITS = ("tokens_of_a_step", "pd_ratio", "largest_batch", "resident_bytes", "usable_memory", "live_sequence_bytes")
MOST = 4096  # sequences per GPU beyond which no frontier is drawn


@dataclass(frozen=True)
class Region:
    """A part of the plane where the model has no point.

    Attributes:
        kind: ``memory`` (more sequences than fit) or ``speed`` (faster than the model's sequence alone).
        bound: sequences per GPU or token/(s*user), in the order of the kinds.
        reason: a sentence.
    """

    kind: str
    bound: float
    reason: str


@dataclass(frozen=True)
class Frontier:
    """One point per batch; throughput = sequences x speed per user.

    Attributes:
        batch: sequences per decode GPU, rising.
        step_time: s. ``latency``: mean time between tokens, s.
        user_speed: token/(s*user). ``per_decode_gpu``, ``per_cluster_gpu``: token/(s*GPU).
        efficient: points that no other beats in both speed per user and throughput per decode GPU.
        parts: counted part of a step (``step_budget.PARTS``) -> s.
        regions: what cannot exist, with the reason.
        notice: what the layout costs that its name does not say; empty where nothing.
    """

    batch: np.ndarray
    step_time: np.ndarray
    latency: np.ndarray
    user_speed: np.ndarray
    per_decode_gpu: np.ndarray
    per_cluster_gpu: np.ndarray
    efficient: np.ndarray
    parts: Mapping[str, np.ndarray]
    regions: tuple[Region, ...]
    notice: str = ""

    def at_speed(self, user_speed: float) -> float:
        """Throughput per decode GPU at a speed per user, on the frontier; 0 where no batch is that fast."""
        if user_speed > self.user_speed.max():
            return 0.0
        return float(np.interp(user_speed, self.user_speed[::-1], self.per_decode_gpu[::-1]))


def batches(most: float, count: int = 60) -> np.ndarray:
    """Sequences per GPU from 1 to ``most``, close together where few, whole numbers."""
    return np.unique(np.round(np.geomspace(1, max(most, 1), count)))


def _with(batch: np.ndarray, own: float) -> np.ndarray:
    return np.unique(np.r_[batch, float(own)])


def changes_of(speculation: bool, scenario: Scenario) -> dict[str, Any]:
    """What a scenario without speculation holds instead: no draft model, one row and one token."""
    return {} if speculation else {"model": without_draft(scenario.model), "rows_per_sequence": 1.0, "tokens_per_step": 1.0}


def frontier(scenario: Scenario, preset: str = "published", batch: Any = None, speculation: bool = True,
             changes: Mapping[str, Any] | None = None) -> Frontier:
    """The decode frontier of a scenario over its batch.

    Args:
        batch: sequences per GPU to evaluate; about 60 values up to what fits, the scenario's own among them, where left out.
        changes: parameters, derived numbers or facts held at another value.

    Raises:
        NotPossible: no batch fits into HBM.
        InputError: a batch below 1.
    """
    if batch is not None:
        return _frontier(scenario, preset, batch, speculation, changes)
    values = tuple(getattr(scenario, name) for name in parameters())
    key = (load_facts().folder, preset, values, speculation, tuple(sorted((changes or {}).items())))
    found = _drawn.get(key)
    if found is None:
        found = _drawn[key] = _frontier(scenario, preset, None, speculation, changes)
        if len(_drawn) > KEPT:
            _drawn.pop(next(iter(_drawn)), None)
    return found


KEPT = 32  # frontiers of 5 kB each; a page asks for the same one several times
_drawn: dict[Any, Frontier] = {}


def _frontier(scenario: Scenario, preset: str, batch: Any, speculation: bool,
              changes: Mapping[str, Any] | None) -> Frontier:
    held = changes_of(speculation, scenario) | dict(changes or {})
    model, card = (str(held.get(name, getattr(scenario, name))) for name in ("model", "card"))
    ep, domain = (int(held.get(name, getattr(scenario, name))) for name in ("ep", "scaleup_domain"))
    rest = float(held.get("uncounted_time", scenario.uncounted_time))
    found = sweep(LIMITS, scenario, preset, {}, held)
    most = float(found["largest_batch"])
    upto = min(most, MOST)
    given = np.asarray(_with(batches(upto), min(scenario.batch, upto)) if batch is None else batch, dtype=float)
    if given.size == 0 or not np.all(given >= 1):
        if batch is None:
            raise NotPossible("the decode frontier has no feasible point; " + _memory_reason(model, card, found, 1.0))
        raise InputError("batch", batch, "at least 1 sequence per GPU")
    fits = given <= most
    if not fits.any():
        raise NotPossible("the decode frontier has no feasible point; " + _memory_reason(model, card, found, float(given.min())))
    times = {name: np.broadcast_to(np.asarray(value, dtype=float), fits.shape)[fits]
             for name, value in sweep(("decode_step_time", *PARTS), scenario, preset, {"batch": given}, held).items()}
    given, step = given[fits], times.pop("decode_step_time")
    tokens = found["tokens_of_a_step"]
    speed = tokens / step
    per_gpu = given * speed
    return Frontier(given, step, step / tokens, speed, per_gpu, per_gpu / (1 + found["pd_ratio"]), non_dominated(speed, per_gpu), times,
                    _regions(model, card, found, most, speed, step, rest), domain_notice(card, ep, domain))


def _memory_reason(model: str, card: str, found: Mapping[str, Any], batch: float) -> str:
    resident, usable = float(found["resident_bytes"]), float(found["usable_memory"])
    return fit_notice(model, card, resident, usable, resident + batch * float(found["live_sequence_bytes"]),
                      float(found["largest_batch"]))


def _regions(model: str, card: str, found: Mapping[str, Any], most: float, speed: np.ndarray, step: np.ndarray,
             rest: float) -> tuple[Region, ...]:
    shortest = float(np.min(step))
    return (
        Region("memory", most, _memory_reason(model, card, found, most + 1)),
        Region("speed", float(speed.max()),
               f"with {show(rest, 's', 3)} that are not counted no step of this layout is shorter than {show(shortest, 's', 3)}, so the "
               f"model gives no user more than {speed.max():.0f} tokens per second; other plausible inputs may give more"))


def domain_notice(card: str, ep: int, chosen: int = 0) -> str:
    """What it means that the group is larger than the scale-up domain; empty where it is not. ``chosen``: 0 for the card's own."""
    domain = chosen or get_card(card).scaleup_domain
    if domain is None or ep <= domain:
        return ""
    return (f"EP{ep} needs more cards than the {domain} of {'this' if chosen else f'a {get_card(card).name}'} scale-up domain: "
            "rows for other domains cross the network, and every step waits for them")


def band(scenario: Scenario, preset: str, batch: np.ndarray) -> Band:
    """The band around ``frontier`` at each batch; see ``serving.decode_band``."""
    known = unreached(("counted_step_time",), scenario, preset, UNCERTAIN)
    return band_of({name: getattr(scenario, name) for name in INPUTS}, batch, known)
