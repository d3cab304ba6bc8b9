"""Outage of a decode pool: how many instances the day needs, how often too few of them serve, and what a spare is worth.

The chain of one instance is in ``serving.availability``; instances fail independently here.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from inside_deepinfer.facts import derived, require, require_between, require_not_negative, require_positive
from inside_deepinfer.facts.arrays import scalar
from inside_deepinfer.facts.units import DAYS_PER_YEAR, HOURS_PER_YEAR, SECONDS_PER_DAY, SECONDS_PER_HOUR
from inside_deepinfer.serving.availability import RESTARTS, InstanceChain, instance_chain, served_share

MINUTES_PER_YEAR = DAYS_PER_YEAR * SECONDS_PER_DAY / 60
_USES = {"card_failure_rate": "failure.card_rate", "replace_time": "failure.replace_time"}


def chain_of(ep: Any, card_failure_rate: float, restart_time: Any, replace_time: float, resize: bool = True) -> InstanceChain:
    """The chain of one instance, from a rate per card and hour."""
    require(np.asarray(require_positive("ep", ep)) % 1 == 0, "ep", ep, "a whole number of GPUs")
    return instance_chain(int(ep), require_not_negative("failure.card_rate", card_failure_rate) / SECONDS_PER_HOUR,
                          float(restart_time), replace_time, resize)


def too_few(needed: int, spares: int, unavailability: float) -> float:
    """Probability that fewer than ``needed`` of ``needed + spares`` independent instances serve.

    The tail of losing more than the spares, which keeps its digits where 1 minus the rest would not.
    """
    from scipy import special  # late: not every command needs it
    require(require_positive("needed", needed) % 1 == 0, "needed", needed, "a whole number of at least 1")
    require(require_not_negative("spare_instances", spares) % 1 == 0, "spare_instances", spares, "a whole number of at least 0")
    lost = require_between("unavailability", unavailability, 0.0, 1.0)
    return float(special.betainc(spares + 1, needed, lost))  # the binomial tail as an incomplete beta function


@derived(label="decode GPUs from throughput", unit="GPU", formula="prefill_gpus_from_throughput / pd_ratio")
def decode_gpus_from_throughput(prefill_gpus_from_throughput: Any, pd_ratio: Any) -> Any:
    """The decode pool of chapter 1."""
    return prefill_gpus_from_throughput / require_positive("pd_ratio", pd_ratio)


@derived(label="decode instances that the day needs", unit="instance", formula="decode_gpus_from_throughput / ep, rounded up", words=True)
def decode_instances(decode_gpus_from_throughput: Any, ep: Any) -> Any:
    """Whole instances, without spares."""
    return scalar(np.ceil(np.asarray(decode_gpus_from_throughput) / require_positive("ep", ep)))


@derived(label="years between failures of a card", unit="year", formula="1 / (rate * 8760)", uses={"rate": "failure.card_rate"})
def card_years(rate: Any) -> Any:
    """Mean; the rate is per hour."""
    return 1 / (require_positive("failure.card_rate", rate) * HOURS_PER_YEAR)


@derived(label="days between failures of an instance", unit="day", formula="1 / instance_failures_per_day")
def days_between_failures(instance_failures_per_day: Any) -> Any:
    """Mean."""
    return 1 / require_positive("instance_failures_per_day", instance_failures_per_day)


@derived(label="failures of the decode pool per day", unit="1/day", formula="decode_gpus_from_throughput * card_failure_rate * 24",
         uses={"card_failure_rate": "failure.card_rate"})
def pool_failures_per_day(decode_gpus_from_throughput: Any, card_failure_rate: Any) -> Any:
    """Cards, not instances, fail: how they are grouped does not matter."""
    return decode_gpus_from_throughput * require_not_negative("failure.card_rate", card_failure_rate) * SECONDS_PER_DAY / SECONDS_PER_HOUR


@derived(label="tokens generated twice after a failure, if all outputs are equally long", unit="token",
         formula="2 * sequences_lost_per_failure * output_tokens_per_request / 2")
def tokens_lost_per_failure(sequences_lost_per_failure: Any, output_tokens_per_request: Any) -> Any:
    """Both restarts interrupt every sequence, and half of each output is there already; see output_lost_share for other lengths."""
    return RESTARTS * sequences_lost_per_failure * output_tokens_per_request / 2


@derived(label="share of time that an instance does not serve", unit="ratio", uses=_USES, words=True,
         formula="1 - probability of the serving states of the Markov chain, restarted with the live cards")
def instance_downtime(ep: Any, card_failure_rate: Any, restart_time: Any, replace_time: Any) -> Any:
    """A failure stops all cards of the instance for one restart, and so does the return of the card."""
    def one(cards: Any, restart: Any) -> float:
        return float(chain_of(cards, card_failure_rate, restart, replace_time).restarting.sum())

    return scalar(np.vectorize(one, otypes=[float])(ep, restart_time))


@derived(label="share of time that an instance does not serve, by hand", unit="ratio", uses={"card_failure_rate": "failure.card_rate"},
         formula="2 * ep * card_failure_rate / 3600 * restart_time")
def instance_downtime_by_hand(ep: Any, card_failure_rate: Any, restart_time: Any) -> Any:
    """Two restarts per failure: one without the card, one when its replacement comes; what fails meanwhile is left out.

    For more than one card: a single card has no others to restart with.
    """
    return RESTARTS * require_positive("ep", ep) * require_not_negative("failure.card_rate", card_failure_rate) / SECONDS_PER_HOUR \
        * require_positive("restart_time", restart_time)


@derived(label="share of time that an instance does not serve if it waits for the card", unit="ratio", uses=_USES, words=True,
         formula="the same, but the instance stays down until the dead card is replaced")
def instance_downtime_waiting(ep: Any, card_failure_rate: Any, restart_time: Any, replace_time: Any) -> Any:
    """What the resize to the live cards avoids."""
    def one(cards: Any, restart: Any) -> float:
        return float(chain_of(cards, card_failure_rate, restart, replace_time, resize=False).restarting.sum())

    return scalar(np.vectorize(one, otypes=[float])(ep, restart_time))


@derived(label="share of time with too few decode instances", unit="ratio", words=True,
         formula="probability that more than spare_instances of decode_instances + spare_instances do not serve")
def short_of_instances(decode_instances: Any, spare_instances: Any, instance_downtime: Any) -> Any:
    """Independent instances; a shrunken instance counts as one that serves."""
    found = np.vectorize(too_few, otypes=[float])(decode_instances, spare_instances, instance_downtime)
    return scalar(found)


@derived(label="minutes a year with too few decode instances", unit="minute/year", formula="short_of_instances * 525600")
def short_minutes_per_year(short_of_instances: Any) -> Any:
    """The same as a span."""
    return short_of_instances * MINUTES_PER_YEAR


@derived(label="GPUs of the spare instances over the decode pool", unit="ratio",
         formula="spare_instances * ep / decode_gpus_from_throughput")
def spare_share(spare_instances: Any, ep: Any, decode_gpus_from_throughput: Any) -> Any:
    """What the spares cost; a spare of a larger instance is a larger spare."""
    return require_not_negative("spare_instances", spare_instances) * ep / require_positive("decode GPUs", decode_gpus_from_throughput)


@derived(label="decode capacity that is missing on average", unit="ratio", uses=_USES, words=True,
         formula="1 - mean share of the needed cards that serve, shrunken instances counted at their size, no spares")
def missing_capacity(ep: Any, card_failure_rate: Any, restart_time: Any, replace_time: Any, decode_instances: Any) -> Any:
    """Without spares: restarts and the cards that are away until they are replaced."""
    def one(cards: Any, restart: Any, needed: Any) -> float:
        return 1 - served_share(chain_of(cards, card_failure_rate, restart, replace_time), ceil(needed), 0)

    return scalar(np.vectorize(one, otypes=[float])(ep, restart_time, decode_instances))


@derived(label="how much rarer one spare makes a shortage", unit="ratio", words=True,
         formula="share of time with too few instances without spares over the share with one")
def gain_of_a_spare(decode_instances: Any, instance_downtime: Any) -> Any:
    """With one spare two instances have to be down at the same time."""
    found = np.vectorize(lambda needed, down: too_few(needed, 0, down) / too_few(needed, 1, down), otypes=[float])
    return scalar(found(decode_instances, instance_downtime))


@derived(label="how much rarer a faster restart makes a shortage without spares", unit="ratio", uses=_USES | {
    "faster": "failure.fast_restart"}, words=True,
         formula="share of time with too few instances, no spares, over the share at restart_time / faster")
def gain_of_a_faster_restart(ep: Any, card_failure_rate: Any, restart_time: Any, replace_time: Any, decode_instances: Any,
                             faster: Any) -> Any:
    """Without spares a shortage is as rare as the restart is short, and no more."""
    def one(cards: Any, restart: Any, needed: Any) -> float:
        down = [float(chain_of(cards, card_failure_rate, time, replace_time).restarting.sum()) for time in (restart, restart / faster)]
        return too_few(needed, 0, down[0]) / too_few(needed, 0, down[1])

    return scalar(np.vectorize(one, otypes=[float])(ep, restart_time, decode_instances))
