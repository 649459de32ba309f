"""Die area: what each part takes, and whether real dies close."""

from __future__ import annotations

import numpy as np

from models.arrays import FloatArray, IntArray
from models.hardware.chip import PARTS, Chips
from models.hardware.technology import DATAPATHS, LINK_TYPES, NODES, STYLES, Technology

__all__ = [
    "array_mm2",
    "hbm_mm2",
    "links_mm2",
    "modelled_die_mm2",
    "part_areas",
    "resource_areas",
    "sram_mm2_per_byte",
    "uncore_fraction",
]

BITS_PER_TBIT = 1e12


def array_mm2(
    rows: FloatArray, cols: FloatArray, node: IntArray, datapath: IntArray, tech: Technology
) -> FloatArray:
    """Return the area of one systolic array with the SRAM ports that feed it.

    Parameters
    ----------
    rows, cols : ndarray, shape (D,)
    node, datapath : ndarray of int, shape (D,)
    tech : Technology

    Returns
    -------
    ndarray, shape (D,)
        mm². ``rows·cols·element + (rows + cols)·edge + control``: the edge makes small arrays dear,
        so that neither 1 × 1 nor 4096 × 4096 wins for nothing.
    """
    element = tech.column("array.element_um2", NODES)[node] * 1e-6
    element = element * tech.column("datapath.{}.element_area", DATAPATHS)[datapath]
    edge = tech.column("array.edge_mm2_per_lane", NODES)[node]
    edge = edge * tech.column("datapath.{}.edge_area", DATAPATHS)[datapath]
    control = tech.column("array.control_mm2", NODES)[node]
    area: FloatArray = rows * cols * element + (rows + cols) * edge + control
    return area


def sram_mm2_per_byte(node: IntArray, tech: Technology) -> FloatArray:
    """Return the area of a byte of SRAM with its routing, shape (D,)."""
    per_byte: FloatArray = tech.column("sram.mm2_per_mb", NODES)[node] / 1e6
    return per_byte


def hbm_mm2(sites: FloatArray, node: IntArray, tech: Technology) -> FloatArray:
    """Return the area of HBM PHYs and controllers on the die, shape (D,)."""
    area: FloatArray = sites * tech.column("hbm.phy_mm2", NODES)[node]
    return area


def links_mm2(bytes_per_s: FloatArray, link_type: IntArray, tech: Technology) -> FloatArray:
    """Return the area of links of a total rate per direction, shape (D,)."""
    per_tbps = tech.column("link.{}.mm2_per_tbps", LINK_TYPES)[link_type]
    area: FloatArray = bytes_per_s * 8 / BITS_PER_TBIT * per_tbps
    return area


def resource_areas(chips: Chips, tech: Technology) -> FloatArray:
    """Return the area of compute, SRAM, HBM and links, shape (D, 4), in mm²."""
    return np.stack(
        [
            chips.fabricated * array_mm2(chips.rows, chips.cols, chips.node, chips.datapath, tech),
            chips.sram_bytes * sram_mm2_per_byte(chips.node, tech),
            hbm_mm2(chips.sites, chips.node, tech),
            links_mm2(chips.link_bytes_per_s, chips.link_type, tech),
        ],
        axis=-1,
    )


def uncore_fraction(style: IntArray, tech: Technology) -> FloatArray:
    """Return the share of the die that each style spends on uncore, shape (D,)."""
    fraction: FloatArray = tech.column("uncore.fraction", STYLES)[style]
    return fraction


def modelled_die_mm2(chips: Chips, tech: Technology) -> FloatArray:
    """Return the die that the resources need once the uncore is charged, shape (D,).

    For a real chip, the ratio of this to `Chips.die_mm2` is the model's closure.
    """
    total: FloatArray = resource_areas(chips, tech).sum(axis=-1)
    return total / (1 - uncore_fraction(chips.style, tech))


def part_areas(chips: Chips, tech: Technology) -> FloatArray:
    """Return the die area by part, shape (D, len(PARTS)), in mm².

    What the four resources leave is uncore. The parts add up to the die, or to the resources where
    those alone are larger.
    """
    resources = resource_areas(chips, tech)
    die = np.maximum(chips.die_mm2, resources.sum(axis=-1))
    areas = np.empty((len(chips), len(PARTS)))
    areas[:, :4] = resources
    areas[:, 4] = die - resources.sum(axis=-1)
    return areas
