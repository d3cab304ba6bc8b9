"""What chapter 8 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.studies.decode_curves import Frontier, frontier


def _curve(speculation: bool = True, **changes: float | str) -> Frontier:
    return frontier(make_scenario(), speculation=speculation, changes=changes)


def _speed() -> float:
    return load_facts().number("decode.user_speed")


@conclusion("decode-frontier.not-half", "Twice as many sequences on a GPU cost a user less than half of the speed, because part of the "
                                        "step does not grow with them.")
def _not_half() -> bool:
    few, many = catalogue.value("modelled_user_speed", batch=np.array([60, 120]))
    return few / 2 < many < few


@conclusion("decode-frontier.two-numbers", "Over 8 to 512 sequences per GPU two numbers, a fixed time and a time per row, stand for the "
                                           "whole step within one percent on average.")
def _two_numbers() -> bool:
    return catalogue.value("step_fit_error") < 0.01


@conclusion("decode-frontier.floor", "What the count leaves out looks like a time per step and not like a factor: the predecessor's own "
                                     "curves miss their count by far more in the fixed time than in the time per row.")
def _floor() -> bool:
    return catalogue.value("predecessor_fixed_ratio") > 3 * catalogue.value("predecessor_row_ratio")


@conclusion("decode-frontier.lone-step", "One sequence alone leaves nearly the fitted time open on four GB300 and on eight H100, within "
                                         "a sixth; a factor on the whole count would have to be 2.8 and 3.6 there, where the fitted "
                                         "point needs 1.8.")
def _lone_step() -> bool:
    fitted, factor = catalogue.value("uncounted_time"), catalogue.value("step_factor_left_open")
    steps, rests = ([catalogue.value(f"lone_{part}_{card}") for card in ("gb300", "h100")] for part in ("step", "rest"))
    few, many = (step / (step - rest) for step, rest in zip(steps, rests, strict=True))
    return all(abs(rest / fitted - 1) < 1 / 6 for rest in rests) and 2.75 < few < 2.85 and 3.55 < many < 3.7 and 1.75 < factor < 1.85


@conclusion("decode-frontier.through-the-point", "The curve passes the published point within one percent, as one fitted number must.")
def _through() -> bool:
    return abs(catalogue.value("benchmark_error")) < 0.01


@conclusion("decode-frontier.band", "At a quarter of the supposed 60 sequences the band is already more than half as wide as the model's "
                                    "own value.")
def _band() -> bool:
    low, high = catalogue.value("decode_band_low_few"), catalogue.value("decode_band_high_few")
    return high - low > 0.5 * catalogue.value("throughput_per_decode_gpu", batch=15)


@conclusion("decode-frontier.dspark-predicted", "Fitted on MTP-1, the step costs reproduce DSpark-5 within three percent on average for "
                                                "both models, with two more numbers for acceptance.")
def _dspark() -> bool:
    return max(catalogue.value(f"v4_{model}_dspark5_error") for model in ("flash", "pro")) < 0.03


@conclusion("decode-frontier.budget-predicted", "The verification budget, which no fit has seen, is missed by less than a third of a row "
                                                "on average, but ours falls about two fifths too steeply.")
def _budget() -> bool:
    errors, slopes = ([catalogue.value(f"v4_{model}_budget_{name}") for model in ("flash", "pro")] for name in ("error", "slope"))
    return max(errors) < 1 / 3 and all(1.35 < slope < 1.45 for slope in slopes)


@conclusion("decode-frontier.same-acceptance", "Both models come out with nearly the same acceptance, although each was fitted alone.")
def _same_acceptance() -> bool:
    pairs = [(catalogue.value(f"v4_flash_{name}"), catalogue.value(f"v4_pro_{name}")) for name in ("acceptance", "acceptance_spread")]
    return all(abs(a - b) < 0.03 for a, b in pairs)


@conclusion("decode-frontier.experts-term", "V4-Flash does not use the third term at all; V4-Pro needs it.")
def _experts() -> bool:
    return (catalogue.value("v4_flash_expert_time") < 1e-3 * catalogue.value("v4_flash_fixed_time")
            and catalogue.value("v4_pro_expert_time") > 0.1 * catalogue.value("v4_pro_fixed_time"))


@conclusion("decode-frontier.ep128", "EP128 serves a user alone a little faster than EP64 and gives less at the published speed, because "
                                     "it leaves the scale-up domain.")
def _ep128() -> bool:
    near, wide, inside = _curve(), _curve(ep=128), _curve(ep=128, scaleup_domain=128)
    less = wide.at_speed(_speed()) < 0.8 * near.at_speed(_speed()) < near.at_speed(_speed()) < inside.at_speed(_speed())
    return wide.user_speed.max() > near.user_speed.max() and less and bool(wide.notice) and not inside.notice


@conclusion("decode-frontier.hbm-size", "The larger memory of GB300 changes nothing at the published speed per user; it only lets more "
                                        "sequences in at the slow end.")
def _hbm_size() -> bool:
    small, large = _curve(), _curve(card="gb300")
    return abs(large.at_speed(_speed()) / small.at_speed(_speed()) - 1) < 0.005 and large.batch.max() > 1.5 * small.batch.max()


@conclusion("decode-frontier.context", "With a million tokens of context a GPU still gives more than two thirds at the published speed, "
                                       "but holds less than a tenth of the sequences.")
def _context() -> bool:
    short, long = _curve(), _curve(context=float(2**20))
    return long.at_speed(_speed()) > 2 / 3 * short.at_speed(_speed()) and long.batch.max() < 0.1 * short.batch.max()


@conclusion("decode-frontier.speculation", "Without guessing ahead no user reaches the published speed, not even alone; with so many "
                                           "sequences that each gets 50 tokens per second, guessing costs throughput.")
def _speculation() -> bool:
    plain = _curve(speculation=False)
    return plain.user_speed.max() < _speed() and plain.at_speed(50) > _curve().at_speed(50)


@conclusion("decode-frontier.few-requests", "Where few requests run, the model with its one fitted number predicts other people's cards, "
                                            "engine and layout within a seventh.")
def _few() -> bool:
    return max(catalogue.value("inferencex_error_few"), catalogue.value("h100_decode_error")) < 1 / 7


@conclusion("decode-frontier.shared-cards", "Where prefill shares the cards, the model is more than four times too fast at worst, and it "
                                              "says nothing of how the two share.")
def _shared() -> bool:
    return 4 <= catalogue.value("inferencex_factor_many") < 5


@conclusion("decode-frontier.apart-too", "Even with prefill apart, Dynamo's decode is more than twice as slow as predicted.")
def _apart() -> bool:
    return catalogue.value("dynamo_factor") > 2


@conclusion("decode-frontier.peer", "The calculator has no V4.1-Flash, refuses V4-Flash at EP64, and answers V3 at EP64 with the "
                                    "communication data of EP8.")
def _peer() -> bool:
    rows = load_facts().points("aiconfigurator-runs").set_index("question")["peer_answer"]
    newest = rows[rows.index.str.startswith("V4.1-Flash")]
    return (newest.str.startswith("refused").all() and len(newest) == 2
            and rows[rows.index.str.startswith("V4-Flash, EP64")].str.startswith("refused").all()
            and rows[rows.index.str.startswith("V3, EP64")].str.contains("of EP8 in the place of EP64").all())


@conclusion("decode-frontier.peer-speed", "Our frontier of a thousand points takes less than a thousandth of the time of the peer's.")
def _peer_speed() -> bool:
    row = load_facts().points("aiconfigurator-runs").set_index("question").loc["one frontier"]
    return row["peer_s"] / row["our_s"] > 1000 and row["our_points"] == 1000
