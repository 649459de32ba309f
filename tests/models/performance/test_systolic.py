"""Matmuls over many arrays against the gateware's cycle count and against arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.performance.systolic import gemm_cycles
from rtl.cycles import matmul_cycles

PRIMES = st.sampled_from([1, 2, 3, 7, 31, 127, 257, 1021, 4099, 16411])
DIMENSION = st.one_of(st.integers(1, 20_000), PRIMES)
SIDE = st.one_of(st.integers(1, 512), st.sampled_from([3, 13, 127, 509]))


@given(DIMENSION, DIMENSION, DIMENSION, SIDE, SIDE)
def test_one_array_takes_the_gatewares_cycles(m, k, n, rows, cols):
    modelled = gemm_cycles(*map(float, (m, k, n, 1, rows, cols, 1)))
    assert modelled == matmul_cycles(m, k, n, rows, cols)


@given(DIMENSION, DIMENSION, DIMENSION, st.integers(1, 64), SIDE, SIDE, st.integers(1, 4096))
def test_never_faster_than_the_elements(m, k, n, parallel, rows, cols, arrays):
    for rate in (1.0, 2.0):
        cycles = gemm_cycles(*map(float, (m, k, n, parallel, rows, cols, arrays)), rate)
        work = m * k * n * parallel
        assert cycles >= work / (arrays * rows * cols * rate)
        # Nor slower than all of it on one array.
        tiles = -(-k // (rows * rate)) * -(-n // cols) * parallel
        assert cycles <= 2 * rows + cols + 1 + m + (tiles - 1) * max(m, rows)


@given(DIMENSION, DIMENSION, DIMENSION, SIDE, SIDE, st.integers(1, 2048))
def test_more_arrays_are_never_slower(m, k, n, rows, cols, arrays):
    shape = [float(x) for x in (m, k, n, 1, rows, cols)]
    assert gemm_cycles(*shape, 2.0 * arrays) <= gemm_cycles(*shape, float(arrays))


def test_by_hand():
    """512 × 256 × 384 on four 128 × 128 arrays: 2 · 3 tiles, two on the fullest array.

    Two loads of 128 rows, fill 128, 512 vectors twice and one cycle: the sum is 1,409.
    """
    assert gemm_cycles(512.0, 256.0, 384.0, 1.0, 128.0, 128.0, 4.0) == 1409
    # On 12 arrays each tile's vectors are divided between two.
    assert gemm_cycles(512.0, 256.0, 384.0, 1.0, 128.0, 128.0, 12.0) == 2 * 128 + 128 + 256 + 1
    # Five vectors divide into three and two: the fuller array counts.
    assert gemm_cycles(5.0, 256.0, 384.0, 1.0, 128.0, 128.0, 12.0) == 2 * 128 + 128 + 3 + 1


def test_narrow_formats_deepen_the_tile_and_load_as_fast():
    """At two products per element 256 rows of K are one tile; a weight row still takes a beat."""
    wide = gemm_cycles(1.0, 4096.0, 128.0, 1.0, 128.0, 128.0, 1.0)
    narrow = gemm_cycles(1.0, 4096.0, 128.0, 1.0, 128.0, 128.0, 1.0, 2.0)
    fixed = 2 * 128 + 128 + 1 + 1
    assert wide == fixed + 31 * 128
    assert narrow == fixed + 15 * 128


@pytest.mark.parametrize("arrays", [0.0, 4.0])
def test_nothing_to_do_takes_nothing_and_no_arrays_for_ever(arrays):
    with np.errstate(all="raise"):
        assert gemm_cycles(0.0, 0.0, 0.0, 1.0, 128.0, 128.0, arrays) == 0
        busy = gemm_cycles(512.0, 256.0, 384.0, 1.0, 128.0, 128.0, arrays)
    assert busy == (1409 if arrays else np.inf)


def test_shapes_broadcast():
    m = np.array([[1.0], [64.0], [8192.0]])
    arrays = np.array([0.0, 1.0, 528.0, 2048.0])
    cycles = gemm_cycles(m, 4096.0, 4096.0, 1.0, 16.0, 32.0, arrays)
    assert cycles.shape == (3, 4)
    for i in range(3):
        for j in range(4):
            lone = gemm_cycles(m[i, 0], 4096.0, 4096.0, 1.0, 16.0, 32.0, arrays[j])
            assert cycles[i, j] == lone
