"""The exchange between GPUs around the experts: rows go out to experts (dispatch) and come back (combine).

Inside a scale-up domain every copy of a row travels by itself. Across domains there are two ways: a row is sent once per domain
and passed on inside, as DeepEP's kernels for large batches do it, or once per expert, as its low-latency kernels did. Sending and
receiving are even, so one direction of one GPU's link is what counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require, require_between, require_not_negative, require_positive
from inside_deepinfer.facts.arrays import by_name
from inside_deepinfer.model.formats import bytes_per_value
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.model.weights import check_ep
from inside_deepinfer.serving.cards import card_number

CROSSINGS = ("domain", "expert")
# scenario parameters that only the exchange rests on
PARAMETERS = ("dispatch_format", "combine_format", "scaleup_domain", "scaleout_bandwidth", "crossing")


def domains_reached(ep: Any, domain: Any, copies: int) -> Any:
    """Expected number of other scale-up domains that the experts of one row stand in.

    The row's own domain is full; what remains of the group fills further domains, the last one perhaps in part.
    """
    ep, domain = np.asarray(ep, dtype=float), np.asarray(domain, dtype=float)
    outside = np.maximum(ep - domain, 0.0)
    whole, rest = np.floor(outside / domain), outside % domain
    return whole * (1 - (1 - np.minimum(domain / ep, 1.0)) ** copies) + (1 - (1 - rest / ep) ** copies)


def row_bytes(model: str, formats: Any) -> Any:
    """Bytes of one row between two layers in a number format, scales included; an array for an array of format names."""
    return load_shape(model).body.hidden * by_name(formats, bytes_per_value)


@derived(label="bytes of a row sent to one expert", unit="B", words=True,
         formula="hidden size * bytes per value of the dispatch format")
def dispatch_row_bytes(model: str, dispatch_format: Any) -> Any:
    """One copy of a row on its way out, scales included."""
    return row_bytes(model, dispatch_format)


@derived(label="bytes of a row sent back by one expert", unit="B", words=True,
         formula="hidden size * bytes per value of the combine format")
def combine_row_bytes(model: str, combine_format: Any) -> Any:
    """One copy of a row on its way back."""
    return row_bytes(model, combine_format)


@derived(label="all-to-all bytes per token and layer", unit="B/token",
         formula="active_experts * (dispatch_row_bytes + combine_row_bytes)")
def exchange_bytes_per_token_layer(active_experts: Any, dispatch_row_bytes: Any, combine_row_bytes: Any) -> Any:
    """Both ways, all copies, as if every expert stood on another GPU."""
    return active_experts * (dispatch_row_bytes + combine_row_bytes)


@derived(label="all-to-all bytes per token", unit="B/token", formula="moe_layers * exchange_bytes_per_token_layer")
def exchange_bytes_per_token(moe_layers: Any, exchange_bytes_per_token_layer: Any) -> Any:
    """All layers of the trunk."""
    return moe_layers * exchange_bytes_per_token_layer


@derived(label="share of the copies that leave their GPU", unit="ratio", formula="(ep - 1) / ep")
def share_leaving_gpu(ep: Any) -> Any:
    """Experts are taken as equally popular."""
    return (np.asarray(ep, dtype=float) - 1) / require_positive("ep", ep)


@derived(label="all-to-all bytes per GPU and step", unit="B/GPU", words=True,
         formula="(rows of the trunk * its bytes per token + rows of the draft model * its own) * share_leaving_gpu")
def exchange_bytes_per_step(model: str, batch: Any, rows_per_sequence: Any, ep: Any, exchange_bytes_per_token: Any,
                            share_leaving_gpu: Any, dispatch_row_bytes: Any, combine_row_bytes: Any) -> Any:
    """What one GPU sends, both ways together; it receives as much."""
    shape = load_shape(model)
    check_ep(shape.experts.routed, ep)
    per_sequence = require_positive("rows_per_sequence", rows_per_sequence) * exchange_bytes_per_token
    if shape.draft:
        per_sequence = per_sequence + shape.draft.tokens * shape.draft.layers * shape.draft.active * (
            dispatch_row_bytes + combine_row_bytes)
    return require_positive("batch", batch) * per_sequence * share_leaving_gpu


@derived(label="scale-up domain", unit="GPU", formula="the scenario's own, or where it names none the card's entry in data/hardware",
         words=True)
def card_domain(card: Any, scaleup_domain: Any) -> Any:
    """GPUs that reach each other over the scale-up link. ``scaleup_domain``: 0 for what the card states."""
    chosen = np.asarray(require_not_negative("scaleup_domain", scaleup_domain), dtype=float)
    require(chosen == np.floor(chosen), "scaleup_domain", scaleup_domain, "a whole number of GPUs, or 0 for the card's own")
    if np.all(chosen > 0):
        return chosen[()]
    try:
        own = card_number(card, "scaleup_domain")
    except NotPossible as reason:
        raise NotPossible(f"{reason}; set scaleup_domain to say how large it is") from None
    return np.where(chosen > 0, chosen, own)[()]


@derived(label="link bandwidth of the card", unit="B/s", formula="the card's entry in data/hardware", words=True)
def card_link_bandwidth(card: Any) -> Any:
    """One direction of one GPU's scale-up link."""
    return card_number(card, "scaleup_bandwidth")


@derived(label="scale-up link over the network between domains", unit="ratio", formula="card_link_bandwidth / scaleout_bandwidth")
def link_over_network(card_link_bandwidth: Any, scaleout_bandwidth: Any) -> Any:
    """How much slower a GPU reaches what lies outside its domain."""
    return card_link_bandwidth / require_positive("scaleout_bandwidth", scaleout_bandwidth)


@derived(label="copies of a row that cross to other domains", unit="copy/token", words=True,
         formula="expected number of other scale-up domains that hold one of the row's experts, or of experts that stand in them")
def crossing_copies(active_experts: Any, ep: Any, card_domain: Any, crossing: Any) -> Any:
    """0 while the whole EP group fits into one domain. ``crossing``: once per "domain" or once per "expert"."""
    known = np.isin(np.asarray(crossing, dtype=str), CROSSINGS)
    require(known, "crossing", crossing, " or ".join(CROSSINGS))
    ep = np.asarray(require_positive("ep", ep), dtype=float)
    outside = active_experts * np.maximum(ep - card_domain, 0.0) / ep
    return np.where(np.asarray(crossing) == "expert", outside, domains_reached(ep, card_domain, int(active_experts)))[()]


@derived(label="bytes that cross the scale-up domain per GPU and step", unit="B/GPU",
         formula="batch * rows_per_sequence * moe_layers * crossing_copies * (dispatch_row_bytes + combine_row_bytes)")
def crossing_bytes_per_step(batch: Any, rows_per_sequence: Any, moe_layers: Any, crossing_copies: Any, dispatch_row_bytes: Any,
                            combine_row_bytes: Any) -> Any:
    """Rows of the trunk, both ways; the draft model's few rows are left out."""
    rows = require_positive("batch", batch) * require_positive("rows_per_sequence", rows_per_sequence)
    return rows * moe_layers * crossing_copies * (
        dispatch_row_bytes + combine_row_bytes)


@derived(label="time of dispatch and combine", unit="s", words=True,
         uses={"efficiency": "exchange_efficiency", "latency": "link.latency",
               "per_layer": "link.exchanges_per_layer"},
         formula="the longer of bytes over link and crossing bytes over network, + a latency per exchange")
def time_exchange(model: str, ep: Any, exchange_bytes_per_step: Any, crossing_bytes_per_step: Any, card_link_bandwidth: Any,
                  efficiency: Any, scaleout_bandwidth: Any, latency: Any, per_layer: Any) -> Any:
    """0 where a single GPU holds all experts. The two links work at the same time; exchanges of different layers do not."""
    shape = load_shape(model)
    require_between("efficiency.link", efficiency, 1e-6, 1.0)
    layers = shape.moe_layers + (shape.draft.layers if shape.draft else 0)
    moving = np.maximum(exchange_bytes_per_step / (card_link_bandwidth * efficiency),
                        crossing_bytes_per_step / (require_positive("scaleout_bandwidth", scaleout_bandwidth) * efficiency))
    waiting = np.where(np.asarray(ep) > 1, layers * per_layer * require_not_negative("link.latency", latency), 0.0)
    return moving + waiting
