"""FLOPs per token against context, plain or FP8-equivalent (the weights of the engine's own estimator)."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import derived, require, require_between, require_positive
from inside_deepinfer.model.attention_work import KeyCount, attended, by_layer, entries_at, entries_between, scored
from inside_deepinfer.model.formats import flop_per_mac
from inside_deepinfer.model.parts import SUBLAYERS, Part, parts
from inside_deepinfer.model.shape import Shape, load_shape

CORE_FORMAT, SCORE_FORMAT = "bf16", "fp4"  # attention over latents, and index scores (released engine)


def check_context(shape: Shape, context: Any) -> Any:
    """``context`` as given, if each element is between 1 and what the model was trained for."""
    return require_between("context", context, 1, shape.body.max_context)


def _matrix(shape: Shape, part: Part, layers: float, plain: bool) -> float:
    return part.per_layer * part.share_per_token * layers * flop_per_mac(part.format, plain)


def matrix_flops(shape: Shape, layers: range, plain: bool = False) -> dict[str, float]:
    """FLOPs of one row through the weights of ``layers``, by class; classes outside the layers are left out."""
    found: dict[str, float] = {}
    for part in parts(shape):
        held = sum(layer in layers for layer in part.layers or ())
        if part.stage == "backbone" and held:
            found[part.name] = found.get(part.name, 0.0) + _matrix(shape, part, held, plain)
    found["applying the stream mix"] = len(layers) * SUBLAYERS * _streams(shape) * shape.body.hidden * flop_per_mac("fp32", plain)
    if shape.engram:
        gates = sum(layer in layers for layer in shape.engram.layers) * shape.body.residual_streams * shape.body.hidden
        found["Engram gates"] = gates * flop_per_mac("fp32", plain)
    return {name: value for name, value in found.items() if value}


def _streams(shape: Shape) -> int:
    streams = shape.body.residual_streams
    return 0 if streams == 1 else streams * streams + 2 * streams


def head_flops(shape: Shape, plain: bool = False) -> float:
    """FLOPs of one row of logits."""
    return sum(_matrix(shape, part, 1, plain) for part in parts(shape) if part.name == "head")


def shared_kv_flops(shape: Shape, plain: bool = False) -> float:
    """FLOPs of one prompt row at the first decoder layer, where only the KV that later layers share is written."""
    cut = shape.body.encoder_layers
    if cut is None:
        return 0.0
    matrices = sum(_matrix(shape, part, 1, plain) for part in parts(shape) if part.kv_side and cut in (part.layers or ()))
    mix = shape.body.residual_streams * shape.body.hidden if shape.body.residual_streams > 1 else 0
    return matrices + mix * flop_per_mac("fp32", plain)


def core_flops(shape: Shape, layers: range, keys: KeyCount, window_keys: Any, plain: bool = False, decode: bool = True) -> Any:
    """FLOPs of scores and weighted sums over cached entries, of all heads.

    Args:
        keys: how many entries a layer uses (see ``attention_work``).
        window_keys: sliding-window keys per layer, already counted over the same rows.
        decode: MLA works in the latent space in decode and with expanded heads in prefill.
    """
    at = shape.attention
    if at.design == "latent":
        per_key = at.heads * 2 * at.head_dim
    else:
        per_key = at.heads * (2 * at.kv_rank + at.rope_dim if decode else at.head_dim + at.rope_dim + at.value_dim)
    used = by_layer(attended, shape, layers, keys) + len(layers) * window_keys
    return used * per_key * flop_per_mac(CORE_FORMAT, plain)


def score_flops(shape: Shape, layers: range, keys: KeyCount, plain: bool = False) -> Any:
    """FLOPs of the index scores that choose entries."""
    if not shape.index:
        return 0.0
    per_key = shape.index.heads * shape.index.head_dim
    return by_layer(scored, shape, layers, keys) * per_key * flop_per_mac(SCORE_FORMAT, plain)


def decode_flops_by_class(shape: Shape, context: Any, plain: bool = False) -> dict[str, Any]:
    """FLOPs of one decode row by class; they sum to ``decode_flops_per_token``. Draft model, padding and copies are left out."""
    context = np.asarray(check_context(shape, context), dtype=float)
    layers, keys = range(shape.body.layers), entries_at(context)
    window = np.minimum(context, shape.attention.window)
    return matrix_flops(shape, layers, plain) | {
        "attention over entries": core_flops(shape, layers, keys, window, plain),
        "index scores": score_flops(shape, layers, keys, plain),
        "head": head_flops(shape, plain),
    }


def prefill_flops(shape: Shape, start: Any, end: Any, keep: Any = None, plain: bool = False) -> Any:
    """FLOPs of the prompt positions start + 1 to end, one row of logits included.

    Args:
        start: tokens found in the cache.
        end: length of the prompt.
        keep: rows that still pass the decoder layers (bounded replay); None for all. Their sliding window there
            starts at the first kept row. A model without an encoder-decoder split ignores it.
    """
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    rows, window, cut = end - start, shape.attention.window, shape.body.encoder_layers
    require(rows > 0, "new tokens", rows, "at least 1")
    if cut is None or keep is None:
        whole = range(shape.body.layers)
        return rows * sum(matrix_flops(shape, whole, plain).values()) + _between(shape, whole, start, end, plain) \
            + head_flops(shape, plain)
    encoder, decoder = range(cut), range(cut, shape.body.layers)
    kept = np.minimum(keep, rows)
    shared = shared_kv_flops(shape, plain)
    in_kept_window = entries_between(0, kept)(1, window)
    return (rows * (sum(matrix_flops(shape, encoder, plain).values()) + shared) + _between(shape, encoder, start, end, plain)
            + kept * (sum(matrix_flops(shape, decoder, plain).values()) - shared)
            + _between(shape, decoder, end - kept, end, plain, in_kept_window) + head_flops(shape, plain))


def _between(shape: Shape, layers: range, start: Any, end: Any, plain: bool, window_keys: Any = None) -> Any:
    keys = entries_between(start, end)
    if window_keys is None:
        window_keys = keys(1, shape.attention.window) if shape.attention.window else 0.0
    return core_flops(shape, layers, keys, window_keys, plain, decode=False) + score_flops(shape, layers, keys, plain)


@derived(label="FP8-equivalent FLOP per decoded row", unit="FLOP/token", words=True,
         formula="weights, attention, index scores and head; FP4 1, FP8 2, BF16 4, TF32 8 FLOP per multiply-add")
def decode_flops_per_token(model: str, context: Any) -> Any:
    """One row of a decode step at a context. Derived from config and estimator: 41.6 GFLOP at 77K for V4.1-Flash."""
    return sum(decode_flops_by_class(load_shape(model), context).values())


@derived(label="plain FLOP per decoded row", unit="FLOP/token", words=True, formula="the same with 2 FLOP per multiply-add")
def decode_flops_plain(model: str, context: Any) -> Any:
    """Without weighting by format: 37.6 GFLOP at 77K for V4.1-Flash."""
    return sum(decode_flops_by_class(load_shape(model), context, plain=True).values())


@derived(label="prompt tokens to compute", unit="token", formula="input_tokens * (1 - hit_rate)")
def computed_prompt_tokens(input_tokens: Any, hit_rate: Any) -> Any:
    """What the prefix cache leaves of a mean prompt."""
    return require_positive("input_tokens", input_tokens) * (1 - require_between("hit_rate", hit_rate, 0.0, 1.0))


def _per_token(model: str, tokens: Any, new: Any, keep: Any, plain: bool = False) -> Any:
    shape = load_shape(model)
    check_context(shape, tokens)
    end, new = np.rint(tokens), np.maximum(np.rint(new), 1)
    return prefill_flops(shape, end - new, end, keep, plain) / new


@derived(label="FP8-equivalent FLOP per new prompt token", unit="FLOP/token", words=True, uses={"keep": "engine.replay_keep"},
         formula="encoder layers for every new token, decoder layers for the kept ones, one row of logits")
def prefill_flops_per_token(model: str, input_tokens: Any, computed_prompt_tokens: Any, keep: Any) -> Any:
    """With bounded replay. Derived: 20.48 GFLOP for 3,080 new of 77,000, 19.29 for 16,384 from nothing (V4.1-Flash)."""
    return _per_token(model, input_tokens, computed_prompt_tokens, require_positive("keep", keep))


@derived(label="FP8-equivalent FLOP per new prompt token without bounded replay", unit="FLOP/token", words=True,
         formula="all layers for every new token, one row of logits")
def prefill_flops_per_token_full(model: str, input_tokens: Any, computed_prompt_tokens: Any) -> Any:
    """Every row passes every layer. Derived: 38.93 and 37.99 GFLOP in the two cases."""
    return _per_token(model, input_tokens, computed_prompt_tokens, None)


@derived(label="plain FLOP per new prompt token", unit="FLOP/token", words=True, uses={"keep": "engine.replay_keep"},
         formula="as the FP8-equivalent count with bounded replay, with 2 FLOP per multiply-add")
def prefill_flops_plain(model: str, input_tokens: Any, computed_prompt_tokens: Any, keep: Any) -> Any:
    """Without weighting by format. Derived: 17.84 GFLOP for 77,000 from nothing (V4.1-Flash)."""
    return _per_token(model, input_tokens, computed_prompt_tokens, require_positive("keep", keep), plain=True)


@derived(label="prefill work with bounded replay over without", unit="ratio",
         formula="prefill_flops_per_token / prefill_flops_per_token_full")
def prefill_flops_ratio_replay(prefill_flops_per_token: Any, prefill_flops_per_token_full: Any) -> Any:
    """Reported as "nearly halves"; 1 for a model without encoder-decoder split."""
    return prefill_flops_per_token / prefill_flops_per_token_full
