"""What a user may give as CHIP: a catalogue name, a design of a run, or a TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path

from dse.run import design_facts, read_result
from dse.scenario import Scenario
from models.hardware.budget import allocate
from models.hardware.catalog import chip_facts, chip_names, chips_from_rows, chips_named
from models.hardware.chip import Chips
from models.hardware.technology import Technology
from rtl.errors import InputError, unknown

__all__ = ["CHIP_HELP", "resolve_chip"]

CHIP_HELP = (
    "a catalogue name (h100), a design of a run (runs/x#decode, runs/x#free/decode) or a TOML file "
    "with the columns of models/data/chips.csv"
)


def resolve_chip(text: str, tech: Technology) -> tuple[str, Chips]:
    """Return a label and one chip.

    Raises
    ------
    InputError
        If it is none of the three.
    """
    if "#" in text:
        folder, _, name = text.rpartition("#")
        return text, _design(Path(folder), name, tech)
    path = Path(text)
    if path.suffix == ".toml" or path.is_file():
        return text, _from_file(path, tech)
    if path.is_dir():
        raise InputError(f"{text} is a folder; name a design of the run, such as {text}#decode")
    if text.lower() not in chip_names():
        raise unknown("chip", text, chip_names())
    return chip_facts(text)["label"], chips_named([text], tech)


def _design(folder: Path, name: str, tech: Technology) -> Chips:
    result = read_result(folder)
    formats, _, facts = design_facts(result, name)
    scenario = Scenario.model_validate(result["scenario"])
    space = scenario.space("equal" if formats == "equal" else "free", tech)
    chips, _ = allocate(scenario.silicon(tech), space.allocation([facts["params"]]), tech)
    return chips


def _from_file(path: Path, tech: Technology) -> Chips:
    if not path.is_file():
        raise InputError(f"no chip file at {path}; give {CHIP_HELP}")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from error
    return chips_from_rows([{"name": path.stem, **table}], tech)
