"""The arithmetic of one element: multiply two operands, add the product to a partial sum."""

from amaranth.hdl import Shape, Value, signed

from rtl.formats import NumberFormat

__all__ = ["accumulate", "multiply", "operand_shape", "sum_shape"]


def operand_shape(operand: NumberFormat) -> Shape:
    """Shape of an activation or a weight."""
    return signed(operand.value_bits)


def sum_shape(operand: NumberFormat, terms: int) -> Shape:
    """Shape of a sum of products, wide enough for any operands and no wider."""
    return signed(operand.sum_bits(terms))


def multiply(activation: Value, weight: Value) -> Value:
    """Multiply two signed operands, exactly.

    The operands may be slices, which Amaranth makes unsigned, so their sign is stated here.
    """
    return Value.cast(activation).as_signed() * Value.cast(weight).as_signed()


def accumulate(partial: Value, product: Value) -> Value:
    """Add a signed product to a signed partial sum, exactly."""
    return Value.cast(partial).as_signed() + Value.cast(product).as_signed()
