"""What chapter 1 concludes."""

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts


@conclusion("one-day.routes-disagree", "Storage counts more than three times as many GPUs as throughput does.")
def _routes_disagree() -> bool:
    return catalogue.value("clusters_sharing_store") > 3


@conclusion("one-day.two-routes-agree", "Throughput and revenue count the same cluster within five percent, as they must: "
                                        "both rest on the same two benchmark speeds.")
def _two_routes_agree() -> bool:
    return abs(catalogue.value("cluster_gpus_from_revenue") / catalogue.value("cluster_gpus_from_throughput") - 1) < 0.05


@conclusion("one-day.utilisation-breaks-revenue", "If idle time alone explained the store, a GPU would earn less than a third of "
                                                  "the published revenue.")
def _utilisation_breaks_revenue() -> bool:
    return catalogue.value("revenue_at_reconciling_utilisation") < load_facts().number("fleet.revenue_per_gpu_hour") / 3


@conclusion("one-day.method-holds", "On DeepSeek's own day of February 2025 the throughput route finds the stated number of "
                                    "nodes within a tenth of a percent.")
def _method_holds() -> bool:
    return abs(catalogue.value("v3r1_nodes_error")) < 1e-3
