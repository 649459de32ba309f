"""How a budget is divided: whole quanta, no area twice, limits that say by how much."""

import numpy as np
import pytest

from models.constraints import all_met, violations
from models.hardware.area import array_mm2, part_areas
from models.hardware.budget import Allocation, Budget, allocate, lanes_that_fit, stacks_that_fit
from models.hardware.chip import PARTS
from models.hardware.cluster import Cluster
from rtl.errors import InputError


def one(**given) -> Allocation:
    columns = {
        "die_mm2": 800.0,
        "power_w": 700.0,
        "style": 0,
        "datapath": 0,
        "rows": 32.0,
        "cols": 32.0,
        "hbm_type": 3,
        "stacks": 4.0,
        "link_type": 1,
        "lanes": 18.0,
        "sram_share": 0.3,
        "volts": 0.75,
        "hbm_power_share": 1.0,
    } | given
    return Allocation(**{name: np.array([value]) for name, value in columns.items()})


BUDGET = Budget(die_mm2=858, power_w=700, node="n5")


@pytest.mark.parametrize(
    ("die", "stacks"), [(814, 6), (858, 6), (360, 2), (362, 4), (826, 6), (80, 0)]
)
def test_stacks_along_the_two_long_sides(tech, die, stacks):
    """H100, 814 mm²: 32.1 mm a side, three stacks of 10.7 mm on each of two."""
    assert stacks_that_fit(np.array([float(die)]), tech)[0] == stacks


def test_lanes_along_the_two_short_sides(tech):
    """814 mm² / 32.14 mm = 25.3 mm; twice that at 38 GB/s per mm holds 76 lanes of 25 GB/s."""
    assert lanes_that_fit(np.array([814.0]), np.array([1]), tech)[0] == 76


def test_area_is_divided_once_and_adds_up(tech):
    chips, constraints = allocate(BUDGET, one(), tech)
    assert all_met(constraints)[0]
    area = dict(zip(PARTS, part_areas(chips, tech)[0]))
    assert sum(area.values()) == pytest.approx(800)
    # 40% of the die is uncore, to which the area of less than one array is left over.
    lone = array_mm2(chips.rows, chips.cols, chips.node, chips.datapath, tech)[0]
    assert 0 <= area["uncore"] - 0.40 * 800 < lone
    assert area["hbm"] == pytest.approx(4 * 14.5)
    assert area["links"] == pytest.approx(18 * 0.2 * 8.0)
    left = 800 * 0.6 - 4 * 14.5 - 18 * 1.6
    assert area["sram"] == pytest.approx(0.3 * left)
    assert chips.sram_bytes[0] == pytest.approx(0.3 * left / 0.75 * 1e6)


def test_arrays_are_whole_with_spares(tech):
    chips, _ = allocate(BUDGET, one(), tech)
    assert chips.arrays[0] == np.floor(chips.fabricated[0] * (1 - 0.083))
    assert chips.fabricated[0] == np.floor(chips.fabricated[0])
    single, met = allocate(BUDGET, one(rows=512.0, cols=512.0, sram_share=0.45), tech)
    assert single.fabricated[0] == 1
    assert single.arrays[0] == 1
    assert all_met(met)[0]


def test_the_hbm_cap_caps_bandwidth_not_capacity(tech):
    full, _ = allocate(BUDGET, one(), tech)
    half, _ = allocate(BUDGET, one(hbm_power_share=0.5), tech)
    assert half.hbm_bytes_per_s[0] == full.hbm_bytes_per_s[0] / 2 == 2e12
    assert half.hbm_bytes[0] == full.hbm_bytes[0] == 96e9


@pytest.mark.parametrize(
    ("given", "name", "text"),
    [
        ({"stacks": 7.0}, "hbm_edge", "hbm_edge: needs 7 stacks, allowed 4, over by 3 stacks"),
        ({"lanes": 200.0}, "link_edge", "over by"),
        ({"power_w": 100.0, "volts": 0.9}, "power", "lower the voltage"),
        ({"die_mm2": 80.0, "stacks": 6.0}, "area", "take fewer stacks, lanes or SRAM"),
        ({"rows": 1024.0, "cols": 1024.0}, "area", "smaller arrays"),
    ],
)
def test_what_does_not_fit_says_by_how_much(tech, given, name, text):
    chips, constraints = allocate(BUDGET, one(**given), tech)
    assert not all_met(constraints)[0]
    broken = {v.name: str(v) for v in violations(constraints, 0)}
    assert text in broken[name]
    if name == "area":
        assert chips.arrays[0] == 0


def test_an_array_has_edges(tech):
    """One large array is smaller than many small ones of as many elements."""
    sides = np.array([4.0, 16.0, 64.0, 256.0])
    codes = np.ones(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    per_element = array_mm2(sides, sides, *codes, tech) / sides**2
    assert (np.diff(per_element) < 0).all()
    # 5 nm, 16 × 32: 512 · 600 µm² + 48 · 0.0031 + 0.0053 mm²; 900 µm² an element all told.
    core = array_mm2(np.array(16.0), np.array(32.0), np.array(1), np.array(0), tech)
    assert core == pytest.approx(0.4613)
    assert core / 512 == pytest.approx(900e-6, rel=0.01)


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (Budget(900, 700, "n5"), "die of 900 mm2.*at most the reticle, 858 mm2; lower budget"),
        (Budget(0, 700, "n5"), "die of 0 mm2"),
        (Budget(float("nan"), 700, "n5"), "die of nan mm2"),
        (Budget(800, -5, "n5"), "power of -5 W: package power is above 0; set budget.power_w"),
        (Budget(800, float("inf"), "n5"), "power of inf W"),
        (Budget(800, 700, "n3"), "unknown process node 'n3'"),
    ],
)
def test_impossible_budgets_are_refused(tech, budget, message):
    with pytest.raises(InputError, match=message):
        budget.validated(tech)
    assert BUDGET.validated(tech) is BUDGET


def test_impossible_clusters_are_refused():
    with pytest.raises(InputError, match="scale-up domain of 0 chips: a domain has at least 1"):
        Cluster(domain=0, network="infiniband-ndr")
    with pytest.raises(InputError, match="unknown scale-out network 'infiniband'"):
        Cluster(domain=8, network="infiniband")
