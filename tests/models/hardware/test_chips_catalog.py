"""The catalogue of real chips: dense peaks, per-direction links, and rows that are refused."""

import numpy as np
import pytest

from models.hardware.catalog import chip_facts, chip_names, chips_from_rows, chips_named
from models.hardware.chip import Chips
from rtl.errors import InputError

# Vendors' data sheets: dense bf16 TFLOP/s, links with both directions added in GB/s, fp32 TFLOP/s.
SHEETS = {
    "a100": (312, 600, 19.5),
    "h100": (989.4, 900, 66.9),
    "h200": (989.4, 900, 66.9),
    "b200": (2250, 1800, 75),
    "mi300x": (1307.4, 896, None),
}


@pytest.fixture(scope="module")
def chips(tech) -> Chips:
    return chips_named(chip_names(), tech)


def test_clocks_that_the_dense_peaks_imply_are_real(chips):
    """A sparse peak, or a wrong number of arrays, would double or halve them."""
    assert ((chips.clock_hz > 0.9e9) & (chips.clock_hz < 2.2e9)).all()
    np.testing.assert_allclose(
        chips.peak_flops[:, 0] / 1e12, [float(chip_facts(n)["bf16_tflops"]) for n in chips.names]
    )


@pytest.mark.parametrize("name", SHEETS)
def test_peaks_are_dense_and_links_one_way(tech, name):
    tflops, both_ways, fp32 = SHEETS[name]
    chip = chips_named([name], tech)
    assert chip.peak_flops[0, 0] == pytest.approx(tflops * 1e12)
    assert chip.link_bytes_per_s[0] == pytest.approx(both_ways / 2 * 1e9)
    if fp32:
        assert chip.vector_flops_per_s[0] == pytest.approx(fp32 * 1e12, rel=0.08)


def test_figures_hang_together(chips, tech):
    from models.hardware.technology import HBM_TYPES

    for i, name in enumerate(chips.names):
        generation = HBM_TYPES[chips.hbm_type[i]]
        rate = tech.coefficients[f"hbm.{generation}.gbytes_per_s"]
        per_stack = chips.hbm_bytes_per_s[i] / chips.stacks[i] / 1e9
        assert 0.95 * rate.low <= per_stack <= 1.05 * rate.high, name
    assert (chips.stacks <= chips.sites).all()
    assert (chips.arrays <= chips.fabricated).all()
    assert (chips.die_mm2 / chips.dies <= tech["reticle.mm2"]).all()
    assert set(np.unique(np.round(chips.rates, 3))) <= {0.0, 1.0, 2.0}
    assert all(chip_facts(name)["source"] for name in chips.names)


def test_names_match_in_any_case_and_errors_suggest():
    assert chip_facts("H100")["label"] == "H100 SXM"
    with pytest.raises(InputError, match="unknown chip 'h10'; did you mean 'h100'"):
        chip_facts("h10")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": "0"}, "chip x: rows is '0', not a number above 0"),
        ({"arrays": "many"}, "chip x: arrays is 'many', not a number above 0"),
        ({"bf16_tflops": "nan"}, "bf16_tflops is 'nan'"),
        ({"hbm_tbps": -1}, "hbm_tbps is -1, not a number of at least 0"),
        ({"tdp_w": "inf"}, "tdp_w is 'inf'"),
        ({"die_mm2": [1]}, r"die_mm2 is \[1\], not a number"),
        ({"fabricated": 1}, "fabricated is 1, fewer than its 528 arrays; correct one of them"),
        ({"sites": 4}, "sites is 4, fewer than its 5 stacks"),
        ({"node": "n4"}, "unknown node 'n4'"),
        ({"hbm_type": "hbm5"}, "unknown hbm_type 'hbm5'"),
    ],
)
def test_bad_rows_are_refused(tech, change, message):
    row = {**chip_facts("h100"), "name": "x", **change}
    with pytest.raises(InputError, match=message):
        chips_from_rows([row], tech)


def test_a_missing_column_is_named(tech):
    row = {k: v for k, v in chip_facts("h100").items() if k != "sram_mb"}
    with pytest.raises(InputError, match="chip h100: sram_mb is missing; add it"):
        chips_from_rows([row], tech)


def test_chips_are_picked_and_joined(chips):
    back = chips[::-1]
    assert back.names == chips.names[::-1]
    joined = Chips.concatenate([chips[:2], chips[2:]])
    assert joined.names == chips.names
    np.testing.assert_array_equal(joined.rates, chips.rates)
    assert len(chips[np.array([3, 1])]) == 2
