"""Figures of batch invariance: changed values on this machine and on a real card, the price, and sums in pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from inside_deepinfer.facts.gpu_runs import gpu_run
from inside_deepinfer.figures.drawing import go
from inside_deepinfer.figures.figure import finish, line
from inside_deepinfer.figures.movable import movable
from inside_deepinfer.figures.theme import colour
from inside_deepinfer.numerics.card_bits import FIXED, LIBRARY, bits_table, time_ratio

BATCHES = [1, 4, 16, 64, 256, 1024, 4096]  # ticks
WAYS = {LIBRARY: ("the card's library", 1), FIXED: ("one order for every batch", 0)}


def sums_in_pieces(values: np.ndarray, pieces: Sequence[int], sums: Sequence[float]) -> go.Figure:
    """Float32 sums of one vector, cut into more and more pieces, against the sum in double precision."""
    exact = float(np.asarray(values, dtype=np.float64).sum())
    miss = np.array(sums, dtype=np.float64) - exact
    figure = go.Figure([go.Scatter(x=np.array(pieces), y=1e6 * miss, mode="markers", name="float32 sum", showlegend=False,
                                   marker=dict(size=10, color=colour("blue"))),
                        line([min(pieces), max(pieces)], [0, 0], "double precision", order=1, showlegend=False)],
                       dict(xaxis=dict(type="log", tickvals=list(pieces), ticktext=[str(one) for one in pieces])))
    # nine digits tell any two float32 apart; the usual six would print the same number in every row
    table = pd.DataFrame({"pieces": list(pieces), "sum (float32)": [f"{float(one):.9g}" for one in sums], "minus double precision": miss})
    alt = (f"The same {len(values):,} numbers, summed in {pieces[0]} to {pieces[-1]} pieces, give {len(set(sums))} different float32 "
           f"sums; the largest lies {np.abs(miss).max():.1g} from the sum in double precision.")
    return finish(figure, name="determinism-sums", alt=alt, table=table, x="pieces that are summed first",
                  y="float32 sum − exact sum (millionths)", height=320, sources=("inside-deepinfer",))


def row_in_batches(changes: np.ndarray, batches: Sequence[int], what: str) -> go.Figure:
    """By how much the values of row 0 differ from the row alone, with a slider over the batch.

    Args:
        changes: batches x values, see ``numerics.machine_bits.row_changes``.
    """
    top = max(1.0, float(np.abs(changes).max()))
    table = pd.DataFrame({"rows in the batch": list(batches), "values that differ": np.count_nonzero(changes, axis=1),
                          "largest difference (roundings)": np.abs(changes).max(axis=1)})
    steps = []
    for size, row in zip(batches, changes, strict=True):
        figure = go.Figure(
            [go.Scatter(x=np.arange(len(row)), y=np.round(row, 2), mode="markers", showlegend=False, name=what,
                        marker=dict(size=6, color=[colour("red" if value else "blue") for value in row],
                                    symbol=["diamond" if value else "circle" for value in row]),
                        hovertemplate="value %{x}: %{y} roundings<extra></extra>")],
            dict(yaxis=dict(range=[-1.1 * top, 1.1 * top]), xaxis=dict(range=[-2, len(row) + 1])))
        alt = (f"{what}, batch of {size}: {np.count_nonzero(row)} of {len(row)} values of row 0 differ from the row computed alone, "
               f"the furthest by {np.abs(row).max():.1f} roundings.")
        steps.append(finish(figure, name="determinism-row", alt=alt, table=table, x="value of row 0",
                            y="difference (roundings)", height=340, sources=("inside-deepinfer",)))
    return movable(steps, [str(size) for size in batches], "rows in the batch", start=len(batches) - 1)


def card_bits(run: str) -> go.Figure:
    """Changed values of row 0 against the batch, on a measured card."""
    changed = bits_table(run)["values_changed"]
    values, card = int(bits_table(run)["values"][LIBRARY].iloc[0]), gpu_run(run, "batch_bits").machine.card
    figure = go.Figure([line(changed.index, changed[way], label, order=order) for way, (label, order) in WAYS.items()],
                       dict(xaxis=dict(type="log", tickvals=BATCHES), yaxis=dict(rangemode="tozero")))
    for trace, symbol in zip(figure.data, ("diamond", "circle"), strict=True):
        trace.mode, trace.marker = "lines+markers", dict(size=9, symbol=symbol)
    first = changed.index[changed[LIBRARY] > 0]
    begins = f"from a batch of {first[0]} on" if len(first) else "in no batch"
    table = changed.reset_index().rename(columns={"batch": "rows in the batch", **{way: label for way, (label, _) in WAYS.items()}})
    alt = (f"{card}, BF16: {begins} the library changes {int(changed[LIBRARY].max())} or fewer of {values:,} values of row 0; one order "
           f"of summation changes {int(changed[FIXED].max())}.")
    return finish(figure, name="determinism-card-bits", alt=alt, table=table, x="rows in the batch", y="values with other bits",
                  height=320, sources=("gpu-runs",))


def card_price(run: str) -> go.Figure:
    """Time of the product with a fixed order over the library's, against the batch, on a measured card."""
    ratio, card = time_ratio(run), gpu_run(run, "batch_bits").machine.card
    figure = go.Figure([line(ratio.index, ratio, "fixed order over library", order=0, showlegend=False),
                        line([ratio.index[0], ratio.index[-1]], [1, 1], "as fast as the library", order=1, showlegend=False)],
                       dict(xaxis=dict(type="log", tickvals=BATCHES), yaxis=dict(rangemode="tozero")))
    table = pd.DataFrame({"rows in the batch": ratio.index, "fixed order over library": ratio.to_numpy()})
    alt = (f"{card}: a plain kernel with one order of summation takes {ratio.min():.2f} to {ratio.max():.2f} times as long as the "
           f"library, {ratio.iloc[-1]:.2f} times at {ratio.index[-1]:,} rows.")
    return finish(figure, name="determinism-price", alt=alt, table=table, x="rows in the batch", y="time over the library's",
                  height=320, sources=("gpu-runs",))
