"""One silicon budget and how it is divided into a chip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import FloatArray, IntArray
from models.constraints import Constraint
from models.hardware.area import (
    array_mm2,
    hbm_mm2,
    links_mm2,
    sram_mm2_per_byte,
    uncore_fraction,
)
from models.hardware.chip import Chips
from models.hardware.power import clock_hz, energy_table
from models.hardware.technology import (
    DATAPATHS,
    HBM_TYPES,
    LINK_TYPES,
    NODES,
    Technology,
)
from rtl.errors import InputError, lookup

__all__ = [
    "DATAPATH_RATES",
    "Allocation",
    "Budget",
    "allocate",
    "lanes_that_fit",
    "stacks_that_fit",
]

# Multiply-accumulates per element and cycle by datapath, in the order of MATMUL_FORMATS: a bf16
# element splits into two 8-bit ones, as the GPUs of the catalogue do.
DATAPATH_RATES = {
    "bf16": (1.0, 2.0, 2.0),
    "fp8": (0.0, 1.0, 1.0),
    "int8": (0.0, 0.0, 1.0),
}


@dataclass(frozen=True)
class Budget:
    """What may be spent on one package.

    Attributes
    ----------
    die_mm2 : float
        Largest die, at most the reticle.
    power_w : float
        Largest package power.
    node : str
        One of :data:`models.hardware.technology.NODES`.
    """

    die_mm2: float
    power_w: float
    node: str

    def validated(self, tech: Technology) -> Budget:
        """Return the budget after checking it against the technology.

        Raises
        ------
        InputError
        """
        lookup("process node", self.node, {n: n for n in NODES})
        reticle = tech["reticle.mm2"]
        if not 0 < self.die_mm2 <= reticle:
            raise InputError(
                f"die of {self.die_mm2:g} mm2: one die is above 0 and at most the reticle, "
                f"{reticle:g} mm2; lower budget.die_mm2"
            )
        if not 0 < self.power_w < np.inf:
            raise InputError(
                f"power of {self.power_w:g} W: package power is above 0; set budget.power_w, "
                "such as 700"
            )
        return self


@dataclass(frozen=True)
class Allocation:
    """How designs divide the budget; every field has shape (D,).

    Attributes
    ----------
    die_mm2, power_w : ndarray
        What is used of the budget.
    style, datapath, hbm_type, link_type : ndarray of int
    rows, cols : ndarray
        Sides of an array.
    stacks, lanes : ndarray
        Whole HBM stacks and link lanes.
    sram_share : ndarray
        SRAM's share of the area that HBM, links and uncore leave; arrays take the rest.
    volts : ndarray
    hbm_power_share : ndarray
        Cap on HBM power as a share of what its full rate draws; it caps the bandwidth.
    """

    die_mm2: FloatArray
    power_w: FloatArray
    style: IntArray
    datapath: IntArray
    rows: FloatArray
    cols: FloatArray
    hbm_type: IntArray
    stacks: FloatArray
    link_type: IntArray
    lanes: FloatArray
    sram_share: FloatArray
    volts: FloatArray
    hbm_power_share: FloatArray


def stacks_that_fit(die_mm2: FloatArray, tech: Technology) -> FloatArray:
    """Return the HBM stacks along the two long sides of a die of reticle aspect, shape (D,)."""
    return 2 * np.floor(_sides(die_mm2, tech)[0] / tech["hbm.edge_mm"])


def lanes_that_fit(die_mm2: FloatArray, link_type: IntArray, tech: Technology) -> FloatArray:
    """Return the link lanes along the two short sides of a die, shape (D,)."""
    density = tech.column("link.{}.gbytes_per_s_per_mm", LINK_TYPES)[link_type]
    lane = tech.column("link.{}.gbytes_per_s_per_lane", LINK_TYPES)[link_type]
    return np.floor(2 * _sides(die_mm2, tech)[1] * density / lane)


def _sides(die_mm2: FloatArray, tech: Technology) -> tuple[FloatArray, FloatArray]:
    long_side = tech["reticle.long_side_mm"] * np.sqrt(die_mm2 / tech["reticle.mm2"])
    return long_side, die_mm2 / long_side


def allocate(
    budget: Budget, allocation: Allocation, tech: Technology
) -> tuple[Chips, list[Constraint]]:
    """Turn allocations into chips, in whole arrays, stacks and lanes.

    HBM, links and uncore are charged first; SRAM takes its share of what is left and arrays the
    rest. Designs that do not fit come back with no arrays and a constraint that says by how much.

    Returns
    -------
    chips : Chips
    constraints : list of Constraint
        area, HBM edge, link edge and power.
    """
    a = allocation
    designs = len(a.die_mm2)
    node = np.full(designs, NODES.index(budget.node), dtype=np.int64)
    lane_rate = tech.column("link.{}.gbytes_per_s_per_lane", LINK_TYPES)[a.link_type] * 1e9
    link_rate = a.lanes * lane_rate
    fixed_mm2 = (
        a.die_mm2 * uncore_fraction(a.style, tech)
        + hbm_mm2(a.stacks, node, tech)
        + links_mm2(link_rate, a.link_type, tech)
    )
    one_array = array_mm2(a.rows, a.cols, node, a.datapath, tech)

    left = np.maximum(a.die_mm2 - fixed_mm2, 0.0)
    sram_mm2 = a.sram_share * left
    fabricated = np.floor((left - sram_mm2) / one_array)
    arrays = np.floor(fabricated * (1 - tech["cost.spare_arrays"]) + 1e-9)
    arrays = np.where((fabricated >= 1) & (arrays < 1), 1.0, arrays)

    rates = np.array([DATAPATH_RATES[d] for d in DATAPATHS])[a.datapath]
    hbm_rate = a.stacks * tech.column("hbm.{}.gbytes_per_s", HBM_TYPES)[a.hbm_type] * 1e9
    chips = Chips(
        names=tuple(f"design {i}" for i in range(designs)),
        node=node,
        style=a.style,
        datapath=a.datapath,
        hbm_type=a.hbm_type,
        link_type=a.link_type,
        die_mm2=a.die_mm2,
        dies=np.ones(designs),
        rows=a.rows,
        cols=a.cols,
        arrays=arrays,
        fabricated=fabricated,
        rates=rates,
        volts=a.volts,
        clock_hz=clock_hz(a.volts, node, a.style, tech),
        sram_bytes=sram_mm2 / sram_mm2_per_byte(node, tech),
        stacks=a.stacks,
        sites=a.stacks,
        hbm_bytes=a.stacks * tech.column("hbm.{}.gbytes", HBM_TYPES)[a.hbm_type] * 1e9,
        hbm_bytes_per_s=hbm_rate * a.hbm_power_share,
        link_bytes_per_s=link_rate,
        power_w=a.power_w,
    )
    energy = energy_table(chips, tech)
    always_w = energy.total_static_w + chips.hbm_bytes_per_s * energy.hbm_j_per_byte
    return chips, [
        Constraint(
            "area",
            fixed_mm2 + sram_mm2 + one_array,
            a.die_mm2,
            "mm2",
            "take fewer stacks, lanes or SRAM, smaller arrays, or a larger die",
        ),
        Constraint(
            "hbm_edge",
            a.stacks,
            stacks_that_fit(a.die_mm2, tech),
            "stacks",
            "take fewer stacks or a larger die; hbm.edge_mm sets the edge of one",
        ),
        Constraint(
            "link_edge",
            a.lanes,
            lanes_that_fit(a.die_mm2, a.link_type, tech),
            "lanes",
            "take fewer lanes or a larger die",
        ),
        Constraint(
            "power",
            always_w,
            a.power_w,
            "W",
            "static power, links and HBM at its cap leave nothing for compute: lower the voltage, "
            "the die, the lanes or the HBM cap, or allow more power",
        ),
    ]
