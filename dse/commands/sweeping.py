"""`diptych sweep` and `diptych show`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dse.commands.output import AsJson, console, print_json, remark
from dse.facts import Facts

__all__ = ["show", "sweep"]


def sweep(
    scenario: Annotated[
        Path | None, typer.Argument(help="Scenario file; without one, the built-in scenario.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run.  [dim]\\[default: runs/NAME][/dim]")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials per study, in place of the scenario's.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed, in place of the scenario's.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on with an interrupted sweep.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace the run that OUT holds.")] = False,
    print_scenario: Annotated[
        bool, typer.Option("--print-scenario", help="Print the built-in scenario and stop.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the optimal chips for training and for serving.

    Writes result.json, trials.jsonl, scenario.toml and summary.png to the run's folder. The same
    seed gives the same answer. Ctrl-C loses nothing: --resume goes on.
    """
    import optuna

    from dse.picture import draw_run
    from dse.run import PICTURE
    from dse.scenario import default_scenario, load_scenario, with_settings
    from dse.sweep import prepare_folder, total_trials
    from dse.sweep import sweep as run_sweep
    from dse.terminal import show_run

    if print_scenario:
        typer.echo(default_scenario(), nl=False)
        return
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    asked, text = load_scenario(scenario)
    asked, text = with_settings(asked, text, trials=trials, seed=seed)
    folder = out or Path("runs") / asked.name
    prepare_folder(folder, text, resume=resume, overwrite=overwrite)
    started = time.monotonic()
    errors = Console(stderr=True, highlight=False)
    with Progress(
        TextColumn("{task.description:<16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
    ) as bar:
        task = bar.add_task("searching", total=total_trials(asked))
        try:
            result = run_sweep(
                asked,
                folder,
                lambda study, n: bar.update(task, advance=n, description=study),
            )
        except KeyboardInterrupt:
            bar.stop()
            source = f"{folder / 'scenario.toml'} --out {folder}"
            remark(
                f"finished trials are in {folder / 'trials.jsonl'}; go on with "
                f"`diptych sweep {source} --resume`"
            )
            raise
    draw_run(result, folder / PICTURE)
    if as_json:
        print_json(result)
    else:
        show_run(console(), result)
    seconds = time.monotonic() - started
    remark(
        f"\n{result['trials']:,} trials in {seconds:.0f} s, seed {result['seed']}. "
        f"Written: {folder}/ (result.json, trials.jsonl, scenario.toml, summary.png).\n"
        f"Next: diptych rtl export --run {folder} --design decode --format int8"
    )
    _exit_if_infeasible(result)


def show(
    run: Annotated[Path, typer.Argument(help="Folder of a run, such as runs/default.")],
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


def _exit_if_infeasible(result: Facts) -> None:
    """Exit with 2 when some objective has no design, whatever the formats."""
    answers = result["formats"].values()
    hopeless = [o for o in result["objectives"] if all(o in a["infeasible"] for a in answers)]
    for objective in hopeless:
        reasons = "; ".join(next(iter(answers))["infeasible"][objective])
        remark(f"diptych: infeasible budget: no design can do {objective}: {reasons}")
    if hopeless:
        raise typer.Exit(2)
