"""Voltage, clock, energies and peak power."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.hardware.catalog import chip_names, chips_named
from models.hardware.chip import PARTS
from models.hardware.power import clock_hz, energy_table, peak_power_parts, tdp_w
from models.hardware.technology import NODES, STYLES, Technology

TECH = Technology.default()


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("style", STYLES)
def test_clock_rises_with_voltage_and_is_nominal_at_nominal(node, style):
    at = (np.array(NODES.index(node)), np.array(STYLES.index(style)))
    volts = np.linspace(TECH["voltage.threshold_v"], 1.2, 50)
    clocks = np.array([float(clock_hz(v, *at, TECH)) for v in volts])
    assert (np.diff(clocks) > 0).all()
    nominal = float(clock_hz(TECH["voltage.nominal_v"], *at, TECH))
    assert nominal == pytest.approx(TECH[f"clock.{style}_ghz.{node}"] * 1e9)


@given(st.floats(0, 0.35))
def test_no_clock_at_or_below_the_threshold(volts):
    assert clock_hz(np.array([volts]), np.array([1]), np.array([0]), TECH)[0] == 0


def test_power_grows_faster_than_the_square_of_the_clock():
    """P = V²·f: an exponent of 2.2 to 2.7 between 0.7 and 0.9 V, as the table says."""
    low, high = (float(clock_hz(v, np.array(1), np.array(0), TECH)) for v in (0.7, 0.9))
    exponent = np.log(0.9**2 * high / (0.7**2 * low)) / np.log(high / low)
    assert 2.2 < exponent < 2.7


def test_energy_follows_the_square_of_voltage_but_hbm_and_links_do_not(make_chip):
    slow, fast = energy_table(make_chip(volts=0.6), TECH), energy_table(make_chip(volts=0.9), TECH)
    np.testing.assert_allclose(fast.flop_j / slow.flop_j, 2.25)
    np.testing.assert_allclose(fast.sram_j_per_byte / slow.sram_j_per_byte, 2.25)
    # HBM3e at 5 pJ/bit.
    assert fast.hbm_j_per_byte[0] == slow.hbm_j_per_byte[0] == pytest.approx(40e-12)
    links = PARTS.index("links")
    unpowered = energy_table(make_chip(volts=0.6, link_bytes_per_s=0), TECH)
    # 100 GB/s at 5.5 pJ/bit are 4.4 W, and 6.4 mm² of links leak as all silicon does.
    leak = 6.4 * 0.2 * 0.5625
    assert slow.static_w[0, links] == pytest.approx(4.4 + leak, rel=0.01)
    assert unpowered.static_w[0, links] == 0


def test_wide_arrays_spend_less_on_operands(make_chip):
    """At 5 nm: 0.20 pJ in the element, 2.5 pJ over 1/(1/16 + 1/32) = 10.67 lanes beside it."""
    table = energy_table(make_chip(rows=16, cols=32), TECH)
    assert table.mac_j_per_flop[0, 0] == pytest.approx(0.20e-12)
    assert table.feed_j_per_flop[0, 0] == pytest.approx(0.234375e-12)
    assert table.flop_j[0, 0] > energy_table(make_chip(), TECH).flop_j[0, 0]


def test_peak_power_stays_in_the_package():
    chips = chips_named(chip_names(), TECH)
    parts = peak_power_parts(chips, TECH)
    assert (parts >= 0).all()
    assert (parts.sum(axis=1) <= chips.power_w * (1 + 1e-9)).all()


def test_without_arrays_nothing_computes(make_chip):
    chip = make_chip(arrays=0, fabricated=0)
    assert peak_power_parts(chip, TECH)[0, PARTS.index("compute")] == 0
    none = replace(chip, rates=np.zeros((1, 3)))
    assert np.isfinite(peak_power_parts(none, TECH)).all()
    assert np.isfinite(tdp_w(none, TECH)).all()
