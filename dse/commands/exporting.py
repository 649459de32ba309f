"""`diptych rtl export`: the hinge from a chosen chip to Verilog."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dse.commands.output import AsJson, console, print_json, remark
from rtl.errors import InputError

__all__ = ["export"]

# What an array of a datapath multiplies natively, by its name in the format table.
_NATIVE_FORMAT = {"bf16": "bf16", "fp8": "fp8_e4m3", "int8": "int8"}


def export(
    run: Annotated[
        Path | None, typer.Option(help="Run whose design to export.", show_default=False)
    ] = None,
    design: Annotated[
        str, typer.Option(help="Design of the run: training, decode, free/decode and so on.")
    ] = "decode",
    rows: Annotated[int | None, typer.Option(help="Rows, without a run.")] = None,
    cols: Annotated[int | None, typer.Option(help="Columns, without a run.")] = None,
    number_format: Annotated[
        str | None,
        typer.Option("--format", help="Format to build in place of the design's, such as int8."),
    ] = None,
    scale: Annotated[
        int, typer.Option(min=1, help="Divide both sides by this, for an FPGA; keeps the aspect.")
    ] = 1,
    name: Annotated[str, typer.Option(help="Name of the Verilog module.")] = "systolic_array",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write.  [dim]\\[default: RUN/rtl/DESIGN or build/NAME][/dim]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a design's systolic array as Verilog.

    A format that the gateware does not have yet is refused unless --format names one that it has;
    the manifest says what was substituted.
    """
    from dse.run import design_facts, read_result
    from rtl.config import MatmulConfig, scaled
    from rtl.formats import FORMATS, format_named
    from rtl.verilog import export as write

    if run is not None and (rows is not None or cols is not None):
        raise InputError("--run gives the array its sides; leave out --rows and --cols")
    facts: dict[str, object] = {}
    if run is not None:
        formats, objective, chosen = design_facts(read_result(run), design)
        chip = chosen["chip"]
        rows, cols = chip["rows"], chip["cols"]
        wanted = _NATIVE_FORMAT[chip["datapath"]]
        facts = {
            "run": run.name,
            "design": f"{formats}/{objective}",
            "design_rows": rows,
            "design_cols": cols,
        }
        folder = out or run / "rtl" / design
    elif rows is None or cols is None:
        raise InputError("name a run with --run, or an array with --rows and --cols")
    else:
        wanted = number_format or "int8"
        folder = out or Path("build") / name
    built = format_named(number_format).name if number_format else wanted
    if not format_named(built).gateware:
        able = ", ".join(f.name for f in FORMATS.values() if f.gateware)
        raise InputError(
            f"the {design} design multiplies in {built}, which the gateware can't yet; "
            f"give --format with one that it can: {able}"
        )
    small_rows, small_cols = scaled(rows, cols, scale)
    facts |= {"requested_format": wanted, "substituted": built != wanted, "scale": scale}
    config = MatmulConfig(small_rows, small_cols, operand_format=built)
    if small_rows * small_cols >= 32 * 32:
        remark(f"writing {small_rows} × {small_cols} elements, which takes a while")
    written = write(config, folder, name=name, facts=facts)
    if as_json:
        print_json(
            {
                "rows": small_rows,
                "cols": small_cols,
                "format": built,
                **facts,
                "files": [
                    p.name
                    for p in (written.verilog, written.ports, written.manifest, written.readme)
                ],
                "folder": str(folder),
            }
        )
        return
    screen = console()
    screen.print(f"{written.verilog}: {small_rows} × {small_cols}, {built} operands, int32 sums")
    if built != wanted:
        screen.print(f"  {built} in place of the design's {wanted}; the manifest says so")
    if scale > 1:
        screen.print(f"  scaled down by {scale} from {rows} × {cols}")
    screen.print(
        f"  beside it: {written.ports.name}, {written.manifest.name}, {written.readme.name}"
    )
