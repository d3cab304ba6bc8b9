"""What chapters 7 and 8 conclude from a card that we measured; every sentence holds in both runs."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.facts.gpu_runs import gpu_run
from inside_deepinfer.serving import measured_card as mc
from inside_deepinfer.serving import measured_uneven as mu
from inside_deepinfer.serving.measured_numbers import large_product_rate
from inside_deepinfer.studies.measured import compared, runs


@conclusion("hbm.card-near-others", "Reading, copying and the median of both products come within a tenth of what others measured on this "
                                    "kind of card, and our two runs within a twentieth of each other.")
def _near_others() -> bool:
    return all(abs(rate.error) < 0.1 and abs(rate.second / rate.others - 1) < 0.1 and abs(rate.spread) < 0.05 for rate in compared())


@conclusion("hbm.card-slows-down", "The best of twenty repeats of a large product comes within a twentieth of the best that others found "
                                   "on this chip, and the median lies at least a tenth below the best, in both precisions and both "
                                   "runs.")
def _slows_down() -> bool:
    table = load_facts().points("matmul-reached").set_index(["card", "format"])["reached"]
    others = {"bf16": table["h100", "BF16"], "fp8": table["h200", "FP8"]}  # one chip; nobody lists the H200 in BF16
    best = {(run, precision): large_product_rate(run, precision, best=True) for run in runs() for precision in others}
    return all(abs(rate / others[precision] - 1) < 0.05 and large_product_rate(run, precision) < 0.9 * rate
               for (run, precision), rate in best.items())


@conclusion("hbm.half-the-bytes", "With few tokens an expert in FP8 takes more than three fifths of its time in BF16, because a fixed time "
                                  "of more than three times its launches does not shrink with the bytes.")
def _half_the_bytes() -> bool:
    def holds(run: str) -> bool:
        table = gpu_run(run, "experts").table()
        few = table[table["tokens"] <= 64].groupby("precision")["seconds"].median()
        return few["fp8"] > 0.6 * few["bf16"] and mc.fixed_and_rate(run)[0] > 3 * mc.expert_rate(run, "fp8").fixed
    return all(holds(run) for run in runs())


@conclusion("hbm.layers-predicted", "In both runs the median error of the predicted layers is below 15 percent, and the worst below 25 "
                                    "percent.")
def _layers_predicted() -> bool:
    found = [mc.predict_layers(run) for run in runs()]
    return all(mc.median_error(layers) < 0.15 and abs(mc.worst(layers).error) < 0.25 for layers in found)


@conclusion("hbm.worst-at-the-bend", "The worst is FP8 at EP64 in both runs, the group size whose tokens per expert come nearest to the "
                                     "turning point; with the fewest tokens, at EP2, the prediction is not too short but too long.")
def _worst_at_the_bend() -> bool:
    for run in runs():
        layers = mc.predict_layers(run)
        far = {entry.ep: abs(np.log(mc.tokens_per_expert(run, "fp8", entry.ep) / mc.turning_point(run, "fp8")))
               for entry in layers if entry.precision == "fp8"}
        worst = mc.worst(layers)
        if (worst.precision, worst.ep) != ("fp8", 64) or min(far, key=far.__getitem__) != 64:
            return False
        if any(entry.error < 0 for entry in layers if entry.ep == 2):
            return False
    return True


@conclusion("hbm.curve-is-a-third", "About a third of that error goes away when measured times of single experts, read off between round "
                                    "token counts, take the place of the curve.")
def _curve_is_a_third() -> bool:
    for run in runs():
        worst = mc.worst(mc.predict_layers(run))
        rest = next(entry.error for entry in mc.layers_from_measured_experts(run)
                    if (entry.precision, entry.ep) == (worst.precision, worst.ep))
        if not 0.25 < 1 - rest / worst.error < 0.45:
            return False
    return True


@conclusion("hbm.only-fp8-has-a-rest", "Only in FP8, and only from EP32 on, do layers take more than six percent longer than experts read "
                                       "off in this way.")
def _only_fp8() -> bool:
    late = {(entry.precision, entry.ep) for run in runs() for entry in mc.layers_from_measured_experts(run) if entry.error < -0.06}
    return bool(late) and late <= {("fp8", ep) for ep in (32, 64, 128)}


@conclusion("hbm.own-counts-explain", "Single experts with exactly the layer's counts add up to its time within a fiftieth, and every "
                                       "FP8 layer from EP16 on is then met within a twentieth, in both runs.")
def _own_counts() -> bool:
    for run in runs():
        layers = [entry for entry in mu.layers_from_own_counts(run) if entry.precision == "fp8" and entry.ep >= 16]
        if {entry.ep for entry in layers} != {16, 32, 64, 128} or any(abs(entry.error) > 0.05 for entry in layers):
            return False
        if abs(mu.of_worst(run, layers).error) > 0.02:
            return False
    return True


@conclusion("hbm.bf16-too-long", "In BF16 the same sum is nowhere more than a fiftieth too short, but at EP128 it is a tenth to a seventh "
                                 "too long in both runs.")
def _bf16_too_long() -> bool:
    for run in runs():
        errors = {entry.ep: entry.error for entry in mu.layers_from_own_counts(run) if entry.precision == "bf16" and entry.ep >= 16}
        if min(errors.values()) < -0.02 or max(errors.values()) != errors[128] or not 0.1 < errors[128] < 1 / 7:
            return False
    return True


@conclusion("hbm.same-state-agrees", "Measured in turn, the layer and its experts agree within three percent, on a card that rested and on "
                                     "one that works.")
def _same_state() -> bool:
    found = [entry for run in runs() for entry in mu.in_turn(run)]
    return {entry.state for entry in found} == {"rested", "working"} and all(-0.03 < entry.error <= 0 for entry in found)


@conclusion("hbm.working-is-slower", "But the BF16 layer at EP128 takes a tenth longer when the card has just worked for half a second, "
                                     "because the power limit then lowers its clock; in FP8 it is a thirtieth.")
def _working_is_slower() -> bool:
    for run in runs():
        clocks = {(entry.precision, entry.state): entry.sm_clock for entry in mu.in_turn(run) if entry.ep == 128}
        if not (0.09 < mu.longer_when_working(run, "bf16", 128) < 0.12 and 0.02 < mu.longer_when_working(run, "fp8", 128) < 0.04
                and clocks["bf16", "working"] < 0.9 * clocks["bf16", "rested"]):
            return False
    return True


@conclusion("hbm.layer-had-rested", "The layer's stored time is the rested one within two percent, so its experts had been measured on a "
                                    "card that worked.")
def _layer_had_rested() -> bool:
    for run in runs():
        stored = next(entry.measured for entry in mu.layers_from_own_counts(run) if (entry.precision, entry.ep) == ("bf16", 128))
        times = {entry.state: entry.layer for entry in mu.in_turn(run) if (entry.precision, entry.ep) == ("bf16", 128)}
        if abs(stored / times["rested"] - 1) > 0.02 or stored / times["working"] - 1 > -0.07:
            return False
    return True


@conclusion("hbm.more-tokens-less-time", "More tokens can take less time: with 288 tokens the library picks another kernel than with 280 "
                                         "and needs a sixth less, and with 240 it runs the kernel of 208 in a tenth less.")
def _more_tokens() -> bool:
    def holds(run: str) -> bool:
        time, chosen = mu.alone(run, "fp8"), {size: mu.kernels(run, "fp8", size) for size in (208, 240, 280, 288)}
        return (chosen[280] != chosen[288] and chosen[208] == chosen[240] != []
                and 0.15 < 1 - time[288] / time[280] < 0.2 and 0.08 < 1 - time[240] / time[208] < 0.15)
    return all(holds(run) for run in runs())


@conclusion("hbm.not-the-mix", "Tokens that no cache holds add less than a thirtieth, each product is one kernel alone as in the layer, "
                               "and neither measurement quantises anything, so memory, launches and scales do not explain it.")
def _not_the_mix() -> bool:
    for run in runs():
        warm, cold = (mu.of_worst(run, mu.layers_from_own_counts(run, own)).predicted for own in (False, True))
        precision, counts = mu.counts_of_worst(run)
        if cold / warm - 1 > 1 / 30 or any([len(names) for names in mu.kernels(run, precision, count)] != [1, 1] for count in counts):
            return False
    return True


@conclusion("hbm.card-power-limit", "Within two tenths of a second of large products the clock falls by more than a fifth, and from then "
                                    "on the driver names the power limit as the reason in every reading, in both precisions and both runs.")
def _power_limit() -> bool:
    def holds(run: str, precision: str) -> bool:
        start, later = mu.clock(run, precision, before=0.15), mu.clock(run, precision, after=0.25)
        return bool(start) and len(later) > 20 and all(hertz < 0.8 * start[0][0] and capped for hertz, capped in later)
    return all(holds(run, precision) for run in runs() for precision in ("bf16", "fp8"))


@conclusion("hbm.gather-waits-for-readers", "Sixteen queries take as long as 64, to a twentieth, so the kernel waits for its own steps and "
                                            "not for bandwidth; and gathering costs less than a tenth more than reading in order.")
def _gather() -> bool:
    return all(abs(mc.gather_seconds(run)[64] / mc.gather_seconds(run)[16] - 1) < 0.05 and max(mc.gather_penalty(run).values()) < 0.1
               for run in runs())


@conclusion("hbm.gather-far-below", "That is less than a quarter of the datasheet's bandwidth, where the step counts with four fifths.")
def _far_below() -> bool:
    stated = load_facts().cards[mc.card_of(runs()[0])].hbm_bandwidth
    return catalogue.value("measured_gather_rate") < 0.25 * stated and load_facts().number("hardware.hbm_efficiency") == 0.8


@conclusion("hbm.latency-is-the-hosts", "From the first run to the second, launching a kernel from Python and the fixed time of an "
                                        "exchange both grew by more than a tenth, while the rate of the exchange and the replayed "
                                        "graph stayed within a hundredth.")
def _latency() -> bool:
    first, second = runs()
    grew = (mc.launch_time(second, "eager") / mc.launch_time(first, "eager"), mc.link(second).latency / mc.link(first).latency)
    stayed = (mc.launch_time(second) / mc.launch_time(first), mc.link(second).rate / mc.link(first).rate)
    return min(grew) > 1.1 and all(abs(ratio - 1) < 0.01 for ratio in stayed)


@conclusion("hbm.measured-memory-binds", "With the measured shares memory limits the step at EP64 too, and the counted step comes "
                                         "nearer to the published one without reaching it.")
def _measured_binds() -> bool:
    assumed, measured = (catalogue.value("counted_step_time", efficiencies=choice) for choice in ("datasheet", "measured"))
    return (catalogue.value("binding_resource", efficiencies="measured") == "HBM"
            and assumed < measured < catalogue.value("step_time"))


# ---- chapter 8 --------------------------------------------------------------------------------------------------------------

@conclusion("decode-frontier.graph-replay", "Launched one by one from Python, the kernels of a step would take more than three tenths of "
                                            "the published step, in a replayed graph less than a twentieth, in both runs.")
def _graph_replay() -> bool:
    share = catalogue.value("time_launch") / catalogue.value("kernel_time") / catalogue.value("step_time")  # kernels per second of it
    return all(share * mc.launch_time(run, "eager") > 0.3 and share * mc.launch_time(run) < 0.05 for run in runs())


@conclusion("decode-frontier.measured-shares", "Fitted through the same point, the frontier with measured shares stays within a twentieth "
                                               "of ours from 15 to 240 sequences per GPU.")
def _measured_shares() -> bool:
    batches = np.linspace(15.0, 240.0, 46)
    curves = [catalogue.value("throughput_per_decode_gpu", efficiencies=choice, batch=batches,
                              uncounted_time=catalogue.value("step_time_left_open", efficiencies=choice))
              for choice in ("datasheet", "measured")]
    return bool(np.all(np.abs(curves[1] / curves[0] - 1) < 0.05))
