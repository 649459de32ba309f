"""A run's folder: what a sweep writes to ``runs/NAME/`` and what later commands read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dse.facts import Facts
from rtl.errors import InputError, unknown

__all__ = [
    "PICTURE",
    "RESULT",
    "SCENARIO",
    "TRIALS",
    "design_facts",
    "read_result",
    "write_result",
]

RESULT = "result.json"
SCENARIO = "scenario.toml"
TRIALS = "trials.jsonl"
PICTURE = "summary.png"


def write_result(folder: Path, result: Facts) -> None:
    """Write the answer, whole or not at all."""
    partial = folder / (RESULT + ".partial")
    partial.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    partial.replace(folder / RESULT)


def read_result(folder: Path) -> Facts:
    """Read a run's answer.

    Raises
    ------
    InputError
        If the folder has none.
    """
    path = folder / RESULT
    if not path.is_file():
        if (folder / TRIALS).is_file():
            raise InputError(
                f"{folder} holds an unfinished sweep; finish it with "
                f"`diptych sweep {folder / SCENARIO} --out {folder} --resume`"
            )
        raise InputError(
            f"no run at {folder}: {path} is not there; make one with `diptych sweep --out {folder}`"
        )
    try:
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not valid JSON ({error}); run the sweep again") from error
    return result


def design_facts(result: Facts, name: str) -> tuple[str, str, Facts]:
    """Return (formats, objective, facts) of a design of a run.

    Parameters
    ----------
    result : dict
    name : str
        An objective, with formats equal, or ``FORMATS/OBJECTIVE``.

    Raises
    ------
    InputError
        If the run has no such design.
    """
    formats, _, objective = name.rpartition("/")
    formats = formats or "equal"
    names = [
        objective if mode == "equal" else f"{mode}/{objective}"
        for mode, answer in result["formats"].items()
        for objective in answer["designs"]
    ]
    designs = result["formats"].get(formats, {}).get("designs", {})
    if objective not in designs:
        raise unknown("design", name, names)
    facts: Facts = designs[objective]
    return formats, objective, facts
