"""Numbers around bounded replay: what an exact replay would need, what it would cost, and where 134 and 140 stand."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require_positive
from inside_deepinfer.model.flops import prefill_flops
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.numerics.replay import Stack, run


@derived(label="last tokens that an exact decoder half would need", unit="token", words=True,
         formula="decoder layers * (window - 1) + 1")
def exact_decoder_tokens(model: str) -> int:
    """Each decoder layer looks ``window - 1`` tokens further back; older tokens cannot reach the last one by the window."""
    shape = load_shape(model)
    if shape.body.encoder_layers is None or not shape.attention.window:
        raise NotPossible(f"{shape.name} has no encoder-decoder split with a sliding window, so there is nothing to replay")
    return (shape.body.layers - shape.body.encoder_layers) * (shape.attention.window - 1) + 1


@derived(label="prefill work with an exact decoder half over without replay", unit="ratio", words=True,
         formula="FLOPs with exact_decoder_tokens kept over FLOPs of all layers for every new token")
def prefill_ratio_exact(model: str, input_tokens: Any, computed_prompt_tokens: Any, exact_decoder_tokens: Any) -> Any:
    """Every token that can reach the last one passes the whole decoder half; ``prefill_ratio_exact_least`` drops rows on the way."""
    shape = load_shape(model)
    end, new = np.rint(input_tokens), np.maximum(np.rint(computed_prompt_tokens), 1)
    return prefill_flops(shape, end - new, end, exact_decoder_tokens) / prefill_flops(shape, end - new, end)


@derived(label="rows that a layer of an exact decoder half must compute, on average", unit="token", words=True,
         formula="(decoder layers - 1) * (window - 1) / 2 + 1")
def exact_rows_mean(model: str) -> float:
    """The last layer computes one row, each layer before it ``window - 1`` more; of a prompt that is at least that long."""
    return float(np.mean(_staircase(model)))


def _staircase(model: str) -> np.ndarray:
    """Rows that each decoder layer must compute so that the last token is exact, first layer first."""
    reach = exact_decoder_tokens(model)
    shape = load_shape(model)
    return np.arange(reach - shape.attention.window + 1, 0, 1 - shape.attention.window) if shape.attention.window > 1 else np.ones(reach)


@derived(label="prefill work with an exact decoder half whose layers drop rows over without replay", unit="ratio", words=True,
         formula="mean over the decoder layers of FLOPs with the rows kept that the layer must compute, over FLOPs of all layers")
def prefill_ratio_exact_least(model: str, input_tokens: Any, computed_prompt_tokens: Any) -> Any:
    """The least exact work: no layer computes a row that no later one reads. Window keys of the rows before them are not counted."""
    shape = load_shape(model)
    end, new = np.rint(input_tokens), np.maximum(np.rint(computed_prompt_tokens), 1)
    last, rows = np.asarray(end)[..., None], np.asarray(new)[..., None]
    kept = prefill_flops(shape, last - rows, last, _staircase(model)).mean(axis=-1)
    return (kept / prefill_flops(shape, end - new, end))[()]


@derived(label="kept tokens beyond the released ring", unit="token", formula="keep - released_ring", uses={"keep": "engine.replay_keep"})
def kept_beyond_ring(keep: Any, released_ring: Any) -> Any:
    """The README recommends 140 and the code enforces the ring's length; nothing derives the difference."""
    return require_positive("keep", keep) - released_ring


@derived(label="kept tokens over those of an exact decoder half", unit="ratio", formula="keep / exact_decoder_tokens",
         uses={"keep": "engine.replay_keep"})
def kept_share_of_exact(keep: Any, exact_decoder_tokens: Any) -> Any:
    """How small the replayed suffix is."""
    return require_positive("keep", keep) / exact_decoder_tokens


def error_curve(stack: Stack, tokens: np.ndarray, keeps: np.ndarray) -> np.ndarray:
    """Largest difference in the last position for each number of kept tokens, relative to the largest exact value there.

    The exact run is made once; :func:`numerics.replay.largest_error` is the same for a single number.
    """
    exact = run(stack, tokens)[-1]
    found = [np.abs(run(stack, tokens, "compact", int(keep))[-1] - exact).max() for keep in keeps]
    return np.array(found) / np.abs(exact).max()


FULL, BOUNDED, DROPPED = 2, 1, 0  # a row in a layer: computed, computed with a window that ends at the rectangle, left out


def work_map(count: int, layers: int, keep: int, window: int, mode: str) -> np.ndarray:
    """What is done with each position in each layer: layers x positions of FULL, BOUNDED or DROPPED."""
    found = np.full((layers, count), FULL)
    if mode == "exact":
        return found
    start, at = count - keep, np.arange(count)
    decoder = np.where(at < start, BOUNDED if mode == "mask" else DROPPED, np.where(at - start < window - 1, BOUNDED, FULL))
    found[layers // 2:] = decoder
    return found
