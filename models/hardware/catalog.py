"""Real chips, from ``models/data/chips.csv``, in the same struct of arrays as designs."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from models.arrays import FloatArray, IntArray
from models.hardware.chip import MATMUL_FORMATS, Chips
from models.hardware.technology import DATAPATHS, HBM_TYPES, LINK_TYPES, NODES, STYLES, Technology
from rtl.errors import InputError, lookup

__all__ = ["chip_facts", "chip_names", "chips_from_rows", "chips_named"]

_PEAK_COLUMNS = {"bf16": "bf16_tflops", "fp8_e4m3": "fp8_tflops", "int8": "int8_tops"}


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    text = files("models").joinpath("data", "chips.csv").read_text(encoding="utf-8")
    return {row["name"]: row for row in csv.DictReader(text.splitlines())}


def chip_names() -> tuple[str, ...]:
    """Return the catalogue's names in its order."""
    return tuple(_table())


def chip_facts(name: str) -> Mapping[str, str]:
    """Return a chip's row as published, with its sources and notes.

    Raises
    ------
    InputError
        If the catalogue has no such chip.
    """
    return lookup("chip", name, _table())


def chips_named(names: Sequence[str], tech: Technology) -> Chips:
    """Return catalogue chips as designs.

    Raises
    ------
    InputError
        If a name is not in the catalogue.
    """
    return chips_from_rows([chip_facts(name) for name in names], tech)


def chips_from_rows(rows: Sequence[Mapping[str, str | float]], tech: Technology) -> Chips:
    """Return chips from rows with the catalogue's columns.

    The clock follows from the published bf16 peak and the number of elements; the voltage is the
    nominal one, since real curves are not published.

    Parameters
    ----------
    rows : sequence of mapping
        Text or numbers by column.
    tech : Technology

    Raises
    ------
    InputError
        If a column is missing, is not a number of its range, or names what is not known.
    """

    def cell(row: Mapping[str, str | float], column: str) -> str | float:
        if column not in row:
            raise InputError(
                f"chip {row['name']}: {column} is missing; add it, as in models/data/chips.csv"
            )
        return row[column]

    def number(column: str, *, above_zero: bool = False) -> FloatArray:
        values = []
        for row in rows:
            given = cell(row, column)
            try:
                value = float(given)
            except (TypeError, ValueError):
                value = math.nan
            if not (value > 0 if above_zero else value >= 0) or math.isinf(value):
                raise InputError(
                    f"chip {row['name']}: {column} is {given!r}, not a number "
                    f"{'above' if above_zero else 'of at least'} 0; correct it"
                )
            values.append(value)
        return np.array(values)

    def code(column: str, codes: tuple[str, ...]) -> IntArray:
        positions = {name: position for position, name in enumerate(codes)}
        found = [lookup(column, str(cell(row, column)), positions) for row in rows]
        return np.array(found, dtype=np.int64)

    sides = [number(column, above_zero=True) for column in ("rows", "cols")]
    arrays = number("arrays", above_zero=True)

    def at_least(column: str, least: FloatArray, of: str) -> FloatArray:
        values = number(column)
        for row, value, needed in zip(rows, values, least):
            if value < needed:
                raise InputError(
                    f"chip {row['name']}: {column} is {value:g}, fewer than its {needed:g} {of}; "
                    "correct one of them"
                )
        return values

    stacks = number("stacks")
    peaks = np.stack(
        [number(_PEAK_COLUMNS[f], above_zero=f == "bf16") for f in MATMUL_FORMATS], axis=-1
    )
    return Chips(
        names=tuple(str(row["name"]) for row in rows),
        node=code("node", NODES),
        style=code("style", STYLES),
        datapath=np.full(len(rows), DATAPATHS.index("bf16"), dtype=np.int64),
        hbm_type=code("hbm_type", HBM_TYPES),
        link_type=code("link_type", LINK_TYPES),
        die_mm2=number("die_mm2", above_zero=True),
        dies=number("dies", above_zero=True),
        rows=sides[0],
        cols=sides[1],
        arrays=arrays,
        fabricated=at_least("fabricated", arrays, "arrays"),
        rates=peaks / peaks[:, :1],
        volts=np.full(len(rows), tech["voltage.nominal_v"]),
        clock_hz=peaks[:, 0] * 1e12 / (2 * arrays * sides[0] * sides[1]),
        sram_bytes=number("sram_mb") * 1e6,
        stacks=stacks,
        sites=at_least("sites", stacks, "stacks"),
        hbm_bytes=number("hbm_gb") * 1e9,
        hbm_bytes_per_s=number("hbm_tbps") * 1e12,
        link_bytes_per_s=number("link_gbytes_per_s") * 1e9,
        power_w=number("tdp_w", above_zero=True),
    )
