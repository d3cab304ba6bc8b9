"""Every adjustable parameter, declared once: name, unit, bounds, default, source, URL key, meaning.

Widgets, URLs, the table in the appendix and the defaults of every chapter come from this declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import param

from inside_deepinfer.facts import FactError, InputError, Quantity, UserError, load_facts
from inside_deepinfer.facts.derive import in_currency
from inside_deepinfer.facts.units import show, unit_text


class FactNumber(param.Number):
    """A number whose default is a fact in ``data/``."""

    __slots__ = ["fact", "unit", "key", "group", "log"]
    _slot_defaults = dict(param.Number._slot_defaults, fact=None, unit="", key="", group="", log=False)

    def __init__(self, fact: str, *, unit: str, key: str, group: str, bounds: tuple[float, float], step: float,
                 doc: str, label: str, log: bool = False):
        self.fact, self.unit, self.key, self.group, self.log = fact, unit, key, group, log
        super().__init__(default=self._default(fact), bounds=bounds, step=step, doc=doc, label=label)

    # without param's look for random generators, which costs more than the rest of reading a scenario
    __get__ = param.Parameter.__get__

    @staticmethod
    def _default(fact: str) -> float:
        return load_facts().number(fact)


class FactInteger(FactNumber):
    """A whole number whose default is a fact in ``data/``."""

    __slots__: list[str] = []

    @staticmethod
    def _default(fact: str) -> int:
        number = load_facts().number(fact)
        if not number.is_integer():
            raise UserError(f"fact {fact} is {number}, but a whole number is needed")
        return int(number)

    def _validate_value(self, val: Any, allow_None: bool) -> None:
        super()._validate_value(val, allow_None)
        if isinstance(val, float) and not val.is_integer():
            raise ValueError(f"{self.name} is a whole number, not {val}")


class FactChoice(param.Selector):
    """One of several names; its default is a fact in ``data/``."""

    __slots__ = ["fact", "unit", "key", "group", "log"]
    _slot_defaults = dict(param.Selector._slot_defaults, fact=None, unit="", key="", group="", log=False)

    def __init__(self, fact: str, *, objects: list[str], key: str, group: str, doc: str, label: str):
        self.fact, self.unit, self.key, self.group, self.log = fact, "", key, group, False
        default = load_facts().quantity(fact).value
        if default not in objects:
            raise FactError("data/facts", fact, "value", f"{default!r} is none of {', '.join(objects) or 'no choice at all'}")
        super().__init__(default=default, objects=objects, doc=doc, label=label)


def _models() -> list[str]:
    return sorted(path.stem for path in (load_facts().folder / "models").glob("*.yaml"))


class Scenario(param.Parameterized):
    """The inputs of every calculation of the book. Keys are stable: links that people saved must keep working."""

    tokens_per_day = FactNumber("fleet.tokens_per_day", key="T", unit="token/day", group="traffic", bounds=(1e9, 1e16),
                                step=1e12, log=True, label="tokens per day",
                                doc="Input and output tokens that the cluster handles in a day, cached input included.")
    hit_rate = FactNumber("prefill.hit_rate", key="h", unit="ratio", group="traffic", bounds=(0.0, 0.995), step=0.005,
                          label="cache hit rate",
                          doc="Share of input tokens found in the prefix cache. Above 99.5 % the block rule leaves nothing "
                              "to win: at least 134 tokens of every prompt are computed again.")
    input_tokens = FactNumber("prefill.input_mean", key="L", unit="token", group="traffic", bounds=(256, 1_048_576), step=256,
                              log=True, label="input tokens per request", doc="Mean length of a prompt, cached part included.")
    input_output_ratio = FactNumber("workload.input_output_ratio", key="io", unit="ratio", group="traffic", bounds=(0.1, 2000),
                                    step=0.1, log=True, label="input tokens per output token",
                                    doc="How many input tokens (cached ones included) come with one output token.")
    prefill_throughput_new = FactNumber("prefill.throughput_new", key="pn", unit="token/(s*GPU)", group="fleet",
                                        bounds=(100, 1_000_000), step=100, log=True, label="prefill throughput, new tokens",
                                        doc="Newly computed input tokens per second and prefill GPU.")
    decode_throughput = FactNumber("decode.throughput", key="dt", unit="token/(s*GPU)", group="fleet", bounds=(10, 100_000),
                                   step=10, log=True, label="decode throughput",
                                   doc="Output tokens per second and decode GPU.")
    pd_ratio = FactNumber("fleet.pd_ratio", key="pd", unit="ratio", group="fleet", bounds=(0.05, 20.0), step=0.05, log=True,
                          label="prefill GPUs per decode GPU", doc="How many prefill GPUs stand beside one decode GPU.")
    store_capacity = FactNumber("storage.capacity", key="sc", unit="B", group="store", bounds=(1e12, 1e19), step=1e12, log=True,
                                label="KV store capacity", doc="SSD capacity of the KV store.")
    store_per_gpu = FactNumber("storage.per_gpu", key="sg", unit="B/GPU", group="store", bounds=(1e9, 1e15), step=1e9, log=True,
                               label="KV store per GPU", doc="Logical KV store capacity per GPU of the cluster.")
    retention_days = FactNumber("storage.retention_agent", key="rd", unit="day", group="store", bounds=(0.01, 365.0), step=0.5,
                                label="days kept (agents)",
                                doc="How long the store keeps what agent traffic gave it, and all traffic where one retention is meant.")
    retention_chat_days = FactNumber("storage.retention_chat", key="rc", unit="day", group="store", bounds=(0.01, 365.0),
                                     step=0.5, label="days that chat is kept",
                                     doc="How long the store keeps what chat traffic gave it.")
    ssd_price = FactNumber("ssd.price", key="ssd", unit="USD/TB", group="store", bounds=(1.0, 10_000.0), step=5.0, log=True,
                           label="SSD price", doc="What a decimal terabyte of drive costs. What DeepSeek paid is not known.")
    reuse_probability = FactNumber("cache.reuse_share", key="ru", unit="ratio", group="store", bounds=(0.0, 1.0), step=0.01,
                                   label="share of stored tokens read again",
                                   doc="How likely a token that is stored is read at least once before it is dropped.")
    drives_per_server = FactInteger("storage.drives_per_server", key="dr", unit="drive/server", group="store", bounds=(1, 100),
                                    step=1, label="drives per store server", doc="Drives in one store server.")
    data_shards = FactInteger("storage.data_shards", key="ds", unit="shard", group="store", bounds=(1, 64), step=1,
                              label="data shards", doc="Shards of a stripe that hold data.")
    parity_shards = FactInteger("storage.parity_shards", key="ps", unit="shard", group="store", bounds=(0, 16), step=1,
                                label="parity shards", doc="Further shards; any that many may be lost.")
    server_read_speed = FactNumber("storage.server_read", key="sr", unit="B/(s*server)", group="store", bounds=(1e8, 1e12), step=1e8,
                                   log=True, label="read speed of a store server", doc="Bytes per second that one store server reads.")
    server_write_speed = FactNumber("storage.server_write", key="sw", unit="B/(s*server)", group="store", bounds=(1e8, 1e12), step=1e8,
                                    log=True, label="write speed of a store server",
                                    doc="Bytes per second that one store server writes, parity included.")
    block_tokens = FactInteger("engine.block_tokens", key="bt", unit="token", group="store", bounds=(16, 8192), step=16, log=True,
                               label="tokens per block", doc="Hits count in whole blocks of so many tokens.")
    price_hit = FactNumber("price.v41.cny.hit", key="ph", unit="price/Mtoken", group="prices", bounds=(0.0, 100.0), step=0.001,
                           label="price of a cached input token", doc="Per million tokens, in the currency of the scenario.")
    price_miss = FactNumber("price.v41.cny.miss", key="pm", unit="price/Mtoken", group="prices", bounds=(0.0, 1000.0), step=0.01,
                            label="price of an uncached input token", doc="Per million tokens, in the currency of the scenario.")
    price_output = FactNumber("price.v41.cny.output", key="po", unit="price/Mtoken", group="prices", bounds=(0.0, 1000.0),
                              step=0.01, label="price of an output token",
                              doc="Per million tokens, in the currency of the scenario.")
    currency = FactChoice("price.v41.currency", key="cur", objects=["CNY", "USD"], group="prices", label="currency",
                          doc="Currency of the three prices.")
    cny_per_usd = FactNumber("rate.cny_per_usd", key="fx", unit="CNY/USD", group="prices", bounds=(1.0, 20.0), step=0.01,
                             label="exchange rate",
                             doc="Yuan per dollar. No article states one; the published value is what their result implies.")
    peak_share = FactNumber("price.peak_share_published", key="pk", unit="ratio", group="prices", bounds=(0.0, 1.0), step=0.01,
                            label="share of tokens sold at peak price",
                            doc="The published revenue counts every hour at the off-peak price (0).")
    gpu_cost = FactNumber("cost.gpu_hour", key="gc", unit="USD/(GPU*h)", group="cost", bounds=(0.0, 100.0), step=0.1,
                          label="cost of a GPU-hour", doc="What one GPU costs an hour. An assumption: DeepSeek states none.")
    infra_cost = FactNumber("cost.infra_hour", key="ic", unit="USD/(GPU*h)", group="cost", bounds=(0.0, 100.0), step=0.1,
                            label="other cost per GPU-hour",
                            doc="Power, network and store per GPU-hour. An assumption: DeepSeek states none.")
    model = FactChoice("scenario.model", key="m", objects=_models(), group="machine", label="model",
                       doc="Which model shape in data/models is counted.")
    card = FactChoice("scenario.card", key="c", objects=sorted(load_facts().cards), group="machine", label="card",
                      doc="Which accelerator card in data/hardware is used.")
    efficiencies = FactChoice("scenario.efficiencies", key="ef", objects=["datasheet", "measured"], group="machine",
                              label="efficiencies",
                              doc="What of the datasheet's peaks is reached. datasheet: the peaks times the shares that we assume. "
                                  "measured: the peaks times the shares that an H200 reached when we measured it, carried over to "
                                  "other cards until somebody measures them.")
    ep = FactInteger("scenario.ep", key="ep", unit="GPU", group="machine", bounds=(1, 384), step=1, label="expert parallelism",
                     doc="Over how many GPUs the routed experts of a layer are spread.")
    redundant_experts = FactInteger("scenario.redundant_experts", key="re", unit="expert/GPU", group="machine", bounds=(0, 16),
                                    step=1, label="redundant experts per GPU",
                                    doc="Copies of busy experts, per GPU and layer, added by the load balancer.")
    context = FactNumber("scenario.context", key="ctx", unit="token", group="machine", bounds=(1, 1_048_576), step=1, log=True,
                         label="context", doc="Tokens that a sequence can look back on while it decodes.")
    batch = FactInteger("decode.sequences", key="b", unit="sequence/GPU", group="machine", bounds=(1, 4096), step=1, log=True,
                        label="sequences per GPU", doc="Sequences that one decode GPU advances together.")
    step_time = FactNumber("decode.step_time", key="st", unit="s", group="machine", bounds=(1e-4, 1.0), step=1e-4, log=True,
                           label="step time", doc="Duration of one decode step.")
    rows_per_sequence = FactNumber("decode.rows_per_sequence", key="rw", unit="token/sequence", group="machine",
                                   bounds=(1.0, 8.0), step=0.1, label="rows per sequence and step",
                                   doc="Rows that one sequence brings to a decode step: the last token and its verified drafts.")
    overlap = FactNumber("step.overlap", key="ov", unit="ratio", group="machine", bounds=(0.0, 1.0), step=0.05, label="overlap",
                         doc="How much of a step's shorter parts hides behind the longest: 0 one after another, 1 all at once.")
    selection_overlap = FactNumber("decode.selection_overlap", key="so", unit="ratio", group="machine", bounds=(0.0, 1.0),
                                   step=0.05, label="shared selection of neighbouring rows",
                                   doc="Share of the selected KV entries that the rows of one sequence have in common.")
    dispatch_format = FactChoice("link.dispatch_format", key="df", objects=["bf16", "mxfp8", "mxfp4"], group="machine",
                                 label="format of rows sent to experts",
                                 doc="Number format in which dispatch sends a row, scales included. FP8 with one FP32 scale per 128 "
                                     "values has the same bytes as mxfp8.")
    combine_format = FactChoice("link.combine_format", key="cf", objects=["bf16", "mxfp8", "mxfp4"], group="machine",
                                label="format of rows sent back", doc="Number format in which combine sends a row back, scales included.")
    scaleup_domain = FactInteger("link.scaleup_domain", key="sd", unit="GPU", group="machine", bounds=(0, 1024), step=1,
                                 label="scale-up domain (0: the card's own)",
                                 doc="How many GPUs reach each other over the fast link. 0 takes what the card's entry in "
                                     "data/hardware states.")
    scaleout_bandwidth = FactNumber("link.scaleout_bandwidth", key="sb", unit="B/s", group="machine", bounds=(1e8, 1e13),
                                    step=1e9, log=True, label="network per GPU between domains",
                                    doc="One direction of the link by which a GPU reaches another scale-up domain.")
    crossing = FactChoice("link.crossing", key="xd", objects=["domain", "expert"], group="machine",
                          label="a row crosses to another domain once per",
                          doc="domain: a row goes once to each other domain and is passed on to its experts there. "
                              "expert: every copy of a row crosses by itself.")
    tokens_per_step = FactNumber("article.tokens_per_step", key="tp", unit="token", group="speculation", bounds=(1.0, 8.0),
                                 step=0.05, label="tokens per sequence and step",
                                 doc="Tokens that a sequence advances in a decode step: accepted drafts and the model's own token.")
    uncounted_time = FactNumber("decode.uncounted_time", key="un", unit="s", group="machine", bounds=(0.0, 0.1), step=1e-4,
                                label="time per step that is not counted",
                                doc="What a decode step takes beyond its counted parts, whatever the batch: waiting for the slowest "
                                    "GPU, synchronisation, sampling. Fitted on the one published operating point.")
    acceptance_mean = FactNumber("spec.acceptance_mean", key="am", unit="ratio", group="speculation", bounds=(0.05, 0.98),
                                 step=0.005, label="mean acceptance of a draft",
                                 doc="Chance that a draft is accepted once all before it were, averaged over drafts.")
    acceptance_spread = FactNumber("spec.acceptance_spread", key="as", unit="ratio", group="speculation", bounds=(0.01, 0.45),
                                   step=0.005, label="spread of acceptance",
                                   doc="Standard deviation of that chance from draft to draft; it must leave room between 0 and 1.")
    prefill_chunk = FactInteger("prefill.chunk", key="ck", unit="token", group="prefill", bounds=(256, 262_144), step=256, log=True,
                                label="chunk size", doc="Most prompt tokens that one prefill GPU computes in a step.")
    prefill_load = FactNumber("prefill.load", key="pl", unit="ratio", group="prefill", bounds=(0.01, 1.5), step=0.01,
                              label="load of the prefill GPUs",
                              doc="Offered work over what the GPUs can do with full chunks. At 1 and above the queue has no end.")
    burst = FactNumber("prefill.burst", key="bu", unit="request", group="prefill", bounds=(1.0, 64.0), step=0.5,
                       label="requests per burst",
                       doc="Mean number of requests that arrive at the same moment; 1 is a Poisson stream.")
    input_sigma = FactNumber("prefill.input_sigma", key="is", unit="ratio", group="prefill", bounds=(0.05, 1.5), step=0.05,
                             label="spread of prompt lengths",
                             doc="Standard deviation of the logarithm of the prompt length (log-normal around the mean).")
    imbalance = FactNumber("eplb.decode_ratio", key="im", unit="ratio", group="balance", bounds=(1.0, 4.0), step=0.005,
                           label="slowest GPU over mean",
                           doc="Rows that the busiest GPU's experts get, over the mean of the GPUs, layer by layer; 1 is even.")
    balance_gpus = FactInteger("balance.gpus", key="bg", unit="GPU", group="balance", bounds=(2, 64), step=1, log=True,
                               label="GPUs of the replay", doc="Over how many GPUs the 64 experts of the real counts are spread.")
    balance_step = FactInteger("balance.step", key="bs", unit="step", group="balance", bounds=(0, 31), step=1,
                               label="step of the replay", doc="Which window of 256 tokens the heat map shows.")
    balance_window = FactInteger("balance.window", key="bw", unit="step", group="balance", bounds=(1, 32), step=1,
                                 label="steps of statistics", doc="How many of the last steps a rebalance looks at.")
    balance_interval = FactInteger("balance.interval", key="bi", unit="step", group="balance", bounds=(4, 32), step=1,
                                   label="steps between rebalances",
                                   doc="The first rebalance comes after a quarter of it; never shorter than the statistics.")
    restart_time = FactNumber("failure.restart_time", key="rt", unit="s", group="failures", bounds=(1.0, 86_400.0), step=10,
                              log=True, label="time to restart an instance",
                              doc="From the failure of a card until its instance serves again with the others.")
    spare_instances = FactInteger("failure.spare_instances", key="sp", unit="instance", group="failures", bounds=(0, 64), step=1,
                                  label="spare decode instances", doc="Decode instances beyond those that the day's tokens need.")


@lru_cache(maxsize=1)
def parameters() -> dict[str, param.Parameter]:
    """All scenario parameters by name, in the order of their declaration."""
    declared = (name for name, value in vars(Scenario).items() if isinstance(value, param.Parameter) and name != "name")
    return {name: Scenario.param[name] for name in declared}  # param itself lists them by name


@lru_cache(maxsize=1)
def defaults() -> dict[str, tuple[str, Any]]:
    """Parameter -> URL key and default; asked for all of them at once, param is slow."""
    return {name: (parameter.key, parameter.default) for name, parameter in parameters().items()}


@lru_cache(maxsize=1)
def names_by_key() -> dict[str, str]:
    """URL key -> parameter name; long names are keys of themselves."""
    short = {parameter.key: name for name, parameter in parameters().items()}
    if len(short) != len(parameters()):
        raise ValueError("two scenario parameters share a URL key")
    return short | {name: name for name in parameters()}


def parameter_name(key: str) -> str:
    """The parameter that a URL key or a long name means."""
    try:
        return names_by_key()[key]
    except KeyError:
        raise InputError("parameter", key, ", ".join(f"{p.key} ({n})" for n, p in parameters().items())) from None


def allowed(name: str) -> str:
    """What a parameter accepts, in words."""
    parameter = Scenario.param[name]
    if isinstance(parameter, FactChoice):
        return " or ".join(parameter.objects)
    low, high = parameter.bounds
    whole = "a whole number from " if isinstance(parameter, FactInteger) else ""
    return f"{whole}{show(low, '', 7)} to {show(high, '', 7)} {unit_text(parameter.unit)}".rstrip()


def parse(name: str, text: Any) -> Any:
    """A value for the parameter ``name`` from text or number; anything else is an :class:`InputError`."""
    parameter = Scenario.param[name]
    if isinstance(parameter, FactChoice):
        if text not in parameter.objects:
            raise InputError(name, text, allowed(name))
        return text
    if isinstance(text, bool):
        raise InputError(name, text, allowed(name))
    try:
        number = float(text)
    except (TypeError, ValueError):
        raise InputError(name, text, allowed(name)) from None
    low, high = parameter.bounds
    if not low <= number <= high or (isinstance(parameter, FactInteger) and number != int(number)):
        raise InputError(name, text, allowed(name))
    return int(number) if isinstance(parameter, FactInteger) else number


def preset_values(preset: str) -> dict[str, Any]:
    """What a preset changes against the published values."""
    return dict(_preset_values(load_facts().folder, preset))


@lru_cache(maxsize=64)
def _preset_values(folder: Path, preset: str) -> dict[str, Any]:
    presets = load_facts().presets
    if preset not in presets:
        raise InputError("preset", preset, ", ".join(presets))
    entry = presets[preset]
    values = {parameter_name(key): load_facts().quantity(fact).value for key, fact in entry.facts.items()}
    values |= {parameter_name(key): value for key, value in entry.set.items()}
    return {name: parse(name, value) for name, value in values.items()}


def make_scenario(preset: str = "published", changes: Mapping[str, Any] | None = None) -> Scenario:
    """A scenario from a preset and changes; keys may be URL keys or long names, values text or numbers."""
    values = preset_values(preset)
    for key, value in (changes or {}).items():
        name = parameter_name(key)
        values[name] = parse(name, value)
    return Scenario(**values)


def quantities(scenario: Scenario, preset: str = "published") -> dict[str, Quantity]:
    """Every parameter of a scenario with its kind and source: the fact's while unchanged, the preset's, else "choice"."""
    found = {}
    for name, unit, label, known in _origins(load_facts().folder, preset):
        value = getattr(scenario, name)
        kind, sources = next(((kind, sources) for given, kind, sources in known if value == given), ("choice", ()))
        found[name] = Quantity(name, value, in_currency(unit, scenario.currency), kind, sources, (), "", label)
    return found


@lru_cache(maxsize=64)
def _origins(folder: Path, preset: str) -> list[tuple[str, str, str, list[tuple[Any, str, tuple[str, ...]]]]]:
    """For every parameter the values that are nobody's choice, the preset's first, each with kind and sources."""
    facts, entry = load_facts(), load_facts().presets[preset]
    named = {parameter_name(key): fact for key, fact in entry.facts.items()}
    from_preset = preset_values(preset)
    origins = []
    for name, parameter in parameters().items():
        fact = facts.quantity(parameter.fact)
        known = [(parameter.default, fact.kind, fact.sources)]
        if name in named:
            other = facts.quantity(named[name])
            known.insert(0, (from_preset[name], other.kind, other.sources))
        elif name in from_preset:
            known.insert(0, (from_preset[name], entry.kind, (entry.source,) if entry.source else ()))
        origins.append((name, parameter.unit, str(parameter.label), known))
    return origins


@dataclass(frozen=True)
class Notice:
    """One part of a link that was not used as given."""

    key: str
    given: str
    used: str
    reason: str

    def __str__(self) -> str:
        return f"{self.key} = {self.given[:60]!r} was not used ({self.reason}); used instead: {self.used}"


def encode(scenario: Scenario, preset: str = "published") -> str:
    """The query string of a scenario: the preset, where it is not the published one, and what differs from it."""
    base = preset_values(preset)
    pairs = [] if preset == "published" else [("preset", preset)]
    for name, (key, default) in defaults().items():
        value = getattr(scenario, name)
        if value != base.get(name, default):
            # without the plus of 3.1e+14, which means a space in a link
            pairs.append((key, value if isinstance(value, str) else f"{value:.12g}".replace("e+", "e")))
    return urlencode(pairs)


MAX_QUERY = 4096
MAX_NOTICES = 20


def decode(query: str, ignore: frozenset[str] = frozenset()) -> tuple[Scenario, str, list[Notice]]:
    """Scenario and preset from a query string, with a notice for every part that could not be used.

    Args:
        query: with or without the leading question mark.
        ignore: keys that belong to someone else (``theme``, ``view``).
    """
    text = query.lstrip("?")
    notices: list[Notice] = []
    if len(text) > MAX_QUERY:
        notices.append(Notice("link", text, "the published preset", f"longer than {MAX_QUERY} characters"))
        text = ""
    pairs = parse_qsl(text, keep_blank_values=True, errors="replace")
    preset = "published"
    for number, given in enumerate(value for key, value in pairs if key == "preset"):
        if number:
            notices.append(Notice("preset", given, preset, "given twice"))
        elif given in load_facts().presets:
            preset = given
        else:
            notices.append(Notice("preset", given, preset, "there is no such preset"))
    scenario = make_scenario(preset)
    seen: set[str] = set()
    for key, given in pairs:
        if key == "preset" or key in ignore:
            continue
        if key not in names_by_key():
            notices.append(Notice(repr(key[:60]), given, "nothing", "there is no such parameter"))
            continue
        name = names_by_key()[key]
        try:
            if name in seen:
                raise UserError("given twice")
            setattr(scenario, name, parse(name, given))
            seen.add(name)
        except InputError as error:
            notices.append(Notice(key, given, show(getattr(scenario, name)), f"allowed is {error.allowed}"))
        except UserError as error:
            notices.append(Notice(key, given, show(getattr(scenario, name)), str(error)))
    if len(notices) > MAX_NOTICES:
        left = len(notices) - MAX_NOTICES
        notices[MAX_NOTICES:] = [Notice("link", f"{left} more parts", "nothing", "too many parts to list")]
    return scenario, preset, notices
