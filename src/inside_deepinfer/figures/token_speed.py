"""How much faster segments are than the whole prompt: the article's times, the bound of the threads, and our own run."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inside_deepinfer import catalogue
from inside_deepinfer.facts import digits, load_facts
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line, points
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.tokens.segments import even_but_one, parallel_gain
from inside_deepinfer.tokens.speed import sizes

MEASURED = "encoding-speed"  # id of the table that benchmarks/encoding.py writes
THREADS = (1, 2, 4, 8, 16, 32, 64)
SHARES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75)
SOURCES = ("article-001", "inside-deepinfer")


def article_times() -> pd.DataFrame:
    """The article's three conversations: seconds both ways, and what follows from them."""
    facts = load_facts()
    rows = []
    for turns, characters in sizes():
        segments, whole, printed = facts.quantity(f"api.encode_speed_{turns}").value
        rows.append((turns, characters, segments, whole, printed, whole / segments))
    return pd.DataFrame(rows, columns=["turns", "characters", "segments (s)", "whole (s)", "printed ratio", "ratio"])


def measured_times() -> pd.DataFrame:
    """Our own run of the benchmark, one row for each number of threads and conversation."""
    return load_facts().points(MEASURED)


def over_one_thread(run: pd.DataFrame) -> pd.Series:
    """Gain of each row of a run: the whole prompt's time with the fewest threads of the run, over the segments' time."""
    whole = run[run["threads"] == run["threads"].min()].set_index("turns")["whole_s"]
    return run["turns"].map(whole) / run["segments_s"]


def speedups() -> go.Figure:
    """Speed-up by conversation: the article's points, the bound of its threads, and our own run."""
    times, own = article_times(), measured_times()
    own = own.assign(ratio=over_one_thread(own))  # a second thread cannot help one piece of text, so its time with one counts
    limit, one = catalogue.value("encode_speedup_limit"), load_facts().quantity("api.encode_single_thread").value
    turns, threads = times["turns"].tolist(), load_facts().number("article.encode_threads")
    traces = [points(turns, times["ratio"], f"article 001, {threads:.0f} threads", "experiment"),
              line(turns, [limit] * len(turns), "most that its threads allow", 1),
              line(turns, [max(one)] * len(turns), "article 001, one thread", 2)]
    table = times.assign(**{"most that the threads allow": limit})
    said = "; ".join(f"{row.turns:.0f} turns {digits(row.ratio, 3)}" for row in times.itertuples())
    alt = f"Segments over whole prompt in article 001: {said}; its threads allow at most {digits(limit, 3)}."
    for number, (count, part) in enumerate(own.groupby("threads")):
        traces.append(points(part["turns"], part["ratio"], f"our run, {_threads(count)}", "measured",
                             mode="lines+markers", line=dict(dash="dot" if number else "solid")))
    best = own.groupby("threads")["ratio"].agg(["min", "max"])
    alt += " Our run: " + "; ".join(f"{_threads(count)} {digits(row['min'], 3)} to {digits(row['max'], 3)}"
                                    for count, row in best.iterrows()) + "."
    own = own.assign(**{"whole with one thread (s)": own["ratio"] * own["segments_s"]})
    table = pd.concat([table, own.rename(columns={"segments_s": "segments (s)", "whole_s": "whole (s)"})[
        ["threads", "turns", "characters", "segments (s)", "whole (s)", "whole with one thread (s)", "ratio"]]])
    figure = go.Figure(traces, dict(xaxis=dict(type="log", tickvals=turns, ticktext=[str(turn) for turn in turns]),
                                    yaxis=dict(rangemode="tozero")))
    return finish(figure, name="encoding-speedups", alt=alt, table=table, x="length of the conversation (turn)",
                  y="whole prompt over segments (ratio)", sources=(*SOURCES, load_facts().curves[MEASURED].source))


def _threads(count: float) -> str:
    return f"{count:.0f} thread" if count == 1 else f"{count:.0f} threads"


def parallel_bound() -> go.Figure:
    """What threads can gain at most, by number of threads; the slider makes one message longer."""
    steps = [_bound(share) for share in SHARES]
    labels = ["even" if share == 0 else f"{share:.0%}" for share in SHARES]
    return movable(steps, labels, "share of all characters in one message", start=0)


def _bound(share: float) -> go.Figure:
    lengths = {turns: even_but_one(2 * turns, share) for turns, _ in sizes()}
    gains = {turns: [parallel_gain(parts, threads) for threads in THREADS] for turns, parts in lengths.items()}
    traces = [line(THREADS, gain, f"{turns} turns", order) for order, (turns, gain) in enumerate(gains.items())]
    facts = load_facts()
    threads, one = facts.number("article.encode_threads"), np.mean(facts.quantity("api.encode_single_thread").value)
    reached = article_times()["ratio"] / one
    traces.append(points([threads] * len(reached), reached, "article 001, over its one-thread gain", "experiment"))
    figure = go.Figure(traces, dict(xaxis=dict(type="log", tickvals=THREADS, ticktext=[str(count) for count in THREADS]),
                                    yaxis=dict(type="log", range=[0, np.log10(1.1 * THREADS[-1])], tickvals=THREADS,
                                               ticktext=[str(count) for count in THREADS])))
    table = pd.DataFrame({"threads": THREADS} | {f"{turns} turns (ratio)": gain for turns, gain in gains.items()})
    last = ", ".join(f"{turns} turns {digits(gain[-1], 3)}" for turns, gain in gains.items())
    held = "All messages are equally long" if share == 0 else f"One message holds {share:.0%} of all characters"
    return finish(figure, name="encoding-parallel-bound", alt=f"{held}: {THREADS[-1]} threads are at most so many times faster "
                  f"than one: {last}.", table=table, x="threads", y="gain over one thread (ratio)", height=420, sources=SOURCES)
