"""A sweep: every study of a scenario, and the answer they give together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from dse.answer import best_records, chips_answer, gains, mode_answer, thesis
from dse.facts import Facts
from dse.objective import STUDIES
from dse.run import RESULT, SCENARIO, TRIALS, write_result
from dse.scenario import FORMATS, Formats, Scenario
from dse.study import Search, run_study
from dse.trials import TrialLog
from models.evaluate import OBJECTIVES
from models.hardware.technology import Technology
from rtl.errors import InputError

__all__ = ["prepare_folder", "sweep", "total_trials"]

# Each study runs in rounds; a later round begins with the best that any study has found for its
# objectives, since every trial is scored on all of them.
ROUNDS = 2


def total_trials(scenario: Scenario) -> int:
    """Return how many trials a sweep of the scenario runs."""
    return scenario.trials * len(STUDIES) * len(FORMATS)


def prepare_folder(folder: Path, text: str, *, resume: bool, overwrite: bool) -> None:
    """Make a run's folder ready, losing nothing that was not given up.

    Raises
    ------
    InputError
        If it holds a run and neither `resume` nor `overwrite` was asked for.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give --out a folder")
    held = [name for name in (TRIALS, RESULT) if (folder / name).exists()]
    if held and overwrite:
        for name in held:
            (folder / name).unlink()
    elif held and not resume:
        raise InputError(
            f"{folder} holds a run already ({', '.join(held)}); continue it with --resume, "
            "replace it with --overwrite, or choose another --out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    # The scenario as used; not touched when it is that very file.
    target = folder / SCENARIO
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


def sweep(
    scenario: Scenario, folder: Path, progress: Callable[[str, int], None] = lambda _s, _n: None
) -> Facts:
    """Run or finish a scenario's studies and write the answer.

    Parameters
    ----------
    scenario : Scenario
    folder : Path
        Prepared by `prepare_folder`.
    progress : callable
        Called with a study's name and the number of trials just finished, those of an earlier,
        interrupted run included.

    Returns
    -------
    dict
        What ``result.json`` holds.
    """
    tech = Technology.default()
    log = TrialLog(folder / TRIALS, _fingerprint(scenario, tech))
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
    for mode, search in searches.items():
        for round_number in range(1, ROUNDS + 1):
            for study in STUDIES:
                name = f"{mode}/{study}"
                best = best_records(
                    [r for other in STUDIES for r in log.records[f"{mode}/{other}"]]
                )
                run_study(
                    name,
                    search,
                    log,
                    until=scenario.trials * round_number // ROUNDS,
                    seeds=[
                        best[o].params
                        for o in STUDIES[study]
                        if round_number > 1 and o in best and best[o].study != name
                    ],
                    progress=partial(progress, name),
                )
    result = _answer(scenario, searches, log)
    write_result(folder, result)
    return result


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

    sections = scenario.model_dump(exclude={"name", "compare", "trials"})
    sections["trials per round"] = scenario.trials // ROUNDS
    coefficients = {name: c.nominal for name, c in tech.coefficients.items()}
    return {
        **{name: digest(value) for name, value in sections.items()},
        "technology": digest(coefficients),
    }
