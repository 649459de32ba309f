"""Matmuls on many systolic arrays, in the gateware's own cycles."""

from __future__ import annotations

import numpy as np

from models.arrays import FloatArray
from rtl.cycles import stream_cycles, tile_count

__all__ = ["gemm_cycles"]


def gemm_cycles(
    m: FloatArray,
    k: FloatArray,
    n: FloatArray,
    parallel: FloatArray,
    rows: FloatArray,
    cols: FloatArray,
    arrays: FloatArray,
) -> FloatArray:
    """Return the cycles of `parallel` equal matmuls spread over all arrays of a chip.

    Every weight tile of every instance is a job. Where jobs are fewer than arrays, the M dimension
    of each is split over the idle ones. The fullest array sets the time: its tiles follow each
    other as :func:`rtl.cycles.stream_cycles` counts them, fill and drain included.

    Parameters
    ----------
    m, k, n : ndarray
        One instance is (m × k)·(k × n); the (k × n) operand is stationary.
    parallel : ndarray
        Instances that may run at once.
    rows, cols : ndarray
        Sides of an array, `rows` times the multiply-accumulates an element does per cycle.
    arrays : ndarray
        Arrays on the chip; 0 gives infinity.

    Returns
    -------
    ndarray
        Broadcast of all arguments; 0 where there is nothing to multiply.
    """
    jobs = tile_count(k, n, rows, cols) * parallel
    with np.errstate(divide="ignore", invalid="ignore"):
        split = np.clip(np.floor(arrays / jobs), 1.0, np.maximum(m, 1.0))
        tiles = np.ceil(jobs * split / arrays)
        cycles = stream_cycles(np.ceil(m / split), tiles, rows, cols)
    return np.where(jobs * m > 0, np.where(arrays > 0, cycles, np.inf), 0.0)
