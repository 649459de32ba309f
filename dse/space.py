"""The trial's variables, and how they become chips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from models.arrays import FloatArray, IntArray
from models.hardware.budget import Allocation, Budget, lanes_that_fit, stacks_that_fit
from models.hardware.technology import DATAPATHS, HBM_TYPES, LINK_TYPES, STYLES, Technology
from rtl.config import MAX_SIDE

__all__ = ["Space"]

Value = float | int | str
_CODES = {
    "style": STYLES,
    "datapath": DATAPATHS,
    "hbm_type": HBM_TYPES,
    "link_type": LINK_TYPES,
}
MIN_DIE_MM2 = 80
MIN_POWER_W = 80
SIDE_STEP = 4


@dataclass(frozen=True)
class Space:
    """Everything that a trial may choose.

    Attributes
    ----------
    distributions : dict of str to optuna distribution
        In a fixed order, so that a seed gives the same trials everywhere.
    """

    distributions: dict[str, BaseDistribution]

    @classmethod
    def of(
        cls,
        budget: Budget,
        tech: Technology,
        *,
        styles: Sequence[str],
        datapaths: Sequence[str],
        hbm_types: Sequence[str],
        link_types: Sequence[str],
    ) -> Space:
        """Return the space of a budget.

        Sides of an array go to `rtl.config.MAX_SIDE`, what the gateware can be generated for;
        stacks and lanes to what the edge of the largest die holds.
        """
        die = np.array([budget.die_mm2])
        links = np.array([LINK_TYPES.index(name) for name in link_types], dtype=np.int64)
        lanes = int(lanes_that_fit(np.repeat(die, len(links)), links, tech).max())
        stacks = int(stacks_that_fit(die, tech)[0])
        low_die = min(MIN_DIE_MM2, budget.die_mm2)
        low_power = min(MIN_POWER_W, budget.power_w)
        return cls(
            {
                "die_mm2": FloatDistribution(low_die, budget.die_mm2),
                "power_w": FloatDistribution(low_power, budget.power_w),
                "style": CategoricalDistribution(list(styles)),
                "datapath": CategoricalDistribution(list(datapaths)),
                "rows": IntDistribution(SIDE_STEP, MAX_SIDE, step=SIDE_STEP),
                "cols": IntDistribution(SIDE_STEP, MAX_SIDE, step=SIDE_STEP),
                "hbm_type": CategoricalDistribution(list(hbm_types)),
                "stacks": IntDistribution(0, stacks),
                "link_type": CategoricalDistribution(list(link_types)),
                "lanes": IntDistribution(0, lanes),
                "sram_share": FloatDistribution(0.01, 0.95),
                "volts": FloatDistribution(tech["voltage.minimum_v"], tech["voltage.maximum_v"]),
                "hbm_power_share": FloatDistribution(0.5, 1.0),
            }
        )

    def allocation(self, trials: Sequence[Mapping[str, Value]]) -> Allocation:
        """Return the allocations of trials' parameters, one design each."""

        def column(name: str) -> FloatArray:
            return np.array([float(trial[name]) for trial in trials])

        def code(name: str) -> IntArray:
            return np.array([_CODES[name].index(str(trial[name])) for trial in trials])

        return Allocation(
            die_mm2=column("die_mm2"),
            power_w=column("power_w"),
            style=code("style"),
            datapath=code("datapath"),
            rows=column("rows"),
            cols=column("cols"),
            hbm_type=code("hbm_type"),
            stacks=column("stacks"),
            link_type=code("link_type"),
            lanes=column("lanes"),
            sram_share=column("sram_share"),
            volts=column("volts"),
            hbm_power_share=column("hbm_power_share"),
        )

    def neighbours(self, trial: Mapping[str, Value]) -> list[dict[str, Value]]:
        """Return a design's neighbours: each number a twentieth of its range up, and down.

        Steps end at the range's ends, which random proposals seldom meet; what does not move is
        left out.
        """
        moved = []
        for name, distribution in self.distributions.items():
            if not isinstance(distribution, IntDistribution | FloatDistribution):
                continue
            low, high = float(distribution.low), float(distribution.high)
            step = (high - low) / 20
            if isinstance(distribution, IntDistribution):
                step = max(round(step / distribution.step), 1) * float(distribution.step)
            for direction in (1, -1):
                value = min(max(float(trial[name]) + direction * step, low), high)
                given: Value = int(value) if isinstance(distribution, IntDistribution) else value
                if given != trial[name]:
                    moved.append({**trial, name: given})
        return moved

    def at_bounds(self, trial: Mapping[str, Value]) -> dict[str, str]:
        """Return which variables stand at the ends of their ranges: "lower" or "upper".

        Within 1% of the range counts, since a sampler seldom proposes the end itself. A variable
        without a choice is not a bound.
        """
        found = {}
        for name, distribution in self.distributions.items():
            if not isinstance(distribution, IntDistribution | FloatDistribution):
                continue
            low, high = float(distribution.low), float(distribution.high)
            margin = 0.01 * (high - low)
            value = float(trial[name])
            if high <= low:
                continue
            if value >= high - margin:
                found[name] = "upper"
            elif value <= low + margin:
                found[name] = "lower"
        return found
