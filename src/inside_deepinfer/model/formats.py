"""Number formats: bytes per value with scales, and the weight of a multiply-add in the engine's FLOP count."""

from __future__ import annotations

from functools import cache

from inside_deepinfer.facts import InputError, load_facts
from inside_deepinfer.facts.units import BITS_PER_BYTE

# format of storage -> format in which the engine's estimator counts the multiply-add (FP4 experts run with FP8 activations)
COUNTED_AS = {
    "mxfp4": "fp8", "mxfp8": "fp8", "fp8_32x32": "fp8", "fp8_128x128": "fp8", "kvfp4": "bf16", "kvmixed": "bf16",
    "fp4": "fp4", "fp8": "fp8", "bf16": "bf16", "fp32": "fp32",
}
PLAIN_FLOP_PER_MAC = 2  # one multiplication and one addition


@cache
def bytes_per_value(name: str) -> float:
    """Bytes of one value of a format, its share of the scale included, e.g. 0.53125 for MXFP4."""
    facts = load_facts()
    if f"format.{name}.bits" not in facts.facts:
        known = sorted({fact.split(".")[1] for fact in facts.facts if fact.startswith("format.")})
        raise InputError("format", name, " or ".join(known))
    return facts.number(f"format.{name}.bits") / BITS_PER_BYTE + scale_bytes_per_value(name)


@cache
def scale_bytes_per_value(name: str) -> float:
    """A value's share of its block's scale in bytes; 0 for a format without scales."""
    facts = load_facts()
    if f"format.{name}.block" not in facts.facts:
        return 0.0
    return facts.number(f"format.{name}.scale_bits") / facts.number(f"format.{name}.block") / BITS_PER_BYTE


@cache
def flop_per_mac(name: str, plain: bool = False) -> float:
    """FLOP of one multiply-add: 2 when plain, else FP8-equivalent (FP4 1, FP8 2, BF16 4, TF32/FP32 8)."""
    if plain:
        return PLAIN_FLOP_PER_MAC
    if name not in COUNTED_AS:
        raise InputError("format", name, " or ".join(COUNTED_AS))
    return load_facts().number(f"flops.per_mac.{COUNTED_AS[name]}")
