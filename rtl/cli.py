"""The `diptych rtl` commands."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from rtl.config import MatmulConfig
from rtl.errors import InputError

__all__ = ["app"]

app = typer.Typer(
    name="rtl",
    help="The hardware: simulate the systolic array, export it as Verilog.",
    no_args_is_help=True,
)

# What the Python simulator evaluates in a second on one slow core, for 4 × 4 to 32 × 32 arrays.
ELEMENT_CYCLES_PER_SECOND = 8e4
MAX_MINUTES = 20


@app.callback()
def rtl() -> None:
    """Simulate the systolic array, export it as Verilog."""


@app.command()
def simulate(
    rows: Annotated[int, typer.Option(help="Rows of the array, along K.")] = 8,
    cols: Annotated[int, typer.Option(help="Columns of the array, along N.")] = 8,
    m: Annotated[int, typer.Option(help="Rows of A and of the product.")] = 32,
    k: Annotated[int, typer.Option(help="Columns of A, rows of B.")] = 32,
    n: Annotated[int, typer.Option(help="Columns of B and of the product.")] = 32,
    seed: Annotated[int, typer.Option(help="Seed of the operands and of the stalls.")] = 0,
    stall: Annotated[
        float, typer.Option(help="Chance that a stream pauses in a cycle, from 0 to below 1.")
    ] = 0.0,
    vcd: Annotated[
        Path | None, typer.Option(help="Write the waveforms here, for GTKWave or Surfer.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Multiply random matrices on the simulated array; check product and cycles."""
    config = MatmulConfig(rows, cols)
    _check_duration(config, m, k, n, stall)
    if seed < 0:
        raise InputError(f"the seed must be 0 or more, not {seed}")
    random = np.random.default_rng(seed)
    low, high = config.operand.integer_range
    a = random.integers(low, high + 1, (m, k))
    b = random.integers(low, high + 1, (k, n))

    # Amaranth takes a third of a second to import, which `diptych --help` need not wait for.
    from rtl.simulation.python import simulate

    result = simulate(config, a, b, stalls=stall, seed=seed, vcd=vcd)
    # With stalls the closed form is a lower bound; without, it must be met exactly.
    on_time = (
        result.cycles >= result.predicted_cycles
        if stall
        else result.cycles == result.predicted_cycles
    )
    if as_json:
        print(json.dumps(_as_object(result, (m, k, n), seed, stall), indent=2))  # noqa: T201
    else:
        _print_report(result, (m, k, n), stall)
    if vcd is not None:
        Console(stderr=True).print(f"waveforms: {vcd}", highlight=False)
    if not (result.correct and on_time):
        raise typer.Exit(1)


def _check_duration(config, m, k, n, stall):
    if not 0 <= stall < 1:
        raise InputError(
            f"the stall probability must be from 0 to below 1, not {stall}; at 1 nothing ever moves"
        )
    cycles = config.cycles(m, k, n) / (1 - stall) ** 2
    minutes = cycles * config.elements / ELEMENT_CYCLES_PER_SECOND / 60
    if minutes > MAX_MINUTES:
        raise InputError(
            f"{m} × {k} × {n} on {config.rows} × {config.cols} elements takes about "
            f"{cycles:,.0f} cycles, some {minutes:,.0f} minutes in the Python simulator; at most "
            f"{MAX_MINUTES} minutes are allowed: take smaller --m, --k, --n or fewer elements"
        )
    if minutes > 0.2:
        Console(stderr=True).print(
            f"about {cycles:,.0f} cycles, up to {minutes:.1f} minutes", highlight=False
        )


def _as_object(result, shape, seed, stall):
    return {
        "config": dataclasses.asdict(result.config),
        "shape": dict(zip("mkn", shape)),
        "seed": seed,
        "stall": stall,
        "correct": result.correct,
        "cycles": result.cycles,
        "predicted_cycles": result.predicted_cycles,
        "utilization": result.utilization,
        "activity": result.activity,
        "macs": result.macs,
    }


def _print_report(result, shape, stall):
    config = result.config
    m, k, n = shape
    table = Table(
        title=f"{config.rows} × {config.cols} {config.dataflow} array, {config.operand_format}: "
        f"({m} × {k}) · ({k} × {n})",
        show_header=False,
        title_justify="left",
    )
    table.add_column("what")
    table.add_column("value", justify="right")
    correct = "[green]equals NumPy[/green]" if result.correct else "[red]differs from NumPy[/red]"
    table.add_row("product", correct)
    table.add_row("multiply-accumulates", f"{result.macs:,}")
    table.add_row("cycles measured", f"{result.cycles:,}")
    table.add_row(
        "cycles predicted" + (" without stalls" if stall else ""), f"{result.predicted_cycles:,}"
    )
    table.add_row("utilization", f"{result.utilization:.1%}")
    table.add_row("activity, padding included", f"{result.activity:.1%}")
    Console().print(table)
