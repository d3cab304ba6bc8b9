"""Units: the only place that converts, and the only place that writes a number for a reader.

SI inside (bytes, seconds, tokens, FLOP). Shown: capacity binary (GiB, PiB), bandwidth decimal (GB/s), drives by their
label (TB), prices per million tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, isfinite, log10
from typing import Any

import numpy as np

SECONDS_PER_HOUR = 3600
SECONDS_PER_DAY = 86_400
HOURS_PER_DAY = 24
DAYS_PER_WEEK = 7
DAYS_PER_YEAR = 365
HOURS_PER_YEAR = HOURS_PER_DAY * DAYS_PER_YEAR
BITS_PER_BYTE = 8
TOKENS_PER_PRICE = 1_000_000  # list prices are per million tokens
PIB = 2**50
GIB = 2**30
MIB = 2**20

_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((2**50, "Pi"), (2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"))  # below a MiB bytes are counted
_COUNTS = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SPANS = frozenset({"s", "h", "day", "week", "month", "year"})


def digits(value: float, significant: int = 4) -> str:
    """``value`` with that many significant digits, thousands separated, no exponent.

    Digits before the decimal point are never rounded away: 332,880 stays 332,880.
    """
    if not isfinite(value):
        raise ValueError(f"a number to show must be finite, not {value}")
    if value == 0:
        return "0"
    places = max(significant - 1 - floor(log10(abs(value))), 0)
    text = f"{round(value, places):,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show(value: Any, unit: str = "", significant: int = 4) -> str:
    """A number for a reader: ``show(1.5e6, "token/(s*GPU)")`` is ``1.5 million token/(s·GPU)``.

    Lists are shown item by item; a unit with commas ("s, s, ratio") names the unit of each item.
    """
    if value is None:
        return "not stated"
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):  # inputs that are handed on together
        return ", ".join(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        items = np.asarray(value).ravel().tolist()
        named = [part.strip() for part in unit.split(",")]
        each = named if len(named) == len(items) else [unit] * len(items)
        return " / ".join(show(item, part, significant) for item, part in zip(items, each, strict=True))
    if not isinstance(value, (int, float, np.integer, np.floating)):
        return type(value).__name__
    return _number(float(value), unit, significant)


def scale(unit: str, wanted: str) -> float | None:
    """Factor from one unit to the same with another decimal prefix (B/s to GB/s); None where they are not the same unit."""
    if unit == wanted:
        return 1.0
    for step, prefix in _DECIMAL:
        if wanted == prefix + unit:
            return 1 / step
        if unit == prefix + wanted:
            return step
    return None


def show_as(value: Any, unit: str, wanted: str, form: str = ".2f") -> str:
    """A number in the unit that a text names: ``show_as(14.67e9, "B/GPU", "GB")`` is ``14.67 GB``.

    ``wanted`` is the unit before the slash with a decimal prefix (GB, TFLOP), a part or multiple of a second (ms, h), or a word for a
    count (billion). An article's 4.31 GB can so be compared without binary units; anything else is a ValueError.
    """
    words = {word.strip(): step for step, word in _COUNTS}
    times = {name: step for step, name in _TIMES} | {"min": SECONDS_PER_HOUR / 60, "h": SECONDS_PER_HOUR, "day": SECONDS_PER_DAY}
    name = unit.partition("/")[0] if wanted.partition("/")[2] == "" else unit
    if wanted in words and name != "B":
        factor: float | None = 1 / words[wanted]
    elif wanted in times and name == "s":
        factor = 1 / times[wanted]
    else:
        factor = scale(name, wanted)
    if factor is None:
        raise ValueError(f"{unit or 'no unit'} cannot be written in {wanted}")
    return f"{format(float(value) * factor, form)} {wanted}"


def show_decimal(value: float, unit: str, significant: int = 4) -> str:
    """Bytes the way articles print them, in decimal units: ``14.67 GB/GPU``; below a megabyte they are counted."""
    step, prefix = _fitting(abs(value), _DECIMAL[:-1], significant) or (1.0, "")
    return f"{digits(value / step, significant)} {prefix}{unit_text(unit)}"


def percent(value: float, places: int = 1) -> str:
    """A ratio as percent."""
    return f"{100 * float(value):.{places}f} %"


def span(seconds: float) -> str:
    """A time span in the largest of day, hour and minute that it fills; infinity is no limit."""
    if seconds == float("inf"):
        return "no limit"
    for unit, length in (("d", SECONDS_PER_DAY), ("h", SECONDS_PER_HOUR), ("min", 60)):
        if seconds >= length:
            return f"{digits(seconds / length)} {unit}"
    return show(seconds, "s")


def unit_text(unit: str) -> str:
    """A unit as a reader sees it; a ratio has none."""
    return "" if unit == "ratio" else unit.replace("*", "·")


def _number(number: float, unit: str, significant: int) -> str:
    name, _, per = unit.partition("/")
    text = unit_text(unit)
    if unit == "s" and 0 < abs(number) < 1:
        step, text = _fitting(abs(number), _TIMES, significant) or _TIMES[-1]
        return f"{digits(number / step, significant)} {text}"
    if name == "B" and not _rate(per) and per != "drive":
        steps = _BINARY
    elif name in ("B", "FLOP", "bit"):
        steps = _DECIMAL
    else:
        step, word = _fitting(abs(number), _COUNTS, significant) or (1.0, "")
        return f"{digits(number / step, significant)}{word} {text}".rstrip()
    step, prefix = _fitting(abs(number), steps, significant) or (1.0, "")
    return f"{digits(number / step, significant)} {prefix}{text}"


def _rate(per: str) -> bool:
    return not _SPANS.isdisjoint(per.strip("()").split("*"))


def _fitting(size: float, steps: tuple[tuple[float, str], ...], significant: int) -> tuple[float, str] | None:
    """The largest step that the number reaches once it is rounded: 999.96 MB/s is shown as 1 GB/s."""
    rounds_up = 1 - 0.5 * 10.0**-significant
    return next(((step, name) for step, name in steps if size >= step * rounds_up), None)
