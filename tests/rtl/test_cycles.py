import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtl.config import MatmulConfig
from rtl.cycles import FORMULA, matmul_cycles, result_latency, stream_cycles, tile_count

sizes = st.integers(1, 300)
sides = st.integers(1, 64)


@given(sizes, sizes, sides, sides)
def test_formula_text_is_the_formula(m, tiles, rows, cols):
    names = {"m": m, "tiles": tiles, "rows": rows, "cols": cols, "max": max}
    assert stream_cycles(m, tiles, rows, cols) == eval(FORMULA, names)


@given(sizes, sizes, sides, sides)
def test_is_the_sum_of_its_stages(m, tiles, rows, cols):
    # A schedule written out by hand: when each tile starts, when its last result leaves.
    start = rows
    for _ in range(tiles - 1):
        start = max(start + m, start + rows)
    last_result = start + m - 1 + result_latency(rows, cols)
    assert stream_cycles(m, tiles, rows, cols) == last_result + 1


@given(sizes, sizes, sizes, sides, sides)
def test_ragged_edges_count_as_whole_tiles(m, k, n, rows, cols):
    tiles = -(-k // rows) * -(-n // cols)
    assert tile_count(k, n, rows, cols) == tiles
    assert matmul_cycles(m, k, n, rows, cols) == stream_cycles(m, tiles, rows, cols)


def test_nothing_to_do_takes_no_cycles():
    config = MatmulConfig(8, 8)
    assert [config.cycles(*shape) for shape in [(0, 5, 5), (5, 0, 5), (5, 5, 0)]] == [0, 0, 0]


def test_floats_integers_and_scalars_agree():
    random = np.random.default_rng(0)
    m, k, n = (random.integers(0, 1 << 16, 1000) for _ in range(3))
    rows, cols = (random.integers(1, 65, 1000) for _ in range(2))
    whole = matmul_cycles(m, k, n, rows, cols)
    floats = matmul_cycles(*(x.astype(float) for x in (m, k, n, rows, cols)))
    assert (whole.dtype, floats.dtype) == (np.int64, np.float64)
    assert np.array_equal(whole, floats)
    for i in range(0, 1000, 97):
        assert whole[i] == MatmulConfig(int(rows[i]), int(cols[i])).cycles(
            int(m[i]), int(k[i]), int(n[i])
        )


def test_axes_broadcast():
    m = np.arange(1, 5.0)
    rows = np.array([[2.0], [8.0], [32.0]])
    assert matmul_cycles(m, 100, 100, rows, 16).shape == (3, 4)


@pytest.mark.parametrize("number", [2**20 - 1, 2**20, 2**20 + 1, 2**45 - 1, 2**45, 2**45 + 1])
def test_float_tiles_round_up_exactly(number):
    for side in (1, 3, 64):
        assert tile_count(float(number), 1.0, float(side), 1.0) == -(-number // side)
