"""What chapters 6 and 7 hold against the world: published sizes beside the counts, and DeepSeek's day of February 2025."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inside_deepinfer import catalogue
from inside_deepinfer.facts import load_facts, show
from inside_deepinfer.facts.units import show_decimal
from inside_deepinfer.model.parts import parts
from inside_deepinfer.model.shape import load_shape, without_draft

V41, V4, V3 = "deepseek-v4.1-flash", "deepseek-v4-flash", "deepseek-v3"
PUBLISHED = (  # fact or claim -> (derived number, model)
    ("article.parameters", "backbone_parameters", V41), ("v41.engram_parameters", "engram_parameters", V41),
    ("decode.active_params", "active_parameters_decode", V41), ("v41.active_prefill", "active_parameters_prefill", V41),
    ("v41.checkpoint_bytes", "counted_checkpoint_bytes", V41), ("v41.kv_bytes_reported", "kv_bytes_per_token", V41),
    ("cache.swa_state", "stored_state_bytes", V41),
    ("v4.parameters", "backbone_parameters", V4), ("v4.active", "active_parameters_decode", V4),
    ("v3.parameters", "backbone_parameters", V3), ("v3.active", "active_parameters_decode", V3),
    ("v3.kv_bytes", "kv_bytes_per_token", V3),
)
CONTEXTS = (1_024, 4_096, 16_384, 77_000, 262_144, 1_048_576)  # what chapter 6 compares
# V4-Flash has 256 of width 2048; 256 of width 3456 are as many parameters as 384 of width 2304
VARIANTS = ((256, 2048), (256, 2304), (256, 3456), (384, 2048), (384, 2304))


@dataclass(frozen=True)
class Row:
    """A published number and our count of the same."""

    label: str
    published: float
    count: float
    unit: str

    @property
    def error(self) -> float:
        return self.count / self.published - 1

    def text(self, value: float) -> str:
        """Either value with its unit; bytes with more digits, since some are known exactly."""
        return in_decimal(value, self.unit, 7 if self.unit.startswith("B") else 4)


def in_decimal(value: float, unit: str, significant: int = 4) -> str:
    """A number for a table of a chapter: bytes in decimal units, as articles print them, the rest as ever."""
    if unit.startswith("B"):
        return show_decimal(float(value), unit, significant)
    return show(value, "" if unit == "parameter" else unit, significant)


def published_counts() -> list[Row]:
    """Every published size that the shapes give."""
    facts, rows = load_facts(), []
    for fact, name, model in PUBLISHED:
        found = catalogue.evaluate([name], model=model)[name]
        short = load_shape(model).name.removeprefix("DeepSeek-")
        rows.append(Row(f"{short}: {found.label}", facts.number(fact), float(found.value), found.unit))
    return rows


def parameters_of_variants(model: str = V41) -> dict[tuple[int, int], tuple[int, float]]:
    """Parameters of the backbone, and those active for an output token, of the shape with other numbers and widths of experts."""
    shape = load_shape(model)
    found = {}
    for routed, width in VARIANTS:
        other = shape.model_copy(update={"id": f"{shape.id}-{routed}-{width}",
                                         "experts": shape.experts.model_copy(update={"routed": routed, "width": width})})
        backbone = [part for part in parts(other) if part.stage == "backbone"]
        found[routed, width] = (sum(part.parameters for part in backbone),
                                sum(part.parameters * part.share_per_token for part in backbone))
    return found


def v3r1_step(overlap: float | None = None) -> tuple[float, float]:
    """(counted, published) step time of the V3/R1 day in s, taken as one token per step and without a draft model.

    The decode kernels of that month sent every copy of a row over the network by itself (DeepEP, first version). EP128 without
    copies stands for the reported 144 GPUs with copies: both have two experts on a GPU. The published step is one over the
    middle of the reported speeds per user. ``overlap`` replaces the assumed one.
    """
    speeds = load_facts().quantity("v3r1.user_speed").value
    at: dict[str, Any] = dict(
        model=without_draft(V3), card="h800", ep=128, redundant_experts=0, rows_per_sequence=1.0, crossing="expert",
        context=load_facts().number("v3r1.mean_context"), batch=round(catalogue.value("v3r1_sequences_per_gpu")))
    if overlap is not None:
        at["overlap"] = overlap
    return float(catalogue.value("counted_step_time", **at)), len(speeds) / sum(speeds)
