"""What chapter 7 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.studies.machine_world import backbone_of_variants, v3r1_step


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


@conclusion("hbm.only-384", "Of these four shapes only 384 experts of width 2304 give the reported 552 billion parameters.")
def _only_384() -> bool:
    reported = load_facts().number("article.parameters")
    right = [variant for variant, size in backbone_of_variants().items() if abs(size - reported) < 1e9]
    return right == [(384, 2304)]


@conclusion("hbm.every-expert", "At EP64 even a single sequence per GPU makes the group read 99 percent of all experts in every step.")
def _every_expert() -> bool:
    return catalogue.value("distinct_experts", batch=1, ep=64) > 0.99 * catalogue.value("routed_experts")


@conclusion("hbm.spreading-stops", "Up to EP64 every doubling of the group makes the counted step shorter; EP128 leaves the domain of "
                                   "72 GPUs, and the step becomes longer.")
def _spreading_stops() -> bool:
    steps = catalogue.value("counted_step_time", ep=np.array([2, 4, 8, 16, 32, 64, 128]))
    return bool(np.all(np.diff(steps[:-1]) < 0)) and steps[-1] > steps[-2] and catalogue.value("card_domain") == 72


@conclusion("hbm.binding-changes", "What limits the step changes on the way: memory up to EP16, arithmetic at EP32 and EP64, the link "
                                   "at EP128.")
def _binding_changes() -> bool:
    binds = catalogue.value("binding_resource", ep=np.array([2, 4, 8, 16, 32, 64, 128])).tolist()
    return binds == ["HBM"] * 4 + ["tensor cores"] * 2 + ["link"]


@conclusion("hbm.shorter-than-published", "Even if nothing overlapped, the counted parts would end before the published step does.")
def _shorter_than_published() -> bool:
    return catalogue.value("counted_step_time", overlap=0.0) < load_facts().number("decode.step_time")


@conclusion("hbm.only-sm100-at-ep2", "At EP2 the model fits only on B200, B300, GB200 and GB300, which are the cards that the released "
                                     "engine calls SM100; at EP64 it fits on every card of our list.")
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
