"""Revenue: what one GPU-hour earns, which pool limits it, and what moves it most."""

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.page import Number, Page
from inside_deepinfer.facts import digits, percent
from inside_deepinfer.figures import prices
from inside_deepinfer.scenario import Scenario


def finding(scenario: Scenario, preset: str) -> str:
    """Revenue of this workload, the pool that waits, the margin at the assumed cost, and what is left of it at partial use."""
    names = ["workload_revenue_per_cluster_gpu_hour", "prefill_busy_share", "decode_busy_share", "gross_margin",
             "cluster_gpus_from_storage", "cluster_gpus_for_workload", "balanced_pd_ratio"]
    found = {name: quantity.value for name, quantity in catalogue.evaluate(names, scenario, preset).items()}
    revenue, prefill, decode, margin, stored, needed, ratio = (found[name] for name in names)
    waits = "both pools are full"
    if prefill < 0.995:
        waits = f"prefill GPUs wait {percent(1 - prefill, 0)} of the time"
    elif decode < 0.995:
        waits = f"decode GPUs wait {percent(1 - decode, 0)} of the time"
    left = f"leaves a gross margin of {percent(margin, 0)}" if margin >= 0 else "is more than that"
    # the day's traffic need not fill the GPUs that share the store; in balance it asks for ``needed`` and earns the same in all
    spread = catalogue.value("workload_revenue_per_cluster_gpu_hour", scenario, preset, pd_ratio=ratio) * needed / stored
    idle = (f" Spread over the {digits(stored)} GPUs counted from storage, the day's traffic brings {digits(spread)} USD per GPU-hour, "
            f"{percent(spread / revenue, 0)} of what it earns there.") if spread < 0.995 * revenue else ""
    return (f"A GPU-hour of the cluster earns {digits(revenue)} USD at list price and {waits}; "
            f"the assumed cost of {digits(scenario.gpu_cost + scenario.infra_cost)} USD {left}.{idle}")


PAGE = Page(
    slug="revenue",
    title="Revenue",
    question="What does one GPU-hour earn, and what moves it?",
    chapter="revenue",
    primary=("hit_rate", "pd_ratio", "input_output_ratio"),
    folded={"Prices": ("price_hit", "price_miss", "price_output", "currency", "cny_per_usd", "peak_share"),
            "Speed of a GPU": ("prefill_throughput_new", "decode_throughput"), "Cost": ("gpu_cost", "infra_cost")},
    numbers=("revenue_per_prefill_gpu_hour",
             "revenue_per_decode_gpu_hour",
             Number("revenue_per_cluster_gpu_hour", label="per GPU-hour of the cluster, both pools full",
                    beside="fleet.revenue_per_gpu_hour", same=("peak_share",)),
             Number("workload_revenue_per_cluster_gpu_hour", label="per GPU-hour of the cluster, this workload"),
             Number("gross_margin", show="percent"),
             Number("balanced_pd_ratio", label="prefill GPUs per decode GPU that this workload asks for")),
    figures=(prices.revenue_split, prices.revenue_surface, prices.sensitivity),
    finding=finding,
)
