"""What chips are connected by: scale-up domain and scale-out network."""

from __future__ import annotations

from dataclasses import dataclass

from models.arrays import FloatArray
from models.hardware.technology import NETWORKS, Technology
from rtl.errors import InputError, lookup

__all__ = ["Cluster"]


@dataclass(frozen=True)
class Cluster:
    """A fleet of domains on a scale-out network.

    Attributes
    ----------
    domain : int
        Chips that a switch connects at the rate of their links.
    network : str
        One of :data:`models.hardware.technology.NETWORKS`; every chip has one port.
    """

    domain: int
    network: str

    def __post_init__(self) -> None:
        lookup("scale-out network", self.network, {n: n for n in NETWORKS})
        if self.domain < 1:
            raise InputError(
                f"scale-up domain of {self.domain} chips: a domain has at least 1; "
                "set cluster.domain, such as 8"
            )

    def network_bytes_per_s(self, tech: Technology) -> float:
        """Return the port's rate per direction."""
        return tech[f"network.{self.network}.gbytes_per_s"] * 1e9

    def network_latency_s(self, tech: Technology) -> float:
        """Return the time of an empty message between domains."""
        return tech[f"network.{self.network}.latency_us"] * 1e-6

    def domain_latency_s(self, tech: Technology) -> float:
        """Return the time of an empty exchange inside the domain."""
        return tech["scaleup.latency_us"] * 1e-6

    def wiring_usd(self, link_bytes_per_s: FloatArray, tech: Technology) -> FloatArray:
        """Return dollars per chip for both networks: its port and its links' switches, shape (D,).

        One tier of switches, whatever the domain's size; a domain of one chip has none.
        """
        scale_up = link_bytes_per_s / 1e9 * tech["scaleup.usd_per_gbytes_per_s"]
        return tech[f"network.{self.network}.usd"] + scale_up * (self.domain > 1)

    def overhead_w(self, link_bytes_per_s: FloatArray, tech: Technology) -> FloatArray:
        """Return watts per chip beyond its package, shape (D,): host share and both networks."""
        switch_w = link_bytes_per_s * 8 * tech["scaleup.switch_pj_per_bit"] * 1e-12
        always = tech["system.watts_per_chip"] + tech[f"network.{self.network}.watts"]
        return always + switch_w * (self.domain > 1)
