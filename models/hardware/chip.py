"""Chips as a struct of arrays: one row per design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from models.arrays import FloatArray, IntArray

__all__ = ["MATMUL_FORMATS", "PARTS", "Chips"]

# Formats an array can multiply in; the order is the last axis of `Chips.rates`.
MATMUL_FORMATS = ("bf16", "fp8_e4m3", "int8")
# What area and power are divided among; the order is the last axis of every breakdown.
PARTS = ("compute", "sram", "hbm", "links", "uncore")


@dataclass(frozen=True)
class Chips:
    """Designs or real parts, array-first: every field has the designs on axis 0.

    Attributes
    ----------
    names : tuple of str
    node, style, datapath, hbm_type, link_type : ndarray of int, shape (D,)
        Codes into the tuples of :mod:`models.hardware.technology`.
    die_mm2 : ndarray, shape (D,)
        Silicon in the package, all dies together.
    dies : ndarray, shape (D,)
        Dies that it is cut into, taken as equal.
    rows, cols : ndarray, shape (D,)
        Sides of one systolic array in elements.
    arrays, fabricated : ndarray, shape (D,)
        Arrays that work, and arrays on the dies with their spares.
    rates : ndarray, shape (D, F)
        Multiply-accumulates per element and cycle in each of `MATMUL_FORMATS`; 0 where the format
        is missing.
    volts, clock_hz : ndarray, shape (D,)
        Design voltage and the highest clock at it.
    sram_bytes : ndarray, shape (D,)
    stacks, sites : ndarray, shape (D,)
        HBM stacks populated, and PHYs on the die.
    hbm_bytes, hbm_bytes_per_s : ndarray, shape (D,)
    link_bytes_per_s : ndarray, shape (D,)
        Chip-to-chip links, all lanes, per direction.
    power_w : ndarray, shape (D,)
        Package power that may not be exceeded in any phase.
    """

    names: tuple[str, ...]
    node: IntArray
    style: IntArray
    datapath: IntArray
    hbm_type: IntArray
    link_type: IntArray
    die_mm2: FloatArray
    dies: FloatArray
    rows: FloatArray
    cols: FloatArray
    arrays: FloatArray
    fabricated: FloatArray
    rates: FloatArray
    volts: FloatArray
    clock_hz: FloatArray
    sram_bytes: FloatArray
    stacks: FloatArray
    sites: FloatArray
    hbm_bytes: FloatArray
    hbm_bytes_per_s: FloatArray
    link_bytes_per_s: FloatArray
    power_w: FloatArray

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: slice | IntArray) -> Self:
        """Return the designs that a slice or an array of positions picks."""
        columns = {f.name: getattr(self, f.name)[index] for f in fields(self) if f.name != "names"}
        positions = np.arange(len(self))[index]
        return type(self)(names=tuple(self.names[i] for i in positions), **columns)

    @classmethod
    def concatenate(cls, groups: Sequence[Chips]) -> Self:
        """Join groups of designs, in order."""
        columns = {
            f.name: np.concatenate([getattr(g, f.name) for g in groups])
            for f in fields(cls)
            if f.name != "names"
        }
        return cls(names=tuple(n for g in groups for n in g.names), **columns)

    @property
    def elements(self) -> FloatArray:
        """Multiply-accumulate elements that work, shape (D,)."""
        return self.arrays * self.rows * self.cols

    @property
    def peak_flops(self) -> FloatArray:
        """FLOP/s in each of `MATMUL_FORMATS` at the highest clock, shape (D, F)."""
        return 2 * (self.elements * self.clock_hz)[:, None] * self.rates

    @property
    def vector_flops_per_s(self) -> FloatArray:
        """Elementwise FLOP/s: one fp32 multiply-add lane per column, shape (D,).

        The rule gives the published fp32 rate of A100 exactly (19.5 TFLOP/s), of H100 and B200
        (67 and 75) within 8%.
        """
        return 2 * self.arrays * self.cols * self.clock_hz
