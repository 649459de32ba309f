"""A run's folder: what a sweep writes to ``runs/NAME/`` and what later commands read."""

from __future__ import annotations

import json
from pathlib import Path

from dse.facts import Facts
from dse.files import read_text
from rtl.errors import InputError, lookup

__all__ = [
    "PICTURE",
    "RESULT",
    "RESULT_VERSION",
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
# Of what result.json holds; a file of another one is refused rather than misread.
RESULT_VERSION = 1
_FIELDS = {"version", "name", "seed", "trials", "objectives", "scenario", "formats", "chips"}


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
        If the folder has none, or it is not one of this version.
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
    again = f"write it again with `diptych sweep {folder / SCENARIO} --out {folder} --resume`"
    try:
        result = json.loads(read_text(path, "result"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not valid JSON ({error}); {again}") from error
    whole = isinstance(result, dict) and result.keys() >= _FIELDS
    if not whole or result["version"] != RESULT_VERSION:
        raise InputError(f"{path} is not a result of version {RESULT_VERSION}; {again}")
    facts: Facts = result
    return facts


def design_facts(result: Facts, name: str) -> tuple[str, str, Facts]:
    """Return (formats, objective, facts) of a design of a run.

    Parameters
    ----------
    result : dict
    name : str
        An objective, with formats equal, or ``FORMATS/OBJECTIVE``, in any case of letters.

    Raises
    ------
    InputError
        If the run has no such design; the message lists those that it has.
    """
    designs = {
        objective if formats == "equal" else f"{formats}/{objective}": (formats, objective, facts)
        for formats, answer in result["formats"].items()
        for objective, facts in answer["designs"].items()
    }
    return lookup("design", name.lower().removeprefix("equal/"), designs)
