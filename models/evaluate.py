"""Evaluate designs: every phase of a problem on every chip, each with its best mapping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models.arrays import FloatArray
from models.constraints import Constraint
from models.hardware.chip import Chips
from models.hardware.cluster import Cluster
from models.hardware.technology import Technology
from models.performance.inference import decode, prefill
from models.performance.machine import Machine, machine
from models.performance.training import Fleet, train
from models.results import PhaseResult, cheapest, concatenate
from models.workload.recipes import Recipe, kind_for, recipe_named
from models.workload.tasks import ServingTask, TrainingTask

__all__ = ["OBJECTIVES", "PHASES", "Evaluation", "Problem", "evaluate"]

PHASES = ("training", "prefill", "decode")
# What a chip can be optimal for. A mixed chip does prefill and decode; chip-seconds add.
OBJECTIVES = ("training", "decode", "prefill", "mixed")
# Designs per block: large enough to amortise NumPy's calls, small enough for the L2 cache.
BLOCK = 64


@dataclass(frozen=True)
class Problem:
    """What is asked of a chip.

    Attributes
    ----------
    training : TrainingTask
    serving : ServingTask
    cluster : Cluster
    fleet : Fleet
    volume : float
        Chips over which masks and design are written off.
    tech : Technology
    """

    training: TrainingTask
    serving: ServingTask
    cluster: Cluster
    fleet: Fleet
    volume: float
    tech: Technology

    def task(self, phase: str) -> TrainingTask | ServingTask:
        """Return the task that a phase belongs to."""
        return self.training if phase == "training" else self.serving


@dataclass(frozen=True)
class Evaluation:
    """What D designs make of a problem."""

    training: PhaseResult
    prefill: PhaseResult
    decode: PhaseResult
    prompt_tokens: int
    output_tokens: int

    @property
    def prompt_per_output(self) -> float:
        """Prompt tokens that are processed for every output token."""
        return self.prompt_tokens / self.output_tokens

    def usd(self, objective: str) -> FloatArray:
        """Return dollars: per training run, per prompt token (prefill), per output token (others).

        Shape (D,), infinite where infeasible. The mixed chip pays for a request's prefill and
        decode: its chip-seconds add, spread over the output tokens.
        """
        if objective == "mixed":
            return self.prefill.usd * self.prompt_per_output + self.decode.usd
        phase: PhaseResult = getattr(self, objective)
        return phase.usd

    def joules(self, objective: str) -> FloatArray:
        """Return energy at the wall per unit of the same work, shape (D,)."""
        if objective == "mixed":
            return self.prefill.joules * self.prompt_per_output + self.decode.joules
        phase: PhaseResult = getattr(self, objective)
        return phase.joules

    def phases(self, objective: str) -> dict[str, PhaseResult]:
        """Return the phases that an objective consists of."""
        names = ("prefill", "decode") if objective == "mixed" else (objective,)
        return {name: getattr(self, name) for name in names}

    def constraints(self, objective: str) -> list[Constraint]:
        """Return what an objective requires, phase by phase."""
        return [
            Constraint(f"{name}.{c.name}", c.demand, c.limit, c.unit, c.levers)
            for name, phase in self.phases(objective).items()
            for c in phase.constraints
        ]


def evaluate(chips: Chips, problem: Problem) -> Evaluation:
    """Evaluate any number of designs at once.

    Parameters
    ----------
    chips : Chips
        One design or a million; zero HBM and zero links are ordinary.
    problem : Problem

    Returns
    -------
    Evaluation
        Every array has the designs on axis 0.
    """
    results: dict[str, list[PhaseResult]] = {phase: [] for phase in PHASES}
    for start in range(0, max(len(chips), 1), BLOCK):
        block = machine(chips[start : start + BLOCK], problem.cluster, problem.tech, problem.volume)
        for phase in PHASES:
            results[phase].append(_phase(phase, block, problem))
    joined = {phase: concatenate(parts) for phase, parts in results.items()}
    return Evaluation(
        **joined,
        prompt_tokens=problem.serving.prompt_tokens,
        output_tokens=problem.serving.output_tokens,
    )


def _phase(phase: str, block: Machine, problem: Problem) -> PhaseResult:
    run: dict[str, Callable[[Recipe], PhaseResult]] = {
        "training": lambda recipe: train(block, problem.training, problem.fleet, recipe),
        "prefill": lambda recipe: prefill(block, problem.serving, recipe),
        "decode": lambda recipe: decode(block, problem.serving, recipe),
    }
    names = problem.task(phase).recipes
    return cheapest([run[phase](recipe_named(kind_for(phase), name)) for name in names])
