"""Figures of failures: what spares are worth against restart time, downtime by size of the instance, chain beside simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, show
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.studies.outages import Beside

SOURCES = ("article-001", "llama3-paper", "inside-deepinfer")
SPARES = (0, 1, 2, 3)
EPS = (64, 128)
RESTARTS = (30, 60, 120, 300, 600, 1200, 3600)
LOOK = {64: ("blue", "circle"), 128: ("orange", "square")}


def spares(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Minutes a year with too few instances against GPUs held as spares, EP64 and EP128."""
    return _spares(scenario, preset, float(scenario.restart_time), None)


def spares_by_restart(scenario: Scenario, preset: str = "published") -> go.Figure:
    """The same with a slider over the restart time."""
    steps = [_spares(scenario, preset, float(restart), (-7.0, 5.0)) for restart in RESTARTS]
    return movable(steps, [digits(restart / 60) for restart in RESTARTS], "time to restart an instance",
                   start=RESTARTS.index(300), suffix=" min")


def _spares(scenario: Scenario, preset: str, restart: float, scale: tuple[float, float] | None) -> go.Figure:
    wanted = ["short_minutes_per_year", "spare_share", "decode_instances", "instance_downtime"]
    traces, rows, said = [], [], []
    for ep in EPS:
        found = catalogue.evaluate(wanted, scenario, preset, ep=ep, restart_time=restart, spare_instances=np.array(SPARES))
        minutes, share, needed, down = (np.asarray(found[name].value, dtype=float) for name in wanted)
        role, symbol = LOOK[ep]
        traces.append(go.Scatter(
            x=100 * share, y=minutes, name=f"EP{ep}", mode="lines+markers+text", text=[str(count) for count in SPARES],
            textposition="top right", line=dict(color=colour(role), width=2.5, dash="solid" if ep == EPS[0] else "dash"),
            marker=dict(symbol=symbol, size=10, color=colour(role)),
            hovertemplate=f"EP{ep}, %{{text}} spares: %{{y:.3g}} minutes a year<extra></extra>"))
        rows += [(ep, count, 100 * part, one) for count, part, one in zip(SPARES, share, minutes, strict=True)]
        said.append(f"EP{ep} needs {digits(float(needed))} instances, each down {float(down) * 1e6:.0f} millionths of the time, and is "
                    f"short {digits(minutes[0], 3)} minutes a year without spares, {digits(minutes[1], 2)} with one")
    figure = go.Figure(traces, dict(yaxis=dict(type="log", range=scale, exponentformat="power")))
    table = pd.DataFrame(rows, columns=["EP", "spare instances", "GPUs of the spares (% of the pool)", "minutes a year"])
    return finish(figure, name="availability-spares", alt=f"Restart in {show(restart, 's')}: {'; '.join(said)}.", table=table,
                  x="GPUs of the spares (% of the pool); number: spare instances", y="too few instances (minutes a year)", height=420,
                  sources=SOURCES)


def downtime(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Share of time that an instance does not serve, against its size: restarted with the live cards, or waiting for the card."""
    eps = np.array([4, 8, 16, 32, 64, 96, 128, 192, 384])
    wanted = ("instance_downtime", "instance_downtime_waiting")
    found = catalogue.evaluate(wanted, scenario, preset, ep=eps)
    resized, waiting = (np.asarray(found[name].value) for name in wanted)
    figure = go.Figure([line(eps, 100 * waiting, "waits for the new card", order=1),
                        line(eps, 100 * resized, "restarts with the live cards", order=0)],
                       dict(xaxis=dict(type="log", tickvals=[4, 16, 64, 128, 384]),
                            yaxis=dict(type="log", exponentformat="power", dtick=1)))
    table = pd.DataFrame({"cards of an instance": eps, "restarts with the live cards (%)": 100 * resized,
                          "waits for the new card (%)": 100 * waiting})
    at = int(np.flatnonzero(eps == 64)[0])
    alt = (f"An instance of 64 cards that restarts with the live ones is down {100 * resized[at]:.2f} % of the time, one that waits "
           f"{100 * waiting[at]:.1f} %; both grow with the number of cards.")
    return finish(figure, name="availability-downtime", alt=alt, table=table, x="cards of an instance", y="does not serve (% of time)",
                  sources=SOURCES)


def beside(results: Sequence[Beside]) -> go.Figure:
    """Downtime by the chain and by simulation with two standard errors."""
    eps = [one.ep for one in results]
    figure = go.Figure([
        line(eps, [1e6 * one.chain for one in results], "Markov chain", order=0),
        go.Scatter(x=eps, y=[1e6 * one.simulated for one in results], name="simulated, 2 standard errors", mode="markers",
                   error_y=dict(type="data", array=[2e6 * one.standard_error for one in results], color=colour("orange")),
                   marker=dict(symbol="circle-open", size=10, color=colour("orange"), line=dict(width=2, color=colour("orange"))))],
        dict(yaxis=dict(rangemode="tozero")))
    table = pd.DataFrame({"cards of an instance": eps, "chain (millionths)": [1e6 * one.chain for one in results],
                          "simulated (millionths)": [1e6 * one.simulated for one in results],
                          "standard error (millionths)": [1e6 * one.standard_error for one in results]})
    furthest = max(one.errors_apart for one in results)
    alt = (f"Chain and simulation agree for {eps[0]} to {eps[-1]} cards; the furthest point lies {furthest:.1f} standard errors from "
           "the chain.")
    return finish(figure, name="availability-simulated", alt=alt, table=table, x="cards of an instance",
                  y="does not serve (millionths of time)", height=340, sources=SOURCES)
