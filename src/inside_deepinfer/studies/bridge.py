"""From the article's bytes per step to the counted ones: named steps that sum exactly, for a waterfall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.facts import NotPossible, load_facts
from inside_deepinfer.facts.units import BITS_PER_BYTE
from inside_deepinfer.model.formats import bytes_per_value
from inside_deepinfer.model.parts import parts
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.scenario import Scenario, make_scenario

# classes of weights whose bar in the waterfall has another name, or is shared
GROUPS = {
    "attention": "attention on every GPU", "stream mixing, attention": "stream mixing", "stream mixing, experts": "stream mixing",
    **dict.fromkeys(("compressor", "index queries", "index head weights", "index keys"), "index and compressors"),
}


@dataclass(frozen=True)
class Step:
    """One bar: ``size`` bytes added (or taken away), or a total that is reached (``total``)."""

    name: str
    size: Any
    total: bool = False
    why: str = ""


def weight_bridge(scenario: Scenario | None = None, preset: str = "published", **arrays: Any) -> list[Step]:
    """Steps from the article's weight bytes per GPU over ``hbm_read_bytes_per_step`` to ``hbm_total_bytes_per_step``.

    Args:
        arrays: scenario parameters to replace, also by arrays (of one shape, or broadcasting); sizes are then arrays.

    Returns:
        Steps in order. The sizes between two totals sum to their difference. Where the model is not the article's, the
        first step is its own backbone in the bits of its experts, spread over the group in the same way.
    """
    scenario = scenario or make_scenario(preset)
    names = ["article_weight_bytes", "routed_parameters", "backbone_parameters", "expert_slots_read", "experts_per_gpu",
             "redundant_experts", "ep", "moe_layers", "expert_bytes", "draft_read_bytes", "hbm_read_bytes_per_step",
             "head_reread_bytes", "entry_read_bytes", "index_read_bytes", "window_read_bytes", "hbm_total_bytes_per_step",
             "model"]
    now = {name: quantity.value for name, quantity in catalogue.evaluate(names, scenario, preset, **arrays).items()}
    shape = load_shape(now["model"])
    ep = np.asarray(now["ep"], dtype=float)
    bare = load_facts().number(f"format.{shape.formats.routed}.bits") / BITS_PER_BYTE
    article = now["model"] == load_facts().quantity("scenario.model").value
    start = now["article_weight_bytes"] if article else now["backbone_parameters"] * bare / ep
    layer_bytes = now["moe_layers"] * now["expert_bytes"]
    scales = now["routed_parameters"] * (bytes_per_value(shape.formats.routed) - bare) / ep
    steps = [
        Step("article 000" if article else "all parameters, spread", start, total=True,
             why="every parameter in the experts' bits, spread over the group"),
        Step("less what is not spread", now["routed_parameters"] * bare / ep - start,
             why="these parameters are not spread; they come back below"),
        Step("scales of the experts", scales, why="one byte per block of weights"),
        Step("redundant experts", now["redundant_experts"] * layer_bytes, why="copies of busy experts"),
        Step("experts no row chose", (now["expert_slots_read"] - now["experts_per_gpu"]) * layer_bytes,
             why="not read in this step"),
    ]
    steps += _replicated(shape)
    steps += [
        Step("draft model", now["draft_read_bytes"], why="its own layers and experts, once per step"),
        Step("weights counted", now["hbm_read_bytes_per_step"], total=True, why="every weight that the step needs, once"),
        Step("head again for drafts", now["head_reread_bytes"], why="the draft model shares the head and passes it later"),
        Step("KV entries", now["entry_read_bytes"], why="of this GPU's own sequences"),
        Step("index keys", now["index_read_bytes"], why="scanned to choose entries"),
        Step("sliding windows", now["window_read_bytes"], why="the last tokens, in every layer"),
        Step("all reads", now["hbm_total_bytes_per_step"], total=True, why="weights and live KV"),
    ]
    kept = [step for step in steps if step.total or np.any(np.abs(step.size) > 0)]
    _check_sums(kept)
    return kept


def _replicated(shape: Any) -> list[Step]:
    """Bars of the weights that stand on every GPU, largest first."""
    sizes: dict[str, float] = {}
    for part in parts(shape):
        if part.stage == "backbone" and not part.routed and part.read:
            group = GROUPS.get(part.name, part.name)
            sizes[group] = sizes.get(group, 0.0) + part.bytes
    return [Step(name, size, why="data-parallel attention: the same on every GPU")
            for name, size in sorted(sizes.items(), key=lambda item: -item[1])]


def _check_sums(steps: list[Step]) -> None:
    level: Any = 0.0
    for step in steps:
        if step.total and step is not steps[0] and not np.allclose(level, step.size, rtol=1e-9, atol=1.0):
            raise NotPossible(f"the steps before {step.name!r} sum to {level}, not {step.size}")
        level = step.size if step.total else level + step.size
