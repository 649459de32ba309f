"""What a chip attains in a cluster."""

import pytest

from models.hardware.cluster import Cluster
from models.performance.machine import machine


def test_attained_rates_and_what_is_kept_back(make_chip, tech):
    """85% of the cycles, 85% of the HBM's rate, 80% of the links'; a tenth of HBM in reserve."""
    one = machine(make_chip(), Cluster(domain=8, network="ethernet-800g"), tech, 1e6)
    assert one.array_hz[0] == pytest.approx(0.85e9)
    # 4 arrays · 128 columns · 2 FLOPs.
    assert one.vector_flops_per_s[0] == pytest.approx(0.85 * 1024e9)
    assert one.hbm_bytes_per_s[0] == pytest.approx(0.85e12)
    assert one.link_bytes_per_s[0] == pytest.approx(80e9)
    assert one.network_bytes_per_s == pytest.approx(80e9)
    assert one.capacity_bytes[0] == pytest.approx(28.8e9)
    # Host share 150 W, an 800 Gb/s port of 80 W, 100 GB/s through a switch at 5.5 pJ/bit.
    assert one.provisioned_w[0] == pytest.approx(1000 + 150 + 80 + 4.4)
    alone = machine(make_chip(), Cluster(domain=1, network="ethernet-800g"), tech, 1e6)
    assert alone.provisioned_w[0] == 1000 + 150 + 80
    assert one.usd_per_j == pytest.approx(0.08 * 1.2 / 3.6e6)
    # 400 mm² at 0.2 W, and 100 GB/s of links at 5.5 pJ/bit.
    assert one.headroom_w[0] == pytest.approx(1000 - 80 - 4.4)
    assert one.rate("fp8_e4m3")[0] == 2
    assert len(one) == 1


def test_there_is_no_negative_headroom(make_chip, tech):
    starved = machine(make_chip(power_w=50), Cluster(8, "infiniband-ndr"), tech, 1e6)
    assert starved.headroom_w[0] == 0
