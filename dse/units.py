"""Numbers as an instrument shows them: three significant digits and a unit."""

from __future__ import annotations

import math

__all__ = ["percent", "quantity", "significant"]

_PREFIXES = (
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
)


def significant(value: float | None, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, without an exponent up to a million.

    None, for what there is no figure of, is a dash.
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "?"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - magnitude)
    if abs(rounded) >= 1e6 or abs(rounded) < 1e-4:
        return f"{rounded:.{digits - 1}e}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)
    return f"{rounded:,.{decimals}f}"


def quantity(value: float, unit: str) -> str:
    """Return a number with an SI prefix and a unit: ``quantity(0.0173, "s")`` is ``17.3 ms``."""
    if value == 0 or not math.isfinite(value):
        return f"{significant(value)} {unit}"
    for scale, prefix in _PREFIXES:
        # Rounding to three digits may carry into the next prefix: 999.7 is 1.00 k.
        if abs(value) >= scale * 0.9995:
            return f"{significant(value / scale)} {prefix}{unit}"
    return f"{significant(value)} {unit}"


def percent(share: float, *, signed: bool = False) -> str:
    """Return a share in percent: whole from ten, one decimal below; ``signed`` for a change."""
    value = 100 * share
    text = f"{value:.0f}" if abs(value) >= 9.95 else f"{value:.1f}"
    return f"{'+' if signed and value > 0 else ''}{text}%"
