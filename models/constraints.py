"""Constraints as named slack arrays: demand, limit, gap and the levers that would mend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import BoolArray, FloatArray

__all__ = ["Constraint", "Violation", "all_met", "violations"]


@dataclass(frozen=True)
class Constraint:
    """One requirement on every design.

    Attributes
    ----------
    name : str
        What binds, such as ``"hbm_edge"``.
    demand, limit : ndarray, shape (D,)
        The requirement is ``demand <= limit``; an infinite demand can't be met at all.
    unit : str
    levers : str
        What to change when it is not met.
    """

    name: str
    demand: FloatArray
    limit: FloatArray
    unit: str
    levers: str

    @property
    def violation(self) -> FloatArray:
        """Relative excess of demand over limit, finite, at most 0 where met, shape (D,)."""
        scale = np.maximum(np.abs(self.limit), 1e-12)
        with np.errstate(invalid="ignore"):
            excess = (self.demand - self.limit) / scale
        return np.clip(np.nan_to_num(excess, nan=1e6), -1.0, 1e6)

    @property
    def met(self) -> BoolArray:
        """Where the requirement holds, shape (D,)."""
        holds: BoolArray = self.violation <= 0
        return holds


@dataclass(frozen=True)
class Violation:
    """Why one design can't be built or can't do its work."""

    name: str
    demand: float
    limit: float
    unit: str
    levers: str

    def __str__(self) -> str:
        if not np.isfinite(self.demand):
            return f"{self.name}: can't be met; {self.levers}"
        return (
            f"{self.name}: needs {self.demand:.4g} {self.unit}, allowed {self.limit:.4g}, "
            f"over by {self.demand - self.limit:.3g} {self.unit}; {self.levers}"
        )


def all_met(constraints: Sequence[Constraint]) -> BoolArray:
    """Return where every constraint holds, shape (D,)."""
    met: BoolArray = np.logical_and.reduce([c.met for c in constraints])
    return met


def violations(constraints: Sequence[Constraint], index: int) -> list[Violation]:
    """Return what one design violates, worst first; empty when it is feasible."""
    broken = [c for c in constraints if not c.met[index]]
    broken.sort(key=lambda c: -c.violation[index])
    return [
        Violation(c.name, float(c.demand[index]), float(c.limit[index]), c.unit, c.levers)
        for c in broken
    ]
