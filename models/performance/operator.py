"""Operator times: the slowest of matrix compute, vector compute and HBM traffic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.arrays import BoolArray, FloatArray, Scalar, transfer_time
from models.hardware.chip import MATMUL_FORMATS
from models.performance.machine import Machine
from models.performance.systolic import gemm_cycles
from models.workload.operators import Operators
from models.workload.recipes import Recipe
from rtl.formats import format_named

__all__ = ["BOUNDS", "OperatorTimes", "PassTime", "operator_times", "pass_time"]

# What can bind an operator, in the order of `PassTime.bound_s`.
BOUNDS = ("compute", "vector", "hbm")
# Half of the SRAM holds operands; the other half receives the next ones.
DOUBLE_BUFFER = 0.5
# In serving, activations this small a share of the SRAM stay there until their consumer reads them.
RESIDENT_SHARE = 0.25
ACCUMULATOR_BYTES = 4
# Rows of an operator table, and their gradients, that stand outside the layers.
ENDS = ("embedding", "final_norm", "head")


@dataclass(frozen=True)
class OperatorTimes:
    """One repetition of each of O operators on every design, shape (O, D, *points)."""

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
        All layers one after the other; embedding, final norm and head.
    on_chip_layers_s, on_chip_head_s : ndarray
        The same if weights and KV cache lived in SRAM.
    bound_s, on_chip_bound_s : ndarray, shape (3, D, *points)
        Layers and head by what binds each operator, in the order of `BOUNDS`; the same if weights
        and KV cache lived in SRAM.
    hbm_bytes, mac_j, feed_j, vector_j : ndarray
        Traffic, and energy of elements, of their operands through SRAM and of the vector lanes.
    working_bytes : ndarray, shape points
        Activations that the largest operator reads and writes.
    """

    layers_s: FloatArray
    head_s: FloatArray
    on_chip_layers_s: FloatArray
    on_chip_head_s: FloatArray
    bound_s: FloatArray
    on_chip_bound_s: FloatArray
    hbm_bytes: FloatArray
    mac_j: FloatArray
    feed_j: FloatArray
    vector_j: FloatArray
    working_bytes: FloatArray


def operator_times(machine: Machine, ops: Operators, recipe: Recipe) -> OperatorTimes:
    """Return the time of one repetition of every operator of a table.

    Parameters
    ----------
    machine : Machine
        D designs.
    ops : Operators
    recipe : Recipe
        Formats, hence bytes and array rates.

    Notes
    -----
    HBM traffic counts weights and KV cache once and gradients twice (accumulating reads and writes
    them); activations, which training always writes out for its backward pass, and serving where
    they exceed a quarter of the SRAM; and re-reads of a linear layer's operands. Attention has no
    re-reads: a block of queries meets keys and values that stream by once.
    """
    points = len(ops.points)
    chips = machine.chips

    def by_design(values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Lay (D,) or (O, D) along the axes of (O, D, *points)."""
        return values.reshape(values.shape + (1,) * points)

    m, k, n, parallel = (c[:, None] for c in (ops.m, ops.k, ops.n, ops.parallel))
    attention = ops.attention[:, None]
    rate = np.where(
        attention, machine.rate(recipe.attention_format), machine.rate(recipe.matmul_format)
    )
    cycles = gemm_cycles(
        m,
        k,
        n,
        parallel,
        by_design(chips.rows),
        by_design(chips.cols),
        by_design(chips.arrays * (rate > 0)),
        by_design(np.where(rate > 0, rate, 1.0)),
    )
    sram = by_design(chips.sram_bytes)
    activations = ops.activation_elements[:, None] * recipe.activation_bytes
    if not recipe.training:
        activations = np.where(activations <= RESIDENT_SHARE * sram, 0.0, activations)
    once = ops.weight_elements * recipe.weight_bytes + ops.kv_elements * recipe.kv_bytes
    once = once + 2 * ops.gradient_elements * recipe.gradient_bytes
    again = parallel * _rereads(
        m,
        n,
        m * k * recipe.activation_bytes,
        k * n * recipe.weight_bytes,
        DOUBLE_BUFFER * sram,
    )
    traffic = once[:, None] + activations + np.where(by_design(attention), 0.0, again)
    return OperatorTimes(
        compute_s=transfer_time(cycles, by_design(machine.array_hz)),
        vector_s=transfer_time(ops.vector_flops[:, None], by_design(machine.vector_flops_per_s)),
        hbm_s=transfer_time(traffic, by_design(machine.hbm_bytes_per_s)),
        hbm_bytes=traffic,
    )


def _rereads(
    m: FloatArray, n: FloatArray, inputs: FloatArray, stationary: FloatArray, buffer: FloatArray
) -> FloatArray:
    """Return the operand bytes that one matmul reads beyond the first time.

    The cheapest of three schedules: keep a panel of weights in the buffer of S bytes, keep a panel
    of activations, or keep a t × t block of fp32 sums with t = √(S/4), which reads activations n/t
    and weights m/t times (Hong and Kung, 1981, attain this bound up to a constant).
    """
    buffer = np.maximum(buffer, 1.0)
    block = np.sqrt(buffer / ACCUMULATOR_BYTES)
    keep_weights = np.maximum(np.ceil(stationary / buffer) - 1, 0.0) * inputs
    keep_activations = np.maximum(np.ceil(inputs / buffer) - 1, 0.0) * stationary
    keep_sums = np.maximum(n / block - 1, 0) * inputs + np.maximum(m / block - 1, 0) * stationary
    cheapest: FloatArray = np.minimum(np.minimum(keep_weights, keep_activations), keep_sums)
    return cheapest


def _bytes(format_name: str) -> float:
    return format_named(format_name).bytes_per_element


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
    t = operator_times(machine, ops, recipe)
    repeat = ops.repeat[:, None]
    on_chip_s = repeat * t.on_chip_s
    seconds = np.maximum(on_chip_s, repeat * t.hbm_s)
    outside = np.array([name.startswith(ENDS) for name in ops.names])
    by_hbm = t.hbm_s > t.on_chip_s
    by_vector = t.vector_s > t.compute_s

    def total(values: FloatArray, where: BoolArray) -> FloatArray:
        """Sum over the operators for which `where` holds."""
        summed: FloatArray = np.where(where, values, 0.0).sum(axis=0)
        return summed

    bound_s = [
        total(seconds, ~by_hbm & ~by_vector),
        total(seconds, ~by_hbm & by_vector),
        total(seconds, by_hbm),
    ]
    on_chip_bound_s = [total(on_chip_s, ~by_vector), total(on_chip_s, by_vector)]
    on_chip_bound_s.append(np.zeros_like(on_chip_bound_s[0]))

    at = (slice(None),) + (None,) * len(ops.points)
    attention_flops = ops.flops[ops.attention].sum(axis=0)
    linear_flops = ops.flops[~ops.attention].sum(axis=0)
    loaded = ops.repeat * ops.parallel * ops.k * ops.n
    loaded_bytes = loaded[ops.attention].sum(axis=0) * _bytes(recipe.attention_format)
    loaded_bytes = loaded_bytes + loaded[~ops.attention].sum(axis=0) * _bytes(recipe.matmul_format)

    def matrix_j(by_format: FloatArray) -> FloatArray:
        linear = by_format[:, MATMUL_FORMATS.index(recipe.matmul_format)][at] * linear_flops
        attention = (
            by_format[:, MATMUL_FORMATS.index(recipe.attention_format)][at] * attention_flops
        )
        total: FloatArray = linear + attention
        return total

    return PassTime(
        layers_s=seconds[~outside].sum(axis=0),
        head_s=seconds[outside].sum(axis=0),
        on_chip_layers_s=on_chip_s[~outside].sum(axis=0),
        on_chip_head_s=on_chip_s[outside].sum(axis=0),
        bound_s=np.stack(bound_s),
        on_chip_bound_s=np.stack(on_chip_bound_s),
        hbm_bytes=(repeat * t.hbm_bytes).sum(axis=0),
        mac_j=matrix_j(machine.energy.mac_j_per_flop),
        feed_j=matrix_j(machine.energy.feed_j_per_flop)
        + machine.energy.sram_j_per_byte[at] * loaded_bytes,
        vector_j=machine.vector_j_per_flop[at] * ops.total("vector_flops"),
        working_bytes=ops.activation_elements.max(axis=0) * recipe.activation_bytes,
    )
