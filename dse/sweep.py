"""A sweep: every study of a scenario, and the answer they give together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from pathlib import Path

import optuna

from dse.answer import best_records, chips_answer, gains, mode_answer, thesis
from dse.facts import Facts
from dse.objective import STUDIES
from dse.run import PICTURE, RESULT, RESULT_VERSION, SCENARIO, TRIALS, write_result
from dse.scenario import FORMATS, Formats, Scenario
from dse.space import Space, Value
from dse.study import Search, run_study
from dse.trials import TrialLog
from models.evaluate import OBJECTIVES
from models.hardware.technology import Technology
from rtl.errors import InputError

__all__ = ["open_run", "sweep", "total_trials"]

# Each study runs in rounds; a later round begins with the best that any study has found for its
# objectives and with the neighbours of that, which settle what random proposals leave near the ends
# of ranges.
ROUNDS = 5


def total_trials(scenario: Scenario) -> int:
    """Return how many trials a sweep of the scenario runs."""
    return scenario.trials * len(STUDIES) * len(FORMATS)


def open_run(
    folder: Path, scenario: Scenario, text: str, *, resume: bool, overwrite: bool
) -> TrialLog:
    """Make a run's folder ready, losing nothing that was not given up, and open its trial log.

    Parameters
    ----------
    folder : Path
    scenario : Scenario
    text : str
        The scenario file as used; kept in the folder.
    resume : bool
        Go on with the run that the folder holds, if it holds one.
    overwrite : bool
        Replace it.

    Raises
    ------
    InputError
        If it holds a run and neither was asked for, or one that `scenario` can't go on with.
    """
    if resume and overwrite:
        raise InputError("--resume goes on with a run and --overwrite replaces it; give one")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give --out a folder")
    held = [name for name in (TRIALS, RESULT, PICTURE) if (folder / name).exists()]
    target = folder / SCENARIO
    if target.exists() and target.read_text(encoding="utf-8", errors="replace") != text:
        held.append(SCENARIO)
    if held and not (resume or overwrite):
        raise InputError(
            f"{folder} holds a run already ({', '.join(held)}); continue it with --resume, "
            "replace it with --overwrite, or choose another --out"
        )
    if overwrite:
        for name in held:
            (folder / name).unlink()
    # The log refuses another scenario's run, so the scenario is replaced only after it.
    log = TrialLog(folder / TRIALS, _fingerprint(scenario, Technology.default()))
    # Not touched when it is that very file.
    if not target.exists() or SCENARIO in held:
        target.write_text(text, encoding="utf-8")
    return log


def sweep(
    scenario: Scenario,
    folder: Path,
    log: TrialLog,
    progress: Callable[[str, int], None] = lambda _s, _n: None,
) -> Facts:
    """Run or finish a scenario's studies and write the answer.

    Parameters
    ----------
    scenario : Scenario
    folder : Path
    log : TrialLog
        Of that folder; see `open_run`.
    progress : callable
        Called with a study's name and the number of trials just finished, those of an earlier,
        interrupted run included.

    Returns
    -------
    dict
        What ``result.json`` holds.
    """
    tech = Technology.default()
    for name, kept in log.records.items():
        progress(name, len(kept))
    searches = {
        mode: Search(
            scenario.space(mode, tech),
            scenario.silicon(tech),
            scenario.problem(mode, tech),
            scenario.seed,
        )
        for mode in FORMATS
    }
    ends = [scenario.trials * n // ROUNDS for n in range(ROUNDS + 1)]
    for mode, search in searches.items():
        for since, until in pairwise(ends):
            for study in STUDIES:
                name = f"{mode}/{study}"
                run_study(
                    name,
                    search,
                    log,
                    since,
                    until,
                    seeds=_seeds(mode, study, since, log, search.space),
                    progress=partial(progress, name),
                )
    result = _answer(scenario, searches, log)
    write_result(folder, result)
    return result


def _seeds(
    mode: Formats, study: str, since: int, log: TrialLog, space: Space
) -> list[dict[str, Value]]:
    """Return what a round tries first: the best for the study's objectives, and their neighbours.

    The best of all of the mode's studies, since every trial is scored on all objectives; none at
    first. Of the study itself only the trials before its round count, so that an interrupted round
    is given the same seeds again.
    """
    if not since:
        return []
    name = f"{mode}/{study}"
    known = {f"{mode}/{other}": log.records[f"{mode}/{other}"] for other in STUDIES}
    known[name] = known[name][:since]
    best = best_records([record for records in known.values() for record in records])
    found = [best[o] for o in STUDIES[study] if o in best]
    return [
        *(record.params for record in found if record.study != name),
        *(near for record in found for near in space.neighbours(record.params)),
    ]


def _answer(scenario: Scenario, searches: Mapping[Formats, Search], log: TrialLog) -> Facts:
    fixed = scenario.cluster.compare_chips
    modes = {
        mode: mode_answer(
            [r for study in STUDIES for r in log.records[f"{mode}/{study}"]],
            search.space,
            search.budget,
            search.problem,
            fixed,
        )
        for mode, search in searches.items()
    }
    chips = chips_answer(
        scenario.compare.chips, {mode: s.problem for mode, s in searches.items()}, fixed
    )
    for mode, answer in modes.items():
        answer["gains"] = gains(answer["designs"], chips, mode)
        answer["thesis"] = thesis(answer["designs"])
    return {
        "version": RESULT_VERSION,
        "name": scenario.name,
        "seed": scenario.seed,
        "trials": sum(len(records) for records in log.records.values()),
        "objectives": list(OBJECTIVES),
        "scenario": scenario.model_dump(),
        "formats": modes,
        "chips": chips,
    }


def _fingerprint(scenario: Scenario, tech: Technology) -> dict[str, str]:
    """Return what trials depend on, by the name that an error should give it."""

    def digest(value: object) -> str:
        text = json.dumps(value, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    problem = scenario.problem("free", tech)
    return {
        **{
            name: digest(value)
            for name, value in scenario.model_dump(exclude={"name", "compare"}).items()
        },
        # A model may come from a file, which may have changed.
        "training model": digest(asdict(problem.training.model)),
        "serving model": digest(asdict(problem.serving.model)),
        "technology": digest({name: c.nominal for name, c in tech.coefficients.items()}),
        "version of the models": _source_digest(),
    }


def _source_digest() -> str:
    """Return a digest of everything that scores or proposes a trial, Optuna's version included."""
    root = Path(__file__).parent.parent
    sources = [
        *(p for p in (root / "models").rglob("*") if p.suffix in (".py", ".toml", ".csv")),
        *(root / "rtl" / f"{name}.py" for name in ("config", "cycles", "formats")),
        *(root / "dse" / f"{name}.py" for name in ("objective", "space", "study")),
    ]
    digest = hashlib.sha256(optuna.__version__.encode())
    for path in sorted(sources):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
