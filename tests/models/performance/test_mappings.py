"""The grid of mappings: exact minimum, nearest miss, pinned axes."""

import numpy as np
import pytest

from models.performance.mapping import Grid, Requirement, axis, expand, pinned_axes, powers_of_two
from rtl.errors import InputError

AXES = {"a": np.array([1.0, 2.0, 4.0]), "b": np.array([1.0, 10.0])}


def grid(usd, demand, limit, allowed=True) -> Grid:
    need = Requirement("memory", np.asarray(demand, float), np.asarray(limit, float), "bytes", "")
    return Grid(AXES, np.asarray(usd, float), (need,), np.broadcast_to(allowed, (3, 2)))


def test_the_winner_is_the_feasible_minimum():
    rng = np.random.default_rng(0)
    usd, demand = rng.random((50, 3, 2)), rng.random((50, 3, 2))
    won = grid(usd, demand, np.full(50, 0.7)).winners()
    for d in range(50):
        feasible = demand[d] <= 0.7
        assert won.feasible[d] == feasible.sum()
        assert won.tried[d] == 6
        if feasible.any():
            assert won.usd[d] == usd[d][feasible].min()
            at = np.argwhere((usd[d] == won.usd[d]) & feasible)[0]
            assert won.mapping["a"][d] == AXES["a"][at[0]]
            assert won.mapping["b"][d] == AXES["b"][at[1]]
            assert won.pick(demand)[d] == demand[d][tuple(at)]
            assert won.constraints[0].met[d]


def test_where_nothing_fits_the_nearest_is_shown():
    demand = [[[9, 8], [7, 3], [4, np.inf]]]
    won = grid(np.ones((1, 3, 2)), demand, [2.0]).winners()
    assert won.usd[0] == np.inf
    assert (won.mapping["a"][0], won.mapping["b"][0]) == (2.0, 10.0)
    assert won.constraints[0].demand[0] == 3
    assert won.feasible[0] == 0


def test_what_is_not_allowed_neither_wins_nor_counts():
    allowed = np.array([[False, True], [True, True], [True, True]])
    won = grid(np.arange(6.0).reshape(1, 3, 2), np.zeros((1, 3, 2)), [1.0], allowed).winners()
    assert won.usd[0] == 1.0
    assert won.tried[0] == 5
    nearest = grid(np.ones((1, 3, 2)), np.full((1, 3, 2), 5.0), [0.0], allowed).winners()
    assert (nearest.mapping["a"][0], nearest.mapping["b"][0]) == (1.0, 10.0)


def test_picks_broadcast():
    won = grid(np.ones((4, 3, 2)), np.zeros((1, 1, 1)), np.ones(4)).winners()
    assert won.pick(np.array(7.0)).tolist() == [7.0] * 4
    assert won.pick(axis(AXES["a"], 0, 2)).tolist() == [1.0] * 4
    assert won.pick(expand(np.arange(4.0), 2)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("limit", "values"),
    [(1, [1]), (2, [1, 2]), (7, [1, 2, 4]), (8, [1, 2, 4, 8]), (72, [1, 2, 4, 8, 16, 32, 64])],
)
def test_powers_of_two(limit, values):
    assert powers_of_two(limit).tolist() == values


def test_pinned_axes():
    axes = {"tp": powers_of_two(8), "pp": powers_of_two(4)}
    pinned = pinned_axes(axes, {"pp": 35}, domain=8)
    assert pinned["pp"].tolist() == [35.0]
    assert pinned["tp"].tolist() == [1, 2, 4, 8]
    with pytest.raises(InputError, match="unknown mapping axis 'dp'"):
        pinned_axes(axes, {"dp": 1}, domain=8)
