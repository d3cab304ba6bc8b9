"""KV store: how long is a token worth keeping, does it fit, and what would the reader's own trace find in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import BinaryIO

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.cache.blocks import grain, suffix
from inside_deepinfer.cache.distributed import Reading, analyse_several
from inside_deepinfer.cache.report import Report
from inside_deepinfer.cache.retention import RETENTIONS
from inside_deepinfer.cache.reuse import LAST_HALF, WHOLE, Definition, Question
from inside_deepinfer.cache.workloads import calibrated, calibrated_curve
from inside_deepinfer.explorer.page import Block, Count, Counts, FileAnswer, Number, Page, Prose, Table, Upload
from inside_deepinfer.facts import digits, load_facts, percent, show
from inside_deepinfer.facts.units import SECONDS_PER_DAY, span
from inside_deepinfer.figures import cache, cache_rule, cache_store, cache_workloads
from inside_deepinfer.figures.theme import KIND_MARK
from inside_deepinfer.scenario import Scenario

CAPACITIES = tuple(float(2**power) for power in range(16, 45))  # bytes: 64 KiB to 16 TiB
ASSUMED = ("return_share", "return_hours", "return_sigma", "gap", "first", "turns", "step", "hours", "days")


def finding(scenario: Scenario, preset: str) -> str:
    """Hit rates at these retentions, what they cost and whether they fit."""
    agents, chat = (calibrated_curve(kind, int(scenario.block_tokens)) for kind in ("agents", "chat"))
    days = cache_store.mixed_days(scenario)
    found = catalogue.evaluate(["store_bytes_for_retention", "store_capacity", "break_even_days"], scenario, preset, retention_days=days)
    needed, held, pays = (float(quantity.value) for quantity in found.values())
    fits = f"fills {percent(needed / held, 0)} of the store" if needed <= held else \
        f"asks for {digits(needed / held, 3)} times the store"
    return (f"Generated agents hit {percent(agents.at(scenario.retention_days), 1)} of their input tokens when kept "
            f"{digits(scenario.retention_days, 3)} days, chat {percent(chat.at(scenario.retention_chat_days), 1)} at "
            f"{digits(scenario.retention_chat_days, 3)} days. What one cluster writes at the set hit rate of "
            f"{percent(scenario.hit_rate, 1)}, kept so long, {fits}, and keeping a token costs as much as computing it again after "
            f"{digits(pays, 3)} days.")


def body(scenario: Scenario, preset: str) -> Sequence[Block]:
    """What the generated traffic rests on."""
    found, facts = calibrated(), load_facts()
    rows = []
    for kind, load in found.workloads.items():
        for name in ASSUMED:
            fact = facts.quantity(f"workload.{kind}.{name}")
            used = getattr(load, name)
            fitted = used != fact.value
            rows.append([kind, fact.label, show(used, fact.unit, 3), "derived" if fitted else fact.kind,
                         "fitted to the published mean and hit rate" if fitted else ""])
    return [
        Prose("The reported traffic is not public. Agents and chat here are generated from the inputs below; two of them are fitted so "
              "that both together have the published mean input and hit rate. The share of returns after a long pause decides how "
              "much days of retention gain, and no public trace spans days.", title="Whose traffic this is"),
        Table(name="workload-inputs", title="Inputs of the generated traffic", columns=("traffic", "input", "value", "kind", "note"),
              rows=rows, filters=("traffic",), marks={"kind": KIND_MARK})]


def read_trace(file: BinaryIO, scenario: Scenario, preset: str) -> FileAnswer:
    """Hit rates of a reader's trace for every retention and every capacity, counted in three ways."""
    kv_bytes = float(catalogue.value("kv_bytes_per_token", scenario, preset))
    own = (scenario.retention_days * SECONDS_PER_DAY, scenario.retention_chat_days * SECONDS_PER_DAY)
    retentions = tuple(sorted({*RETENTIONS, *map(float, own)}))
    ways = {"whole trace": WHOLE, "last half": LAST_HALF, "whole, block rule": Definition(rule="v4.1")}
    limit = int(load_facts().number("trace.upload_text_limit"))
    reports = analyse_several(file, [Question(retentions, CAPACITIES, way) for way in ways.values()],
                              Reading(kv_bytes=kv_bytes, max_bytes=limit), name="the file")
    whole = reports[0]
    by_capacity = np.array([report.at_capacities() for report in reports])
    used = _used(by_capacity)
    blocks = [_counts(*reports), *_damage(whole), *_about(whole, scenario),
              _table("trace-retention-table", "Hit rate by retention", "kept since last use", [span(one) for one in whole.retentions],
                     list(ways), [report.at_retentions() for report in reports]),
              _table("trace-capacity-table", "Hit rate by capacity", "capacity of an LRU cache",
                     [show(one, "B") for one in np.array(whole.capacities)[used]], list(ways), list(by_capacity[:, used]))]
    return FileAnswer(blocks, [partial(figure, whole) for figure in (
        (cache.retention_curve, cache.capacity_curve) if whole.by_age.total(0).any() else (cache.distinct_blocks,))])


def _counts(whole: Report, last: Report, ruled: Report) -> Counts:
    return Counts("Your trace", [
        Count("requests", f"{whole.requests_seen:,}"), Count("time span", span(whole.seconds)),
        Count("mean input", f"{digits(whole.mean_input_tokens)} tokens"),
        Count("hit rate without limits", percent(whole.hit_rate(), 2)),
        Count("the same, last half of the requests", percent(last.hit_rate(), 2)),
        Count("the same, with the block rule", percent(ruled.hit_rate(), 2))])


def _damage(report: Report) -> list[Block]:
    if report.damage is None or not report.damage.lines:
        return []
    return [Prose(f"{report.damage.lines:,} of {report.damage.read:,} lines were left out: {report.damage}.", tone="warn",
                  title="Damaged lines")]


def _about(report: Report, scenario: Scenario) -> list[Block]:
    return [Prose(f"Blocks of {report.block_tokens:,} tokens, as the trace has them; {digits(report.kv_bytes)} B of KV per token "
                  f"({scenario.model}) turn capacities into blocks. Hit rates are shares of input tokens; a block hits only if every "
                  "earlier block of its request does, and a block that is used is kept anew. The last half counts requests after a "
                  f"warm-up by the first half; the block rule lets multiples of {grain()} tokens up to L - {suffix()} count.",
                  title="How this is counted")]


def _used(rates: np.ndarray) -> slice:
    """The capacities between which something changes, with one before and one after."""
    steps = np.flatnonzero(np.any(np.diff(rates, axis=1) != 0, axis=0))
    return slice(steps[0], steps[-1] + 2) if len(steps) else slice(0, 1)


def _table(name: str, title: str, first: str, labels: list[str], ways: list[str], rates: list[Sequence[float]]) -> Table:
    rows = [[label, *(percent(float(one), 2) for one in row)] for label, *row in zip(labels, *rates, strict=True)]
    return Table(name=name, title=title, columns=(first, *ways), rows=rows, search=False)


def _upload() -> Upload:
    facts = load_facts()
    most, text = (facts.number(name) for name in ("trace.upload_limit", "trace.upload_text_limit"))
    return Upload(
        title="Your own trace", label="Trace file",
        doc=f"At most {show(most, 'B')} as a file and {show(text, 'B')} unpacked. JSON lines as Mooncake publishes them (timestamp in ms, "
            "input_length, hash_ids) or a CSV with those columns, plain or gzip. The file goes to this server's memory, is read once and "
            "forgotten with the answer; its name is not sent. Larger files: inside-deepinfer trace FILE on the command line.",
        accept=(".jsonl", ".json", ".csv", ".gz", ".txt"), max_bytes=int(most), read=read_trace)


PAGE = Page(
    slug="kv-store",
    title="KV store",
    question="How long is a token worth keeping, and does it fit?",
    chapter="kv-store",
    primary=("retention_days", "retention_chat_days", "store_capacity"),
    folded={"Traffic and model": ("tokens_per_day", "input_tokens", "input_output_ratio", "hit_rate", "block_tokens", "model"),
            "Servers and network": ("server_read_speed", "server_write_speed", "drives_per_server", "data_shards", "parity_shards",
                                    "prefill_throughput_new"),
            "Prices": ("ssd_price", "gpu_cost", "infra_cost", "reuse_probability", "price_miss", "price_hit", "currency", "cny_per_usd")},
    numbers=(Number("stored_bytes_per_day", label="KV written per day", show="decimal"),
             Number("store_bytes_for_retention", label="store that the agents' retention asks for, if all traffic were agents"),
             Number("store_servers", beside="storage.servers_ec"),
             Number("store_servers_for_reads"),
             Number("store_servers_for_writes"),
             Number("store_years_to_loss"),
             Number("network_use", label="planned network that cache reads and hand-over fill", show="percent"),
             Number("break_even_days", label="break-even retention against GPU time")),
    figures=(cache_workloads.retention_by_workload, cache_store.servers, cache_rule.break_even),
    finding=finding,
    body=body,
    upload=_upload(),
)
