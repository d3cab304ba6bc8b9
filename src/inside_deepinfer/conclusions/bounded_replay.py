"""What the second part of chapter 9 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.model.flops import prefill_flops
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.numerics import replay
from inside_deepinfer.numerics.replay_numbers import error_curve
from inside_deepinfer.numerics.rings import corrupted_reads


def _toy(layers: int, window: int = 6, count: int = 48) -> tuple[replay.Stack, np.ndarray]:
    return replay.make_stack(layers, window), np.random.default_rng(0).normal(size=(count, 16))


@conclusion("bounded-replay.mask-is-compact", "On the kept rows compact and mask agree to the last bit, and both differ from exact.")
def _mask_is_compact() -> bool:
    stack, tokens = _toy(8)
    exact, mask, compact = (replay.run(stack, tokens, mode, 8) for mode in ("exact", "mask", "compact"))
    return np.array_equal(mask[-8:], compact) and not np.array_equal(exact[-8:], compact)


@conclusion("bounded-replay.error-falls", "Every further window that is kept makes the error several times smaller, and deeper stacks need "
                                          "more windows.")
def _error_falls() -> bool:
    shallow, deep = (error_curve(*_toy(layers), np.array([6, 12, 18])) for layers in (4, 12))
    return bool(np.all(deep[1:] * 3 < deep[:-1]) and shallow[1] == 0 < deep[1])


@conclusion("bounded-replay.exact-field", "Nothing differs any more once the kept rows fill the decoder half's whole field of view.")
def _exact_field() -> bool:
    stack, tokens = _toy(8)
    field = 4 * (6 - 1) + 1
    return replay.largest_error(stack, tokens, field) == 0 < replay.largest_error(stack, tokens, field - 1)


@conclusion("bounded-replay.one-slot-spare", "One slot less than window plus drafts spoils windows, window plus drafts is enough, "
                                             "and the released code has one slot more.")
def _one_slot_spare() -> bool:
    facts = load_facts()
    window, drafts = (int(facts.number(name)) for name in ("replay.window", "spec.draft_length"))
    enough = int(catalogue.value("shortest_ring"))
    wrong = [corrupted_reads(ring, window, drafts, 300).sum() for ring in (enough - 1, enough, enough + 1)]
    return enough == window + drafts and wrong[0] > 0 == wrong[1] == wrong[2] and catalogue.value("released_ring") == enough + 1


@conclusion("bounded-replay.exact-keeps-part", "At the reported prompt an exact decoder half keeps about three fifths of what bounded "
                                               "replay saves if each layer drops the rows that no later layer reads, and less than a "
                                               "fifth if all of them pass all its layers.")
def _exact_keeps_part() -> bool:
    saved, least, rectangle = (1 - catalogue.value(name) for name in (
        "prefill_flops_ratio_replay", "prefill_ratio_exact_least", "prefill_ratio_exact"))
    return 0.55 < least / saved < 0.7 and rectangle / saved < 0.2


@conclusion("bounded-replay.constant-rows", "The number of replayed rows does not depend on the prompt, but a row looks through its "
                                            "whole index, so its cost grows by more than a fifth from sixteen thousand to a million "
                                            "tokens.")
def _constant_rows() -> bool:
    # what one more kept row costs: it passes the decoder half only
    shape = load_shape(load_facts().quantity("scenario.model").value)
    few, many = (np.diff([prefill_flops(shape, end - 3000, end, keep) for keep in (140, 1140)])[0] for end in (16_384, 1_048_576))
    return 1.2 < many / few < 1.25


@conclusion("bounded-replay.counts-agree", "Our count of a new prompt token's FLOPs agrees with the released estimator within a tenth of a "
                                           "percent in every case we have.")
def _counts_agree() -> bool:
    facts, shape = load_facts(), load_shape(load_facts().quantity("scenario.model").value)
    points = facts.points("deepinfer-flop-per-token").query("phase.str.startswith('prefill')")
    errors = []
    for row in points.itertuples():
        new = row.context if "cold" in row.phase else round(catalogue.value("computed_prompt_tokens"))
        kept = None if "no truncation" in row.phase else facts.number("engine.replay_keep")
        errors.append(prefill_flops(shape, row.context - new, row.context, kept) / new / row.total_fp8eq - 1)
    return max(abs(error) for error in errors) < 0.001
