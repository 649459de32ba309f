"""`diptych chips`, `models` and `technology`: the catalogues, every figure with its source."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from dse.commands.output import AsJson, console, print_json

__all__ = ["chips", "models", "technology"]


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left", overflow="fold")
    return table


def chips(
    name: Annotated[
        str | None, typer.Argument(metavar="CHIP", help="One chip, with its sources.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List real chips as published, with the model's closure on each."""
    from dse.facts import closure
    from models.hardware.catalog import chip_facts, chip_names, chips_named
    from models.hardware.technology import Technology

    tech = Technology.default()
    names = [name] if name is not None else list(chip_names())
    errors = closure(chips_named(names, tech), tech)
    rows = [{**chip_facts(n), "closure": error} for n, error in zip(names, errors)]
    if as_json:
        print_json({"chips": rows})
        return
    screen = console()
    if name:
        table = _table(("", "left"), ("", "left"))
        for key, value in chip_facts(name).items():
            table.add_row(key, Text(value))
        table.add_row("modelled/actual area", f"{errors[0]['area']:.2f}")
        table.add_row("modelled/actual TDP", f"{errors[0]['tdp']:.2f}")
        screen.print(table)
        return
    table = _table(
        ("name", "left"),
        ("node", "left"),
        ("die mm²", "right"),
        ("bf16 TFLOP/s", "right"),
        ("SRAM MB", "right"),
        ("HBM GB", "right"),
        ("TB/s", "right"),
        ("links GB/s", "right"),
        ("W", "right"),
        ("area", "right"),
        ("TDP", "right"),
    )
    for n, error in zip(names, errors):
        f = chip_facts(n)
        table.add_row(
            n,
            f["node"],
            f["die_mm2"],
            f["bf16_tflops"],
            f["sram_mb"],
            f["hbm_gb"],
            f["hbm_tbps"],
            f["link_gbytes_per_s"],
            f["tdp_w"],
            f"{error['area']:.2f}",
            f"{error['tdp']:.2f}",
        )
    screen.print(table)
    screen.print(Text("area, TDP: modelled over actual. Sources: diptych chips NAME", style="dim"))


def models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="One model: catalogue name or path of a config.json."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List language models, or show what one asks for."""
    from dse.units import quantity
    from models.workload.catalog import catalog, load_model, model_names

    chosen = [load_model(name)] if name is not None else [load_model(n) for n in model_names()]
    sources = {entry.model.name: entry.source for entry in catalog().values()}
    rows = [
        {
            **asdict(model),
            "parameters": model.parameters,
            "active_parameters": model.active_parameters,
            "kv_elements_per_token": model.kv_elements_per_token,
            "source": sources.get(model.name, ""),
        }
        for model in chosen
    ]
    if as_json:
        print_json({"models": rows})
        return
    screen = console()
    if name:
        table = _table(("", "left"), ("", "left"))
        for key, value in rows[0].items():
            if value:
                plain = isinstance(value, str | bool)
                table.add_row(key, Text(str(value) if plain else f"{value:,}"))
        for part, count in chosen[0].parameter_parts.items():
            table.add_row(f"parameters, {part}", f"{count:,}")
        screen.print(table)
        return
    table = _table(
        ("name", "left"),
        ("parameters", "right"),
        ("active", "right"),
        ("layers", "right"),
        ("hidden", "right"),
        ("experts", "right"),
        ("KV per token, bf16", "right"),
    )
    for model in chosen:
        table.add_row(
            Text(model.name),
            quantity(model.parameters, ""),
            quantity(model.active_parameters, ""),
            str(model.layers),
            str(model.hidden),
            str(model.experts or "–"),
            quantity(2 * model.kv_elements_per_token, "B"),
        )
    screen.print(table)


def technology(
    path: Annotated[
        str | None,
        typer.Argument(metavar="PATH", help="Part of the table: hbm, hbm.hbm3e.pj_per_bit, n5 …"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print physical and cost coefficients: range, unit, quality and source."""
    from dse.units import significant
    from models.hardware.technology import Technology

    tech = Technology.default()
    found = tech.find(path) if path is not None else list(tech.coefficients.values())
    if as_json:
        print_json({"coefficients": [asdict(c) for c in found]})
        return
    screen = console()
    table = _table(
        ("coefficient", "left"),
        ("low", "right"),
        ("nominal", "right"),
        ("high", "right"),
        ("", "left"),
        ("unit", "left"),
    )
    for c in found:
        table.add_row(
            c.name,
            significant(c.low),
            significant(c.nominal),
            significant(c.high),
            c.quality,
            c.unit,
        )
    screen.print(table)
    for c in found if path else []:
        screen.print(Text(f"{c.name}: {c.source}", style="dim"))
    screen.print(
        Text("S read in the source, R recalled from it, D derived, A assumed", style="dim")
    )
