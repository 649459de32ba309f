"""Requirements as slack arrays, and what they say."""

import numpy as np
import pytest

from models.constraints import Constraint, Violation, all_met, violations


def constraint(name, demand, limit) -> Constraint:
    return Constraint(name, np.array(demand, float), np.array(limit, float), "GB", "take more")


def test_violation_is_relative_and_finite():
    c = constraint("memory", [50, 80, 100, np.inf, 0, 5], [100, 80, 80, 80, 0, 0])
    np.testing.assert_allclose(c.violation, [-0.5, 0, 0.25, 1e6, 0, 1e6])
    assert c.met.tolist() == [True, True, False, False, True, False]


def test_an_infinite_demand_is_never_met():
    c = constraint("time", [np.inf], [np.inf])
    assert not c.met[0]
    assert c.violation[0] == 1e6


def test_violations_are_sorted_and_say_by_how_much():
    needs = [
        constraint("memory", [100, 1], [80, 2]),
        constraint("fleet", [30, 1], [10, 2]),
        constraint("time", [np.inf, 1], [10, 2]),
        constraint("tpot", [1, 1], [10, 2]),
    ]
    worst = violations(needs, 0)
    assert [v.name for v in worst] == ["time", "fleet", "memory"]
    assert str(worst[2]) == "memory: needs 100 GB, allowed 80, over by 20 GB; take more"
    assert str(worst[0]) == "time: can't be met; take more"
    assert worst[1] == Violation("fleet", 30.0, 10.0, "GB", "take more")
    assert violations(needs, 1) == []
    assert all_met(needs).tolist() == [False, True]


@pytest.mark.parametrize("margin", [0.0, -1e-9, 1e-9])
def test_met_and_violation_agree(margin):
    c = constraint("memory", [1 + margin], [1])
    assert c.met[0] == (margin <= 0) == (c.violation[0] <= 0)
