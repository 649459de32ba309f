"""The coefficient table: complete, in range, found by path."""

import dataclasses

import pytest

from models.hardware.technology import (
    DATAPATHS,
    HBM_TYPES,
    LINK_TYPES,
    NETWORKS,
    NODES,
    STYLES,
    Coefficient,
    Technology,
)
from rtl.errors import InputError

COEFFICIENTS = list(Technology.default().coefficients.values())


@pytest.mark.parametrize("c", COEFFICIENTS, ids=lambda c: c.name)
def test_every_coefficient_has_a_range_a_unit_and_a_source(c):
    assert 0 <= c.low <= c.nominal <= c.high
    assert c.unit.strip()
    assert len(c.source.split()) >= 1
    assert c.quality in "SRDA"


@pytest.mark.parametrize(
    ("path", "codes"),
    [
        ("hbm.{}.gbytes_per_s", HBM_TYPES),
        ("hbm.{}.gbytes", HBM_TYPES),
        ("hbm.{}.pj_per_bit", HBM_TYPES),
        ("link.{}.pj_per_bit", LINK_TYPES),
        ("network.{}.watts", NETWORKS),
        ("uncore.fraction", STYLES),
        ("datapath.{}.element_area", DATAPATHS),
        ("sram.mm2_per_mb", NODES),
    ],
)
def test_a_column_has_a_value_for_every_code(tech, path, codes):
    column = tech.column(path, codes)
    assert column.shape == (len(codes),)
    assert (column > 0).all()


def test_find_takes_whole_parts_of_a_path(tech):
    hbm3 = {c.name for c in tech.find("hbm.hbm3")}
    assert hbm3 == {"hbm.hbm3.gbytes_per_s", "hbm.hbm3.gbytes", "hbm.hbm3.pj_per_bit"}
    assert [c.name for c in tech.find("HBM.edge_mm")] == ["hbm.edge_mm"]
    assert {c.name for c in tech.find("hbm3e-12h")} == {c.name for c in tech.find("hbm.hbm3e-12h")}
    assert all(c.name.endswith(".n5") for c in tech.find("n5"))
    with pytest.raises(InputError, match=r"unknown coefficient 'hbm.edg'; did you mean"):
        tech.find("hbm.edg")


def test_values_are_replaced_and_ranges_widen(tech):
    changed = tech.with_values({"hbm.edge_mm": 3.0})
    assert changed["hbm.edge_mm"] == 3.0
    assert changed.coefficients["hbm.edge_mm"].low == 3.0
    assert tech["hbm.edge_mm"] == 10.7
    with pytest.raises(InputError, match=r"unknown coefficient 'hbm\.edge'"):
        tech.with_values({"hbm.edge": 1.0})
    with pytest.raises(InputError, match="unknown coefficient"):
        tech["nothing"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nominal": 4.0}, "coefficient x: nominal 4 is outside its range 1 to 3; widen the range"),
        ({"nominal": float("nan")}, "outside its range"),
        ({"quality": "B"}, "quality 'B' is not one of S, R, D, A"),
    ],
)
def test_a_bad_coefficient_is_refused(change, message):
    good = Coefficient("x", 1.0, 2.0, 3.0, "m", "S", "somewhere")
    with pytest.raises(InputError, match=message):
        dataclasses.replace(good, **change)
