"""What of a datasheet peak a step reaches: the shares that we assume, or those that a card reached when we measured it.

Assumed shares come from facts (other people's factors, our assumptions). Measured ones are ratios measured over datasheet, from
``benchmarks/gpu``; a card that nobody has measured takes over the ratios of the one that was, which is an assumption too. Attention
and the latency of an exchange stay assumed: the first was not measured, the second was, but with the host's share in it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from inside_deepinfer.facts import InputError, derived
from inside_deepinfer.facts.arrays import by_name, scalar
from inside_deepinfer.facts.store import data_folder

DATASHEET, MEASURED = "datasheet", "measured"
CHOICES = (DATASHEET, MEASURED)


def chosen(efficiencies: Any, card: Any, assumed: Any, measured: str, reference: str) -> Any:
    """``assumed``, or what the function ``measured`` of ``serving.measured_card`` says for each card.

    Measurement files are read only in the second case, and that module, which imports pandas, is loaded only then.
    """
    if isinstance(efficiencies, str) and efficiencies == DATASHEET:
        return assumed
    choice = np.asarray(efficiencies, dtype=str)
    if not np.isin(choice, CHOICES).all():
        raise InputError("efficiencies", efficiencies, " or ".join(CHOICES))
    if not np.any(choice == MEASURED):
        return assumed
    reached = by_name(card, lambda name: _reached(measured, name, reference, data_folder()))
    return scalar(np.where(choice == MEASURED, reached, assumed))


@lru_cache(maxsize=256)
def _reached(measured: str, card: str, reference: str, folder: Path) -> float:
    """Kept for each data folder: a dashboard asks five times for every move of a slider."""
    from inside_deepinfer.serving import measured_card

    return float(getattr(measured_card, measured)(card, reference))


@derived(label="share of HBM bandwidth at which weights are read", unit="ratio", words=True,
         uses={"assumed": "hardware.hbm_efficiency", "reference": "measured.run"},
         formula="the assumed share, or rate of one expert's FP8 products with few tokens / datasheet of the measured card")
def weight_read_efficiency(efficiencies: Any, card: Any, assumed: Any, reference: str) -> Any:
    """Measured with each product launched by itself; a product grouped over experts may read faster."""
    return chosen(efficiencies, card, assumed, "weight_read_share", reference)


@derived(label="share of HBM bandwidth at which live KV is read", unit="ratio", words=True,
         uses={"assumed": "hardware.hbm_efficiency", "reference": "measured.run"},
         formula="the assumed share, or rate of reading a large buffer / datasheet of the measured card")
def kv_read_efficiency(efficiencies: Any, card: Any, assumed: Any, reference: str) -> Any:
    """An upper bound where few queries gather small entries."""
    return chosen(efficiencies, card, assumed, "stream_read_share", reference)


@derived(label="share of FP8 peak that products reach", unit="ratio", words=True,
         uses={"assumed": "efficiency.gemm", "reference": "measured.run"},
         formula="the assumed share, or rate of one expert's FP8 products with many tokens / datasheet of the measured card")
def product_efficiency(efficiencies: Any, card: Any, assumed: Any, reference: str) -> Any:
    """The assumed one was measured by others on large square products of another card."""
    return chosen(efficiencies, card, assumed, "product_share", reference)


@derived(label="share of link bandwidth that an exchange reaches in this scenario", unit="ratio", words=True,
         uses={"assumed": "efficiency.link", "reference": "measured.run"},
         formula="the assumed share, or rate of an exchange between two cards / datasheet of the measured card")
def exchange_efficiency(efficiencies: Any, card: Any, assumed: Any, reference: str) -> Any:
    """Two cards, large messages, the vendor's library."""
    return chosen(efficiencies, card, assumed, "link_share", reference)


@derived(label="fixed time per kernel in this scenario", unit="s", words=True,
         uses={"assumed": "launch.per_kernel", "reference": "measured.run"},
         formula="the assumed time, or time per kernel of a replayed graph of tiny kernels on the measured card")
def kernel_time(efficiencies: Any, card: Any, assumed: Any, reference: str) -> Any:
    """Measured: a step captured once and replayed, as engines run decode."""
    return chosen(efficiencies, card, assumed, "kernel_seconds", reference)
