"""The questions that both calculators get, and what ours answers; the peer's side is in aiconfigurator.py.

Ours enumerates expert parallelism from 4 to 64 with 1,000 batches each and takes the point with the most output per GPU of the cluster
among those that are fast enough. Prefill GPUs beside one decode GPU follow from the workload and our prefill capacity, on DeepInfer's
four cards for an instance or, where the weights do not fit on them, on the fewest that hold them. What a step takes
beyond its count (``decode.uncounted_time``) and the reached share of prefill speed are those fitted on DeepInfer, for every model.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, NotPossible, load_facts, resolve
from inside_deepinfer.scenario import Scenario, make_scenario, quantities
from inside_deepinfer.studies.decode_curves import frontier

BATCHES = np.arange(1.0, 1001.0)
GROUPS = (4, 8, 16, 32, 64)
CARD = "gb200"
PEERS_LARGEST = 8  # the widest group that the peer has data for


@dataclass(frozen=True)
class Question:
    """A model on GB200 and a workload.

    Attributes:
        model: id in data/models. ``path``: the peer's name of it.
        input, output, cached: tokens of a request.
        slowest: token/(s*user) that must be reached at least. ``first``: seconds to the first token at most.
        drafts, tokens: verified drafts and tokens per step; 0 and 1 without speculation.
        group, batch: expert parallelism and sequences per GPU where both are given; searched for where not.
        backend: engine of the peer's tables.
    """

    name: str
    model: str
    path: str
    input: int
    output: int
    cached: int
    slowest: float = 50.0
    first: float = 1.0
    drafts: int = 0
    tokens: float = 1.0
    group: int = 0
    batch: int = 0
    backend: str = "sglang"


V3, V4, V41 = "deepseek-v3", "deepseek-v4-flash", "deepseek-v4.1-flash"
PATHS = {V3: "deepseek-ai/DeepSeek-V3", V4: "deepseek-ai/DeepSeek-V4-Flash", V41: ""}


def questions() -> list[Question]:
    """Lengths and acceptance are the published ones where DeepSeek states them."""
    facts = load_facts()
    prompt = int(facts.number("prefill.input_mean"))
    cached = round(prompt * facts.number("prefill.hit_rate"))
    drafts, tokens = int(facts.number("spec.draft_length")), facts.number("article.tokens_per_step")
    batch, group = int(facts.number("decode.sequences")), int(facts.number("scenario.ep"))
    long = dict(input=prompt, output=800, cached=cached)
    short = dict(input=4000, output=1000, cached=0)
    what = f"{prompt:,} in, {cached / prompt:.0%} cached"
    return [
        Question("V3, 4,000 in, 1,000 out", V3, PATHS[V3], **short, slowest=20.0, first=2.0, backend="trtllm"),
        Question(f"V4-Flash, {what}", V4, PATHS[V4], **long),
        Question(f"V4-Flash, {what}, {drafts} drafts", V4, PATHS[V4], **long, drafts=drafts, tokens=tokens),
        Question(f"V4.1-Flash, {what}, {drafts} drafts", V41, PATHS[V41], **long, drafts=drafts, tokens=tokens),
        Question(f"V3, EP{group}, {batch} sequences", V3, PATHS[V3], **long, group=group, batch=batch),
        Question(f"V4-Flash, EP{group}, {batch} sequences", V4, PATHS[V4], **long, group=group, batch=batch),
        Question(f"V4.1-Flash, EP{group}, {batch} sequences", V41, PATHS[V41], **long, group=group, batch=batch, drafts=drafts,
                 tokens=tokens),
    ]


def ours(question: Question) -> tuple[float, int, str]:
    """Seconds, points computed and the answer, for a scenario never seen before."""
    start = time.perf_counter()
    points, said = _one(question) if question.group else _best(question)
    return time.perf_counter() - start, points, said


def _scenario(question: Question, group: int) -> Scenario:
    return make_scenario(changes={
        "model": question.model, "card": CARD, "ep": group, "redundant_experts": 0, "context": question.input + question.output / 2,
        "rows_per_sequence": 1.0 + question.drafts, "tokens_per_step": question.tokens, "input_tokens": question.input,
        "hit_rate": question.cached / question.input, "input_output_ratio": question.input / question.output})


def _best(question: Question) -> tuple[int, str]:
    """The most output per GPU of the cluster over all groups and batches that are fast enough."""
    best, small, points, reason = (0.0, 0.0, 0), 0.0, 0, ""
    for group in GROUPS:
        scenario = _scenario(question, group)
        try:
            curve = frontier(scenario, batch=BATCHES, speculation=question.drafts > 0)
        except (NotPossible, InputError) as error:
            reason = str(error)
            continue
        points += curve.batch.size
        new = (question.input - question.cached) / question.output
        prefill = new * curve.per_decode_gpu / _prefill_capacity(scenario)
        each = np.where(curve.user_speed >= question.slowest, curve.per_decode_gpu / (1 + prefill), 0.0)
        place = int(np.argmax(each))
        best = max(best, (float(each[place]), float(curve.user_speed[place]), group))
        small = max(small, float(each[place])) if group <= PEERS_LARGEST else small
    if not best[2]:
        return points, reason or f"no point reaches {question.slowest:g} token/s per user"
    return points, f"{best[0]:,.0f} token/s per cluster GPU at {best[1]:.1f} per user, EP{best[2]}; up to EP{PEERS_LARGEST} {small:,.0f}"


def _prefill_capacity(scenario: Scenario) -> float:
    """New tokens per second and prefill GPU, on the smallest instance that holds the weights."""
    cards = load_facts().quantity("prefill.gpus")
    given, reason = quantities(scenario), NotPossible("no instance holds the weights")
    catalogue.names()  # fills the catalogue
    for gpus in (size for size in (cards.value, *GROUPS) if size >= cards.value):
        try:
            return float(resolve(["prefill_capacity"], given | {"prefill.gpus": replace(cards, value=gpus)})["prefill_capacity"].value)
        except NotPossible as error:
            reason = error
    raise reason


def _one(question: Question) -> tuple[int, str]:
    """One given group and batch."""
    try:
        curve = frontier(_scenario(question, question.group), batch=np.array([float(question.batch)]), speculation=question.drafts > 0)
    except NotPossible as error:
        return 0, str(error)
    return 1, f"{curve.per_decode_gpu[0]:,.0f} token/s per decode GPU at {curve.user_speed[0]:.1f} per user"
