"""Operator times: the slowest of matrix compute, vector compute and HBM traffic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import FloatArray, transfer_time
from models.hardware.chip import MATMUL_FORMATS
from models.performance.machine import Machine
from models.performance.systolic import gemm_cycles
from models.workload.operators import Operators
from models.workload.recipes import Recipe

__all__ = ["BOUNDS", "OperatorTime", "PassTime", "operator_time", "pass_time"]

# What can bind an operator, in the order of `PassTime.bound_s`.
BOUNDS = ("compute", "vector", "hbm")
# Half of the SRAM holds operands; the other half receives the next ones.
DOUBLE_BUFFER = 0.5
# An activation tensor this small a share of the SRAM stays there until its consumer reads it.
RESIDENT_SHARE = 0.25
ACCUMULATOR_BYTES = 4
# Rows of an operator table, and their gradients, that stand outside the layers.
ENDS = ("embedding", "final_norm", "head")


@dataclass(frozen=True)
class OperatorTime:
    """One repetition of one operator on every design, shape (D, *points)."""

    compute_s: FloatArray
    vector_s: FloatArray
    hbm_s: FloatArray
    hbm_bytes: FloatArray

    @property
    def seconds(self) -> FloatArray:
        """The slowest of the three, which overlap."""
        return np.maximum(self.on_chip_s, self.hbm_s)

    @property
    def on_chip_s(self) -> FloatArray:
        """The time if every operand came from SRAM."""
        return np.maximum(self.compute_s, self.vector_s)


@dataclass(frozen=True)
class PassTime:
    """One pass through a whole model on one tensor-parallel chip, shape (D, *points).

    Attributes
    ----------
    layers_s, head_s : ndarray
        All layers one after the other; embedding and head.
    on_chip_s : ndarray
        Layers and head if weights and KV cache lived in SRAM.
    bound_s : ndarray, shape (3, D, *points)
        Layers and head by what binds each operator, in the order of `BOUNDS`.
    hbm_bytes, mac_j, feed_j, vector_j : ndarray
        Traffic, and energy of elements, their operands and the vector lanes.
    """

    layers_s: FloatArray
    head_s: FloatArray
    on_chip_s: FloatArray
    bound_s: FloatArray
    hbm_bytes: FloatArray
    mac_j: FloatArray
    feed_j: FloatArray
    vector_j: FloatArray

    @property
    def total_s(self) -> FloatArray:
        """Layers and head."""
        return self.layers_s + self.head_s


def operator_time(machine: Machine, ops: Operators, index: int, recipe: Recipe) -> OperatorTime:
    """Return the time of one repetition of one operator.

    Parameters
    ----------
    machine : Machine
        D designs.
    ops : Operators
    index : int
        Row of the table.
    recipe : Recipe
        Formats, hence bytes and array rates.

    Notes
    -----
    HBM traffic counts weights, KV cache and gradients once, activations unless they fit in a
    quarter of the SRAM, and re-reads of a matmul's operands. Re-reads follow the cheapest of three
    schedules in half of the SRAM: keep a panel of weights, keep a panel of activations, or keep a
    t × t block of fp32 sums with t = √(S/2/4), which reads activations n/t and weights m/t times
    (Hong and Kung, 1981, attain this bound up to a constant).
    """
    at = (slice(None),) + (None,) * len(ops.points)
    chips = machine.chips
    m, k, n = ops.m[index], ops.k[index], ops.n[index]
    parallel = ops.parallel[index]
    attention = bool(ops.attention[index])
    number_format = recipe.attention_format if attention else recipe.matmul_format
    rate = machine.rate(number_format)[at]
    has_format = rate > 0

    cycles = gemm_cycles(
        m,
        k,
        n,
        parallel,
        chips.rows[at] * np.where(has_format, rate, 1.0),
        chips.cols[at],
        chips.arrays[at] * has_format,
    )
    sram = chips.sram_bytes[at]
    activation_bytes = ops.activation_elements[index] * recipe.activation_bytes
    weight_bytes = ops.weight_elements[index] * recipe.weight_bytes
    traffic = np.where(activation_bytes <= RESIDENT_SHARE * sram, 0.0, activation_bytes)
    traffic = traffic + weight_bytes + ops.kv_elements[index] * recipe.kv_bytes
    # Accumulating a gradient reads it and writes it back.
    traffic = traffic + 2 * ops.gradient_elements[index] * recipe.gradient_bytes
    if not attention:
        inputs = m * k * parallel * recipe.activation_bytes
        stationary = k * n * parallel * recipe.weight_bytes
        traffic = traffic + _rereads(m, n, inputs, stationary, DOUBLE_BUFFER * sram)
    return OperatorTime(
        compute_s=transfer_time(cycles, machine.array_hz[at]),
        vector_s=transfer_time(ops.vector_flops[index], machine.vector_flops_per_s[at]),
        hbm_s=transfer_time(traffic, machine.hbm_bytes_per_s[at]),
        hbm_bytes=traffic,
    )


def _rereads(
    m: FloatArray, n: FloatArray, inputs: FloatArray, stationary: FloatArray, buffer: FloatArray
) -> FloatArray:
    """Return operand bytes read beyond the first time, for the cheapest of three schedules."""
    buffer = np.maximum(buffer, 1.0)
    block = np.sqrt(buffer / ACCUMULATOR_BYTES)
    keep_weights = (np.ceil(stationary / buffer) - 1) * inputs
    keep_activations = (np.ceil(inputs / buffer) - 1) * stationary
    keep_sums = np.maximum(n / block - 1, 0) * inputs + np.maximum(m / block - 1, 0) * stationary
    cheapest = np.minimum(np.minimum(keep_weights, keep_activations), keep_sums)
    return np.maximum(cheapest, 0.0)


def pass_time(machine: Machine, ops: Operators, recipe: Recipe) -> PassTime:
    """Return the time and energy of a pass: operators one after the other.

    Parameters
    ----------
    machine : Machine
        D designs.
    ops : Operators
        Over some points.
    recipe : Recipe
    """
    shape = (len(machine), *ops.points)
    layers_s, head_s, on_chip_s, hbm_bytes = (np.zeros(shape) for _ in range(4))
    bound_s = np.zeros((len(BOUNDS), *shape))
    for i in range(len(ops.names)):
        t = operator_time(machine, ops, i, recipe)
        repeat = ops.repeat[i]
        seconds = repeat * t.seconds
        if ops.names[i].startswith(ENDS):
            head_s += seconds
        else:
            layers_s += seconds
        on_chip_s += repeat * t.on_chip_s
        hbm_bytes += repeat * t.hbm_bytes
        by_hbm = t.hbm_s > t.on_chip_s
        by_vector = ~by_hbm & (t.vector_s > t.compute_s)
        bound_s[0] += np.where(by_hbm | by_vector, 0.0, seconds)
        bound_s[1] += np.where(by_vector, seconds, 0.0)
        bound_s[2] += np.where(by_hbm, seconds, 0.0)

    at = (slice(None),) + (None,) * len(ops.points)
    attention_flops = ops.flops[ops.attention].sum(axis=0)
    linear_flops = ops.flops[~ops.attention].sum(axis=0)
    vector_flops = (ops.repeat * ops.vector_flops).sum(axis=0)

    def matrix_j(by_format: FloatArray) -> FloatArray:
        linear = by_format[:, MATMUL_FORMATS.index(recipe.matmul_format)][at] * linear_flops
        attention = (
            by_format[:, MATMUL_FORMATS.index(recipe.attention_format)][at] * attention_flops
        )
        total: FloatArray = linear + attention
        return total

    return PassTime(
        layers_s=layers_s,
        head_s=head_s,
        on_chip_s=on_chip_s,
        bound_s=bound_s,
        hbm_bytes=hbm_bytes,
        mac_j=matrix_j(machine.energy.mac_j_per_flop),
        feed_j=matrix_j(machine.energy.feed_j_per_flop),
        vector_j=machine.vector_j_per_flop[at] * vector_flops,
    )
