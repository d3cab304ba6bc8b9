"""Decode steps of layouts that share every weight between a few cards (tensor parallelism), as public engines run them.

With TP over g cards a step of all sequences together costs each card 1/g of the weight bytes and of the FLOP, the
live KV of all sequences (heads are split, but all heads read the same latent), and two all-reduces per layer. Counts of the whole
model on one GPU come from the same derived numbers, with a group of one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, load_facts, require
from inside_deepinfer.model.flops import prefill_flops
from inside_deepinfer.model.formats import bytes_per_value
from inside_deepinfer.model.shape import Shape, load_shape
from inside_deepinfer.serving.cards import card_number, get_card
from inside_deepinfer.serving.published import at_published
from inside_deepinfer.serving.step_budget import counted_step_time

ALL_REDUCES_PER_LAYER = 2  # after attention and after the experts
REDUCED_FORMAT = "bf16"
PARTS = ("time_weights", "time_kv", "time_gemm", "time_attention", "time_launch", "overlap")


def check_domain(card: str, gpus: int) -> int:
    """``gpus`` if they are one scale-up domain: an all-reduce in every layer does not cross it."""
    domain = get_card(card).scaleup_domain
    require(gpus >= 1 and gpus == int(gpus), "gpus", gpus, "a whole number of at least 1")
    if domain is not None and gpus > domain:
        raise NotPossible(f"TP{gpus} needs more cards than the {domain} of a {get_card(card).name} scale-up domain")
    return int(gpus)


def all_reduce_time(shape: Shape, card: str, gpus: int, rows: Any, layers: int) -> Any:
    """Seconds of the all-reduces of ``layers`` layers over ``rows`` rows; ring, one direction of the link."""
    if gpus == 1:
        return 0.0 * np.asarray(rows, dtype=float)
    facts = load_facts()
    sent = 2 * (gpus - 1) / gpus * np.asarray(rows, dtype=float) * shape.body.hidden * bytes_per_value(REDUCED_FORMAT)
    once = sent / (card_number(card, "scaleup_bandwidth") * facts.number("efficiency.link")) + facts.number("link.latency")
    return layers * ALL_REDUCES_PER_LAYER * once


def shared_step_time(model: str, card: str, gpus: int, sequences: Any, rows_per_sequence: float, context: float) -> Any:
    """Counted time of a decode step of ``sequences`` sequences on ``gpus`` cards with TP; an array for an array."""
    check_domain(card, gpus)
    shape, n = load_shape(model), np.asarray(sequences, dtype=float)
    whole = at_published(PARTS, model=model, card=card, ep=1, redundant_experts=0, batch=n, rows_per_sequence=rows_per_sequence,
                         context=context)
    drafts, draft_layers = (shape.draft.tokens, shape.draft.layers) if shape.draft else (0, 0)
    reduce = all_reduce_time(shape, card, gpus, n * rows_per_sequence, shape.body.layers)
    if draft_layers:
        reduce = reduce + all_reduce_time(shape, card, gpus, n * drafts, draft_layers)
    return counted_step_time(whole["time_weights"] / gpus, whole["time_kv"], whole["time_gemm"] / gpus,
                             whole["time_attention"] / gpus, reduce, whole["time_launch"], whole["overlap"])


def shared_prefill_time(model: str, card: str, gpus: int, prompt: float, chunk: float) -> float:
    """Counted seconds to compute a prompt from nothing on ``gpus`` cards with TP, chunk by chunk, every token in all layers."""
    check_domain(card, gpus)
    shape, facts = load_shape(model), load_facts()
    whole = at_published(("replicated_read_bytes", "routed_expert_bytes", "card_bandwidth", "card_fp8_peak", "time_launch", "overlap"),
                         model=model, card=card)
    start = np.arange(0.0, prompt, chunk)
    end = np.minimum(start + chunk, prompt)
    weights = (whole["replicated_read_bytes"] + whole["routed_expert_bytes"]) / gpus / (
        whole["card_bandwidth"] * facts.number("hardware.hbm_efficiency"))
    compute = prefill_flops(shape, start, end) / gpus / (whole["card_fp8_peak"] * facts.number("efficiency.gemm"))
    reduce = all_reduce_time(shape, card, gpus, end - start, shape.body.layers)
    return float(np.sum(counted_step_time(weights, 0.0, compute, 0.0, reduce, whole["time_launch"], whole["overlap"])))
