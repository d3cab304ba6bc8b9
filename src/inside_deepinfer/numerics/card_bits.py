"""Bits of a matrix product's row on a real card when the batch around it grows, and the price of one order of summation.

The measurement is ``benchmarks/gpu/batch_bits.py``: row 0 of a BF16 product of expert size, alone and in batches, by the
vendor's library and by a plain Triton kernel of ours that sums in one order whatever the batch is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from inside_deepinfer.facts import derived, require_positive

if TYPE_CHECKING:
    import pandas as pd

LIBRARY, FIXED = "library", "fixed order"
_RUN = {"run": "bits.run"}


def bits_table(run: str) -> pd.DataFrame:
    """The measurement of one folder of ``data/measured/gpu``: one row per batch, columns by way of computing.

    Columns are pairs such as ("values_changed", "library").
    """
    from inside_deepinfer.facts.gpu_runs import gpu_run  # imports pandas, which quick commands do without

    return gpu_run(run, "batch_bits").table().pivot(index="batch", columns="what",
                                                    values=["values", "values_changed", "largest_difference", "seconds"])


def time_ratio(run: str) -> pd.Series:
    """Time of the fixed order over the library's, by batch."""
    seconds = bits_table(run)["seconds"]
    return seconds[FIXED] / seconds[LIBRARY]


@derived(label="values of a row of the measured product", unit="", formula="columns of the measured product", words=True, uses=_RUN)
def product_values(run: str) -> int:
    """The width of an expert."""
    return int(bits_table(run)["values"][LIBRARY].iloc[0])


@derived(label="smallest measured batch that changes a row", unit="token", words=True, uses=_RUN,
         formula="smallest batch in which the library gives row 0 other bits than alone")
def first_batch_that_changes(run: str) -> int:
    """Below it the library used kernels that agree with the one it takes for a single row; 0 where none was seen."""
    changed = bits_table(run)["values_changed"][LIBRARY]
    found = changed.index[changed > 0]
    return int(found[0]) if len(found) else 0


@derived(label="most values of the row that the library changes", unit="", words=True, uses=_RUN,
         formula="largest number of changed values over all measured batches, library")
def library_values_changed(run: str) -> int:
    """Values of row 0 with other bits than in the row computed alone."""
    return int(bits_table(run)["values_changed"][LIBRARY].max())


@derived(label="most values of the row that the fixed order changes", unit="", words=True, uses=_RUN,
         formula="largest number of changed values over all measured batches, fixed order")
def fixed_values_changed(run: str) -> int:
    """0, or the order was not fixed."""
    return int(bits_table(run)["values_changed"][FIXED].max())


@derived(label="lowest price of the fixed order", unit="ratio", words=True, uses=_RUN,
         formula="smallest quotient of times over all measured batches, fixed order over library")
def invariant_time_ratio_low(run: str) -> float:
    """For a plain kernel of ours; a tuned one costs less."""
    return float(time_ratio(run).min())


@derived(label="highest price of the fixed order", unit="ratio", words=True, uses=_RUN,
         formula="largest quotient of times over all measured batches, fixed order over library")
def invariant_time_ratio_high(run: str) -> float:
    """For few rows: one expert's product, with its sum uncut, has too few blocks to fill the card."""
    return float(time_ratio(run).max())


@derived(label="price of the fixed order at the rows of a decode step", unit="ratio", words=True, uses=_RUN,
         formula="larger quotient of times of the two measured batches next to rows_per_step, fixed order over library")
def invariant_time_ratio(run: str, rows_per_step: Any) -> Any:
    """Not interpolated, since the quotient jumps from batch to batch; the ends of the range stand for what lies outside."""
    ratio, rows = time_ratio(run), require_positive("rows_per_step", rows_per_step)
    batches, last = ratio.index.to_numpy(float), len(ratio) - 1
    below = np.clip(np.searchsorted(batches, rows, side="right") - 1, 0, last)
    above = np.clip(np.searchsorted(batches, rows, side="left"), 0, last)
    found = np.maximum(ratio.to_numpy()[below], ratio.to_numpy()[above])
    return float(found) if np.ndim(found) == 0 else found


@derived(label="longer step if every product kept its order at this price", unit="ratio",
         formula="(invariant_time_ratio - 1) * time_gemm / counted_step_time")
def invariance_cost(invariant_time_ratio: Any, time_gemm: Any, counted_step_time: Any) -> Any:
    """Products only, with a plain kernel and nothing hidden; attention and the exchange would add to it."""
    return (invariant_time_ratio - 1) * time_gemm / require_positive("counted_step_time", counted_step_time)
