"""Dies, yield, packages and running cost: dollars per chip and per second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import FloatArray
from models.hardware.area import part_areas
from models.hardware.chip import PARTS, Chips
from models.hardware.technology import NODES, Technology

__all__ = ["ChipCost", "chip_cost", "die_yield", "gross_dies", "running_usd_per_s"]

WAFER_MM = 300.0
YEAR_S = 365.25 * 24 * 3600


def gross_dies(die_mm2: FloatArray, tech: Technology) -> FloatArray:
    """Return whole dies on a 300 mm wafer, at least 1, shape (D,).

    π(d/2)²/A − πd/√(2A) on the usable diameter, with scribe lines added to a square die.
    """
    area = (np.sqrt(die_mm2) + tech["cost.scribe_mm"]) ** 2
    diameter = WAFER_MM - 2 * tech["cost.wafer_edge_mm"]
    dies = np.pi * (diameter / 2) ** 2 / area - np.pi * diameter / np.sqrt(2 * area)
    return np.maximum(np.floor(dies), 1.0)


def die_yield(
    repeated_mm2: FloatArray,
    other_mm2: FloatArray,
    groups: FloatArray,
    spares: FloatArray,
    defects_per_mm2: FloatArray,
    alpha: float,
) -> FloatArray:
    """Return the share of dies that can be sold, with harvesting.

    The negative binomial Y = (1 + A·D/α)^−α for what must work whole, times the binomial
    probability that at most `spares` of `groups` equal groups of arrays fail, each with its own
    negative binomial: defects cluster within a group, not across them.

    Parameters
    ----------
    repeated_mm2, other_mm2 : ndarray, shape (D,)
        Area of all groups together, and of what has no spare.
    groups, spares : ndarray, shape (D,)
    defects_per_mm2 : ndarray, shape (D,)
    alpha : float
        Cluster parameter.
    """
    whole = (1 + other_mm2 * defects_per_mm2 / alpha) ** -alpha
    count = np.maximum(groups, 1.0)
    good = (1 + repeated_mm2 / count * defects_per_mm2 / alpha) ** -alpha
    term = good**count
    harvested = term.copy()
    # P(j fail) from P(j − 1 fail); one step per spare, all designs at once.
    for j in range(1, int(spares.max(initial=0.0)) + 1):
        term = term * (count - j + 1) / j * (1 - good) / good
        harvested += np.where(j <= spares, np.maximum(term, 0.0), 0.0)
    result: FloatArray = whole * np.minimum(harvested, 1.0)
    return result


@dataclass(frozen=True)
class ChipCost:
    """Bill of materials of one package and what its chip needs around it, in US$, shape (D,).

    No vendor margin anywhere: costs, not prices. `network` is the scale-out port and the scale-up
    switches.
    """

    dies: FloatArray
    hbm: FloatArray
    package: FloatArray
    test: FloatArray
    nre: FloatArray
    system: FloatArray
    network: FloatArray

    @property
    def bill_of_materials(self) -> FloatArray:
        """Dies, HBM, package and test."""
        return self.dies + self.hbm + self.package + self.test

    @property
    def capital(self) -> FloatArray:
        """Everything that is bought per chip, network and its share of engineering included."""
        return self.bill_of_materials + self.nre + self.system + self.network


def chip_cost(chips: Chips, tech: Technology, volume: float, wiring_usd: FloatArray) -> ChipCost:
    """Return what one chip costs.

    Parameters
    ----------
    chips : Chips
    tech : Technology
    volume : float
        Chips over which masks and design are written off.
    wiring_usd : ndarray, shape (D,)
        The chip's port on the scale-out network and its share of all switches.
    """
    areas = part_areas(chips, tech)
    each = areas / chips.dies[:, None]
    repeated = each[:, PARTS.index("compute")]
    groups = np.minimum(np.ceil(chips.fabricated / chips.dies), tech["cost.harvest_groups"])
    spare_share = 1 - chips.arrays / np.maximum(chips.fabricated, 1.0)
    yields = die_yield(
        repeated_mm2=repeated,
        # SRAM carries its own repair rows, so it does not count against the whole.
        other_mm2=each.sum(axis=-1) - repeated - each[:, PARTS.index("sram")],
        groups=groups,
        spares=np.floor(groups * spare_share + 1e-9),
        defects_per_mm2=tech.column("cost.defects_per_cm2", NODES)[chips.node] / 100,
        alpha=tech["cost.yield_alpha"],
    )
    wafer = tech.column("cost.wafer_usd", NODES)[chips.node]
    dies_usd = chips.dies * wafer / gross_dies(each.sum(axis=-1), tech) / yields
    stacks_mm2 = chips.stacks * tech["hbm.stack_mm2"]
    interposer = tech["cost.interposer_factor"] * (areas.sum(axis=-1) + stacks_mm2)
    nre = (tech.column("cost.mask_set_usd", NODES) + tech.column("cost.design_usd", NODES))[
        chips.node
    ] / volume
    hbm_usd = chips.hbm_bytes / 1e9 * tech["cost.hbm_usd_per_gb"]
    package_usd = interposer * tech["cost.interposer_usd_per_mm2"]
    test = np.full(len(chips), tech["cost.test_usd"])
    system = np.full(len(chips), tech["system.usd_per_chip"])
    return ChipCost(dies_usd, hbm_usd, package_usd, test, nre, system, wiring_usd)


def running_usd_per_s(
    capital_usd: FloatArray, provisioned_w: FloatArray, tech: Technology
) -> FloatArray:
    """Return dollars per chip-second before electricity, shape (D,).

    Capital over the system's life plus datacentre shell and power, which is built for the
    provisioned watts, over its own.
    """
    system = capital_usd / (tech["system.life_years"] * YEAR_S)
    shell = tech["datacentre.usd_per_w"] * provisioned_w
    return system + shell / (tech["datacentre.life_years"] * YEAR_S)
