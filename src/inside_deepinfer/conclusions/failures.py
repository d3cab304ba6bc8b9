"""What chapter 13 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.studies.outages import chain_and_simulation


@conclusion("failures.resize-is-most", "Restarting with the live cards makes the time that an instance is down more than a hundred times "
                                       "shorter than waiting for a new card.")
def _resize_is_most() -> bool:
    return catalogue.value("instance_downtime_waiting") > 100 * catalogue.value("instance_downtime")


@conclusion("failures.spare-beats-speed", "One spare instance makes a shortage several hundred times rarer; a restart ten times as fast "
                                          "makes it ten times rarer.")
def _spare_beats_speed() -> bool:
    gains = [catalogue.value("gain_of_a_spare", ep=ep) for ep in (64, 128)]
    return min(gains) > 200 and max(gains) < 1000 and abs(catalogue.value("gain_of_a_faster_restart") - 10) < 0.1


@conclusion("failures.larger-same-shortage", "Doubling the instances' size hardly changes how often a pool without spares is short, but it "
                                             "doubles what one failure interrupts and what one spare costs.")
def _larger_same_shortage() -> bool:
    short, lost, cost = (catalogue.value(name, ep=np.array([64, 128]), **more) for name, more in (
        ("short_of_instances", {"spare_instances": 0}), ("sequences_lost_per_failure", {}), ("spare_share", {})))
    return bool(abs(short[1] / short[0] - 1) < 0.1 and lost[1] == 2 * lost[0] and np.isclose(cost[1], 2 * cost[0]))


@conclusion("failures.work-lost-is-nothing", "What is generated twice is less than a hundred-thousandth of the output.")
def _work_lost() -> bool:
    return catalogue.value("output_lost_share") < 1e-5


@conclusion("failures.simulation-agrees", "Chain and simulation agree within three standard errors at every size we tried.")
def _simulation_agrees() -> bool:
    return max(one.errors_apart for one in chain_and_simulation(make_scenario(), (8, 64, 128))) < 3
