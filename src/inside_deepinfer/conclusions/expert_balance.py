"""What chapter 11 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.serving.routing_counts import splits

GROUPS = (8, 16, 32)


@conclusion("expert-balance.same-and-other", "On later steps of the same task the balanced layout removes more than three quarters of the "
                                             "unevenness; on another task it removes less than a quarter.")
def _same_and_other() -> bool:
    before, same, other = (catalogue.value(f"balance_{name}", balance_gpus=np.array(GROUPS)) - 1
                           for name in ("before", "held_out", "other_task"))
    return bool(np.all(same < before / 4) and np.all(other > 3 / 4 * before))


@conclusion("expert-balance.peaks-beat-totals", "The policy that looks at each step's peak is better on later steps than the one that "
                                                "looks at totals, at every group size of the figure.")
def _peaks_beat_totals() -> bool:
    later = {by: [np.mean([one.held_out for one in splits(gpus, 1, by)]) for gpus in GROUPS] for by in ("peaks", "total")}
    return bool(np.all(np.array(later["peaks"]) < later["total"]))


@conclusion("expert-balance.chance-explains", "The ratio reported for decode lies between these two, so equally popular experts and "
                                              "perfect placement could have left it.")
def _chance_explains() -> bool:
    return catalogue.value("chance_imbalance") < load_facts().number("eplb.decode_ratio") < catalogue.value("chance_imbalance_alike")


@conclusion("expert-balance.prefill-not-chance", "In prefill chance leaves less than a fifth of the unevenness that is reported.")
def _prefill_not_chance() -> bool:
    return catalogue.value("chance_imbalance_prefill") - 1 < (min(load_facts().quantity("eplb.prefill_ratio").value) - 1) / 5


@conclusion("expert-balance.cheaper-than-it-looks", "The counted step becomes longer by less than a third of what the ratio suggests.")
def _cheaper_than_it_looks() -> bool:
    return catalogue.value("imbalance_cost") < (load_facts().number("eplb.decode_ratio") - 1) / 3


@conclusion("expert-balance.not-yet-eighty", "Even if the whole step followed both, experts and lock step together would leave more than "
                                             "four fifths of ideal.")
def _not_yet_eighty() -> bool:
    return catalogue.value("share_left_by_lockstep") > load_facts().number("eplb.total")
