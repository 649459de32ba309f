"""Collectives in closed form, for every number of ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.arrays import positive_difference, transfer_time
from models.performance.collectives import (
    domain_all_reduce_s,
    hierarchical_s,
    ring_all_reduce_s,
    send_s,
)

SIZE, RATE, ALPHA = 1e9, 1e11, 1e-6


@pytest.mark.parametrize("n", range(2, 18))
def test_ring_and_direct_move_the_same_bytes(n):
    """2(n − 1)/n of the buffer, in 2(n − 1) steps of a ring or two exchanges through a switch."""
    moved = 2 * (n - 1) / n * SIZE / RATE
    assert ring_all_reduce_s(SIZE, n, RATE, ALPHA) == pytest.approx(moved + 2 * (n - 1) * ALPHA)
    assert domain_all_reduce_s(SIZE, n, RATE, ALPHA) == pytest.approx(moved + 2 * ALPHA)


def test_ring_by_hand():
    """Four ranks, 1 GB, 100 GB/s: 1.5 GB in 15 ms, and six steps of 1 µs."""
    assert ring_all_reduce_s(1e9, 4, 1e11, 1e-6) == pytest.approx(15.006e-3)


@pytest.mark.parametrize("collective", [ring_all_reduce_s, domain_all_reduce_s])
@pytest.mark.parametrize("rate", [0.0, RATE])
def test_one_rank_takes_no_time(collective, rate):
    assert collective(SIZE, 1, rate, ALPHA) == 0


@pytest.mark.parametrize("n", range(2, 18))
def test_no_link_is_infinite_and_not_nan(n):
    for collective in (ring_all_reduce_s, domain_all_reduce_s):
        assert collective(SIZE, n, 0.0, ALPHA) == np.inf
    assert send_s(SIZE, 0.0, ALPHA) == np.inf
    assert send_s(0.0, 0.0, ALPHA) == 0


@pytest.mark.parametrize("n", range(1, 18))
@pytest.mark.parametrize("inside", range(1, 10))
def test_hierarchical_by_its_parts(n, inside):
    within, between = hierarchical_s(SIZE, n, inside, RATE, ALPHA, RATE / 10, 5 * ALPHA)
    local = min(n, inside)
    domains = -(-n // local)
    assert within == pytest.approx(float(domain_all_reduce_s(SIZE, local, RATE, ALPHA)))
    shard = ring_all_reduce_s(SIZE / local, domains, RATE / 10, 5 * ALPHA)
    assert between == pytest.approx(float(shard))
    assert (between == 0) == (n <= inside)
    assert (within == 0) == (local == 1)


def test_hierarchical_without_links_is_a_ring_on_the_network():
    within, between = hierarchical_s(SIZE, 16, 8, 0.0, ALPHA, RATE, ALPHA)
    assert within == 0
    assert between == ring_all_reduce_s(SIZE, 16, RATE, ALPHA)


@given(st.integers(1, 4096), st.integers(1, 64))
def test_more_ranks_take_no_less_time_between_domains(n, inside):
    _, fewer = hierarchical_s(SIZE, n, inside, RATE, ALPHA, RATE, ALPHA)
    _, more = hierarchical_s(SIZE, n + inside, inside, RATE, ALPHA, RATE, ALPHA)
    # From one domain on the shard has its size; before, it shrinks as the domain fills.
    if n >= inside:
        assert more >= fewer


def test_transfer_time():
    amount = np.array([0.0, 0.0, 5.0, 5.0, np.inf, 5.0])
    rate = np.array([0.0, 2.0, 0.0, 2.0, 0.0, np.inf])
    np.testing.assert_array_equal(transfer_time(amount, rate), [0, 0, np.inf, 2.5, np.inf, 0])
    # What is not a number is not hidden.
    assert np.isnan(transfer_time(np.nan, 1.0))


def test_positive_difference():
    a = np.array([3.0, 1.0, np.inf, 1.0, np.inf])
    b = np.array([1.0, 3.0, 1.0, np.inf, np.inf])
    np.testing.assert_array_equal(positive_difference(a, b), [2, 0, 0, 0, 0])
