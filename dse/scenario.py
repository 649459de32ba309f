"""The scenario file: what is asked, validated at the door."""

from __future__ import annotations

import re
import reprlib
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
)

from dse.files import parse_toml, read_text
from dse.space import Space
from models.evaluate import Problem
from models.hardware.budget import DATAPATH_RATES, Budget
from models.hardware.catalog import chip_names
from models.hardware.chip import MATMUL_FORMATS
from models.hardware.cluster import Cluster
from models.hardware.technology import (
    DATAPATHS,
    HBM_TYPES,
    LINK_TYPES,
    NETWORKS,
    NODES,
    STYLES,
    Technology,
)
from models.performance.training import Fleet
from models.workload.catalog import load_model
from models.workload.recipes import RECIPES, recipe_named
from models.workload.tasks import ServingTask, TrainingTask
from models.workload.transformer import Transformer
from rtl.errors import InputError, lookup, unknown

__all__ = [
    "FORMATS",
    "Formats",
    "Scenario",
    "default_scenario",
    "load_scenario",
    "parse_scenario",
    "with_settings",
]

Formats = Literal["equal", "free"]
FORMATS: tuple[Formats, ...] = ("equal", "free")

T = TypeVar("T")


def _whole(value: object) -> object:
    """Let 16e6 be a count; TOML calls it a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _named(kind: str, choices: tuple[str, ...]) -> Callable[[str], str]:
    """Return a validator that spells a name as the tables do; case does not matter."""
    table = {choice: choice for choice in choices}
    return lambda name: lookup(kind, name, table)


def _distinct(values: list[T]) -> list[T]:
    # A sampler would draw a choice that stands twice twice as often.
    return list(dict.fromkeys(values))


# Neither true nor "858" is a number, and no figure is infinite.
Number = Annotated[float, Strict(), AllowInfNan(False)]
Count = Annotated[int, BeforeValidator(_whole), Strict()]
Style = Annotated[str, AfterValidator(_named("style", STYLES))]
HbmType = Annotated[str, AfterValidator(_named("HBM type", HBM_TYPES))]
LinkType = Annotated[str, AfterValidator(_named("link type", LINK_TYPES))]
Datapath = Annotated[str, AfterValidator(_named("datapath", DATAPATHS))]
TrainingRecipe = Annotated[
    str, AfterValidator(_named("training recipe", tuple(RECIPES["training"])))
]
ServingRecipe = Annotated[str, AfterValidator(_named("serving recipe", tuple(RECIPES["serving"])))]
# In the order of the training recipes; "w4a8", for one, is for serving only.
BothRecipe = Annotated[
    str,
    AfterValidator(
        _named(
            "recipe of both jobs", tuple(n for n in RECIPES["training"] if n in RECIPES["serving"])
        )
    ),
]
Chip = Annotated[str, AfterValidator(_named("chip", chip_names()))]
Choices = Annotated[list[T], Field(min_length=1), AfterValidator(_distinct)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# Upper limits are far beyond anything built; they keep slips such as 7e200 out of the arithmetic.
class BudgetSection(_Section):
    """What may be spent on a package, and of what it may be made."""

    die_mm2: Number = Field(ge=1)
    power_w: Number = Field(gt=0, le=1e5)
    node: Annotated[str, AfterValidator(_named("process node", NODES))]
    styles: Choices[Style] = ["systolic"]
    hbm_types: Choices[HbmType] = ["hbm3", "hbm3e", "hbm3e-12h"]
    link_types: Choices[LinkType] = ["serdes-112g"]


class ClusterSection(_Section):
    """What connects the chips, and how many there are."""

    domain: Count = Field(ge=1, le=1024)
    network: Annotated[str, AfterValidator(_named("scale-out network", NETWORKS))]
    fleet_megawatts: Number = Field(gt=0, le=1e6)
    compare_chips: Count = Field(default=16384, ge=1, le=10**9)
    volume: Number = Field(default=1e6, ge=1, le=1e12)


class TrainingSection(_Section):
    """The training run."""

    model: str
    global_batch_tokens: Count = Field(gt=0, le=10**12)
    seq_len: Count = Field(gt=0, le=10**9)
    training_tokens: Number = Field(gt=0, le=1e18)
    recipes: Choices[TrainingRecipe] = ["bf16"]


class ServingSection(_Section):
    """The requests and their service levels."""

    model: str
    prompt_tokens: Count = Field(gt=0, le=10**9)
    output_tokens: Count = Field(gt=0, le=10**9)
    tpot_ms: Number = Field(gt=0, le=1e12)
    ttft_ms: Number = Field(gt=0, le=1e12)
    recipes: Choices[ServingRecipe] = ["bf16"]


class FormatsSection(_Section):
    """Number formats: one for both jobs, or free."""

    equal: BothRecipe = "bf16"
    datapaths: Choices[Datapath] = ["bf16"]


class CompareSection(_Section):
    """Real chips to stand beside the answers."""

    chips: Annotated[list[Chip], AfterValidator(_distinct)] = [
        "h100",
        "h200",
        "b200",
        "mi300x",
        "tpu-v4",
    ]


class Scenario(_Section):
    """A whole scenario file; names in it are spelled as the tables do, whatever their case was."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    seed: Count = Field(default=1, ge=0)
    trials: Count = Field(default=1200, ge=1, le=10**7)
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
        return Space.of(
            self.silicon(tech),
            tech,
            styles=self.budget.styles,
            datapaths=self.formats.datapaths if formats == "free" else [self._equal_datapath()],
            hbm_types=self.budget.hbm_types,
            link_types=self.budget.link_types,
        )

    def _equal_datapath(self) -> str:
        """Return the narrowest datapath that multiplies all that the one recipe needs in both jobs.

        Training in fp8, for one, has its attention in bf16.
        """
        recipes = [recipe_named(kind, self.formats.equal) for kind in ("training", "serving")]
        needed = {name for r in recipes for name in (r.matmul_format, r.attention_format)}
        columns = [MATMUL_FORMATS.index(name) for name in needed]
        return next(
            datapath
            for datapath in reversed(DATAPATHS)
            if all(DATAPATH_RATES[datapath][column] > 0 for column in columns)
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
            If a model is not known, or the tasks contradict themselves.
        """
        equal = [self.formats.equal]
        training, serving = self.training, self.serving
        train_names = training.recipes if formats == "free" else equal
        serve_names = serving.recipes if formats == "free" else equal
        return Problem(
            training=TrainingTask(
                model=_model("training", training.model),
                global_batch_tokens=training.global_batch_tokens,
                seq_len=training.seq_len,
                training_tokens=training.training_tokens,
                recipes=tuple(train_names),
            ),
            serving=ServingTask(
                model=_model("serving", serving.model),
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

    def check(self, tech: Technology) -> None:
        """Make everything that a sweep will need once, so that it fails now or not at all.

        Raises
        ------
        InputError
        """
        for formats in FORMATS:
            self.space(formats, tech)
            self.problem(formats, tech)


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
    if path is None:
        label, text = "the built-in scenario", default_scenario()
    elif not path.is_file():
        raise InputError(
            f"no scenario file at {path}; give the path of a TOML file, or none for the built-in "
            "one (`diptych sweep --print-scenario` shows it)"
        )
    else:
        label, text = str(path), read_text(path, "scenario")
    scenario = parse_scenario(parse_toml(text, label), label)
    try:
        scenario.check(Technology.default())
    except InputError as error:
        raise InputError(f"{label}: {error}") from error
    return scenario, text


def parse_scenario(table: object, label: str = "") -> Scenario:
    """Return the scenario that a table describes, as read from TOML or JSON.

    Raises
    ------
    InputError
        If it does not; the message names the first setting that is wrong, after `label`.
    """
    try:
        return Scenario.model_validate(table)
    except ValidationError as error:
        prefix = f"{label}: " if label else ""
        raise InputError(prefix + _explain(error)) from error


def with_settings(scenario: Scenario, text: str, **settings: int | None) -> tuple[Scenario, str]:
    """Return a scenario and its file's text with top-level settings replaced; None leaves one.

    Comments stay, and so does everything else.

    Raises
    ------
    InputError
        If a setting is out of its range, or stands in the file in a way that can't be edited.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    wanted = {**tomllib.loads(text), **given}
    for name, value in given.items():
        # Top-level settings stand before the first section.
        section = re.search(r"^[ \t]*\[", text, re.MULTILINE)
        end = section.start() if section else len(text)
        line = re.compile(rf"^([ \t]*[\"']?{name}[\"']?[ \t]*=[ \t]*)[^\s#]+", re.MULTILINE)
        head, found = line.subn(rf"\g<1>{value}", text[:end], count=1)
        text = (head if found else f"{name} = {value}\n{head}") + text[end:]
    if given and _table_of(text) != wanted:
        raise InputError(
            f"can't set {' and '.join(given)} in this scenario file; write it there as a line of "
            "its own before the first section"
        )
    return parse_scenario({**scenario.model_dump(), **given}), text


def _table_of(text: str) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _model(section: str, name: str) -> Transformer:
    try:
        return load_model(name)
    except InputError as error:
        raise InputError(f"{section}.model: {error}") from error


def _explain(error: ValidationError) -> str:
    """Say the first thing that is wrong in one line, and how many more there are."""
    # A misspelt setting is the likely reason for one that is missing.
    problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    more = len(problems) - 1
    return _explain_one(problems[0]) + (f" (and {more} more)" if more else "")


def _explain_one(problem: Mapping[str, Any]) -> str:
    location = problem["loc"]
    where = ".".join(str(part) for part in location)
    given, kind = problem["input"], problem["type"]
    if kind == "missing":
        return f"{where} is missing; add it (`diptych sweep --print-scenario` has an example)"
    if kind == "extra_forbidden":
        section = f" of [{'.'.join(location[:-1])}]" if location[:-1] else ""
        return str(unknown(f"setting{section}", str(location[-1]), _fields_at(location[:-1])))
    if kind == "model_type":
        return f"{where or 'a scenario'} must be a section of settings, not {reprlib.repr(given)}"
    if kind == "string_pattern_mismatch":
        return (
            f"{where} = {reprlib.repr(given)}: use letters, digits, dots, dashes and underscores, "
            "a letter or digit first"
        )
    if kind == "too_short":
        return f"{where} is empty; name at least one"
    if kind == "value_error":
        return f"{where}: {problem['ctx']['error']}"
    message = problem["msg"]
    return f"{where} = {reprlib.repr(given)}: {message[0].lower()}{message[1:]}"


def _fields_at(location: tuple[str | int, ...]) -> list[str]:
    section: Any = Scenario
    for part in location:
        section = section.model_fields[part].annotation
    return list(section.model_fields)
