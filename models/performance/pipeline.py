"""What training and serving share: pipeline stages, exchanges between chips, phase results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import BoolArray, FloatArray
from models.hardware.chip import PARTS
from models.performance.collectives import domain_all_reduce_s, send_s
from models.performance.machine import Machine
from models.performance.mapping import Winners, expand
from models.performance.operator import BOUNDS
from models.results import PhaseResult
from models.workload.recipes import Recipe
from models.workload.transformer import Transformer

__all__ = [
    "PhaseTotals",
    "all_reduce_latency_s",
    "hop_s",
    "inside_domain",
    "layer_all_reduce_s",
    "operator_bounds",
    "phase_result",
    "stage_parameters",
    "stage_s",
]

# Partial sums travel between chips in 16 bits, however narrow the activations are.
PARTIAL_SUM_BYTES = 2


def stage_parameters(model: Transformer, tp: FloatArray, pp: FloatArray) -> FloatArray:
    """Return the parameters on the fullest chip: ⌈L/PP⌉ layers, and embedding or head.

    The first stage has the embedding table and the last one the head, which is a copy of it where
    they are tied; without a pipeline one chip has both, and a tied table once.
    """
    table = model.embedding_parameters
    tables = table * (1 if model.tied_embeddings else 2)
    share = np.ceil(model.layers / pp) / model.layers
    return ((model.parameters - tables) * share + np.where(pp > 1, table, tables)) / tp


def layer_all_reduce_s(
    machine: Machine, model: Transformer, tokens: FloatArray, tp: FloatArray, recipe: Recipe
) -> FloatArray:
    """Return the time of one all-reduce of a layer's activations over a tensor-parallel group."""
    element = max(recipe.activation_bytes, PARTIAL_SUM_BYTES)
    links = expand(machine.link_bytes_per_s, np.ndim(tokens))
    return domain_all_reduce_s(tokens * model.hidden * element, tp, links, machine.domain_latency_s)


def all_reduce_latency_s(machine: Machine, tp: FloatArray) -> FloatArray:
    """Return what a tensor-parallel all-reduce waits however fast the links are: two exchanges."""
    return np.where(tp > 1, 2 * machine.domain_latency_s, 0.0)


def stage_s(
    layers_s: FloatArray, head_s: FloatArray, layers: int, stages: FloatArray
) -> FloatArray:
    """Return the time of the slowest of `stages` pipeline stages.

    It has ⌈L/PP⌉ layers, or the mean share of layers and head together when that is more: layers
    are placed so that the head's stage carries fewer of them.

    Parameters
    ----------
    layers_s, head_s : ndarray
        All layers; embedding and head.
    layers : int
    stages : ndarray
        PP.
    """
    whole = np.ceil(layers / stages) / layers * layers_s
    return np.maximum(whole, (layers_s + head_s) / stages)


def inside_domain(machine: Machine, tp: FloatArray, pp: FloatArray) -> BoolArray:
    """Return where a whole model fits in a domain whose chips have links."""
    links = expand(machine.link_bytes_per_s, np.ndim(tp))
    inside: BoolArray = (tp * pp <= machine.domain) & (links > 0)
    return inside


def hop_s(machine: Machine, size_bytes: FloatArray, tp: FloatArray, pp: FloatArray) -> FloatArray:
    """Return the time to hand activations to the next stage; 0 without a pipeline.

    A model that fits in one domain hands over through its links, others through the network ports.

    Parameters
    ----------
    machine : Machine
    size_bytes, tp, pp : ndarray
        Over mapping axes, without a design axis.
    """
    inside = inside_domain(machine, tp, pp)
    links = expand(machine.link_bytes_per_s, np.ndim(size_bytes))
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
    mapping: dict[str, FloatArray],
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
    mapping : dict of str to ndarray, shape (D,)
        The winners' axes and what follows from them.
    totals : PhaseTotals
    bound_s : dict of str to ndarray, shape (D,)
        What `latency_s` divides into.
    latency_s : ndarray, shape (D,)
        Time that a user sees: a step, a first token, a token.
    """
    seconds = totals.seconds
    finite = np.isfinite(seconds)

    def per_s(amount: FloatArray) -> FloatArray:
        return np.divide(amount, seconds, out=np.zeros_like(seconds), where=finite)

    power_w = machine.energy.static_w.copy()
    power_w[:, PARTS.index("compute")] += per_s(totals.mac_j + totals.vector_j)
    power_w[:, PARTS.index("sram")] += per_s(totals.feed_j)
    power_w[:, PARTS.index("hbm")] += per_s(totals.hbm_bytes * machine.energy.hbm_j_per_byte)
    idle_chips = np.maximum(totals.paid_chips - totals.chips, 0.0)
    idle_w = machine.energy.total_static_w + machine.overhead_w
    working_w = power_w.sum(axis=1) + machine.overhead_w
    at_wall_w = (working_w * totals.chips + idle_w * idle_chips) * machine.pue
    throttle = np.divide(totals.roof_s, seconds, out=np.ones_like(seconds), where=finite)
    return PhaseResult(
        recipes=(recipe,),
        recipe=np.zeros(len(machine), dtype=np.int64),
        usd=won.usd,
        seconds=latency_s,
        joules=at_wall_w * seconds / totals.units,
        # A fleet whose power does not feed one chip has none.
        tokens_per_s=per_s(totals.tokens / np.maximum(totals.paid_chips, 1.0)),
        chips=totals.chips,
        mapping=mapping,
        largest=won.largest,
        bound_s=bound_s,
        power_w=power_w,
        clock_hz=machine.chips.clock_hz * throttle,
        memory_bytes=totals.memory_bytes,
        mappings_feasible=won.feasible,
        mappings_tried=won.tried,
        constraints=won.constraints,
    )
