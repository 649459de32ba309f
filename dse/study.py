"""Optuna studies: batched ask and tell, resumable, the same for a seed wherever they run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import NSGAIISampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from dse.objective import NOT_POSSIBLE, STUDIES, Score, score
from dse.space import Space, Value
from dse.trials import Record, TrialLog
from models.evaluate import Problem
from models.hardware.budget import Budget

__all__ = ["POPULATION", "Search", "SpaceSampler", "run_study"]

# Measured on this problem, 1,200 trials, three seeds: a population of 24 ended 2 to 12% below 40 in
# dollars; BLX-alpha, SBX and polynomial mutation were no better than uniform crossover with
# resampling, TPE far behind after the same time.
POPULATION = 24
CONSTRAINT_PREFIX = "constraints:"


class SpaceSampler(NSGAIISampler):
    """NSGA-II over a space that is known.

    Optuna infers the space that all trials share anew for every trial, a fifth of a sweep's time.
    """

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(population_size=POPULATION, seed=seed)
        # A variable without a choice is left to the random sampler, as NSGA-II asks for.
        self._space = {
            name: distribution
            for name, distribution in space.distributions.items()
            if not distribution.single()
        }

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the whole space."""
        return self._space


@dataclass(frozen=True)
class Search:
    """Everything that a study's trials depend on, but for its objectives."""

    space: Space
    budget: Budget
    problem: Problem
    seed: int


def run_study(
    name: str,
    search: Search,
    log: TrialLog,
    since: int,
    until: int,
    seeds: Sequence[Mapping[str, Value]] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> None:
    """Run one round of a study, taking over those of its trials that the log has.

    Parameters
    ----------
    name : str
        ``FORMATS/STUDY``, the second of `dse.objective.STUDIES`.
    search : Search
    log : TrialLog
        Finished trials are appended as each batch ends.
    since, until : int
        Trials that the study has when the round begins and when it ends.
    seeds : sequence of dict
        Parameters that the round tries first.
    progress : callable
        Called with the number of trials that have just been run.

    Notes
    -----
    A batch is one generation, asked for together and scored in one array-at-a-time call. The
    sampler is made anew for every batch, seeded by (seed, study, trials so far), so that a resumed
    study goes on exactly as an uninterrupted one would. Of a batch that is in the log in part, the
    trials are asked for once more, which gives the same, and the missing ones are appended.
    """
    records = log.records[name]
    if len(records) >= until:
        return
    objectives = STUDIES[name.split("/")[1]]
    # Where the batch began in which the log ends.
    done = max(since, len(records) - len(records) % POPULATION)
    study = optuna.create_study(directions=["minimize"] * len(objectives), study_name=name)
    study.add_trials([_frozen(record, search.space) for record in records[:done]])
    while done < until:
        size = min(POPULATION - done % POPULATION, until - done)
        if done == since:
            for params in seeds[:size]:
                study.enqueue_trial(dict(params))
        study.sampler = SpaceSampler(search.space, seed=_seed(search.seed, name, done))
        asked = [study.ask(search.space.distributions) for _ in range(size)]
        scores = score([t.params for t in asked], search.space, search.budget, search.problem)
        for trial, result in zip(asked, scores):
            for constraint, value in _constraints(result, objectives).items():
                trial.set_constraint(constraint, value)
            study.tell(trial, [result.usd[o] for o in objectives])
        told = study.get_trials(deepcopy=False)[done:]
        batch = [_record(name, frozen, result) for frozen, result in zip(told, scores)]
        fresh = batch[len(records) - done :]
        log.extend(fresh)
        done += size
        progress(len(fresh))


def _constraints(result: Score, objectives: Sequence[str]) -> dict[str, float]:
    """Return the constraints of a study; "work" is met where every objective has a mapping."""
    merged = {
        name: value
        for objective in objectives
        for name, value in result.violations[objective].items()
    }
    merged["work"] = float(max(result.usd[o] for o in objectives) >= NOT_POSSIBLE)
    return merged


def _record(name: str, trial: FrozenTrial, result: Score) -> Record:
    return Record(
        study=name,
        number=trial.number,
        params=dict(trial.params),
        values=list(trial.values),
        constraints=dict(trial.constraints),
        usd=result.usd,
        feasible=[objective for objective in result.usd if result.feasible(objective)],
        system_attrs={
            key: value
            for key, value in trial.system_attrs.items()
            if not key.startswith(CONSTRAINT_PREFIX)
        },
    )


def _frozen(record: Record, space: Space) -> FrozenTrial:
    return create_trial(
        state=TrialState.COMPLETE,
        params=record.params,
        distributions=space.distributions,
        values=record.values,
        constraints=record.constraints,
        # Optuna adds the constraints to what it is given; the record stays as it was written.
        system_attrs=dict(record.system_attrs),
    )


def _seed(seed: int, name: str, done: int) -> int:
    digest = hashlib.sha256(f"{seed}/{name}/{done}".encode()).digest()
    return int.from_bytes(digest[:4], "little")
