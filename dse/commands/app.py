"""The commands of `diptych`, put together."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer

from dse.commands import catalogues, evaluating, sweeping
from dse.commands.exporting import export
from rtl.cli import app as rtl_app

__all__ = ["app"]

app = typer.Typer(
    name="diptych",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Divide one silicon budget between compute, SRAM, HBM and links, once for training a "
        "language model and once for serving one.\n\n"
        "Start with [bold]diptych sweep[/bold]. A CHIP is a catalogue name (h100), a design of a "
        "run (runs/x#decode) or a TOML file; a MODEL is a catalogue name or the path of a "
        "config.json. Every command has --json. Exit codes: 0 done, 1 a check failed, 2 the input "
        "can't be used or the budget is infeasible, 130 interrupted."
    ),
)


def _add(group: typer.Typer, command: Callable[..., Any], panel: str | None = None) -> None:
    # Typer keeps the line ends of a docstring's later paragraphs, which the terminal then wraps.
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    group.command(help=text, rich_help_panel=panel)(command)


for search in (sweeping.sweep, sweeping.show):
    _add(app, search, "Search")
for model in (evaluating.evaluate, evaluating.compare):
    _add(app, model, "Models")
for catalogue in (catalogues.chips, catalogues.models, catalogues.technology):
    _add(app, catalogue, "Catalogues")
_add(rtl_app, export)
app.add_typer(rtl_app, rich_help_panel="Hardware")
