"""Result records: what a phase takes on each design, what binds it, and by which mapping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import BoolArray, FloatArray, IntArray
from models.constraints import Constraint, all_met

__all__ = ["PhaseResult", "cheapest", "concatenate"]


@dataclass(frozen=True)
class PhaseResult:
    """One phase of work on D designs, each with its best mapping.

    Attributes
    ----------
    recipes : tuple of str
        Precision recipes that were tried.
    recipe : ndarray of int, shape (D,)
        Which of them won.
    usd : ndarray, shape (D,)
        Dollars per unit of work: per training run, or per token. Infinite where infeasible.
    seconds : ndarray, shape (D,)
        Time of one training step, of a prompt to its first token, or of one output token.
    joules : ndarray, shape (D,)
        Energy per unit of work at the wall, hosts, network and PUE included.
    tokens_per_s : ndarray, shape (D,)
        Per chip that is paid for: of the whole fleet in training.
    chips : ndarray, shape (D,)
        Chips that the mapping takes.
    mapping : dict of str to ndarray, shape (D,)
    largest : dict of str to float
        The most that was tried of each part of the mapping.
    bound_s : dict of str to ndarray, shape (D,)
        Time by what binds; adds up to `seconds` where that is finite.
    power_w : ndarray, shape (D, len(PARTS))
        Mean package power by part.
    clock_hz : ndarray, shape (D,)
        Mean clock of the arrays: the design's highest, throttled where power binds.
    memory_bytes : ndarray, shape (D,)
        Needed on the fullest chip.
    mappings_feasible, mappings_tried : ndarray, shape (D,)
    constraints : list of Constraint
        Memory and service levels.
    """

    recipes: tuple[str, ...]
    recipe: IntArray
    usd: FloatArray
    seconds: FloatArray
    joules: FloatArray
    tokens_per_s: FloatArray
    chips: FloatArray
    mapping: dict[str, FloatArray]
    largest: dict[str, float]
    bound_s: dict[str, FloatArray]
    power_w: FloatArray
    clock_hz: FloatArray
    memory_bytes: FloatArray
    mappings_feasible: FloatArray
    mappings_tried: FloatArray
    constraints: list[Constraint]

    @property
    def feasible(self) -> BoolArray:
        """Where some mapping meets every requirement, shape (D,)."""
        return all_met(self.constraints) & np.isfinite(self.usd)

    def binding(self, index: int) -> str:
        """Return what takes the largest share of one design's time."""
        return max(self.bound_s, key=lambda name: float(self.bound_s[name][index]))


def cheapest(results: Sequence[PhaseResult]) -> PhaseResult:
    """Return, for every design, the cheapest of several recipes.

    Where none is feasible, the one that misses by least.
    """
    if len(results) == 1:
        return results[0]
    usd = np.stack([r.usd for r in results])
    misses = np.stack(
        [np.sum([np.maximum(c.violation, 0.0) for c in r.constraints], axis=0) for r in results]
    )
    best = np.where(np.isfinite(usd).any(axis=0), usd.argmin(axis=0), misses.argmin(axis=0))
    rows = np.arange(usd.shape[1])

    def pick(columns: Sequence[FloatArray]) -> FloatArray:
        picked: FloatArray = np.stack(columns)[best, rows]
        return picked

    return replace(
        _combined(results, pick),
        recipes=tuple(name for r in results for name in r.recipes),
        recipe=best.astype(np.int64),
        mappings_feasible=np.sum([r.mappings_feasible for r in results], axis=0),
        mappings_tried=np.sum([r.mappings_tried for r in results], axis=0),
    )


def concatenate(results: Sequence[PhaseResult]) -> PhaseResult:
    """Join results over consecutive blocks of designs."""
    return replace(
        _combined(results, np.concatenate),
        recipe=np.concatenate([r.recipe for r in results]),
    )


def _combined(
    results: Sequence[PhaseResult], combine: Callable[[Sequence[FloatArray]], FloatArray]
) -> PhaseResult:
    """Combine every array of several results in the same way; `recipe` stays the first one's."""
    first = results[0]

    def column(name: str) -> FloatArray:
        return combine([getattr(r, name) for r in results])

    def columns(name: str) -> dict[str, FloatArray]:
        return {
            key: combine([getattr(r, name)[key] for r in results]) for key in getattr(first, name)
        }

    return replace(
        first,
        usd=column("usd"),
        seconds=column("seconds"),
        joules=column("joules"),
        tokens_per_s=column("tokens_per_s"),
        chips=column("chips"),
        mapping=columns("mapping"),
        bound_s=columns("bound_s"),
        power_w=column("power_w"),
        clock_hz=column("clock_hz"),
        memory_bytes=column("memory_bytes"),
        mappings_feasible=column("mappings_feasible"),
        mappings_tried=column("mappings_tried"),
        constraints=[
            replace(
                constraint,
                demand=combine([r.constraints[i].demand for r in results]),
                limit=combine([r.constraints[i].limit for r in results]),
            )
            for i, constraint in enumerate(first.constraints)
        ],
    )
