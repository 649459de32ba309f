"""Yield, dies per wafer, cost of a chip and of running it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.economics import chip_cost, die_yield, gross_dies, running_usd_per_s
from models.hardware.catalog import chip_names, chips_named
from models.hardware.cluster import Cluster
from models.hardware.technology import Technology

TECH = Technology.default()


def one_yield(repeated, other, groups, spares, per_cm2, alpha) -> float:
    columns = (np.array([float(x)]) for x in (repeated, other, groups, spares, per_cm2 / 100))
    return float(die_yield(*columns, alpha)[0])


@pytest.mark.parametrize(
    ("per_cm2", "alpha3", "alpha10"), [(0.05, 0.68, 0.67), (0.10, 0.49, 0.46), (0.20, 0.27, 0.22)]
)
def test_negative_binomial_of_814_mm2(per_cm2, alpha3, alpha10):
    """(1 + A·D/α)^−α by hand: 8.14 cm² at 0.1 is 1.2713^−3 = 0.487."""
    for alpha, expected in ((3, alpha3), (10, alpha10)):
        assert one_yield(0, 814, 1, 0, per_cm2, alpha) == pytest.approx(expected, abs=0.006)


def test_63_dies_of_814_mm2():
    """π·150²/814 − π·300/√(2·814) = 63.5 without rim and scribe lines, 57 with them."""
    bare = TECH.with_values({"cost.wafer_edge_mm": 0, "cost.scribe_mm": 0})
    die = np.array([814.0])
    assert gross_dies(die, bare)[0] == 63
    assert gross_dies(die, TECH)[0] == 57
    assert gross_dies(np.array([1e6]), TECH)[0] == 1


@given(
    st.floats(1, 800),
    st.floats(0, 400),
    st.integers(1, 400),
    st.integers(0, 60),
    st.floats(0.01, 1),
    st.floats(1, 10),
)
def test_harvesting_is_the_binomial(repeated, other, groups, spares, per_cm2, alpha):
    spares = min(spares, groups)
    good = (1 + repeated / groups * per_cm2 / 100 / alpha) ** -alpha
    exact = sum(
        math.comb(groups, j) * good ** (groups - j) * (1 - good) ** j for j in range(spares + 1)
    )
    whole = (1 + other * per_cm2 / 100 / alpha) ** -alpha
    found = one_yield(repeated, other, groups, spares, per_cm2, alpha)
    assert found == pytest.approx(whole * exact, rel=1e-9)
    assert 0 < found <= 1


def test_yields_of_many_designs_do_not_mix():
    """Spares differ by design; the loop over spares runs to the largest."""
    repeated, other, groups, spares, defects = np.array(
        [
            [400, 100, 144, 12, 1e-3],
            [400, 100, 144, 0, 1e-3],
            [50, 300, 1, 1, 2e-3],
            [0, 1, 1, 0, 0],
        ]
    ).T.astype(float)
    together = die_yield(repeated, other, groups, spares, defects, 3)
    for i in range(4):
        lone = die_yield(*(x[i : i + 1] for x in (repeated, other, groups, spares, defects)), 3)
        assert together[i] == lone[0]
    assert together[0] > together[1]
    assert together[3] == 1


def test_cost_by_hand(make_chip):
    """400 mm² at 5 nm, two stacks of 110 mm² with 32 GB, nothing harvested."""
    chip = make_chip()
    cost = chip_cost(chip, TECH, volume=1e6, wiring_usd=np.array([1000.0]))
    dies = math.floor(math.pi * 145**2 / 20.2**2 - math.pi * 290 / math.sqrt(2 * 20.2**2))
    assert cost.hbm[0] == 32 * 15
    assert cost.package[0] == pytest.approx(1.7 * (400 + 220) * 0.30)
    assert cost.test[0] == 920
    assert cost.nre[0] == pytest.approx((18.1e6 + 542e6) / 1e6)
    assert 16000 / dies < cost.dies[0] < 16000 / dies / 0.6
    assert cost.network[0] == 1000
    parts = cost.dies + cost.hbm + cost.package + cost.test
    assert cost.bill_of_materials[0] == parts[0]


def test_two_small_dies_yield_better_than_one(make_chip):
    one, two = (
        chip_cost(make_chip(die_mm2=800, dies=n), TECH, 1e6, np.array([1000.0])).dies[0]
        for n in (1, 2)
    )
    assert two < one


def test_costs_are_positive_for_the_whole_catalogue():
    cost = chip_cost(chips_named(chip_names(), TECH), TECH, 1e6, np.array([1000.0]))
    for name, values in vars(cost).items():
        assert (values > 0).all(), name
    assert (cost.capital > cost.bill_of_materials).all()


def test_running_cost_by_hand():
    """4,000 US$ over 4 years and 10 US$/W for 1,000 W over 12: 1,833 US$ a year."""
    per_s = running_usd_per_s(np.array([4000.0]), np.array([1000.0]), TECH)[0]
    assert per_s * 365.25 * 86400 == pytest.approx(1000 + 10_000 / 12)


def test_a_port_is_the_stated_share_of_an_h100_with_its_system():
    """The source of network.infiniband-ndr.usd, repeated."""
    port = TECH["network.infiniband-ndr.usd"]
    cost = chip_cost(chips_named(["h100"], TECH), TECH, 1e6, np.array([port]))
    assert port / cost.capital[0] == pytest.approx(0.15, abs=0.005)


def test_scale_up_switches_follow_the_links():
    """1 US$ per GB/s beside the port; a domain of one chip has no switch."""
    links = np.array([0.0, 450e9])
    usd = Cluster(8, "infiniband-ndr").wiring_usd(links, TECH)
    assert usd == pytest.approx([1030, 1030 + 450])
    assert Cluster(1, "infiniband-ndr").wiring_usd(links, TECH) == pytest.approx([1030, 1030])
