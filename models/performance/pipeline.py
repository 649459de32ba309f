"""What training and serving share: pipeline stages, hand-over between them, phase results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import FloatArray, transfer_time
from models.hardware.chip import PARTS
from models.performance.collectives import send_s
from models.performance.machine import Machine
from models.performance.mapping import Winners, expand
from models.performance.operator import BOUNDS
from models.results import PhaseResult

__all__ = ["PhaseTotals", "hop_s", "operator_bounds", "phase_result", "stage_s"]


def stage_s(
    layers_s: FloatArray, total_s: FloatArray, layers: int, stages: FloatArray
) -> FloatArray:
    """Return the time of the slowest of `stages` pipeline stages.

    It has ⌈L/PP⌉ layers, or the mean share of layers and head together when that is more: layers
    are placed so that the head's stage carries fewer of them.

    Parameters
    ----------
    layers_s, total_s : ndarray
        All layers; layers, embedding and head.
    layers : int
    stages : ndarray
        PP.
    """
    whole = np.ceil(layers / stages) / layers * layers_s
    return np.maximum(whole, total_s / stages)


def hop_s(machine: Machine, size_bytes: FloatArray, tp: FloatArray, pp: FloatArray) -> FloatArray:
    """Return the time to hand activations to the next stage; 0 without a pipeline.

    A model that fits in one domain hands over through its links, others through the network ports.

    Parameters
    ----------
    machine : Machine
    size_bytes, tp, pp : ndarray
        Over mapping axes, without a design axis.
    """
    dimensions = np.ndim(size_bytes)
    links = expand(machine.link_bytes_per_s, dimensions)
    inside = (tp * pp <= machine.domain) & (links > 0)
    rate = np.where(inside, links, machine.network_bytes_per_s)
    latency = np.where(inside, machine.domain_latency_s, machine.network_latency_s)
    return send_s(np.where(pp > 1, size_bytes, 0.0), rate, latency)


def operator_bounds(parts: FloatArray, seconds: FloatArray) -> dict[str, FloatArray]:
    """Divide a stage's operator time by what binds each operator.

    Parameters
    ----------
    parts : ndarray, shape (len(BOUNDS), D)
        Operator time of a whole pass by bound.
    seconds : ndarray, shape (D,)
        Operator time to divide in these proportions; 0 where infinite, since nothing is known.
    """
    total = parts.sum(axis=0)
    known = np.isfinite(total) & (total > 0) & np.isfinite(seconds)
    divided = np.zeros_like(parts)
    divided[:, known] = parts[:, known] / total[known] * seconds[known]
    return dict(zip(BOUNDS, divided))


@dataclass(frozen=True)
class PhaseTotals:
    """Figures of a phase at each design's best mapping, shape (D,).

    `seconds` covers one step of `chips` chips, for which `paid_chips` are bought and powered; the
    energies and `hbm_bytes` are per working chip and step, above static power. `units` of work come
    out of a step.
    """

    seconds: FloatArray
    roof_s: FloatArray
    chips: FloatArray
    paid_chips: FloatArray
    units: FloatArray
    tokens: FloatArray
    mac_j: FloatArray
    feed_j: FloatArray
    vector_j: FloatArray
    hbm_bytes: FloatArray
    memory_bytes: FloatArray


def phase_result(
    machine: Machine,
    recipe: str,
    won: Winners,
    totals: PhaseTotals,
    bound_s: dict[str, FloatArray],
    latency_s: FloatArray,
) -> PhaseResult:
    """Turn the winners' figures into a result.

    Parameters
    ----------
    machine : Machine
    recipe : str
    won : Winners
    totals : PhaseTotals
    bound_s : dict of str to ndarray, shape (D,)
        What `latency_s` divides into.
    latency_s : ndarray, shape (D,)
        Time that a user sees: a step, a first token, a token.
    """
    seconds = totals.seconds

    def mean_w(joules: FloatArray) -> FloatArray:
        return np.where(np.isfinite(seconds), transfer_time(joules, seconds), 0.0)

    power_w = machine.energy.static_w.copy()
    power_w[:, PARTS.index("compute")] += mean_w(totals.mac_j + totals.vector_j)
    power_w[:, PARTS.index("sram")] += mean_w(totals.feed_j)
    power_w[:, PARTS.index("hbm")] += mean_w(totals.hbm_bytes * machine.energy.hbm_j_per_byte)
    idle_chips = np.maximum(totals.paid_chips - totals.chips, 0.0)
    idle_w = machine.energy.total_static_w + machine.overhead_w
    working_w = power_w.sum(axis=1) + machine.overhead_w
    at_wall_w = (working_w * totals.chips + idle_w * idle_chips) * machine.pue
    finite = np.isfinite(seconds)
    throttle = np.ones_like(seconds)
    throttle[finite] = transfer_time(totals.roof_s[finite], seconds[finite])
    return PhaseResult(
        recipes=(recipe,),
        recipe=np.zeros(len(machine), dtype=np.int64),
        usd=won.usd,
        seconds=latency_s,
        joules=at_wall_w * seconds / totals.units,
        tokens_per_s=np.where(
            finite, transfer_time(totals.tokens, seconds * totals.paid_chips), 0.0
        ),
        chips=totals.chips,
        mapping=won.mapping,
        bound_s=bound_s,
        power_w=power_w,
        clock_hz=machine.chips.clock_hz * throttle,
        memory_bytes=totals.memory_bytes,
        mappings_feasible=won.feasible,
        mappings_tried=won.tried,
        constraints=won.constraints,
    )
