"""Card numbers by name, for one card or an array of names; what a card lacks is said, never guessed."""

from __future__ import annotations

from typing import Any

from inside_deepinfer.facts import InputError, NotPossible, derived, load_facts
from inside_deepinfer.facts.arrays import by_name
from inside_deepinfer.facts.records import Card

MEANING = {
    "hbm_bytes": "HBM capacity", "hbm_bandwidth": "HBM bandwidth", "bf16_flops": "BF16 peak", "fp8_flops": "FP8 peak",
    "fp4_flops": "FP4 peak", "scaleup_bandwidth": "bandwidth of the scale-up link",
    "scaleup_domain": "size of the scale-up domain",
}
PRECISIONS = {"fp4": "fp4_flops", "fp8": "fp8_flops", "bf16": "bf16_flops"}


def get_card(name: str) -> Card:
    """The card called ``name``; an unknown name is an error that lists the known ones."""
    cards = load_facts().cards
    if name not in cards:
        raise InputError("card", name, " or ".join(cards))
    return cards[name]


def card_number(card: Any, field: str) -> Any:
    """One number of a card, or of each card of an array of names.

    Args:
        card: id in data/hardware/cards.yaml, or an array of ids.
        field: one of ``MEANING``.
    """
    def stated(name: str) -> float:
        value = getattr(get_card(name), field)
        if value is None:
            raise NotPossible(f"{get_card(name).name} has no {MEANING[field]}, or states none (data/hardware/cards.yaml)")
        return float(value)

    return by_name(card, stated)


def card_has(card: Any, field: str) -> Any:
    """Whether a card, or each card of an array of names, states the number ``field``."""
    return by_name(card, lambda name: getattr(get_card(name), field) is not None)


def peak_flops(card: Any, precision: str) -> Any:
    """Dense peak of a card in FLOP/s at a precision; a precision the card lacks is an error that says so."""
    if precision not in PRECISIONS:
        raise InputError("precision", precision, " or ".join(PRECISIONS))
    return card_number(card, PRECISIONS[precision])


@derived(label="HBM bandwidth of the card", unit="B/s", formula="the card's entry in data/hardware", words=True)
def card_bandwidth(card: Any) -> Any:
    """Peak, of all stacks together."""
    return card_number(card, "hbm_bandwidth")


@derived(label="HBM of the card", unit="B", formula="the card's entry in data/hardware", words=True)
def card_memory(card: Any) -> Any:
    """Capacity."""
    return card_number(card, "hbm_bytes")


@derived(label="FP8 peak of the card", unit="FLOP/s", formula="the card's entry in data/hardware", words=True)
def card_fp8_peak(card: Any) -> Any:
    """Dense, without sparsity."""
    return card_number(card, "fp8_flops")


@derived(label="FP4 peak of the card", unit="FLOP/s", formula="the card's entry in data/hardware", words=True)
def card_fp4_peak(card: Any) -> Any:
    """Dense, without sparsity."""
    return card_number(card, "fp4_flops")
