"""What chapter 5 concludes."""

from inside_deepinfer import catalogue
from inside_deepinfer.cache.distributed import Reading, analyse_several
from inside_deepinfer.cache.reuse import LAST_HALF, WHOLE, Definition, Question
from inside_deepinfer.cache.workload_sensitivity import sensitivity
from inside_deepinfer.cache.workloads import calibrated, calibrated_requests, hit_rate, retention_balance
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts


def _lost(kind: str) -> float:
    """Hit rate that three instead of seven days cost the generated traffic."""
    requests = calibrated_requests(kind)
    short, long = (load_facts().number(f"storage.retention_{name}") for name in ("agent", "chat"))
    return float(hit_rate(requests, long) - hit_rate(requests, short))


def _gain_over_cost(kind: str) -> float:
    """What the days between the two retentions gain, over the gain that would pay for what this kind of traffic writes itself."""
    short, long = (load_facts().number(f"storage.retention_{name}") for name in ("agent", "chat"))
    block, reuse = int(catalogue.value("block_tokens")), float(catalogue.value("break_even_reuse_per_day"))
    gain, pays = retention_balance(kind, short, long, block, reuse)
    return gain / pays


@conclusion("kv-store.many-hit-rates", "On the small trace of this book the largest and the smallest of five usual hit rates lie "
                                       "more than twenty points apart.")
def _many_hit_rates() -> bool:
    ways = (WHOLE, LAST_HALF, Definition(rule="v4.1"), Definition("blocks"), Definition("requests"))
    reports = analyse_several(load_facts().folder / "traces" / "hand.jsonl", [Question(definition=way) for way in ways],
                              Reading(kv_bytes=float(catalogue.value("kv_bytes_per_token"))))
    rates = [report.hit_rate() for report in reports]
    return max(rates) - min(rates) > 0.2


@conclusion("kv-store.warm-up", "Counting only the last half of the requests adds two points to one public trace and twenty to the "
                                "other.")
def _warm_up() -> bool:
    rate = load_facts().points("trace-hit-rates").set_index("trace").hit_rate
    chat, made = (rate[f"Mooncake {name}, last half"] - rate[f"Mooncake {name}, whole trace"] for name in ("conversation", "synthetic"))
    return 0.015 < chat < 0.03 and 0.19 < made < 0.22


@conclusion("kv-store.minutes", "In both public traces more than nine tenths of the hits of an unlimited cache come within ten minutes.")
def _minutes() -> bool:
    facts = load_facts()
    ten = facts.points("mooncake-retention").set_index("retention").loc[600]
    rate = facts.points("trace-hit-rates").set_index("trace").hit_rate
    return all(ten[name] > 0.9 * rate[f"Mooncake {name}, whole trace"] for name in ("conversation", "synthetic"))


@conclusion("kv-store.reported-band", "Three instead of seven days cost the generated chat between half a point and a point, as the Q&A "
                                      "reports, and the generated agents less.")
def _reported_band() -> bool:
    low, high = load_facts().quantity("storage.retention_effect").value
    return low <= _lost("chat") <= high and 0 < _lost("agents") < low


@conclusion("kv-store.returns-decide", "No input moves that loss as much as the share of messages that return after a long pause, which "
                                       "no public trace tells.")
def _returns_decide() -> bool:
    return sensitivity(calibrated().workloads["chat"], 3, 7, sessions=1500)[0].input == "return_share"


@conclusion("kv-store.capacity-binds", "Capacity decides the number of servers: mean reads ask for less than a fifth of them, and mean "
                                       "writes for less than a tenth.")
def _capacity_binds() -> bool:
    names = ("store_servers", "store_servers_for_reads", "store_servers_for_writes")
    capacity, reads, writes = (float(catalogue.value(name)) for name in names)
    return catalogue.value("store_binding") == "capacity" and reads < capacity / 5 and writes < capacity / 10


@conclusion("kv-store.parity-for-reading", "Without parity, silent servers would multiply prefill work, because a prompt loses everything "
                                           "behind its first unreadable block; with the reported code they add less than a tenth.")
def _parity_for_reading() -> bool:
    return catalogue.value("extra_prefill_without_parity") > 5 and catalogue.value("extra_prefill_with_parity") < 0.1


@conclusion("kv-store.network-room", "Cache reads and the hand-over to decode together fill less than half of the planned network.")
def _network_room() -> bool:
    return catalogue.value("network_use") < 0.5


@conclusion("kv-store.room-to-spare", "With all its traffic kept for seven days, and with parity inside the stated capacity, one such "
                                      "cluster still fills less than two thirds of the store.")
def _room_to_spare() -> bool:
    days = load_facts().number("storage.retention_chat")
    filled = catalogue.value("mixed_share_of_store", retention_days=days, retention_chat_days=days)
    return days == 7 and filled * catalogue.value("erasure_overhead") < 2 / 3


@conclusion("kv-store.worth-weeks", "At the drive price of 2026 keeping a token is cheaper than computing it again for about four weeks, "
                                    "which is longer than either reported retention.")
def _worth_weeks() -> bool:
    return 25 < catalogue.value("break_even_days") < 31


@conclusion("kv-store.four-days-break-even", "Counted against what each kind writes itself, four more days cost about what they gain: "
                                             "agents just gain, chat falls just short.")
def _four_days() -> bool:
    return 1 < _gain_over_cost("agents") < 1.1 and 0.7 < _gain_over_cost("chat") < 1


@conclusion("kv-store.sold-for-more", "Google's list price for storing a cached prompt is more than a hundred thousand times what we "
                                      "compute for a token of this model on SSD.")
def _sold_for_more() -> bool:
    return load_facts().number("price.gemini25_pro.storage") > 1e5 * catalogue.value("keep_cost_per_million_hour")


@conclusion("kv-store.agents-near", "Public traces of coding agents with prompts of more than a hundred thousand tokens lie within seven "
                                    "points of the reported hit rate, at longer prompts; public chat traces lie more than thirty below.")
def _agents_near() -> bool:
    rows = load_facts().points("trace-hit-rates")
    reported = load_facts().number("prefill.hit_rate")
    agents = rows[(rows.kind == "agent") & (rows.input_mean > 1e5)].hit_rate
    chat = rows[rows.kind == "chat"].hit_rate
    return len(agents) >= 3 and bool((abs(agents - reported) < 0.07).all()) and bool((chat < reported - 0.3).all())
