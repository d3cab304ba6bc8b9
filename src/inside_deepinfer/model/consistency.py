"""Contradictions between the groups of a model shape; each names the fields that disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inside_deepinfer.facts import load_facts

if TYPE_CHECKING:
    from inside_deepinfer.model.shape import Shape


def problems(shape: Shape) -> list[str]:
    """Contradictions between groups, each naming its fields."""
    layers, found = shape.body.layers, []
    if shape.body.encoder_layers is not None and shape.body.encoder_layers >= layers:
        found.append(f"body.encoder_layers = {shape.body.encoder_layers} must stay below body.layers = {layers}")
    if shape.experts.active > shape.experts.routed:
        found.append(f"experts.active = {shape.experts.active} is more than experts.routed = {shape.experts.routed}")
    if shape.experts.dense_layers > layers:
        found.append(f"experts.dense_layers = {shape.experts.dense_layers} is more than body.layers = {layers}")
    if bool(shape.experts.dense_layers) != bool(shape.experts.dense_width):
        found.append("experts.dense_layers and experts.dense_width must be given together")
    if shape.compression and len(shape.ratios) != layers:
        found.append(f"compression.ratios covers {len(shape.ratios)} layers, body.layers = {layers}")
    if (shape.attention.design == "latent") != (shape.compression is not None):
        found.append("compression belongs to attention.design latent, and only there")
    lists = [("compression.kv_layers", shape.kv_layers)]
    if shape.index:
        lists += [("index.layers", shape.index.layers), ("index.key_layers", shape.index.key_layers)]
    if shape.engram:
        lists.append(("engram.layers", shape.engram.layers))
    for name, numbers in lists:
        outside = [number for number in numbers if number >= layers]
        if outside:
            found.append(f"{name} names layer {outside[0]}, the last layer is {layers - 1}")
        if sorted(set(numbers)) != list(numbers):
            found.append(f"{name} must rise without repeats")
    return found or _problems_of_sources(shape)


def _problems_of_sources(shape: Shape) -> list[str]:
    found, ratios = [], shape.ratios
    if shape.compression:
        found += [f"compression.kv_layers names layer {n}, whose ratio is 0 (sliding window only)"
                  for n in shape.kv_layers if ratios[n] == 0]
        found += [f"layer {n} has ratio {ratio} but no compression.kv_layers at or before it with that ratio"
                  for n, ratio in enumerate(ratios)
                  if ratio and ratios[max((m for m in shape.kv_layers if m <= n), default=0)] != ratio]
    if shape.index:
        strangers = sorted(set(shape.index.key_layers) - set(shape.kv_layers))
        if strangers:
            found.append(f"index.key_layers names layer {strangers[0]}, which is no compression.kv_layers source")
        if (shape.index.candidate_layer is None) != (shape.index.candidates is None):
            found.append("index.candidate_layer and index.candidates must be given together")
        if not shape.formats.index:
            found.append("formats.index is missing")
    if shape.engram and len(shape.engram.rows) != len(shape.engram.layers):
        found.append(f"engram.rows has {len(shape.engram.rows)} entries, engram.layers has {len(shape.engram.layers)}")
    if shape.engram and not shape.formats.engram:
        found.append("formats.engram is missing")
    if shape.attention.window and not shape.formats.window:
        found.append("formats.window is missing")
    if shape.draft and shape.draft.active > shape.draft.experts:
        found.append(f"draft.active = {shape.draft.active} is more than draft.experts = {shape.draft.experts}")
    known = {name.split(".")[1] for name in load_facts().facts if name.startswith("format.")}
    named = shape.formats.model_dump(exclude={"source", "kind", "note"}, exclude_none=True)
    found += [f"formats.{part} = {name!r} is no format; there are {', '.join(sorted(known))}"
              for part, name in named.items() if name not in known]
    return found
