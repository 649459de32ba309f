"""`diptych evaluate` and `diptych compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from dse.commands.output import AsJson, console, print_json, remark
from rtl.errors import InputError

if TYPE_CHECKING:
    from dse.facts import Facts

__all__ = ["compare", "evaluate"]


class Phase(StrEnum):
    """Phases of work, as the command line names them."""

    training = "training"
    prefill = "prefill"
    decode = "decode"


_CHIP = "Catalogue name (h100), design of a run (runs/x#decode) or TOML file."
Model = Annotated[
    str,
    typer.Option("--model", metavar="MODEL", help="Catalogue name, or path of a config.json."),
]
Scenario = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Scenario for all that is not given; else the built-in one."),
]
Prompt = Annotated[int | None, typer.Option(metavar="N", min=1, help="Prompt tokens.")]
Output = Annotated[int | None, typer.Option(metavar="N", min=1, help="Output tokens.")]
Tpot = Annotated[
    float | None, typer.Option(metavar="MS", help="Longest time per output token, ms.")
]
Ttft = Annotated[
    float | None, typer.Option(metavar="MS", help="Longest time to the first token, ms.")
]
SeqLen = Annotated[int | None, typer.Option(metavar="N", min=1, help="Training sequence, tokens.")]
BatchTokens = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Training batch, tokens.")
]
FleetChips = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Chips that train together.")
]
RecipeName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Precision recipe: bf16, fp8, int8, w4a8 (serving only). Default: the best allowed.",
    ),
]


def evaluate(
    chip: Annotated[str, typer.Option(metavar="CHIP", help=_CHIP)],
    model: Model,
    phase: Annotated[
        Phase,
        typer.Option(metavar="PHASE", help="What the chip does: training, prefill or decode."),
    ] = Phase.decode,
    prompt: Prompt = None,
    output: Output = None,
    tpot_ms: Tpot = None,
    ttft_ms: Ttft = None,
    seq_len: SeqLen = None,
    batch_tokens: BatchTokens = None,
    fleet_chips: FleetChips = None,
    recipe: RecipeName = None,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate one chip on one workload, every bound named.

    Chooses the cheapest of all mappings, then shows where its time goes, operator by operator.
    Lengths, service levels, network and fleet come from the scenario unless given.
    """
    from dse.evaluations import evaluate_chip
    from models.workload.recipes import kind_for

    recipes: dict[str, str | None] = {kind_for(phase): recipe} if recipe is not None else {}
    answer = evaluate_chip(
        chip,
        phase.value,
        scenario,
        _overrides(model, prompt, output, tpot_ms, ttft_ms, seq_len, batch_tokens, recipes),
        fleet_chips,
    )
    if as_json:
        print_json(answer)
    else:
        _print_evaluation(answer)
    if not answer["work"]["feasible"]:
        raise InputError(
            f"{answer['chip']} can't do this: " + "; ".join(answer["work"]["violations"])
        )


def compare(
    chips: Annotated[list[str], typer.Argument(metavar="CHIP", help=_CHIP)],
    model: Model,
    prompt: Prompt = None,
    output: Output = None,
    tpot_ms: Tpot = None,
    ttft_ms: Ttft = None,
    seq_len: SeqLen = None,
    batch_tokens: BatchTokens = None,
    fleet_chips: FleetChips = None,
    recipe: RecipeName = None,
    scenario: Scenario = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the comparison here (.png, .svg or .pdf)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare chips on training and serving a model: per chip, mm², watt and dollar."""
    from dse.evaluations import compare_chips
    from dse.picture import draw_comparison
    from models.workload.recipes import RECIPES

    recipes = dict.fromkeys(("training", "serving"), recipe) if recipe is not None else {}
    serving_only = RECIPES["serving"].keys() - RECIPES["training"].keys()
    if recipe is not None and recipe.lower() in serving_only:
        del recipes["training"]
        remark(f"{recipe} is for serving only; training takes the scenario's recipes")
    answer = compare_chips(
        chips,
        scenario,
        _overrides(model, prompt, output, tpot_ms, ttft_ms, seq_len, batch_tokens, recipes),
        fleet_chips,
    )
    if picture is not None:
        draw_comparison(answer, picture)
    if as_json:
        print_json(answer)
    else:
        _print_comparison(answer)


def _overrides(
    model: str,
    prompt: int | None,
    output: int | None,
    tpot_ms: float | None,
    ttft_ms: float | None,
    seq_len: int | None,
    batch_tokens: int | None,
    recipes: Mapping[str, str | None],
) -> dict[str, dict[str, Any]]:
    """Return scenario settings that the command line gave, by section.

    Raises
    ------
    InputError
        If the model can't be used: said here, where it is not yet a setting of two sections.
    """
    from models.workload.catalog import load_model

    load_model(model)
    given: dict[str, dict[str, Any]] = {
        "training": {"seq_len": seq_len, "global_batch_tokens": batch_tokens},
        "serving": {
            "prompt_tokens": prompt,
            "output_tokens": output,
            "tpot_ms": tpot_ms,
            "ttft_ms": ttft_ms,
        },
    }
    return {
        section: {
            "model": model,
            **({"recipes": [recipes[section]]} if section in recipes else {}),
            **{name: value for name, value in settings.items() if value is not None},
        }
        for section, settings in given.items()
    }


def _print_evaluation(answer: Facts) -> None:
    from dse.terminal import work_table
    from dse.units import percent, quantity, significant

    screen = console()
    work = answer["work"]
    screen.print(Text(f"{answer['chip']}: {answer['phase']} of {answer['model']}", style="bold"))
    if not work["feasible"]:
        return
    screen.print(work_table(answer["phase"], work))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("operator", "×", "m × k × n", "time", "share", "bound", "utilization", "HBM"):
        table.add_column(heading, justify="left" if heading in ("operator", "bound") else "right")
    total = sum(row["seconds"] for row in answer["operators"])
    for row in answer["operators"]:
        shape = f"{row['m']:,.0f} × {row['k']:,.0f} × {row['n']:,.0f}" if row["flops"] else "vector"
        if row["parallel"] > 1:
            shape = f"{significant(row['parallel'])} of {shape}"
        table.add_row(
            row["name"],
            f"{row['repeat']:,.0f}",
            shape,
            quantity(row["seconds"], "s"),
            percent(row["seconds"] / total),
            row["bound"],
            percent(row["utilization"]) if row["flops"] else "",
            quantity(row["hbm_bytes"], "B"),
        )
    screen.print()
    screen.print(Text(answer["operators_of"], style="dim"))
    screen.print(table)


def _print_comparison(answer: Facts) -> None:
    from dse.objective import PER_UNIT
    from dse.units import percent, quantity, significant

    screen = console()
    measures: Sequence[tuple[str, str]] = (
        ("per chip", "chip"),
        ("per mm²", "mm2"),
        ("per W", "watt"),
        ("per US$ of capital", "usd"),
    )
    for objective, (_, unit) in PER_UNIT.items():
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column(f"{objective}, tokens/s")
        for label, _ in measures:
            table.add_column(label, justify="right")
        table.add_column(unit, justify="right")
        table.add_column("J per run" if objective == "training" else "J/token", justify="right")
        table.add_column("bound by")
        for facts in answer["chips"]:
            work = facts["work"][objective]
            if not work["feasible"]:
                reason = "; ".join(work["violations"])
                table.add_row(Text(facts["label"]), *["–"] * 6, Text(f"can't: {reason}"))
                continue
            per = facts["per"][objective]
            binds = (
                f"{work['binds']} {percent(work['bound_share'][work['binds']])}"
                if "binds" in work
                else ""
            )
            table.add_row(
                Text(facts["label"]),
                *(significant(per[key]) for _, key in measures),
                significant(work["usd"]),
                quantity(work["joules"], "J"),
                binds,
            )
        screen.print(table)
        screen.print()
    for facts in answer["chips"]:
        if facts["closure"]:
            screen.print(
                f"{facts['label']}: modelled over actual area {facts['closure']['area']:.2f}, "
                f"TDP {facts['closure']['tdp']:.2f}",
                style="dim",
            )
