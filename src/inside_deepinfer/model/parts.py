"""A shape taken apart: one entry per class of weight, from which parameters, bytes, reads and FLOPs are summed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from inside_deepinfer.model.formats import bytes_per_value
from inside_deepinfer.model.shape import Shape

EXPERT_MATRICES = 3  # gate, up and down projection
SUBLAYERS = 2  # attention and experts, each with its own mixing of the residual streams


@dataclass(frozen=True)
class Part:
    """One class of weights.

    Attributes:
        name: class, e.g. "attention".
        layers: layer numbers that hold it; None for what stands outside the layers.
        per_layer: parameters in one layer (or in all, outside the layers).
        format: storage format.
        stage: "backbone", "draft" or "tables" (Engram rows, looked up and kept out of HBM).
        routed, active: experts per layer and how many a token uses; 0 for what every token uses.
        kv_side: needed for every prompt token also at the layer where an encoder-decoder split cuts.
        read: False for a table of which only rows are fetched (embedding).
    """

    name: str
    layers: tuple[int, ...] | None
    per_layer: int
    format: str
    stage: str = "backbone"
    routed: int = 0
    active: int = 0
    kv_side: bool = False
    read: bool = True

    @property
    def parameters(self) -> int:
        return self.per_layer * (1 if self.layers is None else len(self.layers))

    @property
    def share_per_token(self) -> float:
        """Share of the parameters that one token multiplies with."""
        if not self.read:
            return 0.0
        return self.active / self.routed if self.routed else 1.0

    @property
    def bytes(self) -> float:
        return self.parameters * bytes_per_value(self.format)


@lru_cache(maxsize=16)
def parts(shape: Shape) -> tuple[Part, ...]:
    """All classes of weights of a shape; norms, sinks and biases (below 0.01 %) are left out, as in the published counts."""
    found = _trunk(shape) + _experts(shape) + _compressors(shape)
    if shape.engram:
        found += _engram(shape)
    if shape.draft:
        found += _draft(shape)
    return tuple(part for part in found if part.parameters)


def expert_parameters(shape: Shape) -> int:
    """Parameters of one routed expert."""
    return EXPERT_MATRICES * shape.body.hidden * shape.experts.width


def attention_parameters(shape: Shape) -> int:
    """Projections of one attention layer."""
    hidden, at = shape.body.hidden, shape.attention
    if at.design == "mla":
        query = hidden * at.query_rank + at.query_rank * at.heads * (at.head_dim + at.rope_dim)
        key_value = hidden * (at.kv_rank + at.rope_dim) + at.kv_rank * at.heads * (at.head_dim + at.value_dim)
        return query + key_value + at.heads * at.value_dim * hidden
    width = at.heads * at.head_dim
    query = hidden * at.query_rank + at.query_rank * width
    return query + hidden * at.head_dim + width * at.output_rank + at.output_groups * at.output_rank * hidden


def mixing_parameters(shape: Shape) -> int:
    """Matrix that mixes the residual streams before and after one sublayer; 0 with a single stream."""
    streams = shape.body.residual_streams
    return 0 if streams == 1 else (streams * streams + 2 * streams) * streams * shape.body.hidden


def _trunk(shape: Shape) -> list[Part]:
    body, formats = shape.body, shape.formats
    every = tuple(range(body.layers))
    table = body.vocabulary * body.hidden
    return [
        Part("attention", every, attention_parameters(shape), formats.dense),
        Part("embedding", None, table, formats.plain, read=False),
        Part("head", None, table, formats.plain),
        Part("stream mixing, attention", every, mixing_parameters(shape), formats.mixing, kv_side=True),
        Part("stream mixing, experts", every, mixing_parameters(shape), formats.mixing),
    ]


def _experts(shape: Shape) -> list[Part]:
    ex, formats, hidden = shape.experts, shape.formats, shape.body.hidden
    moe = tuple(range(ex.dense_layers, shape.body.layers))
    return [
        Part("routed experts", moe, ex.routed * expert_parameters(shape), formats.routed, routed=ex.routed, active=ex.active),
        Part("shared expert", moe, ex.shared * expert_parameters(shape), formats.dense),
        Part("router", moe, ex.routed * hidden, formats.plain),
        Part("dense layers", tuple(range(ex.dense_layers)), EXPERT_MATRICES * hidden * ex.dense_width, formats.dense),
    ]


def _compressors(shape: Shape) -> list[Part]:
    found = []
    if shape.compression:
        latent = shape.body.hidden * shape.attention.head_dim
        for layer in shape.kv_layers:
            # a ratio above 1 pools several tokens with a gate of the same size as the projection
            matrices = 1 if shape.ratios[layer] == 1 else 2
            size = matrices * _overlap(shape, layer) * latent
            found.append(Part("compressor", (layer,), size, shape.formats.plain, kv_side=True))
    if shape.index:
        index = shape.index
        key = _index_key_parameters(shape)
        queries = shape.attention.query_rank * index.heads * index.head_dim
        found += [
            Part("index queries", index.layers, queries, shape.formats.dense),
            Part("index head weights", index.layers, shape.body.hidden * index.heads, shape.formats.plain),
            Part("index keys", index.key_layers, key, shape.formats.plain, kv_side=True),
        ]
    return found


def _index_key_parameters(shape: Shape) -> int:
    """V4.1 projects the layer's latent; V4 pools hidden states with a gate, in a compressor of its own; with MLA hidden states."""
    index, hidden = shape.index, shape.body.hidden
    if index.compressed:
        return 2 * shape.compression.overlap * hidden * index.head_dim
    return (shape.attention.head_dim if shape.attention.design == "latent" else hidden) * index.head_dim


def _overlap(shape: Shape, layer: int) -> int:
    """Only the layers that search overlap their groups (V4's ratio-4 layers)."""
    return shape.compression.overlap if shape.compression and shape.index and layer in shape.index.layers else 1


def _engram(shape: Shape) -> list[Part]:
    en, hidden = shape.engram, shape.body.hidden
    projection = en.rows_per_token * en.row_width * hidden * (1 + shape.body.residual_streams)  # one value, a key per stream
    tables = [Part("Engram tables", (layer,), rows * en.row_width, shape.formats.engram, stage="tables", read=False)
              for layer, rows in zip(en.layers, en.rows, strict=True)]
    return [Part("Engram projections", en.layers, projection, shape.formats.dense), *tables]


def _draft(shape: Shape) -> list[Part]:
    dr, hidden, formats = shape.draft, shape.body.hidden, shape.formats
    layers = tuple(range(dr.layers))
    return [
        Part("draft attention", layers, attention_parameters(shape), formats.dense, "draft"),
        Part("draft routed experts", layers, dr.experts * expert_parameters(shape), formats.routed, "draft",
             routed=dr.experts, active=dr.active),
        Part("draft shared expert", layers, shape.experts.shared * expert_parameters(shape), formats.dense, "draft"),
        Part("draft router", layers, dr.experts * hidden, formats.plain, "draft"),
        Part("draft stream mixing", layers, SUBLAYERS * mixing_parameters(shape), formats.mixing, "draft"),
        Part("draft input projection", None, dr.features * hidden * hidden, formats.dense, "draft"),
        # token table and projection of the Markov head; of the table only rows are fetched, which this count leaves aside
        Part("draft heads", None, 2 * shape.body.vocabulary * dr.markov_rank, formats.plain, "draft"),
        Part("draft heads", None, hidden + dr.markov_rank if dr.markov_rank else 0, formats.plain, "draft"),
    ]
