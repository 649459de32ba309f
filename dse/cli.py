"""The `diptych` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
import typer

from dse.commands import catalogues, evaluating, sweeping
from dse.commands.exporting import export
from rtl.cli import app as rtl_app
from rtl.errors import InputError

__all__ = ["app", "main"]

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

_SEARCH, _MODELS, _FACTS = "Search", "Models", "Catalogues"
app.command(rich_help_panel=_SEARCH)(sweeping.sweep)
app.command(rich_help_panel=_SEARCH)(sweeping.show)
app.command(rich_help_panel=_MODELS)(evaluating.evaluate)
app.command(rich_help_panel=_MODELS)(evaluating.compare)
app.command(rich_help_panel=_FACTS)(catalogues.chips)
app.command(rich_help_panel=_FACTS)(catalogues.models)
app.command(rich_help_panel=_FACTS)(catalogues.technology)
rtl_app.command()(export)
app.add_typer(rtl_app, rich_help_panel="Hardware")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        code = app(args=arguments, standalone_mode=False)
    except InputError as error:
        _fail(str(error), 2)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "diptych"
        _fail(f"{error.format_message()} See `{where} --help`.", 2)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except (KeyboardInterrupt, click.Abort):
        _fail("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    print(f"diptych: {message}", file=sys.stderr)  # noqa: T201
    sys.exit(code)
