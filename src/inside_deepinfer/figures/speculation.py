"""Figures of guessing ahead: what is verified against load, which policy wins where, accepted length, wrong confidence, the law."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from inside_deepinfer.facts import digits, load_facts, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving.acceptance import Schedule, rejection_sample
from inside_deepinfer.serving.validation import accepted_length as accepted_validation
from inside_deepinfer.studies import speculation

SOURCES = ("article-001", "article-004", "dspark-paper", "deepinfer-sdist", "inside-deepinfer")
SEQUENCES = "sequences per GPU"


def objective(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Tokens, time and tokens per second against rows per sequence, over those of verifying all; the optimum is marked."""
    seen = speculation.objective(scenario, preset)
    best, gain = seen.best, seen.tokens / seen.time / (seen.tokens[-1] / seen.time[-1])
    tokens, time = seen.tokens / seen.tokens[-1], seen.time / seen.time[-1]
    padded = tokens / (seen.padded / seen.padded[-1])
    traces = [line(seen.rows, gain, "tokens per second", 0), line(seen.rows, tokens, "tokens per step", 1),
              line(seen.rows, time, "time of a step", 2), line(seen.rows, padded, "tokens per second, padded rows", 3),
              points([seen.rows[best]], [gain[best]], "most tokens per second", "derived")]
    table = pd.DataFrame({"rows per sequence": seen.rows, "tokens per step": seen.tokens, "time of a step (ms)": seen.time * 1e3,
                          "tokens per second over all verified": gain, "the same with padded rows": padded})
    alt = (f"At {scenario.batch} sequences per GPU tokens per second are most at {digits(seen.rows[best], 3)} rows per sequence: "
           f"{percent(tokens[best], 0)} of the tokens of verifying all in {percent(time[best], 0)} of the time, "
           f"{percent(gain[best] - 1)} more per second.")
    return finish(go.Figure(traces, dict(yaxis=dict(tickformat=".0%", rangemode="tozero"))), name="speculation-objective", alt=alt,
                  table=table, x="rows per sequence and step", y="relative to verifying all", height=440, sources=SOURCES)


def schedule_by_load(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Verified drafts and tokens per step against load, beside the reported range."""
    run = speculation.by_load(scenario, preset)
    facts = load_facts()
    verified, accepted = facts.quantity("spec.verified").value, facts.quantity("spec.accepted").value
    drafts, batch = run.best.rows - 1, float(facts.number("decode.sequences"))
    ends = [run.loads[0], run.loads[-1]]
    traces = [
        go.Scatter(x=[*ends, *ends[::-1]], y=[verified[1]] * 2 + [verified[2]] * 2, fill="toself", mode="lines", opacity=0.25,
                   name="verified drafts, reported", line=dict(color=colour("muted"), width=0.5), hoverinfo="skip"),
        line(run.loads, drafts, "verified drafts", 0), line(
            run.loads, run.best.tokens, "tokens per step", 1, customdata=run.best.time * 1e3,
            hovertemplate="%{x:.0f} sequences: %{y:.2f} tokens in a step of %{customdata:.1f} ms<extra></extra>"),
        line(run.loads, run.every.tokens, "tokens per step, all verified", 2),
        points([batch] * 2, accepted, "tokens per step, reported", "reported"),
        points([scenario.batch] * 2, [float(np.interp(scenario.batch, run.loads, values)) for values in (drafts, run.best.tokens)],
               "this scenario", "choice")]
    figure = go.Figure(traces, dict(xaxis=_loads(), yaxis=dict(rangemode="tozero")))
    table = pd.DataFrame({SEQUENCES: run.loads, "verified drafts": drafts, "tokens per step": run.best.tokens,
                          "tokens per step, all verified": run.every.tokens,
                          "gain over verifying all": run.rate(run.best) / run.rate(run.every) - 1})
    here = [float(np.interp(scenario.batch, run.loads, values)) for values in (
        drafts, run.best.tokens, run.every.tokens, run.rate(run.best) / run.rate(run.every) - 1)]
    alt = (f"At {scenario.batch} sequences per GPU {digits(here[0], 3)} of {drafts_of(run.every):.0f} drafts are verified, tokens per step "
           f"fall from {digits(here[2], 3)} to {digits(here[1], 3)} and throughput rises by {percent(here[3])}; reported are "
           f"{verified[1]:g} to {verified[2]:g}, {accepted[0]:.2f} to {accepted[1]:.2f}, and "
           f"{percent(facts.quantity('spec.gain').value[0], 0)} to {percent(facts.quantity('spec.gain').value[1], 0)}.")
    return finish(figure, name="speculation-by-load", alt=alt, table=table, x=SEQUENCES, y="per sequence and step", height=440,
                  sources=SOURCES)


def drafts_of(schedule: Schedule) -> float:
    """Drafts that a fixed policy verifies."""
    return float(schedule.rows[0] - 1)


def _loads() -> dict[str, object]:
    return dict(type="log", tickvals=[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])


def policies(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Throughput of each policy over that of the optimum, against load."""
    run = speculation.by_load(scenario, preset)
    best = run.rate(run.best)
    shares = {name: run.rate(schedule) / best for name, schedule in run.others.items()}
    traces = [line(run.loads, share, name, order, hovertemplate=name + ": %{y:.1%} at %{x:.0f}<extra></extra>")
              for order, (name, share) in enumerate(shares.items())]
    figure = go.Figure(traces, dict(xaxis=_loads(), yaxis=dict(tickformat=".0%", rangemode="normal")))
    table = pd.DataFrame({SEQUENCES: run.loads} | {f"{name} / optimum": share for name, share in shares.items()}
                         | {"optimum (tokens per second and sequence)": best})
    worst = {name: float(share.min()) for name, share in shares.items()}
    said = ", ".join(f"{name} {percent(1 - share, 0)}" for name, share in worst.items())
    alt = f"No policy that ignores the load is good at every load. At its worst load each loses against the optimum: {said}."
    return finish(figure, name="speculation-policies", alt=alt, table=table, x=SEQUENCES, y="throughput over the optimum's",
                  height=440, sources=SOURCES)


def accepted_length() -> go.Figure:
    """Accepted length from conditional acceptance against the published averages, three drafters in three domains."""
    entry = accepted_validation()[0]
    names = [point.at for point in entry.points]
    figure = go.Figure([
        go.Bar(y=names, x=[point.model for point in entry.points], orientation="h", name="from acceptance by position",
               marker=dict(color=colour("orange"), pattern=dict(shape="/"))),
        points([point.published for point in entry.points], names, "published average", "reported")],
        dict(yaxis=dict(autorange="reversed")))
    table = pd.DataFrame({"drafter, domain": names, "published (token/step)": [point.published for point in entry.points],
                          "computed (token/step)": [point.model for point in entry.points],
                          "error": [point.error for point in entry.points]})
    alt = (f"1 plus the running products of seven acceptances gives the published accepted length within "
           f"{percent(entry.mean_abs_error)} on average over {len(names)} pairs of drafter and domain.")
    return finish(figure, name="accepted-length", alt=alt, table=table, x="tokens per step", height=420, sources=("dspark-paper",))


def confidence_cost(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Throughput lost against the calibration error of the confidence, at three loads."""
    errors, losses = speculation.miscalibration(scenario, preset)
    traces = [line(errors, loss, f"{load:g} sequences per GPU", order) for order, (load, loss) in enumerate(losses.items())]
    facts = load_facts()
    measured = [facts.number("spec.ece_before"), facts.number("spec.ece_after")]
    middle = losses[sorted(losses)[len(losses) // 2]]
    traces.append(points(measured, np.interp(measured, errors, middle), "measured, before and after scaling", "measured"))
    figure = go.Figure(traces, dict(xaxis=dict(tickformat=".0%"), yaxis=dict(tickformat=".1%", rangemode="tozero")))
    table = pd.DataFrame({"calibration error": errors} | {f"loss at {load:g} sequences": loss for load, loss in losses.items()})
    lost = np.interp(measured, errors, middle)
    alt = (f"With the measured error of {percent(measured[0])} overconfident drafts cost {percent(lost[0], 2)} of throughput, after "
           f"temperature scaling {percent(lost[1], 2)}: the budget is flat around its optimum.")
    return finish(figure, name="speculation-confidence", alt=alt, table=table, x="calibration error of the confidence",
                  y="throughput lost", height=400, sources=SOURCES)


@lru_cache(maxsize=4)
def _law(seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    target, draft = np.array([0.40, 0.25, 0.20, 0.10, 0.05]), np.array([0.15, 0.45, 0.10, 0.25, 0.05])
    drawn, kept = rejection_sample(target, draft, np.random.default_rng(seed), count)
    return target, draft, np.bincount(drawn, minlength=target.size) / count, kept


def sampling_law(seed: int = 1, count: int = 100_000) -> go.Figure:
    """Shares of the tokens that draft, correction and bonus give, beside the target's law and the draft's."""
    target, draft, seen, kept = _law(seed, count)
    names = [f"token {letter}" for letter in "ABCDE"]
    figure = go.Figure([
        go.Bar(x=names, y=draft, name="draft model", marker=dict(color=colour("muted"), pattern=dict(shape="/"))),
        go.Bar(x=names, y=target, name="target model", marker=dict(color=colour("blue"))),
        points(names, seen, f"{count:,} draws by draft and correction", "experiment")], dict(barmode="group", yaxis=dict(tickformat=".0%")))
    table = pd.DataFrame({"token": names, "draft": draft, "target": target, "drawn": seen,
                          "standard errors off": (seen - target) / np.sqrt(target * (1 - target) / count)})
    off = float(np.max(np.abs(table["standard errors off"])))
    alt = (f"The draws follow the target and not the draft: no token is more than {digits(off, 2)} standard errors off, and "
           f"{percent(kept)} of drafts were kept, the overlap of the two laws ({percent(float(np.minimum(target, draft).sum()))}).")
    return finish(figure, name="sampling-law", alt=alt, table=table, y="share of tokens", height=380, sources=("inside-deepinfer",))
