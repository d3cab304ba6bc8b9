"""The models against curves that others measured: which points were fitted, which were predicted, and by how much they miss."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from inside_deepinfer.facts import load_facts
from inside_deepinfer.serving import production
from inside_deepinfer.serving.acceptance import tokens_per_step

Role = Literal["fit", "test"]


@dataclass(frozen=True)
class Point:
    """One published point and what the model says of it."""

    at: str
    published: float
    model: float

    @property
    def error(self) -> float:
        return self.model / self.published - 1


@dataclass(frozen=True)
class Validation:
    """One curve or set of points.

    Attributes:
        id: stable name.
        role: ``fit`` where parameters were chosen on these points, ``test`` where the model had not seen them.
        unit: unit of the points; errors are relative, or differences where ``absolute``.
        missing: what the model leaves out, where it misses by more than the stated share.
    """

    id: str
    title: str
    role: Role
    unit: str
    points: tuple[Point, ...]
    sources: tuple[str, ...]
    absolute: bool = False
    fitted: dict[str, float] = field(default_factory=dict)
    missing: str = ""

    @property
    def mean_abs_error(self) -> float:
        """Mean relative error, or mean difference in ``unit`` where ``absolute``."""
        errors = [point.model - point.published if self.absolute else point.error for point in self.points]
        return float(np.mean(np.abs(errors)))

    @property
    def worst(self) -> Point:
        return max(self.points, key=lambda point: abs(point.error))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        points = [{"at": p.at, "published": p.published, "model": p.model, "error": p.error} for p in self.points]
        return {"id": self.id, "title": self.title, "role": self.role, "unit": self.unit, "mean_abs_error": self.mean_abs_error,
                "error_is": "difference" if self.absolute else "relative", "points": points, "fitted": self.fitted,
                "missing": self.missing, "sources": list(self.sources)}


VALIDATIONS: list[Callable[[], list[Validation]]] = []


def validation(function: Callable[[], list[Validation]]) -> Callable[[], list[Validation]]:
    """Register a function that returns validations."""
    VALIDATIONS.append(function)
    return function


def validate() -> list[Validation]:
    """All validations of the package."""
    importlib.import_module("inside_deepinfer.serving.third_party")  # registers its own
    return [entry for function in VALIDATIONS for entry in function()]


@validation
def production_curves() -> list[Validation]:
    """MTP-1 is fitted; DSpark-5 throughput fits two acceptance parameters; the budget is predicted."""
    found = []
    for model, name in production.MODELS.items():
        run = production.predict(model)
        fitted = {"fixed": run.cost.fixed, "per_row": run.cost.per_row, "experts": run.cost.experts,
                  "experts_rows": run.cost.experts_rows}
        where = [f"{n:g} sequences per GPU" for n in run.sequences]
        for suffix, role, unit, published, modelled, more in (
            ("mtp1", "fit", "token/(s*GPU)", run.mtp, run.mtp_model, fitted),
            ("dspark5", "test", "token/(s*GPU)", run.dspark, run.dspark_model, {"mean": run.mean, "spread": run.spread}),
            ("budget", "test", "row/sequence", run.budget, run.schedule.rows, {}),
        ):
            points = tuple(Point(at, float(p), float(m)) for at, p, m in zip(where, published, modelled, strict=True)
                           if np.isfinite(p))
            title = {"mtp1": "MTP-1 throughput", "dspark5": "DSpark-5 throughput, acceptance fitted on it",
                     "budget": "DSpark-5 verification budget"}[suffix]
            found.append(Validation(f"v4_{model}_{suffix}", f"{name}: {title}", role, unit, points, ("dspark-paper",),
                                    absolute=suffix == "budget", fitted=more))
    return found


@validation
def accepted_length() -> list[Validation]:
    """Accepted length from measured conditional acceptance (figure 2) against the averages of table 1."""
    facts = load_facts()
    conditional, table = facts.points("dspark-fig2-acceptance"), facts.points("dspark-table1-accepted")
    domains = {"math": ["gsm8k", "math", "aime25"], "code": ["mbpp", "humaneval", "lcb"], "chat": ["mt_bench", "alpaca", "arena_hard"]}
    table = table[table["target"] == "Qwen3-4B"].set_index("drafter")
    points = []
    for row in conditional.itertuples(index=False):
        chances = np.array([getattr(row, f"p{position}") for position in range(1, 8)])
        published = float(table.loc[row.drafter, domains[row.domain]].mean())
        points.append(Point(f"{row.drafter}, {row.domain}", published, float(tokens_per_step(chances))))
    return [Validation("accepted_length", "Accepted length of three drafters in three domains", "test", "token/step", tuple(points),
                       ("dspark-paper",))]
