import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution

from dse.scenario import load_scenario
from dse.space import Space
from models.hardware.budget import Budget, allocate, lanes_that_fit, stacks_that_fit
from models.hardware.technology import DATAPATHS, HBM_TYPES, LINK_TYPES, STYLES
from rtl.config import MAX_SIDE, MIN_SIDE

EVERYTHING = {
    "styles": STYLES,
    "datapaths": DATAPATHS,
    "hbm_types": HBM_TYPES,
    "link_types": LINK_TYPES,
}


def space_of(tech, die_mm2=800.0, power_w=700.0, **choices):
    return Space.of(Budget(die_mm2, power_w, "n5"), tech, **{**EVERYTHING, **choices})


@pytest.fixture
def trial():
    return {
        "die_mm2": 400.0,
        "power_w": 300.0,
        "style": "simt",
        "datapath": "int8",
        "rows": 16,
        "cols": 32,
        "hbm_type": "hbm3e",
        "stacks": 2,
        "link_type": "serdes-50g",
        "lanes": 7,
        "sram_share": 0.25,
        "volts": 0.75,
        "hbm_power_share": 0.9,
    }


def test_parameters_become_the_chip_that_they_name(tech, trial):
    space = space_of(tech)
    other = {**trial, "style": "systolic", "rows": 64, "stacks": 0, "datapath": "bf16"}
    allocation = space.allocation([trial, other])
    chips, _ = allocate(Budget(800.0, 700.0, "n5"), allocation, tech)
    assert [STYLES[i] for i in chips.style] == ["simt", "systolic"]
    assert [DATAPATHS[i] for i in chips.datapath] == ["int8", "bf16"]
    assert [HBM_TYPES[i] for i in chips.hbm_type] == ["hbm3e", "hbm3e"]
    assert [LINK_TYPES[i] for i in chips.link_type] == ["serdes-50g"] * 2
    assert chips.rows.tolist() == [16, 64]
    assert chips.cols.tolist() == [32, 32]
    assert chips.stacks.tolist() == [2, 0]
    assert chips.volts.tolist() == [0.75, 0.75]
    assert chips.die_mm2.tolist() == [400, 400]
    assert chips.power_w.tolist() == [300, 300]
    for name in ("sram_share", "hbm_power_share", "lanes"):
        assert getattr(allocation, name).tolist() == [trial[name]] * 2


def test_the_largest_counts_are_what_the_largest_die_holds(tech):
    ranges = space_of(tech).distributions
    die = np.array([800.0])
    assert ranges["stacks"].high == stacks_that_fit(die, tech)[0]
    assert ranges["lanes"].high == max(
        lanes_that_fit(die, np.array([code]), tech)[0] for code in range(len(LINK_TYPES))
    )


def test_arrays_stay_within_what_the_gateware_can_be(tech):
    for side in ("rows", "cols"):
        distribution = space_of(tech).distributions[side]
        assert distribution.low >= MIN_SIDE
        assert distribution.high == MAX_SIDE


@pytest.mark.parametrize(("die_mm2", "power_w"), [(1.0, 1.0), (80.0, 80.0), (858.0, 1e5)])
def test_any_budget_has_a_space_within_it(tech, die_mm2, power_w):
    ranges = space_of(tech, die_mm2, power_w).distributions
    assert ranges["die_mm2"].high == die_mm2
    assert ranges["power_w"].high == power_w


def test_bounds_are_the_hundredth_at_either_end(tech, trial):
    space = space_of(tech)
    assert space.at_bounds(trial) == {}
    volts = space.distributions["volts"]
    width = volts.high - volts.low
    at = {
        "die_mm2": 800.0,
        "rows": 4,
        "cols": 64,
        "stacks": 0,
        "volts": volts.high - 0.009 * width,
        "sram_share": 0.011,
    }
    assert space.at_bounds({**trial, **at}) == {
        "die_mm2": "upper",
        "rows": "lower",
        "cols": "upper",
        "stacks": "lower",
        "volts": "upper",
        "sram_share": "lower",
    }
    assert space.at_bounds({**trial, "volts": volts.high - 0.011 * width}) == {}


def test_a_variable_without_a_choice_is_no_bound(tech, trial):
    space = space_of(tech, die_mm2=50.0)
    assert "die_mm2" not in space.at_bounds({**trial, "die_mm2": 50.0})


@pytest.mark.parametrize(
    ("equal", "datapath"), [("bf16", "bf16"), ("fp8", "bf16"), ("int8", "int8")]
)
def test_equal_formats_build_what_both_jobs_need(tech, scenario_file, equal, datapath):
    # fp8 training multiplies its attention in bf16.
    scenario, _ = load_scenario(scenario_file(equal=f'"{equal}"'))
    distribution = scenario.space("equal", tech).distributions["datapath"]
    assert distribution == CategoricalDistribution([datapath])
    free = scenario.space("free", tech).distributions["datapath"]
    assert free.choices == ("bf16", "fp8", "int8")
