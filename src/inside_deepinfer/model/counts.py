"""Parameters of a shape by class: all, and those that one token uses in decode and in prefill."""

from __future__ import annotations

from typing import Any

from inside_deepinfer.facts import derived
from inside_deepinfer.model.formats import bytes_per_value
from inside_deepinfer.model.parts import Part, expert_parameters, parts
from inside_deepinfer.model.shape import Shape, load_shape


def parameters_by_class(shape: Shape) -> dict[str, int]:
    """Parameters of each class of weights, in the order of the shape; classes of one name are added."""
    found: dict[str, int] = {}
    for part in parts(shape):
        found[part.name] = found.get(part.name, 0) + part.parameters
    return found


def _stage(shape: Shape, stage: str) -> list[Part]:
    return [part for part in parts(shape) if part.stage == stage]


def prompt_share(shape: Shape, part: Part) -> float:
    """Share of a part's layers that every prompt token passes.

    With an encoder-decoder split that is the encoder, and of the first decoder layer what writes shared KV;
    the head runs once per prompt and counts as 0.
    """
    cut = shape.body.encoder_layers
    if part.name == "head":
        return 0.0
    if cut is None or part.layers is None:
        return 1.0
    passed = [layer for layer in part.layers if layer < cut or (layer == cut and part.kv_side)]
    return len(passed) / len(part.layers)


@derived(label="layers", unit="layer", formula="the count in the model's shape", words=True)
def model_layers(model: str) -> int:
    """Transformer layers of the trunk."""
    return load_shape(model).body.layers


@derived(label="layers with experts", unit="layer", formula="layers less the dense ones at the start", words=True)
def moe_layers(model: str) -> int:
    """Layers whose feed-forward part is a mixture of experts."""
    return load_shape(model).moe_layers


@derived(label="routed experts per layer", unit="expert/layer", formula="the count in the model's shape", words=True)
def routed_experts(model: str) -> int:
    """Experts among which the router chooses. Config: 384 for V4.1-Flash; article 000 states 256."""
    return load_shape(model).experts.routed


@derived(label="experts per token", unit="expert/token", formula="the count in the model's shape", words=True)
def active_experts(model: str) -> int:
    """Routed experts that one token passes in a layer."""
    return load_shape(model).experts.active


@derived(label="parameters of one expert", unit="parameter/expert", name="expert_parameters",
         formula="3 matrices of hidden size by expert width", words=True)
def one_expert_parameters(model: str) -> int:
    """Gate, up and down projection of one routed expert."""
    return expert_parameters(load_shape(model))


@derived(label="bytes per weight of a routed expert", unit="B", formula="bits of the format and its share of a scale", words=True)
def routed_bytes_per_value(model: str) -> float:
    """0.53125 for MXFP4: half a byte and one scale byte per 32 weights."""
    return bytes_per_value(load_shape(model).formats.routed)


@derived(label="bytes of one expert", unit="B/expert", formula="expert_parameters * routed_bytes_per_value")
def expert_bytes(expert_parameters: Any, routed_bytes_per_value: Any) -> Any:
    """One routed expert of one layer as stored, scales included. Config: 18.80 MB for V4.1-Flash."""
    return expert_parameters * routed_bytes_per_value


@derived(label="bytes of all routed experts", unit="B", formula="moe_layers * routed_experts * expert_bytes")
def routed_expert_bytes(moe_layers: Any, routed_experts: Any, expert_bytes: Any) -> Any:
    """All routed experts of the trunk, each once. Public checkpoints: 289 GB for V4.1-Flash."""
    return moe_layers * routed_experts * expert_bytes


@derived(label="parameters of the routed experts", unit="parameter", formula="moe_layers * routed_experts * expert_parameters")
def routed_parameters(moe_layers: Any, routed_experts: Any, expert_parameters: Any) -> Any:
    """Parameters in routed experts of the trunk."""
    return moe_layers * routed_experts * expert_parameters


@derived(label="parameters outside the routed experts", unit="parameter", words=True,
         formula="attention, shared expert, embedding, head, router, index, compressors, stream mixing, Engram projections")
def replicated_parameters(model: str) -> int:
    """What data-parallel attention keeps on every GPU of an instance."""
    return sum(part.parameters for part in _stage(load_shape(model), "backbone") if not part.routed)


@derived(label="parameters of the backbone", unit="parameter", formula="routed_parameters + replicated_parameters")
def backbone_parameters(routed_parameters: Any, replicated_parameters: Any) -> Any:
    """Everything but Engram tables and draft model. Reported: 552B for V4.1-Flash, 671B for V3."""
    return routed_parameters + replicated_parameters


@derived(label="parameters of the Engram tables", unit="parameter", formula="rows of all tables times their width", words=True)
def engram_parameters(model: str) -> int:
    """Lookup tables; 0 for a model without. Reported: 196B for V4.1-Flash."""
    return sum(part.parameters for part in _stage(load_shape(model), "tables"))


@derived(label="parameters of the draft model", unit="parameter", formula="the draft model's own classes of weights", words=True)
def draft_parameters(model: str) -> int:
    """Layers and heads that only speculation uses; embedding and head are the trunk's."""
    return sum(part.parameters for part in _stage(load_shape(model), "draft"))


@derived(label="parameters active per decoded token", unit="parameter", words=True,
         formula="every class times the share of it that a token multiplies with")
def active_parameters_decode(model: str) -> float:
    """Trunk with head, without embedding rows and draft model. Reported: 16B for V4.1-Flash, 37B for V3."""
    return sum(part.parameters * part.share_per_token for part in _stage(load_shape(model), "backbone"))


@derived(label="parameters active per prompt token", unit="parameter", words=True,
         formula="as in decode, of the layers that a prompt token passes, without the head")
def active_parameters_prefill(model: str) -> float:
    """Half of the layers for V4.1-Flash, where the decoder layers read KV that layer 20 writes. Reported: 8B."""
    shape = load_shape(model)
    return sum(part.parameters * part.share_per_token * prompt_share(shape, part) for part in _stage(shape, "backbone"))
