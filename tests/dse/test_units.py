import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.units import percent, quantity, significant

PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "": 1.0, "m": 1e-3, "µ": 1e-6, "n": 1e-9}
NUMBERS = st.floats(min_value=1e-9, max_value=1e14).flatmap(lambda x: st.sampled_from([x, -x]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (12.345, "12.3"),
        (123.45, "123"),
        (12345.0, "12,300"),
        (999.6, "1,000"),
        (0.0173, "0.0173"),
        (0.00012345, "0.000123"),
        (0.0000123, "1.23e-05"),
        (999_999.0, "1.00e+06"),
        (6.35e6, "6.35e+06"),
        (-2.5, "-2.50"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "?"),
        (None, "–"),
    ],
)
def test_significant(value, text):
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0173, "s", "17.3 ms"),
        (999.7, "B", "1.00 kB"),
        (999.4, "B", "999 B"),
        (0.0, "J", "0 J"),
        (1.6e13, "B", "16.0 TB"),
        (3e-7, "s", "300 ns"),
        (-1500.0, "W", "-1.50 kW"),
        (math.inf, "s", "∞ s"),
    ],
)
def test_quantity(value, unit, text):
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("share", "signed", "text"),
    [
        (0.5, False, "50%"),
        (0.0994, False, "9.9%"),
        (0.0996, False, "10%"),
        (0.001, False, "0.1%"),
        (0.12, True, "+12%"),
        (-0.12, True, "-12%"),
        (0.0, True, "0.0%"),
        (2.61, True, "+261%"),
    ],
)
def test_percent(share, signed, text):
    assert percent(share, signed=signed) == text


@given(NUMBERS)
def test_significant_has_three_digits_and_reads_back(value):
    text = significant(value)
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.005)
    mantissa = re.sub(r"e.*|[-,.]", "", text).lstrip("0")
    assert len(mantissa.rstrip("0")) <= 3 <= len(mantissa)


@given(NUMBERS)
def test_quantity_reads_back(value):
    number, unit = quantity(value, "B").split()
    assert float(number.replace(",", "")) * PREFIXES[unit.removesuffix("B")] == pytest.approx(
        value, rel=0.005
    )


@given(st.floats(min_value=1e-6, max_value=9.99e14))
def test_quantity_stays_below_a_thousand(value):
    number = quantity(value, "B").split()[0]
    assert 1 <= float(number) < 1000
