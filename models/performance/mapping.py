"""Mappings of a workload on a cluster: all of them as axes, and the best one for each design."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.arrays import BoolArray, FloatArray, IntArray, Scalar
from models.constraints import Constraint
from rtl.errors import InputError, lookup

__all__ = [
    "NEVER_S",
    "NOTHING_PINNED",
    "Grid",
    "Requirement",
    "Winners",
    "axis",
    "expand",
    "pinned_axes",
    "powers_of_two",
]

NOTHING_PINNED: Mapping[str, float] = {}
# 30,000 years: no mapping that takes longer counts as one.
NEVER_S = 1e12


def powers_of_two(limit: int) -> FloatArray:
    """Return 1, 2, 4, … up to `limit`."""
    return np.exp2(np.arange(int(np.log2(max(limit, 1))) + 1, dtype=np.float64))


def pinned_axes(
    axes: Mapping[str, FloatArray], pinned: Mapping[str, float], domain: int
) -> dict[str, FloatArray]:
    """Return mapping axes of which some hold a single given value.

    Raises
    ------
    InputError
        For an axis that does not exist, or a tensor-parallel group larger than the domain.
    """
    result = dict(axes)
    for name, value in pinned.items():
        result[lookup("mapping axis", name, {n: n for n in axes})] = np.array([float(value)])
    if result["tp"].max() > domain:
        raise InputError(
            f"tp of {result['tp'].max():g} in a domain of {domain} chips: tensor parallelism stays "
            "inside a domain; pin a smaller tp or take a larger domain"
        )
    return result


def axis(values: FloatArray, position: int, dimensions: int) -> FloatArray:
    """Lay values along one of `dimensions` mapping axes; there is no design axis."""
    shape = [1] * dimensions
    shape[position] = len(values)
    return values.reshape(shape)


def expand(values: FloatArray, dimensions: int) -> FloatArray:
    """Give per-design values the mapping axes: (D,) becomes (D, 1, …, 1)."""
    return values.reshape(values.shape + (1,) * dimensions)


@dataclass(frozen=True)
class Requirement:
    """What a mapping must meet: ``demand <= limit``.

    Attributes
    ----------
    name, unit, levers : str
        As in :class:`models.constraints.Constraint`.
    demand : ndarray
        Broadcasts to (D, *axes).
    limit : ndarray, shape (D,)
    """

    name: str
    demand: FloatArray
    limit: FloatArray
    unit: str
    levers: str


@dataclass(frozen=True)
class Winners:
    """The cheapest mapping of each design; the nearest to feasible where none is.

    Attributes
    ----------
    usd : ndarray, shape (D,)
        Objective; infinite where no mapping is feasible.
    mapping : dict of str to ndarray, shape (D,)
        Value on each axis.
    largest : dict of str to float
        Last value of each axis that has a choice.
    constraints : list of Constraint
        Every requirement at that mapping.
    feasible, tried : ndarray, shape (D,)
        Mappings that met every requirement, and mappings that exist.
    shape : tuple of int
    index : tuple of ndarray
        Where the winners stand in (D, *axes).
    """

    usd: FloatArray
    mapping: dict[str, FloatArray]
    largest: dict[str, float]
    constraints: list[Constraint]
    feasible: FloatArray
    tried: FloatArray
    shape: tuple[int, ...]
    index: tuple[IntArray, ...]

    def pick(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return a quantity of the grid at each design's mapping, shape (D,)."""
        values = values.reshape((1,) * (len(self.shape) - values.ndim) + values.shape)
        # Axes of length 1 hold for every position.
        where = tuple(0 if size == 1 else i for i, size in zip(self.index, values.shape))
        return np.broadcast_to(values[where], self.shape[:1])


@dataclass(frozen=True)
class Grid:
    """Every mapping of D designs; arrays broadcast to (D, *axes).

    Attributes
    ----------
    axes : mapping of str to ndarray
        Values of each mapping axis, in order.
    usd : ndarray
        Objective of each mapping as if it were feasible.
    requirements : tuple of Requirement
    allowed : ndarray of bool
        Mappings that exist; interleaving, for one, needs a pipeline.
    """

    axes: Mapping[str, FloatArray]
    usd: FloatArray
    requirements: tuple[Requirement, ...]
    allowed: BoolArray

    def winners(self) -> Winners:
        """Return the exact minimum over all mappings, for every design at once."""
        designs = self.usd.shape[0]
        dimensions = len(self.axes)
        shape = (designs, *(len(values) for values in self.axes.values()))
        flat = (designs, math.prod(shape[1:]))
        allowed = np.broadcast_to(self.allowed, shape)
        feasible = allowed.copy()
        for need in self.requirements:
            feasible &= need.demand <= expand(need.limit, dimensions)
        usd = np.where(feasible, self.usd, np.inf).reshape(flat)
        best = np.argmin(usd, axis=1)
        lowest = np.take_along_axis(usd, best[:, None], axis=1)[:, 0]
        lost = np.flatnonzero(~np.isfinite(lowest))
        if len(lost):
            best[lost] = self._nearest(allowed, lost)
        index = (
            np.arange(designs),
            *(position.astype(np.int64) for position in np.unravel_index(best, shape[1:])),
        )
        constraints = [
            Constraint(
                need.name,
                np.broadcast_to(need.demand, shape)[index],
                need.limit,
                need.unit,
                need.levers,
            )
            for need in self.requirements
        ]
        return Winners(
            usd=lowest,
            mapping={
                name: values[position]
                for (name, values), position in zip(self.axes.items(), index[1:])
            },
            largest={
                name: float(values[-1]) for name, values in self.axes.items() if len(values) > 1
            },
            constraints=constraints,
            feasible=feasible.reshape(flat).sum(axis=1).astype(np.float64),
            tried=allowed.reshape(flat).sum(axis=1).astype(np.float64),
            shape=shape,
            index=index,
        )

    def _nearest(self, allowed: BoolArray, designs: IntArray) -> IntArray:
        """Return the flat position of the mapping that misses its requirements by least."""
        shape = (len(designs), *allowed.shape[1:])
        missed = np.where(allowed[designs], 0.0, np.inf)
        for need in self.requirements:
            limit = expand(np.maximum(need.limit[designs], 1e-12), len(self.axes))
            demand = np.broadcast_to(need.demand, allowed.shape)[designs]
            missed = missed + np.clip(demand / limit - 1, 0.0, 1e6)
        nearest: IntArray = missed.reshape(shape[0], -1).argmin(axis=1)
        return nearest
