"""Matmuls on many systolic arrays, in the gateware's own cycles."""

from __future__ import annotations

import numpy as np

from models.arrays import ArrayLike, FloatArray
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
    rate: ArrayLike = 1.0,
) -> FloatArray:
    """Return the cycles of `parallel` equal matmuls spread over all arrays of a chip.

    Every weight tile of every instance is a job. Where jobs are fewer than arrays, the M dimension
    of each is split over the idle ones. The fullest array sets the time: its tiles follow each
    other as :func:`rtl.cycles.stream_cycles` counts them, fill and drain included.

    An element that multiplies `rate` pairs of a narrow format per cycle adds them up, so that a
    tile is `rate` times as deep in K. It loads in as many cycles as a wide one, because its
    elements are as much narrower.

    Parameters
    ----------
    m, k, n : ndarray
        One instance is (m × k)·(k × n); the (k × n) operand is stationary.
    parallel : ndarray
        Instances that may run at once.
    rows, cols : ndarray
        Sides of an array in elements.
    arrays : ndarray
        Arrays on the chip; 0 gives infinity.
    rate : array_like
        Multiply-accumulates that an element does per cycle.

    Returns
    -------
    ndarray
        Broadcast of all arguments; 0 where there is nothing to multiply.
    """
    jobs = tile_count(k, n, rows * np.asarray(rate), cols) * parallel
    with np.errstate(divide="ignore", invalid="ignore"):
        split = np.clip(np.floor(arrays / jobs), 1.0, np.maximum(m, 1.0))
        tiles = np.ceil(jobs * split / arrays)
        cycles = stream_cycles(np.ceil(m / split), tiles, rows, cols)
    return np.where(jobs * m > 0, np.where(arrays > 0, cycles, np.inf), 0.0)
