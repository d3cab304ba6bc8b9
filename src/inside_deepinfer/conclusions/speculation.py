"""What chapter 10 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving.validation import accepted_length
from inside_deepinfer.studies import speculation


@conclusion("speculation.law", "Over two hundred pairs of laws the draws differ from the target by no more than chance does; with a "
                               "correction from the whole target, a common mistake, they would differ plainly.")
def _law() -> bool:
    right, wrong = speculation.law_of_one().values()
    return abs(right) < 3 and wrong > 100


@conclusion("speculation.law-in-a-row", "Four tokens written with three guesses per round have the target's joint law too.")
def _law_in_a_row() -> bool:
    found = speculation.law_of_four()
    return abs(found["target"]) < 3 and found["draft"] > 100


@conclusion("speculation.lengths-agree", "In each of the nine pairs the running products give the published tokens per step within one "
                                         "percent.")
def _lengths_agree() -> bool:
    points = accepted_length()[0].points
    return len(points) == 9 and all(abs(point.error) < 0.01 for point in points)


@conclusion("speculation.rows-free-when-idle", "On a GPU with few sequences every guess is worth its row; with a thousand sequences "
                                               "fewer than two are.")
def _rows_free() -> bool:
    few, many = (catalogue.value("scheduled_drafts", batch=batch) for batch in (1, 1000))
    return few > 4.9 and many < 2


@conclusion("speculation.staircase", "With eight rows per stair the best number of rows fills a stair to its edge, and throughput hardly "
                                     "changes; a stair of 64 rows moves the budget by a third of a draft.")
def _staircase() -> bool:
    scenario = make_scenario("published")
    best = speculation.on_a_staircase(scenario, (1, 8, 64))
    rows = {stair: float(one.rows[0]) * scenario.batch for stair, one in best.items()}
    rates = {stair: float(one.tokens[0] / one.time[0]) for stair, one in best.items()}
    edge = abs(rows[8] / 8 - round(rows[8] / 8)) < 0.01
    return edge and rates[8] > 0.999 * rates[1] and 0.2 < (rows[1] - rows[64]) / scenario.batch < 0.45


@conclusion("speculation.rule-needs-load", "Neither a fixed number of guesses nor a threshold is within a twentieth of the optimum at "
                                           "every load from 1 to 1000 sequences per GPU.")
def _rule_needs_load() -> bool:
    run = speculation.by_load(make_scenario("published"))
    best = run.rate(run.best)
    return all(float(np.min(run.rate(one) / best)) < 0.95 for one in run.others.values())


@conclusion("speculation.late-costs-little", "Even then a number of rows that is chosen one step late costs less than half a percent of "
                                             "throughput, because many sequences together look alike from step to step.")
def _late() -> bool:
    return all(0 <= catalogue.value("late_budget_loss", batch=batch) < 0.005 for batch in (20, 60, 120, 250))


@conclusion("speculation.flat", "Confidence as wrong as it was measured before scaling costs less than one percent, because tokens per "
                                "second hardly change around their maximum.")
def _flat() -> bool:
    return 0 <= catalogue.value("calibrated_loss") < catalogue.value("miscalibration_loss") < 0.01


@conclusion("speculation.inside", "Checked drafts and gain lie inside the reported ranges, and tokens per step are about a fiftieth below "
                                  "the reported ones.")
def _inside() -> bool:
    facts = load_facts()
    verified, gain = facts.quantity("spec.verified").value, facts.quantity("spec.gain").value
    return (verified[1] <= catalogue.value("scheduled_drafts") <= verified[2]
            and gain[0] <= catalogue.value("schedule_gain") <= gain[1]
            and -0.025 < catalogue.value("scheduled_tokens_error") < -0.015)


@conclusion("speculation.spread-decides", "If acceptance hardly varied from guess to guess, the schedule could gain less than a "
                                          "hundredth; with a spread of a third it would gain more than is reported.")
def _spread_decides() -> bool:
    little, much = (catalogue.value("schedule_gain", acceptance_spread=spread) for spread in (0.10, 1 / 3))
    return little < 0.01 and much > load_facts().quantity("spec.gain").value[1]


@conclusion("speculation.predecessor", "The acceptance that was fitted on the predecessor's throughput alone gives the reported tokens per "
                                       "step within two percent.")
def _predecessor() -> bool:
    return abs(catalogue.value("predecessor_tokens") / load_facts().quantity("spec.accepted").value[0] - 1) < 0.02
