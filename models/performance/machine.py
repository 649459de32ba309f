"""Chips seen by the time models: attained rates and energies, shaped to broadcast over mappings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import FloatArray
from models.economics import chip_cost, running_usd_per_s
from models.hardware.chip import MATMUL_FORMATS, Chips
from models.hardware.cluster import Cluster
from models.hardware.power import EnergyTable, energy_table
from models.hardware.technology import NODES, Technology

__all__ = ["Machine", "machine"]

KWH_J = 3.6e6


@dataclass(frozen=True)
class Machine:
    """Designs in a cluster; one-dimensional fields have shape (D,).

    Attributes
    ----------
    chips : Chips
    energy : EnergyTable
    array_hz : ndarray
        Clock times the share of cycles that are attained.
    vector_flops_per_s, hbm_bytes_per_s, link_bytes_per_s : ndarray
        Attained rates.
    vector_j_per_flop : ndarray
    capacity_bytes : ndarray
        HBM less the reserve.
    headroom_w : ndarray
        Power limit less static power: what work may draw on average.
    usd_per_s : ndarray
        Capital and shell per chip-second.
    usd_per_j : float
        Electricity with PUE.
    provisioned_w : ndarray
        IT watts that a fleet must provide per chip.
    domain : int
        Chips in a scale-up domain.
    overhead_w : ndarray
        Watts per chip beyond its package: host share and networks.
    network_bytes_per_s, network_latency_s, domain_latency_s, pue : float
    """

    chips: Chips
    energy: EnergyTable
    array_hz: FloatArray
    vector_flops_per_s: FloatArray
    hbm_bytes_per_s: FloatArray
    link_bytes_per_s: FloatArray
    vector_j_per_flop: FloatArray
    capacity_bytes: FloatArray
    headroom_w: FloatArray
    usd_per_s: FloatArray
    usd_per_j: float
    provisioned_w: FloatArray
    domain: int
    network_bytes_per_s: float
    network_latency_s: float
    domain_latency_s: float
    overhead_w: FloatArray
    pue: float

    def __len__(self) -> int:
        return len(self.chips)

    def rate(self, number_format: str) -> FloatArray:
        """Return multiply-accumulates per element and cycle in a format, shape (D,)."""
        rate: FloatArray = self.chips.rates[:, MATMUL_FORMATS.index(number_format)]
        return rate


def machine(chips: Chips, cluster: Cluster, tech: Technology, volume: float) -> Machine:
    """Put designs in a cluster.

    Parameters
    ----------
    chips : Chips
    cluster : Cluster
    tech : Technology
    volume : float
        Chips over which engineering is written off.
    """
    energy = energy_table(chips, tech)
    overhead_w = cluster.overhead_w(chips.link_bytes_per_s, tech)
    wiring_usd = cluster.wiring_usd(chips.link_bytes_per_s, tech)
    cost = chip_cost(chips, tech, volume, wiring_usd)
    provisioned_w = chips.power_w + overhead_w
    squared = (chips.volts / tech["voltage.nominal_v"]) ** 2
    vector_pj = tech.column("energy.vector_pj_per_flop", NODES)[chips.node]
    pue = tech["datacentre.pue"]
    return Machine(
        chips=chips,
        energy=energy,
        array_hz=chips.clock_hz * tech["attained.compute"],
        vector_flops_per_s=chips.vector_flops_per_s * tech["attained.compute"],
        hbm_bytes_per_s=chips.hbm_bytes_per_s * tech["attained.hbm"],
        link_bytes_per_s=chips.link_bytes_per_s * tech["attained.link"],
        vector_j_per_flop=vector_pj * 1e-12 * squared,
        capacity_bytes=chips.hbm_bytes * (1 - tech["memory.reserve"]),
        headroom_w=np.maximum(chips.power_w - energy.total_static_w, 0.0),
        usd_per_s=running_usd_per_s(cost.capital, provisioned_w, tech),
        usd_per_j=tech["datacentre.usd_per_kwh"] / KWH_J * pue,
        provisioned_w=provisioned_w,
        domain=cluster.domain,
        network_bytes_per_s=cluster.network_bytes_per_s(tech) * tech["attained.link"],
        network_latency_s=cluster.network_latency_s(tech),
        domain_latency_s=cluster.domain_latency_s(tech),
        overhead_w=overhead_w,
        pue=pue,
    )
