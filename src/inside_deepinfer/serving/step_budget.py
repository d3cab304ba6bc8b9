"""Where the time of a decode step goes: weights, KV, matrix products, attention, exchange, launches; and which resource binds."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import derived, require_between, require_not_negative, require_positive
from inside_deepinfer.model.attention_work import entries_at
from inside_deepinfer.model.flops import check_context, core_flops, head_flops, matrix_flops, score_flops
from inside_deepinfer.model.formats import flop_per_mac
from inside_deepinfer.model.parts import parts
from inside_deepinfer.model.shape import Shape, load_shape
from inside_deepinfer.serving.cards import card_has, get_card

RESOURCES = ("HBM", "tensor cores", "link", "launches")
PARTS = {  # derived number -> (what the reader calls it, resource)
    "time_weights": ("weights", "HBM"),
    "time_kv": ("live KV", "HBM"),
    "time_gemm": ("matrix products", "tensor cores"),
    "time_attention": ("attention and index", "tensor cores"),
    "time_exchange": ("dispatch and combine", "link"),
    "time_launch": ("kernel launches", "launches"),
}


def draft_flops(shape: Shape) -> float:
    """FP8-equivalent FLOPs of one draft row, its pass through the shared head included."""
    if not shape.draft:
        return 0.0
    drafting = (part for part in parts(shape) if part.stage == "draft")
    return sum(part.parameters * part.share_per_token * flop_per_mac(part.format) for part in drafting) + head_flops(shape)


def precision_notice(model: str, card: str) -> str:
    """What a card cannot do in the model's own precision, as a sentence; empty where it can do all."""
    shape, entry = load_shape(model), get_card(card)
    uses = (("experts are stored", shape.formats.routed), ("index scores are computed", shape.formats.index))
    needs = [what for what, name in uses if name and name.endswith("fp4")]
    if entry.fp4_flops is not None or not needs:
        return ""
    return (f"{entry.name} has no FP4 units, but in {shape.name} {' and '.join(needs)} in FP4: weights are widened to FP8 "
            "as they are read, and scores are counted at the FP8 rate.")


def rows_notice(model: str, rows: float) -> str:
    """That a sequence cannot bring so many rows to a step of this model, as a sentence; empty where it can."""
    shape = load_shape(model)
    drafts = shape.draft.tokens if shape.draft else 0
    if rows <= 1 + drafts:
        return ""
    return (f"{shape.name} drafts {drafts or 'no'} token{'' if drafts == 1 else 's'} per step, so a sequence brings at most {1 + drafts} "
            f"row{'s' if drafts else ''}; {rows:g} are counted here, as if it drafted more.")


@derived(label="rows per GPU and step", unit="token/GPU", formula="batch * rows_per_sequence")
def rows_per_step(batch: Any, rows_per_sequence: Any) -> Any:
    """Rows that one GPU's sequences bring to a step."""
    return require_positive("batch", batch) * require_positive("rows_per_sequence", rows_per_sequence)


@derived(label="time to read weights", unit="s", uses={"efficiency": "weight_read_efficiency"},
         formula="(hbm_read_bytes_per_step + head_reread_bytes) / (card_bandwidth * efficiency)")
def time_weights(hbm_read_bytes_per_step: Any, head_reread_bytes: Any, card_bandwidth: Any, efficiency: Any) -> Any:
    """All weights that the step needs, and the head once more for drafting."""
    return (hbm_read_bytes_per_step + head_reread_bytes) / (card_bandwidth * require_between("efficiency", efficiency, 1e-6, 1.0))


@derived(label="time to read live KV", unit="s", uses={"efficiency": "kv_read_efficiency"},
         formula="kv_read_bytes_per_step / (card_bandwidth * efficiency)")
def time_kv(kv_read_bytes_per_step: Any, card_bandwidth: Any, efficiency: Any) -> Any:
    """Selected entries, index keys and windows of all sequences of the GPU."""
    return kv_read_bytes_per_step / (card_bandwidth * require_between("efficiency", efficiency, 1e-6, 1.0))


@derived(label="FP8-equivalent FLOP of a row's matrix products", unit="FLOP/token", words=True,
         formula="all weights of the trunk that a row passes, head included")
def matrix_flops_per_row(model: str) -> float:
    """Does not depend on the context."""
    shape = load_shape(model)
    return sum(matrix_flops(shape, range(shape.body.layers)).values()) + head_flops(shape)


@derived(label="FP8-equivalent FLOP of drafting per sequence", unit="FLOP/sequence", words=True,
         formula="drafts per step * FLOP of a draft row")
def draft_flops_per_sequence(model: str) -> float:
    """The draft model proposes its full length in every step, whatever is verified."""
    shape = load_shape(model)
    return (shape.draft.tokens if shape.draft else 0) * draft_flops(shape)


@derived(label="time of matrix products", unit="s", uses={"efficiency": "product_efficiency"},
         formula="(rows_per_step * matrix_flops_per_row + batch * draft_flops_per_sequence) / (card_fp8_peak * efficiency)")
def time_gemm(rows_per_step: Any, matrix_flops_per_row: Any, batch: Any, draft_flops_per_sequence: Any, card_fp8_peak: Any,
              efficiency: Any) -> Any:
    """Even load: each GPU's experts get as many rows as its own sequences send out."""
    work = rows_per_step * matrix_flops_per_row + np.asarray(batch, dtype=float) * draft_flops_per_sequence
    return work / (card_fp8_peak * require_between("efficiency", efficiency, 1e-6, 1.0))


@derived(label="FP8-equivalent FLOP of a row's attention", unit="FLOP/token", words=True,
         formula="attention over entries and window + index scores, twice the scores on a card without FP4 units")
def attention_flops_per_row(model: str, context: Any, card: Any) -> Any:
    """Grows with the context until the selection is full; the index scan grows on."""
    shape = load_shape(model)
    context = np.asarray(check_context(shape, context), dtype=float)
    layers, keys = range(shape.body.layers), entries_at(context)
    core = core_flops(shape, layers, keys, np.minimum(context, shape.attention.window))
    slower = np.where(card_has(card, "fp4_flops"), 1.0, flop_per_mac("fp8") / flop_per_mac("fp4"))
    return core + score_flops(shape, layers, keys) * slower


@derived(label="time of attention and index", unit="s", uses={"efficiency": "efficiency.attention"},
         formula="rows_per_step * attention_flops_per_row / (card_fp8_peak * efficiency)")
def time_attention(rows_per_step: Any, attention_flops_per_row: Any, card_fp8_peak: Any, efficiency: Any) -> Any:
    """FP8-equivalent work over the FP8 peak, which is BF16 work over the BF16 peak."""
    return rows_per_step * attention_flops_per_row / (card_fp8_peak * require_between("efficiency", efficiency, 1e-6, 1.0))


@derived(label="fixed time of kernels", unit="s", words=True,
         uses={"per_kernel": "kernel_time", "per_layer": "launch.kernels_per_layer"},
         formula="layers, draft layers included * kernels per layer * fixed time per kernel")
def time_launch(model: str, per_kernel: Any, per_layer: Any) -> Any:
    """What a step costs before any work is done."""
    shape = load_shape(model)
    layers = shape.body.layers + (shape.draft.layers if shape.draft else 0)
    return layers * require_not_negative("kernels per layer", per_layer) * require_not_negative("time per kernel", per_kernel)


def by_resource(weights: Any, kv: Any, gemm: Any, attention: Any, exchange: Any, launch: Any) -> tuple[Any, ...]:
    """Time per resource in the order of ``RESOURCES``: parts that share a resource cannot overlap."""
    return weights + kv, gemm + attention, exchange, launch


@derived(label="counted step time", unit="s", words=True,
         formula="longest resource + (1 - overlap) * the other resources, where HBM has weights and KV, "
                 "tensor cores have products and attention")
def counted_step_time(time_weights: Any, time_kv: Any, time_gemm: Any, time_attention: Any, time_exchange: Any, time_launch: Any,
                      overlap: Any) -> Any:
    """Left out: load imbalance, synchronisation, sampling, CPU work. The published step is longer."""
    times = by_resource(time_weights, time_kv, time_gemm, time_attention, time_exchange, time_launch)
    longest = np.maximum(np.maximum(times[0], times[1]), np.maximum(times[2], times[3]))
    return longest + (1 - require_between("overlap", overlap, 0.0, 1.0)) * (sum(times) - longest)


@derived(label="resource that binds", unit="", words=True, formula="the resource that is busy longest")
def binding_resource(time_weights: Any, time_kv: Any, time_gemm: Any, time_attention: Any, time_exchange: Any,
                     time_launch: Any) -> Any:
    """HBM, tensor cores, link or launches; an array of names for arrays."""
    found = np.asarray(RESOURCES)[binding_index(time_weights, time_kv, time_gemm, time_attention, time_exchange, time_launch)]
    return str(found) if np.ndim(found) == 0 else found


def binding_index(*parts_of_step: Any) -> Any:
    """Position in ``RESOURCES`` of the resource that is busy longest; the arguments are those of ``by_resource``."""
    return np.argmax(np.stack(np.broadcast_arrays(*by_resource(*parts_of_step))), axis=0)


@derived(label="share of the published step that is counted", unit="ratio", formula="counted_step_time / step_time")
def counted_share_of_step(counted_step_time: Any, step_time: Any) -> Any:
    """The rest is what this budget leaves out, or what its assumptions make too short."""
    return counted_step_time / require_positive("step_time", step_time)
