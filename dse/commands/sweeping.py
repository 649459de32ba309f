"""`diptych sweep` and `diptych show`."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dse.commands.output import AsJson, console, print_json, remark

if TYPE_CHECKING:
    from rich.progress import Progress

    from dse.facts import Facts

__all__ = ["show", "sweep"]


def sweep(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO",
            help="Scenario file; without one, the built-in scenario.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder of the run.  [dim]\\[default: runs/NAME][/dim]"
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Trials per study, in place of the scenario's."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Seed, in place of the scenario's.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted sweep.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run that FOLDER holds.")
    ] = False,
    print_scenario: Annotated[
        bool, typer.Option("--print-scenario", help="Print the built-in scenario and stop.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the optimal chips for training and for serving.

    Writes result.json, trials.jsonl, scenario.toml and summary.png to the run's folder. The same
    seed gives the same answer. Ctrl-C loses nothing: --resume goes on.
    """
    from dse.scenario import default_scenario, load_scenario, with_settings

    if print_scenario:
        if as_json:
            print_json({"scenario": default_scenario()})
        else:
            typer.echo(default_scenario(), nl=False)
        return
    asked, text = load_scenario(scenario)
    asked, text = with_settings(asked, text, trials=trials, seed=seed)

    import optuna

    from dse.picture import draw_run
    from dse.run import PICTURE, SCENARIO, TRIALS
    from dse.sweep import open_run, total_trials
    from dse.sweep import sweep as run_sweep
    from dse.terminal import show_run

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = out or Path("runs") / asked.name
    log = open_run(folder, asked, text, resume=resume, overwrite=overwrite)
    started = time.monotonic()
    try:
        with _progress() as bar:
            task = bar.add_task("searching", total=total_trials(asked))
            result = run_sweep(
                asked,
                folder,
                log,
                lambda study, n: bar.update(task, advance=n, description=study),
            )
        draw_run(result, folder / PICTURE)
    except KeyboardInterrupt:
        command = ["diptych", "sweep", str(folder / SCENARIO), "--out", str(folder), "--resume"]
        remark(f"finished trials are in {folder / TRIALS}; go on with `{shlex.join(command)}`")
        raise
    if as_json:
        print_json(result)
    else:
        show_run(console(), result)
    seconds = time.monotonic() - started
    remark(
        f"\n{result['trials']:,} trials in {seconds:.0f} s, seed {result['seed']}. "
        f"Written: {folder}/ (result.json, trials.jsonl, scenario.toml, summary.png)."
    )
    if "decode" in result["formats"]["equal"]["designs"]:
        remark(f"Next: diptych rtl export --run {folder} --design decode --format int8")
    _exit_if_infeasible(result)


def show(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of a run, such as runs/default.")
    ],
    as_json: AsJson = False,
) -> None:
    """Tell the story of a finished run again."""
    from dse.run import read_result
    from dse.terminal import show_run

    result = read_result(run)
    if as_json:
        print_json(result)
    else:
        show_run(console(), result)
    _exit_if_infeasible(result)


def _progress() -> Progress:
    """Return the progress bar, on standard error."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    errors = Console(stderr=True, highlight=False)
    return Progress(
        TextColumn("{task.description:<16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )


def _exit_if_infeasible(result: Facts) -> None:
    """Exit with 2 when some objective has no design, whatever the formats."""
    answers = result["formats"]
    hopeless = [
        objective
        for objective in result["objectives"]
        if all(objective in answer["infeasible"] for answer in answers.values())
    ]
    if hopeless:
        # One line, on the first of them where most is allowed; the answer has the others.
        formats, answer = list(answers.items())[-1]
        reasons = answer["infeasible"][hopeless[0]]
        # What is over by a number comes before what follows from it.
        reason = next((r for r in reasons if ", over by " in r), reasons[0])
        remark(
            f"diptych: infeasible budget: no design can do {', '.join(hopeless)}; the nearest to "
            f"{hopeless[0]}, with formats {formats}: {reason}"
        )
        raise typer.Exit(2)
