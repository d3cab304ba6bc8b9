"""Production frontiers that DeepSeek published for the predecessors: calibrated on MTP-1, then reproducing DSpark-5.

Step time of a decode GPU with r rows = fixed + per_row * r + experts * (1 - exp(-r / experts_rows)): the last term grows with
the rows and then stops. It has the form of reading distinct experts, but fades far too slowly for it: what it is we do not know.
The two-number form leaves it out. Only MTP-1 points are fitted; DSpark-5 adds mean and spread of per-draft acceptance,
which are fitted to its throughput; the verification budget is predicted, never shown to the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from inside_deepinfer.facts import InputError, load_facts, require_positive
from inside_deepinfer.serving.acceptance import Schedule, best_budget, drawn_survivals

CURVE = "dspark-fig8-load"
MODELS = {"flash": "V4-Flash-preview", "pro": "V4-Pro-preview"}


@dataclass(frozen=True)
class StepCost:
    """Time of a step against rows per GPU; seconds per token that MTP-1 makes in it (see ``scaled``)."""

    fixed: float
    per_row: float
    experts: float = 0.0
    experts_rows: float = 1.0

    def __call__(self, rows: Any) -> Any:
        rows = np.asarray(rows, dtype=float)
        return self.fixed + self.per_row * rows - self.experts * np.expm1(-rows / self.experts_rows)

    def scaled(self, tokens: float) -> StepCost:
        """The same cost in seconds per step, where a step of MTP-1 makes ``tokens`` tokens."""
        return StepCost(self.fixed * tokens, self.per_row * tokens, self.experts * tokens, self.experts_rows)


def mtp_rows() -> float:
    """Rows per sequence of MTP-1: the golden row and one draft."""
    return load_facts().number("dspark.mtp1_rows")


def published(model: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Figure 8 within the production range: sequences per GPU, MTP-1 and DSpark-5 throughput, rows per sequence of DSpark-5."""
    if model not in MODELS:
        raise InputError("model", model, " or ".join(MODELS))
    facts = load_facts()
    table = facts.points(CURVE)
    limit = facts.number(f"dspark.production_limit_{model}")
    table = table[(table["model"] == MODELS[model]) & (table["conc_per_gpu"] <= limit)]
    wide = table.pivot(index="conc_per_gpu", columns="spec", values=["tok_s_gpu", "rows_per_request"]).sort_index()
    return (wide.index.to_numpy(float), wide["tok_s_gpu", "MTP-1"].to_numpy(float), wide["tok_s_gpu", "DSpark-5"].to_numpy(float),
            wide["rows_per_request", "DSpark-5"].to_numpy(float))


def fit_step_cost(sequences: np.ndarray, throughput: np.ndarray, saturating: bool = True) -> StepCost:
    """Fit the step cost on throughput of MTP-1 (token/s per GPU) against sequences per GPU; relative least squares.

    The scale is per token of MTP-1: throughput cannot tell a shorter step from a longer acceptance.
    """
    from scipy.optimize import least_squares  # late: scipy takes half a second to import

    n, y = (np.asarray(require_positive(name, values), dtype=float)
            for name, values in (("sequences", sequences), ("throughput", throughput)))
    rows, per_token = mtp_rows() * n, n / y
    start = np.array([per_token[0] * 0.8, np.ptp(per_token) / np.ptp(rows), per_token[0] * 0.2, rows.max() / 10])
    free = 4 if saturating else 2

    def cost(parameters: np.ndarray) -> StepCost:
        return StepCost(*np.abs(parameters[:free]))

    found = least_squares(lambda p: cost(p * start[:free])(rows) / per_token - 1, np.ones(free))
    return cost(found.x * start[:free])


@dataclass(frozen=True)
class Prediction:
    """One model of the predecessors: what was fitted, and what follows.

    Attributes:
        sequences: sequences per GPU of the published points.
        mtp, dspark, budget: published throughputs (token/s per GPU) and rows per sequence (NaN where none is given).
        mtp_model, dspark_model: the same from the model; ``schedule`` holds the predicted budget.
        cost: step cost in seconds per step.
        mean, spread: acceptance of a draft.
    """

    sequences: np.ndarray
    mtp: np.ndarray
    dspark: np.ndarray
    budget: np.ndarray
    mtp_model: np.ndarray
    dspark_model: np.ndarray
    schedule: Schedule
    cost: StepCost
    mean: float
    spread: float


def dspark(cost: StepCost, mean: float, spread: float, sequences: Any, drafts: int) -> tuple[np.ndarray, Schedule]:
    """Throughput of DSpark (token/s per GPU) and its schedule, from a step cost per token of MTP-1."""
    seconds = cost.scaled(1 + mean)
    schedule = best_budget(drawn_survivals(mean, spread, drafts), sequences, seconds)
    return np.atleast_1d(sequences) * schedule.tokens / schedule.time, schedule


@lru_cache(maxsize=8)
def predict(model: str, saturating: bool = True) -> Prediction:
    """Calibrate and predict ``flash`` or ``pro`` over the published production range of sequences per GPU."""
    from scipy.optimize import minimize

    n, mtp, spark, budget = published(model)
    drafts = int(load_facts().number("spec.draft_length"))
    cost = fit_step_cost(n, mtp, saturating)

    def miss(parameters: np.ndarray) -> float:
        mean, spread = 1 / (1 + np.exp(-parameters))
        spread *= np.sqrt(mean * (1 - mean))
        return float(np.mean((dspark(cost, mean, spread, n, drafts)[0] / spark - 1) ** 2))

    # the budget is a step function of the parameters, so a search without gradients from a coarse start
    found = minimize(miss, np.array([1.1, 0.0]), method="Nelder-Mead", options={"xatol": 5e-3, "fatol": 1e-7, "maxiter": 80})
    mean, spread = 1 / (1 + np.exp(-found.x))
    spread *= np.sqrt(mean * (1 - mean))
    throughput, schedule = dspark(cost, float(mean), float(spread), n, drafts)
    return Prediction(n, mtp, spark, budget, n / cost(mtp_rows() * n), throughput, schedule, cost.scaled(1 + mean), float(mean),
                      float(spread))


def mean_abs_error(model: Any, published: Any) -> float:
    """Mean of |model / published - 1| over the points that are given."""
    ratio = np.asarray(model, dtype=float) / np.asarray(published, dtype=float)
    return float(np.nanmean(np.abs(ratio - 1)))
