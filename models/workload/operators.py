"""The operator table: what one phase of a model asks of one chip, as a struct of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from models.arrays import BoolArray, FloatArray

__all__ = ["Number", "Operator", "Operators"]

Number = FloatArray | float

# The columns of the table that are numbers, in the order of both classes below.
_COLUMNS = (
    "repeat",
    "parallel",
    "m",
    "k",
    "n",
    "weight_elements",
    "activation_elements",
    "kv_elements",
    "vector_flops",
    "gradient_elements",
)


@dataclass(frozen=True)
class Operator:
    """One row of an operator table while it is being built; see `Operators` for the columns."""

    name: str
    repeat: Number = 1.0
    parallel: Number = 1.0
    m: Number = 0.0
    k: Number = 0.0
    n: Number = 0.0
    weight_elements: Number = 0.0
    activation_elements: Number = 0.0
    kv_elements: Number = 0.0
    vector_flops: Number = 0.0
    gradient_elements: Number = 0.0
    attention: bool = False


@dataclass(frozen=True)
class Operators:
    r"""Operators of a phase on one chip of a tensor-parallel group, one row each.

    Every numeric column broadcasts to shape (operator, \*points), where points is the broadcast
    shape of what the caller gave (degrees of tensor parallelism, batches, contexts). A column that
    does not depend on a point axis has length 1 there. Counts are whole numbers held as floats,
    except means: the causal context of a query, the experts that a batch hits.

    Attributes
    ----------
    names : tuple of str
    repeat : ndarray
        Repetitions one after the other in the phase: the layers of this kind, 1 for embedding and
        head. Everything below is per repetition.
    parallel : ndarray
        GEMMs of this shape that are independent of each other, such as one per sequence and
        key-value head, or per expert.
    m, k, n : ndarray
        One GEMM, (m × k) · (k × n). The k × n operand is the stationary one: the weights of a
        linear layer, keys or values in attention. All 0 for a pure vector operator.
    weight_elements : ndarray
        Weights read once by all the parallel GEMMs together. An embedding look-up counts its rows.
    activation_elements : ndarray
        Activations read and written, each once. Scores stay on chip (FlashAttention,
        arXiv:2205.14135).
    kv_elements : ndarray
        KV-cache elements read and written.
    vector_flops : ndarray
        Elementwise FLOPs: norms, rotary embedding, softmax, SwiGLU, residual sums.
    gradient_elements : ndarray
        Weight gradients accumulated (read, added to, written back). Only in a backward pass.
    attention : ndarray of bool
        True where both operands are activations, so that a recipe's attention format applies
        rather than its matmul format. Shape (operator,).
    """

    names: tuple[str, ...]
    repeat: FloatArray
    parallel: FloatArray
    m: FloatArray
    k: FloatArray
    n: FloatArray
    weight_elements: FloatArray
    activation_elements: FloatArray
    kv_elements: FloatArray
    vector_flops: FloatArray
    gradient_elements: FloatArray
    attention: BoolArray

    @classmethod
    def of(cls, rows: Sequence[Operator]) -> Self:
        """Stack rows into a table."""
        columns = {
            column: [np.asarray(getattr(row, column), dtype=np.float64) for row in rows]
            for column in _COLUMNS
        }
        rank = max(value.ndim for values in columns.values() for value in values)
        return cls(
            names=tuple(row.name for row in rows),
            attention=np.array([row.attention for row in rows]),
            **{column: _stack(values, rank) for column, values in columns.items()},
        )

    @classmethod
    def concatenate(cls, tables: Iterable[Self]) -> Self:
        """Join tables over the same points: the phases of one step, say."""
        return cls.of([row for table in tables for row in table._rows()])

    def select(self, rows: BoolArray | Sequence[int]) -> Operators:
        """Return the table of some rows, given as a mask or as row numbers."""
        chosen = np.arange(len(self.names))[np.asarray(rows)]
        return Operators.of([row for index, row in enumerate(self._rows()) if index in chosen])

    def _rows(self) -> list[Operator]:
        return [
            Operator(
                name=name,
                attention=bool(self.attention[index]),
                **{column: getattr(self, column)[index] for column in _COLUMNS},
            )
            for index, name in enumerate(self.names)
        ]

    @property
    def points(self) -> tuple[int, ...]:
        """Shape of the points, without the operator axis."""
        return np.broadcast_shapes(*(getattr(self, column).shape[1:] for column in _COLUMNS))

    @property
    def flops(self) -> FloatArray:
        """Matrix FLOPs of each operator over all its repetitions; multiply-accumulate is two."""
        return 2.0 * self.repeat * self.parallel * self.m * self.k * self.n

    @property
    def total_flops(self) -> FloatArray:
        """Matrix FLOPs of the whole phase on this chip, shape points."""
        return np.asarray(np.broadcast_to(self.flops.sum(axis=0), self.points))

    def total(self, column: str) -> FloatArray:
        """Sum a per-repetition column over the phase on this chip, shape points."""
        per_operator = self.repeat * getattr(self, column)
        return np.asarray(np.broadcast_to(per_operator.sum(axis=0), self.points))

    def table(self, point: int | tuple[int, ...] = ()) -> list[dict[str, Any]]:
        """Return one point as a list of rows to print.

        Parameters
        ----------
        point : int or tuple of int
            Index into `points`; ``()`` when every argument was a scalar.
        """
        shape = (len(self.names), *self.points)
        numbers = {
            column: np.moveaxis(np.broadcast_to(getattr(self, column), shape), 0, -1)[point]
            for column in _COLUMNS
        }
        return [
            {
                "operator": name,
                **{column: float(values[row]) for column, values in numbers.items()},
                "attention": bool(self.attention[row]),
            }
            for row, name in enumerate(self.names)
        ]


def _stack(values: Sequence[FloatArray], rank: int) -> FloatArray:
    """Stack on a new first axis, each value padded to the rank and broadcast to the others."""
    padded = [value.reshape((1,) * (rank - value.ndim) + value.shape) for value in values]
    return np.stack(np.broadcast_arrays(*padded))
