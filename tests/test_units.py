"""Numbers as a reader sees them: hand-written cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside_deepinfer.facts import digits, percent, show
from inside_deepinfer.facts.units import span, unit_text

SHOWN = [
    # whole numbers of the book keep their digits: nobody wants 332,900 for 38 * 24 * 365
    (332_880, "USD/(GPU*year)", "332,880 USD/(GPU·year)"),
    (1195.9877, "GPU", "1,196 GPU"),
    (7818.75, "GPU", "7,819 GPU"),
    (77_000, "token", "77,000 token"),
    (999_940.4, "GPU", "999,940 GPU"),
    # from a million on the size is a word
    (1.5e6, "token/(s*GPU)", "1.5 million token/(s·GPU)"),
    (1.79398e9, "token/s", "1.794 billion token/s"),
    (155e12, "token/day", "155 trillion token/day"),
    (49_932_000, "JPY/(GPU*year)", "49.93 million JPY/(GPU·year)"),
    (999_960, "token", "1 million token"),
    # money and ratios
    (36.7098, "USD/(GPU*h)", "36.71 USD/(GPU·h)"),
    (0.0592, "CNY/Mtoken", "0.0592 CNY/Mtoken"),
    (0.98039, "ratio", "0.9804"),
    (-0.125, "ratio", "-0.125"),
    (0, "ratio", "0"),
    (-0.0, "USD", "0 USD"),
    # capacity is binary
    (100 * 2**50, "B", "100 PiB"),
    (1_415_040, "B/sequence", "1.349 MiB/sequence"),
    (14.4e12, "B/GPU", "13.1 TiB/GPU"),
    (2**30 - 1, "B", "1 GiB"),
    # small counts of bytes are counted: 890 B per token is the number that people know
    (890, "B/token", "890 B/token"),
    (113_920, "B", "113,920 B"),
    # bandwidth and arithmetic are decimal, and so are drives, which are sold that way
    (8e12, "B/s", "8 TB/s"),
    (1.2816e9, "B/(s*GPU)", "1.282 GB/(s·GPU)"),
    (6.8e15, "B/day", "6.8 PB/day"),
    (82.02e9, "bit/s", "82.02 Gbit/s"),
    (30.73e12, "B/drive", "30.73 TB/drive"),
    (462.9e12, "FLOP/s", "462.9 TFLOP/s"),
    (41.6e9, "FLOP/token", "41.6 GFLOP/token"),
    (999.96e6, "B/s", "1 GB/s"),
    # times
    (0.01331, "s", "13.31 ms"),
    (2.5e-6, "s", "2.5 µs"),
    (4e-8, "s", "40 ns"),
    (1, "s", "1 s"),
    (259_200, "s", "259,200 s"),
    # what is no number
    (None, "CNY/Mtoken", "not stated"),
    ("gb200", "", "gb200"),
    ([64, 64], "GPU", "64 GPU / 64 GPU"),
    (np.array([0.5, 0.25]), "ratio", "0.5 / 0.25"),
    ([0.011, 0.054, 4.9], "s, s, ratio", "11 ms / 54 ms / 4.9"),
    (400, "Gbit/s per 8 GPUs", "400 Gbit/s per 8 GPUs"),
]


@pytest.mark.parametrize(("value", "unit", "text"), SHOWN, ids=[text for *_, text in SHOWN])
def test_show(value, unit, text):
    assert show(value, unit) == text


@pytest.mark.parametrize(("value", "significant", "text"), [
    (0.0001234567, 4, "0.0001235"), (1e-12, 2, "0.000000000001"), (12.3456, 3, "12.3"), (9.9999, 3, "10"),
    (1234.56, 3, "1,235"), (1.1e15, 4, "1,100,000,000,000,000"), (-1234.5678, 6, "-1,234.57"), (100, 1, "100"),
])
def test_digits(value, significant, text):
    assert digits(value, significant) == text


@given(st.floats(min_value=-1e15, max_value=1e15).filter(lambda x: x == 0 or abs(x) > 1e-9), st.integers(3, 10))
def test_digits_never_moves_a_number_by_more_than_the_last_digit(value, significant):
    text = digits(value, significant)
    assert "e" not in text and not text.endswith(".")
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.51 * 10.0 ** (1 - significant), abs=0)


@given(st.floats(min_value=1e-8, max_value=1e18), st.sampled_from(["B", "B/s", "FLOP/s", "s", "token", "ratio", "USD/h"]))
def test_show_is_one_short_line(value, unit):
    text = show(value, unit)
    assert "\n" not in text and len(text) < 40 and "None" not in text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_not_shown(value):
    with pytest.raises(ValueError, match="finite"):
        show(value, "s")


def test_percent():
    assert [percent(0.98039), percent(0.04, 0), percent(-0.005)] == ["98.0 %", "4 %", "-0.5 %"]
    assert percent(np.float64(1), 2) == "100.00 %"


def test_unit_text():
    assert (unit_text("token/(s*GPU)"), unit_text("ratio"), unit_text("")) == ("token/(s·GPU)", "", "")


def test_span():
    shown = [span(seconds) for seconds in (0.25, 59, 60, 3600, 5400, 86_400, 259_200, float("inf"))]
    assert shown == ["250 ms", "59 s", "1 min", "1 h", "1.5 h", "1 d", "3 d", "no limit"]
