"""Errors of the models on what others published, as derived numbers, and what the fits found."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import derived, require_positive
from inside_deepinfer.serving import production, third_party
from inside_deepinfer.serving.production import MODELS, Prediction, mean_abs_error, predict
from inside_deepinfer.serving.published import at_published

CURVE = "figure 8 of the DSpark paper"


def _register(model: str, name: str, label: str, unit: str, formula: str, read: Any, doc: str) -> None:
    title = MODELS[model]

    def number(limit: Any, rows: Any, drafts: Any) -> float:
        return float(read(predict(model)))

    number.__doc__ = doc
    derived(name=f"v4_{model}_{name}", label=f"{label}, {title}", unit=unit, words=True, formula=formula, uses={
        "limit": f"dspark.production_limit_{model}", "rows": "dspark.mtp1_rows", "drafts": "spec.draft_length"})(number)


def _budget_miss(run: Prediction) -> float:
    return float(np.nanmean(np.abs(run.schedule.rows - run.budget)))


def _null_error(run: Prediction) -> float:
    load = np.log(run.sequences)
    law = np.exp(np.polyval(np.polyfit(load, np.log(run.dspark / run.mtp), 1), load))
    return mean_abs_error(law * run.mtp, run.dspark)


def _budget_slope(run: Prediction) -> float:
    known = np.isfinite(run.budget)
    ours, seen = (np.polyfit(np.log(run.sequences[known]), rows[known], 1)[0] for rows in (run.schedule.rows, run.budget))
    return float(ours / seen)


for _model in MODELS:
    for _name, _label, _unit, _formula, _read, _doc in (
        ("mtp1_error", "mean error of MTP-1 throughput", "ratio", f"mean |model / published - 1| over {CURVE}",
         lambda run: mean_abs_error(run.mtp_model, run.mtp), "Fit set."),
        ("dspark5_error", "mean error of DSpark-5 throughput", "ratio", f"mean |model / published - 1| over {CURVE}",
         lambda run: mean_abs_error(run.dspark_model, run.dspark), "Half a test: two acceptance numbers are fitted on it."),
        ("budget_error", "mean error of the verification budget", "row", f"mean |model - published| over {CURVE}",
         _budget_miss, "Test set; nothing was fitted on it."),
        ("fixed_time", "fitted fixed time of a step", "s", "least relative squares on MTP-1 throughput", lambda run: run.cost.fixed,
         "In seconds per step, with the fitted acceptance."),
        ("time_per_row", "fitted time per row", "s", "least relative squares on MTP-1 throughput", lambda run: run.cost.per_row,
         "In seconds per step, with the fitted acceptance."),
        ("expert_time", "fitted time that grows with the rows and then stops", "s",
         "third term of the fitted step: experts * (1 - exp(-rows / experts_rows))", lambda run: run.cost.experts,
         "Nothing for V4-Flash; for V4-Pro it explains the budget. What it is we do not know."),
        ("expert_rows", "rows per GPU over which that time fades in", "row/GPU", "least relative squares on MTP-1 throughput",
         lambda run: run.cost.experts_rows, "Distinct experts of EP64 would all be read after about one row per GPU."),
        ("null_error", "mean error of DSpark-5 throughput from two numbers without a model", "ratio",
         f"mean |power law of the load times MTP-1, fitted to the ratio of both, / published - 1| over {CURVE}", _null_error,
         "What two free numbers can do on this curve."),
        ("budget_slope", "slope of the predicted budget over the published one", "ratio",
         f"slopes against the logarithm of the load over {CURVE}", _budget_slope, "Test set; above 1 ours falls too steeply."),
        ("acceptance", "fitted mean acceptance of a draft", "ratio", "least squares on DSpark-5 throughput", lambda run: run.mean,
         "Chance that a draft is accepted once all before it were."),
        ("acceptance_spread", "fitted spread of acceptance", "ratio", "least squares on DSpark-5 throughput",
         lambda run: run.spread, "From draft to draft."),
    ):
        _register(_model, _name, _label, _unit, _formula, _read, _doc)


def counted_predecessor() -> tuple[float, float]:
    """Fixed time and time per row that the count gives for V4-Flash without speculation beyond two rows; the card is a guess."""
    found = at_published(["two_numbers"], model="deepseek-v4-flash", rows_per_sequence=production.mtp_rows(), uncounted_time=0.0)
    fixed, per_row, _ = found["two_numbers"]
    return float(fixed), float(per_row)


@derived(label="fitted fixed time of V4-Flash (preview) over the counted one", unit="ratio", words=True,
         formula="v4_flash_fixed_time / fixed time counted for the published card and group", uses={"card": "scenario.card"})
def predecessor_fixed_ratio(v4_flash_fixed_time: Any, card: Any) -> Any:
    """The production hardware is not stated. On every card we tried it is more than 1.5 times ``predecessor_row_ratio``."""
    return v4_flash_fixed_time / counted_predecessor()[0]


@derived(label="fitted time per row of V4-Flash (preview) over the counted one", unit="ratio", words=True,
         formula="v4_flash_time_per_row / time per row counted for the published card and group", uses={"card": "scenario.card"})
def predecessor_row_ratio(v4_flash_time_per_row: Any, card: Any) -> Any:
    """As above."""
    return v4_flash_time_per_row / counted_predecessor()[1]


def _mean_error(rows: Any) -> float:
    return float(np.mean([abs(row.error) for row in rows]))


@derived(label="mean error on InferenceX, GB300 TP4", unit="ratio", words=True,
         formula="mean |predicted / measured speed per user - 1| over 1 to 128 requests",
         uses={"rest": "decode.uncounted_time", "tokens": "spec.accepted_inferencex"})
def inferencex_error(rest: Any, tokens: Any) -> float:
    """Prefill on the same cards is not counted."""
    return _mean_error(third_party.inferencex())


@derived(label="largest error on InferenceX where few requests run", unit="ratio", words=True,
         formula="max |predicted / measured speed per user - 1| over 1 to 8 requests",
         uses={"rest": "decode.uncounted_time", "tokens": "spec.accepted_inferencex"})
def inferencex_error_few(rest: Any, tokens: Any) -> float:
    """There prefill hardly disturbs."""
    return float(max(abs(row.error) for row in third_party.inferencex()[:4]))


@derived(label="predicted over measured speed, InferenceX, 128 requests", unit="ratio", words=True,
         formula="predicted / measured speed per user", uses={"rest": "decode.uncounted_time", "tokens": "spec.accepted_inferencex"})
def inferencex_factor_many(rest: Any, tokens: Any) -> float:
    """What prefill on the same cards, and whatever else is not counted, costs."""
    return 1 + third_party.inferencex()[-1].error


@derived(label="predicted over measured speed, Dynamo with prefill apart", unit="ratio", words=True,
         formula="mean of predicted / measured speed per user over B200 and GB200",
         uses={"rest": "decode.uncounted_time", "drafts": "spec.drafts_dynamo", "tokens": "spec.accepted_inferencex"})
def dynamo_factor(rest: Any, drafts: Any, tokens: Any) -> float:
    """Acceptance is not stated by the recipe."""
    return float(np.mean([1 + row.error for row in third_party.dynamo() if not row.shared]))


def _gb200_apart() -> third_party.Measured:
    return next(row for row in third_party.dynamo() if not row.shared and row.card == "gb200")


@derived(label="Dynamo output per decode GPU, GB200 with prefill apart", unit="token/(s*GPU)", words=True,
         formula="output of all GPUs over the decode GPUs", uses={"drafts": "spec.drafts_dynamo"})
def dynamo_per_decode_gpu(drafts: Any) -> float:
    """The recipe prints 694.7 per GPU of the cluster: the same measurement in another unit."""
    return float(_gb200_apart().per_decode_gpu)


@derived(label="Dynamo output per GPU of the cluster, GB200 with prefill apart", unit="token/(s*GPU)", words=True,
         formula="output of all GPUs over all GPUs, as the recipe prints it", uses={"drafts": "spec.drafts_dynamo"})
def dynamo_per_cluster_gpu(drafts: Any) -> float:
    """694.7: two prefill workers stand beside each decode worker."""
    return float(_gb200_apart().per_cluster_gpu)


@derived(label="Dynamo speed per user, GB200 with prefill apart", unit="token/(s*user)", words=True,
         formula="median, as the recipe prints it", uses={"drafts": "spec.drafts_dynamo"})
def dynamo_user_speed(drafts: Any) -> float:
    """A quarter of what V4.1-Flash's own benchmark gives a user."""
    return float(_gb200_apart().user_speed)


@derived(label="error on H100 decode, one request at a time", unit="ratio", words=True,
         formula="mean |predicted / measured time per output token - 1| over prompts of 1K to 260K",
         uses={"rest": "decode.uncounted_time"})
def h100_decode_error(rest: Any) -> float:
    """The uncounted time was fitted on another engine, card and layout."""
    seen = third_party.h100()
    return mean_abs_error(seen.token_time_model, seen.token_time)


@derived(label="measured over predicted prefill time on H100", unit="ratio", words=True,
         formula="median of measured / predicted time to first token over prompts of 1K to 260K",
         uses={"efficiency": "prefill.efficiency"})
def h100_prefill_factor(efficiency: Any) -> float:
    """Nearly the same at every length."""
    seen = third_party.h100()
    return float(np.median(seen.first_token / require_positive("first token", seen.first_token_model)))


@derived(label="step of one sequence alone, 4 GB300 with vLLM", unit="s", words=True,
         formula="tokens per step * measured time per token with one request", uses={"tokens": "spec.accepted_inferencex"})
def lone_step_gb300(tokens: Any) -> float:
    """Five drafts are verified; ``lone_step_h100`` has none."""
    return float(tokens / third_party.inferencex()[0].user_speed)


@derived(label="step of one sequence alone, 8 H100 with vLLM", unit="s", words=True,
         formula="measured time per token without speculation, shortest prompt", uses={"rest": "decode.uncounted_time"})
def lone_step_h100(rest: Any) -> float:
    """As above."""
    return float(third_party.h100().token_time[0])


@derived(label="time of that step that is not counted, 4 GB300", unit="s", words=True,
         formula="lone_step_gb300 - counted step of one sequence with six rows on four cards that share every matrix",
         uses={"rest": "decode.uncounted_time", "tokens": "spec.accepted_inferencex"})
def lone_rest_gb300(lone_step_gb300: Any, rest: Any, tokens: Any) -> float:
    """Beside the time fitted on DeepInfer at 60 sequences."""
    return float(lone_step_gb300 - (tokens / third_party.inferencex()[0].predicted - rest))


@derived(label="time of that step that is not counted, 8 H100", unit="s", words=True,
         formula="lone_step_h100 - counted step of one sequence with one row on eight cards that share every matrix",
         uses={"rest": "decode.uncounted_time"})
def lone_rest_h100(lone_step_h100: Any, rest: Any) -> float:
    """As above."""
    return float(lone_step_h100 - (third_party.h100().token_time_model[0] - rest))
