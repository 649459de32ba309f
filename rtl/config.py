"""What a systolic matmul array is: one object for its hardware, its answers and its cycles.

Plain Python and NumPy: `models/` imports this module, so Amaranth is imported only by
`MatmulConfig.create`.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtl.cycles import matmul_cycles
from rtl.errors import InputError, lookup
from rtl.formats import FORMATS, NumberFormat, format_named

if TYPE_CHECKING:
    from rtl.array import SystolicArray

__all__ = ["DATAFLOWS", "MAX_SIDE", "MIN_SIDE", "MatmulConfig", "scaled"]

MIN_SIDE = 1
MAX_SIDE = 64

DATAFLOWS = {"ws": "weight-stationary"}


@dataclass(frozen=True)
class MatmulConfig:
    """Parameters of a systolic matmul array.

    The same object computes the product in NumPy, predicts the cycles and creates the hardware.

    Parameters
    ----------
    rows, cols : int
        Elements along K and along N, each from 1 to 64.
    dataflow : str
        ``"ws"``, weight-stationary: a tile of weights stays while activations stream through.
    operand_format : str
        Format of activations and weights; one whose `rtl.formats` entry has gateware.
    accumulator_format : str
        Format of the results: ``"int32"``.

    Raises
    ------
    InputError
        For a value outside of what is allowed; the message says what is.
    TypeError
        For a side that is not an integer or a name that is not a string.
    """

    rows: int
    cols: int
    dataflow: str = "ws"
    operand_format: str = "int8"
    accumulator_format: str = "int32"

    def __post_init__(self) -> None:
        for side in ("rows", "cols"):
            object.__setattr__(self, side, _checked_side(side, getattr(self, side)))
        for field in ("dataflow", "operand_format", "accumulator_format"):
            value = getattr(self, field)
            if not isinstance(value, str):
                raise TypeError(f"{field} must be a name such as 'int8', not {value!r}")
        lookup("dataflow", self.dataflow, DATAFLOWS)
        object.__setattr__(self, "dataflow", self.dataflow.lower())
        # Names are kept as the table spells them, so that equal arrays compare equal.
        object.__setattr__(self, "operand_format", format_named(self.operand_format).name)
        object.__setattr__(self, "accumulator_format", format_named(self.accumulator_format).name)
        if not self.operand.gateware:
            built = ", ".join(entry.name for entry in FORMATS.values() if entry.gateware)
            raise InputError(
                f"operand_format {self.operand_format!r} has no gateware yet; "
                f"build the array with {built}"
            )
        if self.accumulator_format != "int32":
            raise InputError(
                f"accumulator_format {self.accumulator_format!r} does not fit "
                f"{self.operand_format} operands; use int32"
            )

    @property
    def operand(self) -> NumberFormat:
        """Format of activations and weights."""
        return format_named(self.operand_format)

    @property
    def accumulator(self) -> NumberFormat:
        """Format of the results."""
        return format_named(self.accumulator_format)

    @property
    def elements(self) -> int:
        """Processing elements, each one multiply-accumulate a cycle."""
        return self.rows * self.cols

    @property
    def max_k(self) -> int:
        """Greatest K whose sums the accumulator holds for any operands."""
        spare_bits = self.accumulator.value_bits - self.operand.sum_bits(1)
        return (1 << (spare_bits + 1)) - 1

    def reference(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.int32]:
        """Multiply in NumPy, bit for bit as the hardware does.

        Parameters
        ----------
        a : array-like of integers, (M, K)
            Activations, within the operand format's range.
        b : array-like of integers, (K, N)
            Weights, within the operand format's range.

        Returns
        -------
        ndarray of int32, (M, N)
            The product; zeros when K is 0.

        Raises
        ------
        InputError
            For shapes that do not multiply, a value out of range or a K beyond `max_k`.
        TypeError
            For arrays that do not hold integers.
        """
        a, b = self._checked_operand("a", a), self._checked_operand("b", b)
        if a.shape[1] != b.shape[0]:
            raise InputError(
                f"a is {_shape(a)} and b is {_shape(b)}, but a's columns must equal b's rows (K); "
                f"transpose or cut one of them"
            )
        if a.shape[1] > self.max_k:
            raise InputError(
                f"K = {a.shape[1]:,} can overflow the {self.accumulator_format} accumulator; "
                f"{self.operand_format} allows K up to {self.max_k:,}: split K and add the parts"
            )
        # Every sum is an integer below 2**32, which float64 adds exactly, and BLAS is fast.
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int32)

    def cycles(self, m: int, k: int, n: int) -> int:
        """Predict the cycles of an (M, K) by (K, N) product; see `rtl.cycles.matmul_cycles`."""
        m, k, n = (_checked_size(name, size) for name, size in zip("mkn", (m, k, n)))
        return int(matmul_cycles(m, k, n, self.rows, self.cols))

    def utilization(self, m: int, k: int, n: int, cycles: int | None = None) -> float:
        """Share of the elements' cycles spent on the product: M·N·K / (rows·cols·cycles).

        Parameters
        ----------
        m, k, n : int
            Shape of the product.
        cycles : int, optional
            Measured cycles; the predicted ones when left out.

        Returns
        -------
        float
            From 0 to 1; 0 for an empty product.
        """
        taken = self.cycles(m, k, n) if cycles is None else cycles
        return m * n * k / (self.elements * taken) if taken else 0.0

    def create(self) -> SystolicArray:
        """Create the hardware."""
        from rtl.array import SystolicArray

        return SystolicArray(self)

    def _checked_operand(self, name: str, values: ArrayLike) -> NDArray[Any]:
        array = np.asarray(values)
        if array.ndim != 2:
            raise InputError(f"{name} must be a matrix, not an array of {array.ndim} dimensions")
        # An empty list has no dtype of its own; NumPy calls it float.
        if array.size and array.dtype.kind not in "iu":
            raise TypeError(f"{name} must hold integers, not {array.dtype}; quantize it first")
        low, high = self.operand.integer_range
        if array.size and (array.min() < low or array.max() > high):
            raise InputError(
                f"{name} holds values from {array.min()} to {array.max()}, but "
                f"{self.operand_format} holds {low} to {high}; scale or clip it"
            )
        return array


def scaled(rows: int, cols: int, factor: int) -> tuple[int, int]:
    """Shrink an array by an integer factor along each side.

    Parameters
    ----------
    rows, cols : int
        Sides of the array, of any size.
    factor : int
        What each side is divided by, at least 1.

    Returns
    -------
    tuple of int
        The sides, rounded to the nearest integer (halves up), at least 1.
    """
    if operator.index(factor) < 1:
        raise InputError(f"the scale must be an integer of at least 1, not {factor}")
    return tuple(max(1, (2 * side + factor) // (2 * factor)) for side in (rows, cols))  # type: ignore[return-value]


def _checked_side(name: str, value: object) -> int:
    side = _checked_integer(name, value)
    if not MIN_SIDE <= side <= MAX_SIDE:
        remedy = (
            "tile the product over several arrays, or scale the array down"
            if side > MAX_SIDE
            else "an array has at least one row and one column"
        )
        raise InputError(f"{name} must be from {MIN_SIDE} to {MAX_SIDE}, not {side}; {remedy}")
    return side


def _checked_size(name: str, value: object) -> int:
    size = _checked_integer(name, value)
    if size < 0:
        raise InputError(f"{name} must be 0 or more, not {size}")
    return size


def _checked_integer(name: str, value: object) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{name} must be an integer, not {value!r} ({type(value).__name__})"
        ) from None


def _shape(array: NDArray[Any]) -> str:
    return " × ".join(str(side) for side in array.shape)
