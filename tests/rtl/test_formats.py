from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtl.errors import InputError, lookup, unknown
from rtl.formats import FORMATS, format_named


@pytest.mark.parametrize("entry", FORMATS.values(), ids=list(FORMATS))
def test_every_format_is_consistent(entry):
    assert entry.name == entry.name.lower()
    assert 0 < entry.value_bits <= entry.storage_bits
    assert entry.bits_per_element >= entry.storage_bits
    assert entry.bytes_per_element * 8 == entry.bits_per_element
    assert (entry.block_size > 1) == (entry.scale_bits > 0)
    assert (entry.exponent_bits == 0) == (entry.kind == "int")


def test_widths_the_field_knows():
    widths = {
        "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1,
        "int8": 1, "int4": 0.5, "int4_g128": 0.53125, "fp4": 0.5,
        "mxfp8": 1 + 1 / 32, "mxfp4": 0.5 + 1 / 32,
    }  # fmt: skip
    assert {name: FORMATS[name].bytes_per_element for name in widths} == widths
    assert FORMATS["tf32"].value_bits == 19
    # The hidden bit counts: bf16 multiplies 8 by 8 bits, fp16 and tf32 11 by 11.
    multipliers = {"bf16": 8, "fp16": 11, "tf32": 11, "fp32": 24, "fp8_e4m3": 4, "int8": 8}
    assert {name: FORMATS[name].multiplier_bits for name in multipliers} == multipliers


def test_only_int8_has_gateware():
    assert [entry.name for entry in FORMATS.values() if entry.gateware] == ["int8"]


def test_integer_ranges():
    assert format_named("int8").integer_range == (-128, 127)
    assert format_named("int4").integer_range == (-8, 7)
    assert format_named("int32").integer_range == (-(2**31), 2**31 - 1)
    with pytest.raises(TypeError, match="bf16 is a float format"):
        _ = format_named("bf16").integer_range


@pytest.mark.parametrize("terms", range(1, 40))
def test_sum_bits_are_enough_and_not_too_many(terms):
    extremes = FORMATS["int4"].integer_range
    sums = [terms * a * b for a, b in product(extremes, extremes)]
    bits = FORMATS["int4"].sum_bits(terms)
    assert all(-(1 << (bits - 1)) <= total < 1 << (bits - 1) for total in sums)
    assert max(sums) >= 1 << (bits - 2)


def test_float_sums_have_no_exact_width():
    with pytest.raises(TypeError, match="fp16 is a float format"):
        FORMATS["fp16"].sum_bits(4)


@given(st.sampled_from(sorted(FORMATS)), st.randoms())
def test_names_match_in_any_case(name, random):
    spelled = "".join(random.choice((letter.upper(), letter.lower())) for letter in name)
    assert format_named(spelled) is FORMATS[name]


@pytest.mark.parametrize(
    ("given_name", "meant"),
    [("itn8", "int8"), ("FP8", "fp8_e4m3"), ("bfloat16", "bf16"), ("fp-16", "fp16")],
)
def test_unknown_format_suggests_the_nearest(given_name, meant):
    with pytest.raises(
        InputError, match=rf"^unknown format '{given_name}'; did you mean '{meant}'\? Known: fp32, "
    ):
        format_named(given_name)


def test_unknown_without_anything_near():
    assert str(unknown("chip", "zz", ["h100"])) == "unknown chip 'zz'. Known: h100"
    assert str(unknown("chip", "", ["h100"])) == "unknown chip ''. Known: h100"
    assert str(unknown("chip", "h100", [])) == "unknown chip 'h100'. Known: none"


def test_lookup_prefers_the_exact_spelling():
    table = {"A": 1, "a": 2}
    assert (lookup("entry", "A", table), lookup("entry", "a", table)) == (1, 2)
