"""What chapter 7 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.studies.machine_world import parameters_of_variants, v3r1_step


@conclusion("hbm.three-times", "Counted tensor by tensor, a step reads more than three times the bytes of the article.")
def _three_times() -> bool:
    return 3 < catalogue.value("hbm_read_bytes_per_step") / catalogue.value("article_weight_bytes") < 4


@conclusion("hbm.replicated-is-most", "More than half of the weight bytes that a GPU reads stand on every GPU, and no expert "
                                      "parallelism makes them fewer.")
def _replicated_is_most() -> bool:
    everywhere = catalogue.value("replicated_read_bytes") + catalogue.value("draft_replicated_bytes")
    return everywhere > 0.5 * catalogue.value("hbm_read_bytes_per_step")


@conclusion("hbm.no-millisecond", "In one millisecond the counted weights cannot be read: it would take more than the peak of the "
                                  "memory.")
def _no_millisecond() -> bool:
    return load_facts().number("article.weights_window") == 1e-3 and catalogue.value("counted_burst_share") > 1


@conclusion("hbm.only-384", "Only 384 experts of width 2304 give both numbers that are reported, 552 billion parameters and 16 billion "
                             "active ones; with 256 experts no width gives both.")
def _only_384() -> bool:
    facts, sizes = load_facts(), parameters_of_variants()
    reported, active = facts.number("article.parameters"), facts.number("decode.active_params")
    right = [variant for variant, (size, used) in sizes.items() if abs(size - reported) < 1e9 and abs(used - active) < 0.5e9]
    # both grow linearly with the width: 256 experts that hold 552 billion are 3456 wide and have over 20 billion active
    (low, low_active), (high, high_active) = sizes[256, 2048], sizes[256, 3456]
    width_at = 2048 + (reported - low) / (high - low) * (3456 - 2048)
    active_at = low_active + (width_at - 2048) / (3456 - 2048) * (high_active - low_active)
    return right == [(384, 2304)] and active_at > active + 4e9


@conclusion("hbm.every-expert", "At EP64 even a single sequence per GPU makes the group read 99 percent of all experts in every step.")
def _every_expert() -> bool:
    return catalogue.value("distinct_experts", batch=1, ep=64) > 0.99 * catalogue.value("routed_experts")


@conclusion("hbm.spreading-stops", "With our rows and overlap every doubling of the group makes the counted step shorter up to EP64; "
                                   "EP128 leaves the domain of 72 GPUs, and the step becomes longer.")
def _spreading_stops() -> bool:
    steps = catalogue.value("counted_step_time", ep=np.array([2, 4, 8, 16, 32, 64, 128]))
    return bool(np.all(np.diff(steps[:-1]) < 0)) and steps[-1] > steps[-2] and catalogue.value("card_domain") == 72


@conclusion("hbm.binding-changes", "What limits the step changes on the way: with our rows memory does up to EP16, arithmetic at EP32 and "
                                   "EP64, and the link at EP128.")
def _binding_changes() -> bool:
    binds = catalogue.value("binding_resource", ep=np.array([2, 4, 8, 16, 32, 64, 128])).tolist()
    return binds == ["HBM"] * 4 + ["tensor cores"] * 2 + ["link"]


@conclusion("hbm.rows-decide", "With one row per sequence memory binds in every group inside the domain, and at the low end of the "
                               "reported range still at EP32; at EP64 arithmetic binds over the whole range.")
def _rows_decide() -> bool:
    low, high = (catalogue.value(f"verified_rows_{end}") for end in ("low", "high"))
    one, few, many = (catalogue.value("binding_resource", ep=np.array([2, 4, 8, 16, 32, 64]), rows_per_sequence=rows).tolist()
                      for rows in (1.0, low, high))
    return one == ["HBM"] * 6 and few[-2:] == ["HBM", "tensor cores"] and many[-1] == "tensor cores"


@conclusion("hbm.overlap-levels", "If everything overlapped, EP64 would be no shorter than EP32: arithmetic would be all that is left, and "
                                  "it does not shrink with the group.")
def _overlap_levels() -> bool:
    at32, at64 = catalogue.value("counted_step_time", ep=np.array([32, 64]), overlap=1.0)
    return abs(at64 / at32 - 1) < 1e-9


@conclusion("hbm.domain-of-128", "In a domain of 128 the link would not bind at EP128, and the counted step would be shorter than at EP64 "
                                 "by less than a tenth.")
def _domain_of_128() -> bool:
    wide, now = catalogue.value("counted_step_time", ep=128, scaleup_domain=128), catalogue.value("counted_step_time", ep=64)
    return catalogue.value("binding_resource", ep=128, scaleup_domain=128) != "link" and 0.9 < wide / now < 1


@conclusion("hbm.crossing-way", "If every copy of a row crossed by itself, EP128 would take more than twice as long at the link.")
def _crossing_way() -> bool:
    each, once = (catalogue.value("time_exchange", ep=128, crossing=way) for way in ("expert", "domain"))
    return each > 2 * once


@conclusion("hbm.shorter-than-published", "Even if nothing overlapped, the counted parts would end before the published step does.")
def _shorter_than_published() -> bool:
    return catalogue.value("counted_step_time", overlap=0.0) < load_facts().number("decode.step_time")


@conclusion("hbm.only-sm100-at-ep2", "At EP2 the model fits only on B200, B300, GB200 and GB300, the Blackwell cards, which we take the "
                                     "engine's SM100 to mean; at EP64 it fits on every card of our list.")
def _only_sm100() -> bool:
    cards = np.array(list(load_facts().cards))
    most = {ep: catalogue.value("largest_batch", card=cards, ep=ep) for ep in (2, 64)}
    batch = load_facts().number("decode.sequences")
    return set(cards[most[2] >= 1]) == {"b200", "b300", "gb200", "gb300"} and bool(np.all(most[64] >= batch))


@conclusion("hbm.earlier-day-fits", "At the assumed overlap the counted step of DeepSeek's day of February 2025 comes within a "
                                 "fifth of the published one.")
def _earlier_day() -> bool:
    counted, published = v3r1_step()
    return 0.8 < counted / published < 1.2
