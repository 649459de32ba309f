"""What the studies minimise, and how a batch of trials is scored in one array-at-a-time call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.space import Space, Value
from models.constraints import Constraint
from models.evaluate import OBJECTIVES, Evaluation, Problem, evaluate
from models.hardware.budget import Budget, allocate
from models.hardware.chip import Chips

__all__ = ["PER_UNIT", "STUDIES", "Score", "design", "score", "worth"]

# Studies by name: the objectives of each. Serving in the Pareto study is the mixed chip.
STUDIES: dict[str, tuple[str, ...]] = {
    **{objective: (objective,) for objective in OBJECTIVES},
    "pareto": ("training", "mixed"),
}
# What an objective's dollars are shown per, in units of the models' own.
PER_UNIT = {
    "training": (1.0, "US$/run"),
    "decode": (1e6, "US$/M output tokens"),
    "prefill": (1e6, "US$/M prompt tokens"),
    "mixed": (1e6, "US$/M output tokens"),
}
# Told to the sampler with this many digits, so that the last bit of another machine's
# arithmetic does not lead the search elsewhere.
DIGITS = 6
# Stands for "no mapping does this work": finite, since samplers compare values.
NOT_POSSIBLE = 1e30


@dataclass(frozen=True)
class Score:
    """What one trial is worth.

    Attributes
    ----------
    usd : dict of str to float
        By objective; `NOT_POSSIBLE` where infeasible.
    violations : dict of str to dict of str to float
        By objective: relative excess of each constraint, at most 0 where met.
    """

    usd: dict[str, float]
    violations: dict[str, dict[str, float]]

    def feasible(self, objective: str) -> bool:
        """Return whether the design can do this work."""
        return self.usd[objective] < NOT_POSSIBLE and all(
            v <= 0 for v in self.violations[objective].values()
        )


def design(
    trials: Sequence[Mapping[str, Value]], space: Space, budget: Budget, problem: Problem
) -> tuple[Chips, list[Constraint]]:
    """Return the chips that trials' parameters stand for, with their silicon constraints."""
    return allocate(budget, space.allocation(trials), problem.tech)


def score(
    trials: Sequence[Mapping[str, Value]], space: Space, budget: Budget, problem: Problem
) -> list[Score]:
    """Score a batch of trials on every objective at once."""
    chips, silicon = design(trials, space, budget, problem)
    return worth(silicon, evaluate(chips, problem))


def worth(silicon: Sequence[Constraint], evaluation: Evaluation) -> list[Score]:
    """Turn an evaluation into scores, rounded to the digits that a study sees."""
    usd = {
        objective: np.where(
            np.isfinite(evaluation.usd(objective)), evaluation.usd(objective), NOT_POSSIBLE
        )
        for objective in OBJECTIVES
    }
    needs = {
        objective: {c.name: c.violation for c in (*silicon, *evaluation.constraints(objective))}
        for objective in OBJECTIVES
    }
    return [
        Score(
            usd={name: _rounded(values[i]) for name, values in usd.items()},
            violations={
                name: {need: _rounded(values[i]) for need, values in violations.items()}
                for name, violations in needs.items()
            },
        )
        for i in range(len(usd["training"]))
    ]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
