"""Fleet: one day of tokens, three answers to how many GPUs."""

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.page import Number, Page
from inside_deepinfer.facts import digits, percent
from inside_deepinfer.figures import fleet
from inside_deepinfer.scenario import Scenario


def finding(scenario: Scenario, preset: str) -> str:
    """The three counts, and the utilisation that would reconcile the first and the last."""
    names = ["cluster_gpus_from_throughput", "cluster_gpus_from_revenue", "cluster_gpus_from_storage", "reconciling_utilisation"]
    found = {name: quantity.value for name, quantity in catalogue.evaluate(names, scenario, preset).items()}
    speed, money, store, share = (found[name] for name in names)
    counts = f"Throughput asks for {digits(speed)} GPUs, revenue for {digits(money)}, storage for {digits(store)}"
    if share > 1:
        return f"{counts}: storage names fewer GPUs than the day's tokens need at full speed."
    return f"{counts}; throughput and storage agree if every GPU runs at {percent(share, 0)} of benchmark speed."


PAGE = Page(
    slug="fleet",
    title="Fleet",
    question="How many GPUs does one day of tokens need?",
    chapter="one-day",
    primary=("tokens_per_day", "hit_rate", "pd_ratio"),
    folded={"Speed of a GPU": ("prefill_throughput_new", "decode_throughput"), "KV store": ("store_capacity", "store_per_gpu"),
            "Prices": ("price_hit", "price_miss", "price_output", "currency", "cny_per_usd", "peak_share"),
            "Failures": ("restart_time", "spare_instances", "ep")},
    numbers=("tokens_per_second",
             "prefill_throughput_cached",
             Number("prefill_gpus_from_throughput", beside="fleet.prefill_gpus"),
             Number("cluster_gpus_from_throughput", label="GPUs from throughput", beside="fleet.total_gpus"),
             Number("cluster_gpus_from_revenue", label="GPUs from revenue"),
             Number("cluster_gpus_from_storage", label="GPUs from storage"),
             Number("reconciling_utilisation", label="utilisation at which storage and throughput agree", show="percent"),
             Number("pool_failures_per_day", label="cards of the decode pool that fail, per day"),
             Number("short_minutes_per_year", label="minutes a year with too few decode instances")),
    figures=(fleet.three_routes, fleet.reconcile),
    finding=finding,
)
