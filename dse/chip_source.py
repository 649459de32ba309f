"""What a user may give as CHIP: a catalogue name, a design of a run, or a TOML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dse.files import parse_toml, read_text
from dse.run import RESULT, design_facts, read_result
from dse.scenario import FORMATS, parse_scenario
from models.hardware.budget import allocate
from models.hardware.catalog import chip_facts, chip_names, chips_from_rows, chips_named
from models.hardware.chip import Chips
from models.hardware.technology import Technology
from rtl.errors import InputError, unknown

__all__ = ["GivenChip", "resolve_chip"]

# Of anything in a chip's row, in its unit: keeps slips out of the arithmetic.
MOST = 1e6


@dataclass(frozen=True)
class GivenChip:
    """A chip that a user named.

    Attributes
    ----------
    label : str
    chips : Chips
        That one chip.
    real : bool
        Whether it is of the catalogue, so that the model can be held against it.
    """

    label: str
    chips: Chips
    real: bool = False


def resolve_chip(text: str, tech: Technology) -> GivenChip:
    """Return the chip of a catalogue name, ``RUN#DESIGN`` or the path of a TOML file.

    Raises
    ------
    InputError
        If it is none of the three, or what it names can't be used.
    """
    if text.lower() in chip_names():
        return GivenChip(chip_facts(text)["label"], chips_named([text], tech), real=True)
    path = Path(text)
    if path.is_file() or path.suffix == ".toml":
        return GivenChip(text, _from_file(path, tech))
    if "#" in text:
        folder, _, name = text.rpartition("#")
        return GivenChip(text, _design(Path(folder), name, tech))
    if text and path.is_dir():
        raise InputError(f"{text} is a folder; name a design of the run, such as {text}#decode")
    error = unknown("chip", text, chip_names())
    raise InputError(f"{error}; or give a design of a run (runs/x#decode) or a TOML file")


def _design(folder: Path, name: str, tech: Technology) -> Chips:
    result = read_result(folder)
    formats, _, facts = design_facts(result, name)
    scenario = parse_scenario(result["scenario"], str(folder / RESULT))
    space = scenario.space(FORMATS[FORMATS.index(formats)], tech)
    chips, _ = allocate(scenario.silicon(tech), space.allocation([facts["params"]]), tech)
    return chips


def _from_file(path: Path, tech: Technology) -> Chips:
    table = parse_toml(read_text(path, "chip file"), str(path))
    for column, value in table.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InputError(
                f"{path}: {column} is {value!r}; a chip file holds one number or text per column "
                "of models/data/chips.csv"
            )
        if not isinstance(value, str) and not abs(value) <= MOST:
            raise InputError(f"{path}: {column} is {value!r}; no chip has more than {MOST:g}")
    return chips_from_rows([{"name": path.stem, **table}], tech)
