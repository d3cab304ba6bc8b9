"""What chapter 9 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving import third_party
from inside_deepinfer.studies import prefill_curves

CHUNKS = (2048, 4096, 8192, 16384, 32768)


@conclusion("prefill-frontier.identity-near", "Up to the published hit rate the identity is within a twentieth of the count.")
def _identity_near() -> bool:
    rates = np.linspace(0.0, load_facts().number("prefill.hit_rate"), 49)
    return bool(np.all(np.abs(catalogue.value("identity_gap", hit_rate=rates)) < 0.05))


@conclusion("prefill-frontier.network-ends-it", "Just above 99 percent hits the cached tokens no longer arrive in time, and the identity "
                                                "ends.")
def _network_ends_it() -> bool:
    limit = catalogue.value("network_hit_rate")
    return 0.99 < limit < 0.995 and catalogue.value("identity_gap", hit_rate=0.995) > 0.5


@conclusion("prefill-frontier.sharing", "That prompts share a step raises what a card can do by a quarter over one prompt at a time.")
def _sharing() -> bool:
    queue = prefill_curves.queue_of(make_scenario("published"))
    alone = queue.new_tokens / (queue.fixed + queue.per_token * queue.new_tokens)
    return 1.2 < queue.capacity() / alone < 1.3


@conclusion("prefill-frontier.tail-binds", "At the published hit rate the 99th percentile limits the load before the mean does, at about "
                                           "four fifths of the capacity.")
def _tail_binds() -> bool:
    tail, mean = (catalogue.value(name) for name in ("load_at_p99_target", "load_at_mean_target"))
    return 0.75 < tail < 0.85 and tail < mean


@conclusion("prefill-frontier.half-hits-none", "With half of the tokens cached no load meets the mean target, because a mean prompt takes "
                                               "longer than that on an empty card.")
def _half_hits_none() -> bool:
    queue = prefill_curves.queue_of(make_scenario("published"), hit_rate=0.5)
    alone = queue.fixed * queue.new_tokens / queue.chunk + queue.per_token * queue.new_tokens
    return catalogue.value("load_at_mean_target", hit_rate=0.5) == 0 and alone > load_facts().number("prefill.ttft_mean")


@conclusion("prefill-frontier.middle-chunk", "Of the five sizes drawn, chunks of 8192 tokens give the most within both targets.")
def _middle_chunk() -> bool:
    within = [catalogue.value("throughput_within_targets", prefill_chunk=chunk) for chunk in CHUNKS]
    return CHUNKS[int(np.argmax(within))] == 8192


@conclusion("prefill-frontier.bursts-cost", "Prompts that come in fours on average cost between a fifth and a quarter of the usable load; "
                                            "if sixteen come together, no simulated load keeps the 99th percentile.")
def _bursts_cost() -> bool:
    one, four, sixteen = (catalogue.value("load_at_p99_target", burst=burst) for burst in (1.0, 4.0, 16.0))
    return 0.2 < 1 - four / one < 0.25 and sixteen == 0


@conclusion("prefill-frontier.replay-less", "That is less than the work it saves, because weights are read all the same.")
def _replay_less() -> bool:
    return catalogue.value("replay_gain") < 0.95 * (1 / catalogue.value("prefill_flops_ratio_replay") - 1)


@conclusion("prefill-frontier.h100", "An output token is predicted within six percent at every length; a prompt token takes more than "
                                     "three times as long as predicted, at every length.")
def _h100() -> bool:
    seen = third_party.h100()
    decode = np.abs(seen.token_time_model / seen.token_time - 1)
    return bool(np.all(decode < 0.06) and np.all(seen.first_token > 3 * seen.first_token_model))
