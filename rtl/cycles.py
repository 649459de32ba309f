"""The array's cycles in closed form, equal to the simulated count on every shape.

NumPy only. Every function broadcasts, takes Python integers, integer arrays or float arrays that
hold integers, and answers in their common dtype; millions of chips are one call. Arguments are
not checked here: `rtl.config.MatmulConfig` does that for one array.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["FORMULA", "matmul_cycles", "result_latency", "stream_cycles", "tile_count"]

# The formula as documents and manifests print it; the tests evaluate it against `stream_cycles`.
FORMULA = "2*rows + cols + m + 1 + (tiles - 1)*max(m, rows)"

# Any of int, float, an integer array or a float array; NumPy's own stubs cannot say
# "the same dtype as the arguments" for operators on such a union.
Number = Any


def result_latency(rows: Number, cols: Number) -> Number:
    """Count the cycles from accepting an activation vector to offering its result.

    Parameters
    ----------
    rows, cols : int or array
        Sides of the array.

    Returns
    -------
    int or array
        ``rows + cols + 1``: a partial sum goes down one row a cycle, column c works c cycles after
        column 0, and an element has two more registers (operand, product) before its sum.
    """
    return rows + cols + 1


def tile_count(k: ArrayLike, n: ArrayLike, rows: ArrayLike, cols: ArrayLike) -> NDArray[Any]:
    """Count the weight tiles of a (K, N) operand: ``ceil(k / rows) * ceil(n / cols)``."""
    return np.asarray(_ceil_divide(k, rows) * _ceil_divide(n, cols))


def stream_cycles(m: Number, tiles: Number, rows: Number, cols: Number) -> NDArray[Any]:
    """Count the cycles from the first weight beat accepted to the last result transferred.

    Parameters
    ----------
    m : int or array
        Activation vectors per tile.
    tiles : int or array
        Weight tiles, one after the other.
    rows, cols : int or array
        Sides of the array.

    Returns
    -------
    int or array
        Cycles, first and last included, when no stream stalls; 0 without tiles or vectors.

    Notes
    -----
    The first tile's `rows` weight beats come before its first vector. The next tile's beats start
    with that vector, so tiles start every ``max(m, rows)`` cycles, and the last vector, accepted
    ``m - 1`` cycles after the last start, has its result `result_latency` cycles later::

        rows + (tiles - 1)*max(m, rows) + (m - 1) + (rows + cols + 1) + 1
    """
    cycles = (tiles - 1) * np.maximum(m, rows) + (rows + result_latency(rows, cols)) + m
    return np.where((np.asarray(tiles) > 0) & (np.asarray(m) > 0), cycles, 0)


def matmul_cycles(m: Number, k: Number, n: Number, rows: Number, cols: Number) -> NDArray[Any]:
    """Count the cycles of an (M, K) by (K, N) product, tile after tile without a gap.

    Parameters
    ----------
    m, k, n : int or array
        Shape of the product; ragged edges are padded with zeros to whole tiles.
    rows, cols : int or array
        Sides of the array: rows share K, columns share N.

    Returns
    -------
    int or array
        Cycles as `stream_cycles` counts them; 0 when a dimension is 0.
    """
    return stream_cycles(m, tile_count(k, n, rows, cols), rows, cols)


def _ceil_divide(a: ArrayLike, b: ArrayLike) -> NDArray[Any]:
    """Divide rounding up, exactly, in the operands' common dtype."""
    a, b = np.asarray(a), np.asarray(b)
    if np.result_type(a, b).kind == "f":
        # Several times as fast as a floor division of floats, and exact below 2**52.
        return np.asarray(np.ceil(a / b))
    return np.asarray((a + (b - 1)) // b)
