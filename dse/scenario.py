"""The scenario file: what is asked, validated at the door."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dse.space import Space
from models.evaluate import Problem
from models.hardware.budget import Budget
from models.hardware.catalog import chip_facts
from models.hardware.cluster import Cluster
from models.hardware.technology import (
    DATAPATHS,
    HBM_TYPES,
    LINK_TYPES,
    STYLES,
    Technology,
)
from models.performance.training import Fleet
from models.workload.catalog import load_model
from models.workload.tasks import ServingTask, TrainingTask
from rtl.errors import InputError, lookup

__all__ = [
    "FORMATS",
    "Formats",
    "Scenario",
    "default_scenario",
    "explain_invalid",
    "load_scenario",
    "with_settings",
]

Formats = Literal["equal", "free"]
FORMATS: tuple[Formats, ...] = ("equal", "free")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BudgetSection(_Section):
    """What may be spent on a package, and of what it may be made."""

    die_mm2: float = Field(gt=0)
    power_w: float = Field(gt=0)
    node: str
    styles: list[str] = Field(default=["systolic"], min_length=1)
    hbm_types: list[str] = Field(default=["hbm3", "hbm3e", "hbm3e-12h"], min_length=1)
    link_types: list[str] = Field(default=["serdes-112g"], min_length=1)


class ClusterSection(_Section):
    """What connects the chips, and how many there are."""

    domain: int = Field(ge=1, le=1024)
    network: str
    fleet_megawatts: float = Field(gt=0)
    compare_chips: int = Field(default=16384, ge=1)
    volume: float = Field(default=1e6, gt=0)


class TrainingSection(_Section):
    """The training run."""

    model: str
    global_batch_tokens: int = Field(gt=0)
    seq_len: int = Field(gt=0)
    training_tokens: float = Field(gt=0)
    recipes: list[str] = Field(default=["bf16"], min_length=1)


class ServingSection(_Section):
    """The requests and their service levels."""

    model: str
    prompt_tokens: int = Field(gt=0)
    output_tokens: int = Field(gt=0)
    tpot_ms: float = Field(gt=0)
    ttft_ms: float = Field(gt=0)
    recipes: list[str] = Field(default=["bf16"], min_length=1)


class FormatsSection(_Section):
    """Number formats: one for both jobs, or free."""

    equal: str = "bf16"
    datapaths: list[str] = Field(default=["bf16"], min_length=1)


class CompareSection(_Section):
    """Real chips to stand beside the answers."""

    chips: list[str] = ["h100", "h200", "b200", "mi300x", "tpu-v4"]


class Scenario(_Section):
    """A whole scenario file."""

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    seed: int = Field(default=1, ge=0)
    trials: int = Field(default=1200, ge=1)
    budget: BudgetSection
    cluster: ClusterSection
    training: TrainingSection
    serving: ServingSection
    formats: FormatsSection = FormatsSection()
    compare: CompareSection = CompareSection()

    def silicon(self, tech: Technology) -> Budget:
        """Return the budget, checked against the technology."""
        return Budget(self.budget.die_mm2, self.budget.power_w, self.budget.node).validated(tech)

    def space(self, formats: Formats, tech: Technology) -> Space:
        """Return what a trial may choose with formats equal or free."""
        equal = self.formats.equal
        return Space.of(
            self.silicon(tech),
            tech,
            styles=_known("style", self.budget.styles, STYLES),
            # With formats equal the array has what that one format needs.
            datapaths=_known("datapath", self.formats.datapaths, DATAPATHS)
            if formats == "free"
            else [lookup("datapath", equal, {d: d for d in DATAPATHS})],
            hbm_types=_known("HBM type", self.budget.hbm_types, HBM_TYPES),
            link_types=_known("link type", self.budget.link_types, LINK_TYPES),
        )

    def problem(self, formats: Formats, tech: Technology, fleet: Fleet | None = None) -> Problem:
        """Return what is asked of a chip.

        Parameters
        ----------
        formats : "equal" or "free"
        tech : Technology
        fleet : Fleet, optional
            In place of the scenario's megawatts.

        Raises
        ------
        InputError
            If a model, recipe or network is not known.
        """
        equal = [self.formats.equal]
        training, serving = self.training, self.serving
        train_names = training.recipes if formats == "free" else equal
        serve_names = serving.recipes if formats == "free" else equal
        return Problem(
            training=TrainingTask(
                model=load_model(training.model),
                global_batch_tokens=training.global_batch_tokens,
                seq_len=training.seq_len,
                training_tokens=training.training_tokens,
                recipes=tuple(train_names),
            ),
            serving=ServingTask(
                model=load_model(serving.model),
                prompt_tokens=serving.prompt_tokens,
                output_tokens=serving.output_tokens,
                tpot_s=serving.tpot_ms / 1e3,
                ttft_s=serving.ttft_ms / 1e3,
                recipes=tuple(serve_names),
            ),
            cluster=Cluster(domain=self.cluster.domain, network=self.cluster.network),
            fleet=fleet or Fleet(megawatts=self.cluster.fleet_megawatts),
            volume=self.cluster.volume,
            tech=tech,
        )

    def validated(self, tech: Technology) -> Scenario:
        """Return the scenario after resolving every name in it once.

        Raises
        ------
        InputError
        """
        for formats in FORMATS:
            self.space(formats, tech)
            self.problem(formats, tech)
        for chip in self.compare.chips:
            chip_facts(chip)
        return self


def default_scenario() -> str:
    """Return the text of the built-in scenario."""
    return files("dse").joinpath("scenarios", "default.toml").read_text(encoding="utf-8")


def load_scenario(path: Path | None) -> tuple[Scenario, str]:
    """Read and validate a scenario file; None is the built-in one.

    Returns
    -------
    scenario : Scenario
    text : str
        The file as it was read.

    Raises
    ------
    InputError
        If the file is missing, is not TOML, or does not describe a scenario.
    """
    label = str(path) if path else "the built-in scenario"
    if path is None:
        text = default_scenario()
    elif not path.is_file():
        raise InputError(
            f"no scenario at {path}; give the path of a TOML file, or none for the built-in one "
            "(`diptych sweep --print-scenario` shows it)"
        )
    else:
        text = path.read_text(encoding="utf-8")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{label} is not valid TOML: {error}") from error
    try:
        scenario = Scenario.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{label}: {explain_invalid(error)}") from error
    return scenario.validated(Technology.default()), text


def with_settings(scenario: Scenario, text: str, **settings: int | None) -> tuple[Scenario, str]:
    """Return a scenario and its file's text with top-level settings replaced; None leaves one."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name, value in given.items():
        # Top-level settings stand before the first section.
        head, bracket, rest = text.partition("\n[")
        line = re.compile(rf"^{name}\s*=\s*[^#\n]*?(\s*(#.*)?)$", re.MULTILINE)
        head, found = line.subn(rf"{name} = {value}\1", head, count=1)
        text = (head if found else f"{name} = {value}\n{head}") + bracket + rest
    return Scenario.model_validate({**scenario.model_dump(), **given}), text


def explain_invalid(error: ValidationError) -> str:
    """Say the first thing that is wrong in one line, and how many more there are."""
    problems = error.errors()
    first: Mapping[str, Any] = problems[0]
    where = ".".join(str(part) for part in first["loc"])
    given = first.get("input")
    kind = first["type"]
    if kind == "missing":
        line = f"{where} is missing; add it (the built-in scenario has an example)"
    elif kind == "extra_forbidden":
        known = _fields_at(first["loc"][:-1])
        line = f"{where} is not a setting; settings here: {', '.join(known)}"
    else:
        shown = "" if isinstance(given, dict) else f" = {given!r}"
        line = f"{where}{shown}: {first['msg'][0].lower()}{first['msg'][1:]}"
    more = len(problems) - 1
    return line + (f" (and {more} more)" if more else "")


def _fields_at(location: tuple[str | int, ...]) -> list[str]:
    section: Any = Scenario
    for part in location:
        section = section.model_fields[part].annotation
    return list(section.model_fields)


def _known(kind: str, names: list[str], choices: tuple[str, ...]) -> list[str]:
    table = {choice: choice for choice in choices}
    return [lookup(kind, name, table) for name in names]
