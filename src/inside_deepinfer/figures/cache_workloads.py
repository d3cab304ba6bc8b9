"""Figures of the generated workloads: retention for agents and chat, what seven days gain over three, which inputs decide."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.cache.workload_sensitivity import sensitivity
from inside_deepinfer.cache.workloads import calibrated, calibrated_curve, calibrated_requests, hit_rate, retention_balance
from inside_deepinfer.facts import digits, load_facts, percent
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, pattern, points
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.scenario import Scenario

SOURCES = ("article-001", "inside-deepinfer")
DAYS = np.logspace(np.log10(1 / 24), np.log10(30), 97)
KINDS = ("agents", "chat")
# what a reader calls each input of a workload
LABELS = {"return_share": "share of requests after a long pause", "return_hours": "length of a long pause",
          "return_sigma": "spread of long pauses", "turns": "requests per session", "step": "new input per request",
          "output": "output per request", "shared": "shared beginning", "first": "first message", "gap": "short pauses",
          "gap_sigma": "spread of short pauses", "hours": "hours of presence a day"}


def retention_by_workload(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Hit rate of agents and chat against retention, with the retention of the scenario marked."""
    kept = {"agents": float(scenario.retention_days), "chat": float(scenario.retention_chat_days)}
    found = {kind: calibrated_curve(kind, int(scenario.block_tokens)) for kind in KINDS}
    curves = {kind: found[kind].at(DAYS) for kind in KINDS}
    now = {kind: found[kind].at(kept[kind]) for kind in KINDS}
    figure = go.Figure(
        [line(DAYS, curves[kind], kind, order, hovertemplate="%{x:.3g} days: %{y:.2%}<extra>" + kind + "</extra>")
         for order, kind in enumerate(KINDS)]
        + [points([kept[kind] for kind in KINDS], [now[kind] for kind in KINDS], "kept in this scenario", "derived")],
        dict(xaxis=dict(type="log", tickvals=[1 / 24, 0.25, 0.5, 1, 2, 3, 7, 14, 30],
                        ticktext=["1 h", "6 h", "12 h", "1", "2", "3", "7", "14", "30"]), yaxis=dict(tickformat=".0%")))
    table = pd.DataFrame({"retention (day)": DAYS} | {f"hit rate of {kind}": curves[kind] for kind in KINDS})
    said = ", ".join(f"{kind} {percent(now[kind], 2)} at {digits(kept[kind])} days" for kind in KINDS)
    alt = (f"Hit rate of generated traffic against retention: {said}. Most reuse comes within an hour; a night and a weekend are "
           "the steps of the agents' curve, and chat goes on rising for weeks.")
    return finish(figure, name="retention-by-workload", alt=alt, table=table, x="retention (days)", y="hit rate in tokens",
                  sources=SOURCES)


def retention_gain(scenario: Scenario, preset: str = "published") -> go.Figure:
    """Hit rate lost by the shorter of the two retentions, beside what is reported; a mark on each bar is the gain that would pay."""
    short, long = sorted((float(scenario.retention_days), float(scenario.retention_chat_days)))
    reuse = float(catalogue.value("break_even_reuse_per_day", scenario, preset))
    lost, pays = np.array([retention_balance(kind, short, long, int(scenario.block_tokens), reuse) for kind in KINDS]).T
    reported = np.array(load_facts().quantity("storage.retention_effect").value)
    rows = [*(f"{kind}, generated" for kind in KINDS), "chat, reported"]
    figure = go.Figure(
        [go.Bar(y=rows[:-1], x=lost, orientation="h", text=[f"{100 * part:.2f}" for part in lost],
                textposition="inside", insidetextanchor="end", textangle=0, constraintext="none", showlegend=False,
                marker=pattern("orange", ""), hovertemplate="%{y}: %{x:.2%} of input tokens<extra></extra>"),
         go.Scatter(x=reported, y=[rows[-1]] * 2, mode="markers+lines", name="reported for 3 instead of 7 days",
                    marker=dict(symbol="square", color=colour("blue"), size=11), line=dict(color=colour("blue"), width=3)),
         go.Scatter(x=pays, y=rows[:-1], mode="markers", name=f"pays for {digits(long - short)} more days on SSD",
                    marker=dict(symbol="line-ns", size=26, color=colour("ink"), line=dict(width=3, color=colour("ink"))),
                    hovertemplate="%{y}: %{x:.2%} of input tokens would pay<extra></extra>")],
        dict(xaxis=dict(tickformat=".1%", rangemode="tozero")))
    table = pd.DataFrame({"traffic": [*KINDS, "reported for chat, low", "reported for chat, high"],
                          f"hit rate between {digits(short)} and {digits(long)} days": [*lost, *reported],
                          "gain that pays for the traffic's own writes": [*map(digits, pays), "", ""]})
    agents, chat, low, high, level, level_chat = (f"{100 * part:.3g}" for part in (*lost, *reported, *pays))
    alt = (f"Keeping {digits(short)} instead of {digits(long)} days costs generated agents {agents} and generated chat {chat} "
           f"points of hit rate; {low} to {high} points are reported for chat between 3 and 7 days. Counted against what each kind "
           f"writes, {level} points would pay for agents and {level_chat} for chat.")
    return finish(figure, name="retention-gain", alt=alt, table=table, x="hit rate lost (share of input)", height=280,
                  sources=SOURCES)


def what_decides(kind: str = "chat", short_days: float = 3.0, long_days: float = 7.0) -> go.Figure:
    """Loss of the shorter retention when one input of the workload is low or high, most important first."""
    load = calibrated().workloads[kind]
    moves = sensitivity(load, short_days, long_days)
    labels = [LABELS[move.input] for move in moves]
    base = float(hit_rate(calibrated_requests(kind), long_days) - hit_rate(calibrated_requests(kind), short_days))
    low, high = np.array([move.loss_low for move in moves]), np.array([move.loss_high for move in moves])
    figure = go.Figure(
        [go.Bar(y=labels, x=low - base, base=base, orientation="h", name="input low", marker=pattern("blue", "/"),
                customdata=low, hovertemplate="%{y}, low: %{customdata:.2%}<extra></extra>"),
         go.Bar(y=labels, x=high - base, base=base, orientation="h", name="input high", marker=pattern("orange", ""),
                customdata=high, hovertemplate="%{y}, high: %{customdata:.2%}<extra></extra>")],
        dict(barmode="overlay", yaxis=dict(autorange="reversed"), xaxis=dict(tickformat=".1%", rangemode="tozero")))
    table = pd.DataFrame({"input": labels, "low": [move.low for move in moves], "high": [move.high for move in moves],
                          "loss, input low": low, "loss, input high": high})
    least, most = (f"{100 * part:.2f}" for part in sorted((low[0], high[0])))
    alt = (f"What {kind} loses at {digits(short_days)} instead of {digits(long_days)} days, {100 * base:.2f} points as assumed, "
           f"with each input moved alone. Most depends on the {labels[0]}: {least} to {most} points.")
    return finish(figure, name=f"what-decides-{kind}", alt=alt, table=table, x="hit rate lost (share of input)",
                  height=420, sources=SOURCES)


def hit_rates_in_the_world() -> go.Figure:
    """Hit rate against mean input: public traces, the reported production value, and the two generated workloads."""
    public = load_facts().points("trace-hit-rates")
    facts = load_facts()
    found = calibrated()
    made = {kind: calibrated_requests(kind) for kind in KINDS}
    days = {"agents": facts.number("storage.retention_agent"), "chat": facts.number("storage.retention_chat")}
    ours = [(float(made[kind].input_tokens.mean()), hit_rate(made[kind], days[kind]), f"generated {kind}") for kind in KINDS]
    ours.append((found.mean_input, found.hit_rate, "generated, both"))
    reported = (facts.number("prefill.input_mean"), facts.number("prefill.hit_rate"))
    hover = "%{text}: %{x:,.0f} tokens, %{y:.1%}<extra></extra>"
    figure = go.Figure(
        [points(public.input_mean, public.hit_rate, "public traces", "measured", text=list(public.trace), hovertemplate=hover),
         points([reported[0]], [reported[1]], "reported", "reported", text=["reported for production"], hovertemplate=hover),
         points([row[0] for row in ours], [row[1] for row in ours], "generated", "derived", text=[row[2] for row in ours],
                hovertemplate=hover)],
        dict(xaxis=dict(type="log", dtick="D2"), yaxis=dict(tickformat=".0%", range=[0.3, 1.02])))
    table = pd.concat([
        public[["trace", "input_mean", "hit_rate"]].rename(columns={"input_mean": "mean input (token)", "hit_rate": "hit rate"}),
        pd.DataFrame([("reported for production", *reported), *((name, mean, rate) for mean, rate, name in ours)],
                     columns=["trace", "mean input (token)", "hit rate"])], ignore_index=True)
    agents = public[(public.kind == "agent") & (public.input_mean > 1e5)]
    alt = (f"Hit rate without limits against mean input. Public coding-agent traces of more than 100,000 tokens reach "
           f"{percent(agents.hit_rate.min())} to {percent(agents.hit_rate.max())}; {percent(reported[1], 0)} at "
           f"{digits(reported[0])} tokens is reported.")
    return finish(figure, name="hit-rates-in-the-world", alt=alt, table=table, x="mean input (tokens)", y="hit rate",
                  sources=("kvcache-blog", "mooncake-traces", "peer-runs", "article-000"))
