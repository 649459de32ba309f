"""Collectives on the scale-up domain and on the scale-out network."""

from __future__ import annotations

import numpy as np

from models.arrays import ArrayLike, FloatArray, transfer_time

__all__ = ["domain_all_reduce_s", "hierarchical_s", "ring_all_reduce_s", "send_s"]


def ring_all_reduce_s(
    size_bytes: ArrayLike, ranks: ArrayLike, bytes_per_s: ArrayLike, latency_s: ArrayLike
) -> FloatArray:
    """Return the time of a ring all-reduce, 2(n − 1)/n · S/B + 2(n − 1)·α (Thakur et al., 2005).

    A reduce-scatter and an all-gather of the same buffer take half of it each. One rank takes no
    time.

    Parameters
    ----------
    size_bytes : array_like
        Buffer on each rank.
    ranks : array_like
        n.
    bytes_per_s : array_like
        Rate per rank and direction.
    latency_s : array_like
        α, per step.
    """
    n = np.maximum(np.asarray(ranks, dtype=np.float64), 1.0)
    moved = 2 * (n - 1) / n * np.asarray(size_bytes, dtype=np.float64)
    latency: FloatArray = 2 * (n - 1) * np.asarray(latency_s, dtype=np.float64)
    return transfer_time(moved, bytes_per_s) + latency


def domain_all_reduce_s(
    size_bytes: ArrayLike, ranks: ArrayLike, bytes_per_s: ArrayLike, latency_s: ArrayLike
) -> FloatArray:
    """Return the time of an all-reduce through the domain's switch.

    Every rank exchanges its shards with all others at once: the bytes of a ring in two exchanges,
    so 2(n − 1)/n · S/B + 2·α.
    """
    n = np.maximum(np.asarray(ranks, dtype=np.float64), 1.0)
    moved = 2 * (n - 1) / n * np.asarray(size_bytes, dtype=np.float64)
    return transfer_time(moved, bytes_per_s) + np.where(n > 1, 2 * np.asarray(latency_s), 0.0)


def hierarchical_s(
    size_bytes: ArrayLike,
    ranks: ArrayLike,
    inside: ArrayLike,
    domain_bytes_per_s: ArrayLike,
    domain_latency_s: ArrayLike,
    network_bytes_per_s: ArrayLike,
    network_latency_s: ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Return the times inside and between domains of an all-reduce over `ranks`.

    Reduce-scatter in the domain, ring all-reduce of each shard between domains, all-gather in the
    domain; the times add. Domains without links reduce over the network ports alone.

    Parameters
    ----------
    ranks : array_like
        All ranks.
    inside : array_like
        How many of them share a domain. Where it does not divide `ranks`, the last domain has
        fewer and the ring is as long as if it were full.
    """
    local = np.minimum(inside, np.maximum(ranks, 1.0))
    local = np.where(np.asarray(domain_bytes_per_s) > 0, local, 1.0)
    within = domain_all_reduce_s(size_bytes, local, domain_bytes_per_s, domain_latency_s)
    between = ring_all_reduce_s(
        np.asarray(size_bytes) / local,
        np.ceil(np.asarray(ranks) / local),
        network_bytes_per_s,
        network_latency_s,
    )
    return within, between


def send_s(size_bytes: ArrayLike, bytes_per_s: ArrayLike, latency_s: ArrayLike) -> FloatArray:
    """Return the time of one point-to-point message, S/B + α; nothing takes no time."""
    size = np.asarray(size_bytes, dtype=np.float64)
    return transfer_time(size, bytes_per_s) + np.where(size > 0, latency_s, 0.0)
