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
    if shape.experts.dense_layers >= layers:
        found.append(f"experts.dense_layers = {shape.experts.dense_layers} must stay below body.layers = {layers}")
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
        if not numbers:
            found.append(f"{name} names no layer; leave the group out where the model has none")
    return found or _problems_of_sources(shape) or _problems_of_index(shape) or _problems_of_formats(shape)


def _problems_of_sources(shape: Shape) -> list[str]:
    found, ratios = [], shape.ratios
    if shape.compression:
        found += [f"compression.kv_layers names layer {n}, whose ratio is 0 (sliding window only)"
                  for n in shape.kv_layers if ratios[n] == 0]
        found += [f"layer {n} has ratio {ratio} but no compression.kv_layers at or before it with that ratio"
                  for n, ratio in enumerate(ratios)
                  if ratio and ratios[shape.kv_source(n)] != ratio]
    cut = shape.body.encoder_layers
    if cut is not None and cut not in shape.kv_layers:
        found.append(f"body.encoder_layers = {cut}: the first layer behind the encoder writes the KV that the later ones share, "
                     f"but compression.kv_layers does not name layer {cut}")
    if shape.engram and len(shape.engram.rows) != len(shape.engram.layers):
        found.append(f"engram.rows has {len(shape.engram.rows)} entries, engram.layers has {len(shape.engram.layers)}")
    if shape.draft and shape.draft.active > shape.draft.experts:
        found.append(f"draft.active = {shape.draft.active} is more than draft.experts = {shape.draft.experts}")
    return found


def _problems_of_index(shape: Shape) -> list[str]:
    index, ratios, found = shape.index, shape.ratios, []
    if index is None:
        return []
    found += [f"index.layers names layer {n}, whose ratio is 0 (sliding window only)" for n in index.layers if ratios[n] == 0]
    strangers = sorted(set(index.key_layers) - set(shape.kv_layers))
    if strangers:
        found.append(f"index.key_layers names layer {strangers[0]}, which is no compression.kv_layers source")
    found += [f"index.layers names layer {n}, which reads the entries of layer {shape.kv_source(n)}, "
              "but index.key_layers does not name that" for n in index.layers if ratios[n] and shape.kv_source(n) not in index.key_layers]
    if (index.candidate_layer is None) != (index.candidates is None):
        found.append("index.candidate_layer and index.candidates must be given together")
    elif index.candidate_layer is not None and index.candidate_layer not in index.layers:
        found.append(f"index.candidate_layer = {index.candidate_layer} is none of index.layers")
    if index.candidates is not None and index.candidates < index.top:
        found.append(f"index.candidates = {index.candidates} is less than index.top = {index.top}")
    if index.compressed and not shape.compression:
        found.append("index.compressed needs the group compression")
    if not shape.formats.index:
        found.append("formats.index is missing")
    return found


def _problems_of_formats(shape: Shape) -> list[str]:
    formats, at, found = shape.formats, shape.attention, []
    if shape.engram and not formats.engram:
        found.append("formats.engram is missing")
    if at.window and not formats.window:
        found.append("formats.window is missing")
    known = {name.split(".")[1] for name in load_facts().facts if name.startswith("format.")}
    named = shape.formats.model_dump(exclude={"source", "kind", "note"}, exclude_none=True)
    found += [f"formats.{part} = {name!r} is no format; there are {', '.join(sorted(known))}"
              for part, name in named.items() if name not in known]
    entry = ("attention.head_dim", at.head_dim) if at.design == "latent" else ("attention.kv_rank + rope_dim", at.kv_rank + at.rope_dim)
    entries = {"kv": entry,
               "window": ("attention.head_dim", at.head_dim),
               "index": ("index.head_dim", shape.index.head_dim if shape.index else 0)}
    for part, (field, values) in entries.items():
        name = named.get(part)
        block = load_facts().number(f"format.{name}.block") if f"format.{name}.block" in load_facts().facts else 1
        if name in known and values % block:
            found.append(f"{field} = {values} is no multiple of the {block:.0f} values that share a scale in formats.{part} = {name}")
    return found
