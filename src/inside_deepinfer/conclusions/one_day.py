"""What chapter 1 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving.reconcile import storage_readings


def _in_every_reading(name: str) -> np.ndarray:
    """A number in every reading of the two storage figures, the printed one first."""
    scenario, shards = make_scenario(), load_facts().quantity("storage.erasure").value
    readings = storage_readings(scenario.store_capacity, scenario.store_per_gpu, *shards)
    whole, part = np.array(list(readings.values())).T
    return np.asarray(catalogue.value(name, scenario, store_capacity=whole, store_per_gpu=part))


@conclusion("one-day.routes-disagree", "Read as printed, storage counts more than three times as many GPUs as throughput; in every "
                                       "reading of the units more than twice.")
def _routes_disagree() -> bool:
    times = _in_every_reading("clusters_sharing_store")
    return bool(times[0] > 3 and np.all(times > 2))


@conclusion("one-day.two-routes-agree", "Throughput and revenue count the same cluster within five percent, with either price list.")
def _two_routes_agree() -> bool:
    names = ("cluster_gpus_from_revenue", "cluster_gpus_from_throughput")
    return all(abs(catalogue.quantity(names[0], preset).value / catalogue.quantity(names[1], preset).value - 1) < 0.05
               for preset in ("published", "off-peak"))


@conclusion("one-day.utilisation-breaks-revenue", "If idle time alone explained the store, a GPU would earn less than a third of "
                                                  "the published revenue, and less than half in every reading.")
def _utilisation_breaks_revenue() -> bool:
    earned = _in_every_reading("revenue_at_reconciling_utilisation") / load_facts().number("fleet.revenue_per_gpu_hour")
    return bool(earned[0] < 1 / 3 and np.all(earned < 1 / 2))


@conclusion("one-day.method-holds", "Input and output counted apart, the throughput route finds the number of nodes that DeepSeek "
                                    "stated for a day of February 2025 within a tenth of a percent.")
def _method_holds() -> bool:
    return abs(catalogue.value("v3r1_nodes_error")) < 1e-3
