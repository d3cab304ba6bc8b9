"""Counts of chapters 6 and 7 that something published stands beside: sizes on disk, a common mistake, arithmetic of a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require_positive, show
from inside_deepinfer.model.formats import bytes_per_value
from inside_deepinfer.model.kv import entry_values, index_entry_bytes, kv_entry_bytes
from inside_deepinfer.model.parts import parts
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.serving.cards import card_number
from inside_deepinfer.serving.links import share_leaving_gpu


@derived(label="hidden size", unit="", formula="the size in the model's shape", words=True)
def hidden_size(model: str) -> int:
    """Values of one token between two layers."""
    return load_shape(model).body.hidden


@derived(label="width of an expert", unit="", formula="the size in the model's shape", words=True)
def expert_width(model: str) -> int:
    """Values between the matrices of one routed expert. Config: 2,304 for V4.1-Flash."""
    return load_shape(model).experts.width


@derived(label="layers that own KV", unit="layer", formula="the count in the model's shape", words=True)
def kv_layers(model: str) -> int:
    """Layers that write entries; the others read those of the nearest one at or before them. Config: 4 for V4.1-Flash."""
    return len(load_shape(model).kv_layers)


@derived(label="bytes of all weights, counted", unit="B", formula="every class as stored + vision_bytes", words=True)
def counted_checkpoint_bytes(model: str, vision_bytes: Any) -> Any:
    """Backbone, Engram tables, draft model and image encoder, each once: what a checkpoint on disk holds."""
    return sum(part.bytes for part in parts(load_shape(model))) + vision_bytes


@derived(label="counted bytes over the checkpoint on disk, minus 1", unit="ratio", formula="counted_checkpoint_bytes / disk - 1",
         uses={"disk": "v41.checkpoint_bytes"})
def checkpoint_error(counted_checkpoint_bytes: Any, disk: Any) -> Any:
    """Third parties list the files; their sizes are rounded to 10 GB or so."""
    return counted_checkpoint_bytes / require_positive("checkpoint", disk) - 1


@derived(label="Engram bytes looked up per token", unit="B/token", words=True,
         formula="Engram layers * rows per token * row width * bytes per value")
def engram_bytes_per_token(model: str) -> float:
    """Rows fetched for one token, scales included; 0 for a model without tables."""
    shape = load_shape(model)
    if not shape.engram:
        return 0.0
    en = shape.engram
    return len(en.layers) * en.rows_per_token * en.row_width * bytes_per_value(shape.formats.engram)


@derived(label="values of a KV entry", unit="", words=True, formula="size of the cached latent, with its rotary part for MLA")
def kv_entry_values(model: str) -> int:
    """Config: 512 for V4.1-Flash, 576 for V3."""
    return entry_values(load_shape(model))


@derived(label="bytes of a KV entry", unit="B", words=True, formula="values of the cached latent * bytes per value")
def kv_entry_size(model: str) -> float:
    """One compressed entry of one layer."""
    return kv_entry_bytes(load_shape(model))


@derived(label="bytes of an index key", unit="B", words=True, formula="values of an index key * bytes per value")
def index_key_size(model: str) -> float:
    """0 for a model without sparse selection."""
    return index_entry_bytes(load_shape(model))


@derived(label="KV bytes per token if every searching layer kept keys", unit="B/token", words=True,
         formula="as kv_bytes_per_token, with an index key in each layer that searches")
def kv_bytes_with_keys_in_every_search(model: str) -> float:
    """A common mistake: layers that search again do so in the keys of an earlier layer. 1,162 for V4.1-Flash."""
    shape = load_shape(model)
    searching = shape.index.layers if shape.index else ()
    return (sum(kv_entry_bytes(shape) / shape.ratios[layer] for layer in shape.kv_layers)
            + sum(index_entry_bytes(shape) / shape.ratios[layer] for layer in searching))


@derived(label="FP8-equivalent compute per decode GPU", unit="FLOP/s",
         formula="batch * rows_per_sequence * decode_flops_per_token / step_time")
def decode_compute(batch: Any, rows_per_sequence: Any, decode_flops_per_token: Any, step_time: Any) -> Any:
    """All verified rows, attention included; the draft model comes on top."""
    rows = require_positive("batch", batch) * require_positive("rows_per_sequence", rows_per_sequence)
    return rows * decode_flops_per_token / require_positive("step_time", step_time)


@derived(label="that compute over the card's FP8 peak", unit="ratio", formula="decode_compute / card_fp8_peak")
def decode_compute_share(decode_compute: Any, card_fp8_peak: Any) -> Any:
    """Mean over the step."""
    return decode_compute / card_fp8_peak


@derived(label="share of the link that DeepEP reaches", unit="ratio", words=True,
         uses={"dispatch": "link.deepep_dispatch", "combine": "link.deepep_combine", "gpus": "link.deepep_gpus",
               "measured_on": "link.deepep_card"},
         formula="mean of dispatch and combine * (gpus - 1) / gpus / link bandwidth of the card")
def deepep_link_share(dispatch: Any, combine: Any, gpus: Any, measured_on: str) -> Any:
    """The stated rates count rows that never leave their GPU, which are taken off. Large batches: an upper end for decode."""
    return (dispatch + combine) / 2 * share_leaving_gpu(gpus) / card_number(measured_on, "scaleup_bandwidth")


@derived(label="counted weight bytes over what HBM gives in that time", unit="ratio",
         formula="hbm_read_bytes_per_step / window / peak", uses={"window": "article.weights_window", "peak": "hbm.peak"})
def counted_burst_share(hbm_read_bytes_per_step: Any, window: Any, peak: Any) -> Any:
    """The article's what-if with the counted bytes; above 1 it cannot be."""
    return hbm_read_bytes_per_step / require_positive("window", window) / require_positive("peak", peak)


@derived(label="sequences per decode GPU, V3/R1", unit="sequence/GPU", formula="throughput / gpus / speed",
         uses={"throughput": "v3r1.decode_throughput", "gpus": "v3r1.gpus_per_node", "speeds": "v3r1.user_speed"}, words=True)
def v3r1_sequences_per_gpu(throughput: Any, gpus: Any, speeds: Any) -> Any:
    """Throughput of a node over its GPUs and over the middle of the reported speeds per user."""
    return throughput / gpus / (sum(speeds) / len(speeds))


@derived(label="counted step time, if the scenario fits in HBM", unit="s", formula="counted_step_time", words=True, listed=False)
def fitting_step_time(counted_step_time: Any, fitting_batch: Any) -> Any:
    """The dashboard's card: a step of a scenario that does not fit is no number but the reason."""
    return counted_step_time


@derived(label="resource that binds, if the scenario fits in HBM", unit="", formula="binding_resource", words=True, listed=False)
def fitting_binding_resource(binding_resource: Any, fitting_step_time: Any) -> Any:
    """As above."""
    return binding_resource


@derived(label="share of HBM bandwidth for weights, if the step can be", unit="ratio", formula="hbm_share", words=True, listed=False,
         uses={"fits": "fitting_step_time"})
def feasible_hbm_share(hbm_share: Any, hbm_read_bytes_per_step: Any, card_bandwidth: Any, step_time: Any, fits: Any) -> Any:
    """Above 1 the scenario's step time is shorter than its weights take to read: the reason, not a number; as where it does not fit."""
    if np.any(np.asarray(hbm_share) > 1):
        shortest = show(np.max(hbm_read_bytes_per_step / card_bandwidth), "s", 3)
        raise NotPossible(f"reading the weights at peak bandwidth takes {shortest}, longer than the step time of "
                          f"{show(np.min(step_time), 's', 3)}")
    return hbm_share
