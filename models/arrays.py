"""Array types and the small operations that every model shares."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "GB",
    "ArrayLike",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Scalar",
    "positive_difference",
    "transfer_time",
]

# Bytes in the unit that capacities are sold in.
GB = 1e9

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
# For functions that only lay out or pick elements.
Scalar = TypeVar("Scalar", bound=np.generic)


def transfer_time(amount: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Return ``amount / rate``: 0 for nothing to move, infinity for something and no rate.

    Never NaN of numbers, so that ``argmin`` over designs without HBM or links picks a real one; a
    NaN that is given stays one, to be found.

    Parameters
    ----------
    amount : array_like
        Bytes, FLOPs or joules; zero or positive.
    rate : array_like
        The same per second; zero or positive, possibly infinite.
    """
    amount = np.asarray(amount, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        time: FloatArray = amount / np.asarray(rate, dtype=np.float64)
    return np.where(amount == 0, 0.0, time)


def positive_difference(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a − b, at least 0, and 0 where either is infinite."""
    both = np.isfinite(a) & np.isfinite(b)
    difference = np.subtract(a, b, out=np.zeros(both.shape), where=both)
    return np.maximum(difference, 0.0)
