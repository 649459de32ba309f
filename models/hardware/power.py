"""Energy per operation, static power and the voltage-frequency curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import ArrayLike, FloatArray, IntArray
from models.hardware.area import part_areas
from models.hardware.chip import MATMUL_FORMATS, PARTS, Chips
from models.hardware.technology import HBM_TYPES, LINK_TYPES, NODES, STYLES, Technology

__all__ = ["EnergyTable", "clock_hz", "energy_table", "peak_power_parts", "tdp_w"]

PJ = 1e-12
# HBM traffic of a large matmul, as a share of the full rate: it re-reads little.
MATMUL_HBM_SHARE = 0.1


def clock_hz(volts: ArrayLike, node: IntArray, style: IntArray, tech: Technology) -> FloatArray:
    """Return the highest clock at a voltage.

    f(V) = f_nominal · g(V) / g(V_nominal) with g(V) = (V − V_th)^α / V, the alpha-power law.

    Parameters
    ----------
    volts : array_like, shape (D,)
    node, style : ndarray of int, shape (D,)

    Returns
    -------
    ndarray, shape (D,)
        Hz; 0 at or below the threshold.
    """
    threshold, nominal, alpha = (
        tech[f"voltage.{name}"] for name in ("threshold_v", "nominal_v", "alpha")
    )

    def drive(v: FloatArray) -> FloatArray:
        # At the threshold and below the numerator is 0, whatever it is divided by.
        result: FloatArray = np.maximum(v - threshold, 0.0) ** alpha / np.maximum(v, threshold)
        return result

    by_style = np.stack([tech.column(f"clock.{style_name}_ghz", NODES) for style_name in STYLES])
    nominal_hz: FloatArray = by_style[style, node] * 1e9
    ratio = drive(np.asarray(volts, dtype=np.float64)) / drive(np.asarray(nominal))
    return nominal_hz * ratio


@dataclass(frozen=True)
class EnergyTable:
    """What each design pays per operation, at its voltage.

    Attributes
    ----------
    mac_j_per_flop, feed_j_per_flop : ndarray, shape (D, F)
        In the element, and for operands and sums that stream past it through local SRAM, by format.
    sram_j_per_byte : ndarray, shape (D,)
        To load the stationary operand, which few activations amortise in decode.
    hbm_j_per_byte : ndarray, shape (D,)
    static_w : ndarray, shape (D, len(PARTS))
        Leakage, clock tree and always-on logic by part; links count here, since they burn their
        power with or without traffic.
    """

    mac_j_per_flop: FloatArray
    feed_j_per_flop: FloatArray
    sram_j_per_byte: FloatArray
    hbm_j_per_byte: FloatArray
    static_w: FloatArray

    @property
    def flop_j(self) -> FloatArray:
        """Joules per FLOP with its operands, shape (D, F)."""
        return self.mac_j_per_flop + self.feed_j_per_flop

    @property
    def total_static_w(self) -> FloatArray:
        """Power before any work is done, shape (D,)."""
        total: FloatArray = self.static_w.sum(axis=-1)
        return total


def energy_table(chips: Chips, tech: Technology) -> EnergyTable:
    """Return the energies of each design; dynamic and static power follow V²."""
    squared = (chips.volts / tech["voltage.nominal_v"]) ** 2
    ratio = tech.column("energy.format_ratio", MATMUL_FORMATS)
    mac = tech.column("energy.mac_pj_per_flop", NODES)[chips.node] * PJ * squared
    feed = tech.column("energy.feed_pj_per_flop_lane", NODES)[chips.node] * PJ * squared
    feed = feed * (1 / chips.rows + 1 / chips.cols)
    static = part_areas(chips, tech)
    static = static * (tech.column("static.w_per_mm2", NODES)[chips.node] * squared)[:, None]
    link_pj = tech.column("link.{}.pj_per_bit", LINK_TYPES)[chips.link_type]
    static[:, PARTS.index("links")] += chips.link_bytes_per_s * 8 * link_pj * PJ
    return EnergyTable(
        mac_j_per_flop=mac[:, None] * ratio,
        feed_j_per_flop=feed[:, None] * ratio,
        sram_j_per_byte=tech.column("energy.sram_pj_per_byte", NODES)[chips.node] * PJ * squared,
        hbm_j_per_byte=tech.column("hbm.{}.pj_per_bit", HBM_TYPES)[chips.hbm_type] * 8 * PJ,
        static_w=static,
    )


def peak_power_parts(chips: Chips, tech: Technology) -> FloatArray:
    """Return power by part with every resource busy.

    HBM runs at its full rate, links at theirs, and the arrays in bf16 (or the widest format they
    have) at the clock that the package's limit then leaves; where HBM and static power exceed it
    alone, not at all.

    Returns
    -------
    ndarray, shape (D, len(PARTS))
        Watts.
    """
    table = energy_table(chips, tech)
    power = table.static_w.copy()
    power[:, PARTS.index("hbm")] += chips.hbm_bytes_per_s * table.hbm_j_per_byte
    widest = np.argmax(chips.rates > 0, axis=-1)[:, None]
    flops = np.take_along_axis(chips.peak_flops, widest, axis=-1)[:, 0]
    mac_w = flops * np.take_along_axis(table.mac_j_per_flop, widest, axis=-1)[:, 0]
    feed_w = flops * np.take_along_axis(table.feed_j_per_flop, widest, axis=-1)[:, 0]
    headroom = np.maximum(chips.power_w - power.sum(axis=-1), 0.0)
    throttle = np.minimum(1.0, headroom / np.maximum(mac_w + feed_w, 1e-9))
    power[:, PARTS.index("compute")] += mac_w * throttle
    power[:, PARTS.index("sram")] += feed_w * throttle
    return power


def tdp_w(chips: Chips, tech: Technology) -> FloatArray:
    """Return what a matrix-bound kernel draws at the highest clock in bf16, shape (D,), in watts.

    Static power and links, all arrays busy, HBM at a tenth of its rate. For a real chip the ratio
    to its rated TDP is the model's closure; above 1 means that the part can't hold its peak clock.
    """
    table = energy_table(chips, tech)
    bf16 = MATMUL_FORMATS.index("bf16")
    return (
        table.total_static_w
        + chips.peak_flops[:, bf16] * table.flop_j[:, bf16]
        + MATMUL_HBM_SHARE * chips.hbm_bytes_per_s * table.hbm_j_per_byte
    )
