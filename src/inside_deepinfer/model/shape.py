"""A model as a shape: the sizes in ``data/models/<id>.yaml`` from which everything else is counted."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from inside_deepinfer.facts import FactError, InputError, load_facts
from inside_deepinfer.facts.quantity import Kind
from inside_deepinfer.facts.records import Id, Record, Text
from inside_deepinfer.facts.store import as_record, read_yaml
from inside_deepinfer.model.consistency import problems

Count = Annotated[int, Field(gt=0, strict=True)]
CountOrNone = Annotated[int, Field(ge=0, strict=True)]
Layers = tuple[CountOrNone, ...]


class Group(Record):
    """Fields of one part of a model, with where they were read."""

    source: Id
    kind: Kind
    note: str = ""


class Body(Group):
    """The trunk. ``encoder_layers``: how many first layers a prompt token passes; None where it passes all."""

    layers: Count
    hidden: Count
    vocabulary: Count
    max_context: Count
    residual_streams: Count = 1
    encoder_layers: Count | None = None


class Attention(Group):
    """Projections of every layer.

    latent: one shared latent of ``head_dim`` serves as key and value of all heads, output in low-rank groups, a sliding
    window (``ring`` slots are kept per sequence) beside compressed entries.
    mla: multi-head latent attention of V2/V3; the cached entry is ``kv_rank + rope_dim`` values per token and layer.
    """

    design: Literal["latent", "mla"]
    heads: Count
    query_rank: Count
    head_dim: Count
    value_dim: Count | None = None
    rope_dim: Count | None = None
    kv_rank: Count | None = None
    output_groups: Count | None = None
    output_rank: Count | None = None
    window: CountOrNone = 0
    ring: CountOrNone = 0

    @model_validator(mode="after")
    def _complete(self) -> Attention:
        needed = {"latent": ("output_groups", "output_rank", "window", "ring"), "mla": ("value_dim", "rope_dim", "kv_rank")}
        missing = [name for name in needed[self.design] if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)}: missing for design {self.design}")
        strange = [name for design, names in needed.items() for name in names if design != self.design and getattr(self, name)]
        if strange:
            raise ValueError(f"{', '.join(strange)}: not for design {self.design}")
        if self.ring < self.window:
            raise ValueError(f"ring = {self.ring} is below window = {self.window}")
        if self.output_groups and self.heads % self.output_groups:
            raise ValueError(f"output_groups = {self.output_groups} does not divide heads = {self.heads}")
        return self


class Compression(Group):
    """Compressed KV: ``ratios`` as [ratio, number of layers] runs, and which layers own entries."""

    ratios: tuple[tuple[CountOrNone, Count], ...]
    kv_layers: Layers
    overlap: Count = 1

    def by_layer(self) -> list[int]:
        """The ratio of each layer."""
        return [ratio for ratio, layers in self.ratios for _ in range(layers)]


class Index(Group):
    """Sparse selection: ``layers`` score and choose ``top`` entries, ``key_layers`` own index keys.

    Layers after ``candidate_layer`` score only the ``candidates`` positions chosen there.
    ``compressed``: the keys come from a compressor of their own (V4) and not from the layer's latent (V4.1).
    """

    heads: Count
    head_dim: Count
    top: Count
    layers: Layers
    key_layers: Layers
    candidate_layer: CountOrNone | None = None
    candidates: Count | None = None
    compressed: bool = False


class Experts(Group):
    """Mixture of experts in every layer after the first ``dense_layers``."""

    routed: Count
    active: Count
    shared: CountOrNone
    width: Count
    dense_layers: CountOrNone = 0
    dense_width: CountOrNone = 0


class Engram(Group):
    """Lookup tables of hashed n-grams, kept out of HBM."""

    layers: Layers
    rows: tuple[Count, ...]
    row_width: Count
    rows_per_token: Count


class Draft(Group):
    """The draft model of speculative decoding. ``tokens``: drafts per step; ``features``: trunk states joined at its input."""

    name: Text
    layers: Count
    tokens: Count
    experts: Count
    active: Count
    features: Count
    markov_rank: CountOrNone = 0


class Vision(Group):
    """The image encoder that stands beside the language model."""

    bytes: Count


class Formats(Group):
    """Number format of each class of tensor; names are those of ``format.*`` facts.

    ``state``: of unfinished groups of the compressors; left out where it is not published, and then counted as nothing.
    """

    routed: Id
    dense: Id
    plain: Id
    mixing: Id
    kv: Id
    engram: Id | None = None
    window: Id | None = None
    index: Id | None = None
    state: Id | None = None


class Shape(Record):
    """Everything the counts need to know about a model."""

    id: Id
    name: Text
    note: str = ""
    body: Body
    attention: Attention
    experts: Experts
    formats: Formats
    compression: Compression | None = None
    index: Index | None = None
    engram: Engram | None = None
    draft: Draft | None = None
    vision: Vision | None = None

    def __hash__(self) -> int:  # caches look shapes up often, and hashing every field takes longer than most counts
        return hash(self.id)

    @property
    def moe_layers(self) -> int:
        return self.body.layers - self.experts.dense_layers

    @property
    def ratios(self) -> list[int]:
        """Compression ratio of each layer; 1 everywhere for a model without compression."""
        return self.compression.by_layer() if self.compression else [1] * self.body.layers

    @property
    def kv_layers(self) -> tuple[int, ...]:
        """Layers that own cached entries."""
        return self.compression.kv_layers if self.compression else tuple(range(self.body.layers))

    def kv_source(self, layer: int) -> int:
        """The layer whose entries ``layer`` reads: the nearest source at or before it; 0, which then owns none, where there is none."""
        return max((source for source in self.kv_layers if source <= layer), default=0)

    @model_validator(mode="after")
    def _consistent(self) -> Shape:
        for problem in problems(self):
            raise ValueError(problem)
        return self


def read_shape(path: Path) -> Shape:
    """One shape file, checked; the error names file, group and field."""
    raw = read_yaml(path)
    shape = as_record(Shape, raw, path.name, str(raw.get("id", "")) if isinstance(raw, dict) else "")
    if shape.id != path.stem:
        raise FactError(path.name, shape.id, "id", f"must be the name of the file, {path.stem}")
    for name, group in shape:
        if isinstance(group, Group) and group.source not in load_facts().sources:
            raise FactError(path.name, shape.id, f"{name}.source", f"no source is called {group.source!r}")
    return shape


def model_ids() -> list[str]:
    """All models that have a shape file."""
    return sorted(path.stem for path in (load_facts().folder / "models").glob("*.yaml"))


WITHOUT_DRAFT = "+no-draft"


def without_draft(model: str) -> str:
    """The name under which ``load_shape`` gives a model without its draft model: no speculation, and no cost of it."""
    return model if model.endswith(WITHOUT_DRAFT) else model + WITHOUT_DRAFT


@lru_cache(maxsize=32)
def _shape(folder: Path, model: str) -> Shape:
    if model.endswith(WITHOUT_DRAFT):
        return _shape(folder, model.removesuffix(WITHOUT_DRAFT)).model_copy(update={"id": model, "draft": None})
    if model not in {path.stem for path in (folder / "models").glob("*.yaml")}:
        raise KeyError(model)
    return read_shape(folder / "models" / f"{model}.yaml")


def load_shape(model: str) -> Shape:
    """The shape called ``model``; an unknown name is an error that lists the known ones."""
    if not isinstance(model, str):
        raise InputError("model", model, " or ".join(model_ids()))
    try:
        return _shape(load_facts().folder, model)
    except KeyError:
        raise InputError("model", model, " or ".join(model_ids())) from None
