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
# From here on an export takes long enough for a word.
SLOW_ELEMENTS = 32 * 32


def export(
    run: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Run whose design to export.")
    ] = None,
    design: Annotated[
        str,
        typer.Option(
            metavar="DESIGN", help="Design of the run: training, decode, free/decode and so on."
        ),
    ] = "decode",
    rows: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Rows, without a run.")
    ] = None,
    cols: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Columns, without a run.")
    ] = None,
    number_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Format to build in place of the design's, such as int8.",
        ),
    ] = None,
    scale: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Divide both sides by this, for an FPGA; keeps the aspect."
        ),
    ] = 1,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the Verilog module.")
    ] = "systolic_array",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder to write.  [dim]\\[default: RUN/rtl/DESIGN or build/NAME][/dim]",
        ),
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
    asked = format_named(number_format).name if number_format else None
    if run is not None:
        formats, objective, chosen = design_facts(read_result(run), design)
        chip = chosen["chip"]
        rows, cols = chip["rows"], chip["cols"]
        what, wanted = f"the {formats}/{objective} design", _NATIVE_FORMAT[chip["datapath"]]
        facts = {
            "run": run.resolve().name,
            "design": f"{formats}/{objective}",
            "design_rows": rows,
            "design_cols": cols,
        }
        folder = out or run / "rtl" / (
            objective if formats == "equal" else f"{formats}/{objective}"
        )
    elif rows is None or cols is None:
        raise InputError("name a run with --run, or an array with both --rows and --cols")
    else:
        what, wanted = "the array", asked or "int8"
        folder = out or Path("build") / name
    built = asked or wanted
    if not format_named(built).gateware:
        able = ", ".join(f.name for f in FORMATS.values() if f.gateware)
        raise InputError(
            f"{what} multiplies in {built}, which the gateware can't yet; "
            f"give --format with one that it can: {able}"
        )
    small_rows, small_cols = scaled(rows, cols, scale)
    facts |= {"requested_format": wanted, "substituted": built != wanted, "scale": scale}
    config = MatmulConfig(small_rows, small_cols, operand_format=built)
    if config.elements >= SLOW_ELEMENTS:
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
    lines = [
        f"{written.verilog}: {small_rows} × {small_cols}, {built} operands, "
        f"{config.accumulator_format} sums"
    ]
    if built != wanted:
        lines.append(f"  {built} in place of the design's {wanted}; the manifest says so")
    if scale > 1:
        lines.append(f"  scaled down by {scale} from {rows} × {cols}")
    beside = (written.ports, written.manifest, written.readme)
    lines.append(f"  beside it: {', '.join(path.name for path in beside)}")
    for line in lines:
        console().print(line, markup=False, soft_wrap=True)
