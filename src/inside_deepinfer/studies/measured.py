"""What a reader sees of the measured cards: which there are, both runs beside what others measured, and who speaks for whom."""

from __future__ import annotations

from dataclasses import dataclass

from inside_deepinfer.facts import NotPossible, load_facts
from inside_deepinfer.facts.gpu_runs import MEASUREMENTS, gpu_run, gpu_runs
from inside_deepinfer.scenario import Scenario
from inside_deepinfer.serving import measured_card as mc
from inside_deepinfer.serving.cards import get_card
from inside_deepinfer.serving.efficiencies import MEASURED
from inside_deepinfer.serving.measured_numbers import copy_bandwidth, large_product_rate

NEEDED = ("bandwidth", "experts", "launch", "alltoall")  # what the measured efficiencies rest on


def runs() -> tuple[str, str]:
    """The run whose numbers are shown, and the second run of the same measurements."""
    return tuple(str(load_facts().quantity(name).value) for name in ("measured.run", "measured.run_again"))  # type: ignore[return-value]


@dataclass(frozen=True)
class Compared:
    """One rate in both runs and as somebody else measured it."""

    label: str
    unit: str
    first: float
    second: float
    others: float

    @property
    def spread(self) -> float:
        """Second run over first, minus 1."""
        return self.second / self.first - 1

    @property
    def error(self) -> float:
        """First run over what others measured, minus 1."""
        return self.first / self.others - 1


def compared() -> list[Compared]:
    """Bandwidth and large products of both runs beside others on this kind of card."""
    rates = {
        "read": ("B/s", mc.read_bandwidth, "others.h200_read"),
        "copy, both ways": ("B/s", copy_bandwidth, "others.h200_copy"),
        "BF16 product": ("FLOP/s", lambda run: large_product_rate(run, "bf16"), "others.h200_bf16"),
        "FP8 product": ("FLOP/s", lambda run: large_product_rate(run, "fp8"), "others.h200_fp8"),
    }
    first, second = runs()
    return [Compared(label, unit, rate(first), rate(second), load_facts().number(fact)) for label, (unit, rate, fact) in rates.items()]


def listing() -> list[tuple[str, ...]]:
    """One row per folder: folder, card, date, driver, versions, what was measured, whose efficiencies it gives."""
    rows = []
    for folder, found in gpu_runs().items():
        machine = next(iter(found.values())).machine
        dates = sorted({run.date for run in found.values()})
        missing = [name for name in MEASUREMENTS if name not in found]
        what = "all" if not missing else f"{', '.join(sorted(found))} (not {', '.join(missing)})"
        rows.append((folder, machine.card, " to ".join(dict.fromkeys((dates[0], dates[-1]))), machine.driver,
                     f"CUDA {machine.cuda}, PyTorch {machine.torch}, Triton {machine.triton}", what, _speaks_for(folder)))
    return rows


def _speaks_for(folder: str) -> str:
    card = mc.card_of(folder)
    if not card:
        return "no card: the folder's name is no id in data/hardware, or its files name another card"
    if folder != card:
        return "no card: a further run, for the spread"
    reference = runs()[0]
    return f"{get_card(card).name}{' and every card not measured' if folder == reference else ''}"


def carried_over(scenario: Scenario) -> str:
    """Whose measured shares a scenario uses, as a sentence; empty with those of the datasheet."""
    if scenario.efficiencies != MEASURED:
        return ""
    reference, own = runs()[0], get_card(scenario.card).name
    used = {name: mc.run_for(scenario.card, name, reference) for name in NEEDED}
    foreign = [name for name, run in used.items() if run != scenario.card]
    if not foreign:
        return f"Shares and launch time were measured on {gpu_run(scenario.card, NEEDED[0]).machine.card}."
    source = gpu_run(used[foreign[0]], foreign[0]).machine.card
    part = "" if len(foreign) == len(NEEDED) else f" for {', '.join(foreign)}"
    return (f"The shares{part} were measured on {source} and are carried over: that {own} reaches the same shares of its datasheet is an "
            "assumption.")


def is_own(scenario: Scenario, measurement: str) -> bool:
    """Whether a measurement of the scenario's own card exists."""
    try:
        return mc.run_for(scenario.card, measurement, runs()[0]) == scenario.card
    except NotPossible:
        return False
