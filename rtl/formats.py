"""The number formats: one table, read by the gateware, by the models and by the documents."""

from dataclasses import dataclass
from typing import Literal

from rtl.errors import lookup

__all__ = ["FORMATS", "NumberFormat", "format_named"]


@dataclass(frozen=True)
class NumberFormat:
    """A number format: how many bits an element takes and what they mean.

    Attributes
    ----------
    name : str
        Name as scenarios and command lines spell it.
    kind : "int" or "float"
        Two's complement integer, or sign, exponent and mantissa.
    exponent_bits, mantissa_bits : int
        Fields of a float, the mantissa without its hidden bit; an integer has no exponent and
        counts its bits below the sign as mantissa.
    storage_bits : int
        Bits an element takes in memory, its share of a block scale not counted.
    block_size : int
        Elements that share one scale; 1 for a format without scales.
    scale_bits : int
        Bits of that scale; 0 for a format without scales.
    gateware : bool
        Whether `rtl.array` can be built for this operand format today.
    """

    name: str
    kind: Literal["int", "float"]
    exponent_bits: int
    mantissa_bits: int
    storage_bits: int
    block_size: int = 1
    scale_bits: int = 0
    gateware: bool = False

    @property
    def value_bits(self) -> int:
        """Bits that carry the value: the sign, the exponent and the mantissa."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bits_per_element(self) -> float:
        """Bits an element takes in memory with its share of the block scale."""
        return self.storage_bits + self.scale_bits / self.block_size

    @property
    def bytes_per_element(self) -> float:
        """Bytes an element takes in memory with its share of the block scale."""
        return self.bits_per_element / 8

    @property
    def multiplier_bits(self) -> int:
        """Width of the significand product's operands: what a multiplier's area grows with."""
        return self.value_bits if self.kind == "int" else 1 + self.mantissa_bits

    @property
    def integer_range(self) -> tuple[int, int]:
        """Least and greatest value of an integer format.

        Raises
        ------
        TypeError
            For a float, whose range is no pair of integers.
        """
        if self.kind != "int":
            raise TypeError(f"{self.name} is a float format; only integers have an integer range")
        return -(1 << self.mantissa_bits), (1 << self.mantissa_bits) - 1

    def sum_bits(self, terms: int) -> int:
        """Bits that a sum of products of two integers needs, whatever the operands.

        Parameters
        ----------
        terms : int
            Products in the sum, at least one.

        Returns
        -------
        int
            ``2 * value_bits + floor(log2(terms))``. The greatest sum is that of the least operand
            with itself, ``terms * 2**(2 * value_bits - 2)``, and it is positive.
        """
        if self.kind != "int":
            raise TypeError(f"{self.name} is a float format; only integer sums have exact widths")
        return 2 * self.value_bits + terms.bit_length() - 1


# Widths: IEEE 754-2019 (fp32, fp16); NVIDIA A100 white paper (tf32: 19 bits that travel as 32);
# the OCP 8-bit floating point specification (fp8) and the OCP Microscaling specification 1.0
# (fp4 is E2M1; mx blocks are 32 elements with one E8M0 scale).
FORMATS: dict[str, NumberFormat] = {
    entry.name: entry
    for entry in (
        NumberFormat("fp32", "float", 8, 23, 32),
        NumberFormat("tf32", "float", 8, 10, 32),
        NumberFormat("bf16", "float", 8, 7, 16),
        NumberFormat("fp16", "float", 5, 10, 16),
        NumberFormat("fp8_e4m3", "float", 4, 3, 8),
        NumberFormat("fp8_e5m2", "float", 5, 2, 8),
        NumberFormat("fp4", "float", 2, 1, 4),
        NumberFormat("mxfp8", "float", 4, 3, 8, block_size=32, scale_bits=8),
        NumberFormat("mxfp4", "float", 2, 1, 4, block_size=32, scale_bits=8),
        NumberFormat("int32", "int", 0, 31, 32),
        NumberFormat("int8", "int", 0, 7, 8, gateware=True),
        NumberFormat("int4", "int", 0, 3, 4),
        # Weights of W4A8: a 16-bit scale and a 16-bit zero for every 128.
        NumberFormat("int4_g128", "int", 0, 3, 4, block_size=128, scale_bits=32),
    )
}


def format_named(name: str) -> NumberFormat:
    """Find a number format by name, in any case of letters.

    Raises
    ------
    InputError
        For an unknown name; the message suggests the nearest.
    """
    return lookup("format", name, FORMATS)
