"""Physical and cost coefficients, each with a range and a source.

The numbers live in ``models/data/technology.toml``; code holds names, never values.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from models.arrays import FloatArray
from rtl.errors import InputError, lookup, unknown

__all__ = [
    "DATAPATHS",
    "HBM_TYPES",
    "LINK_TYPES",
    "NETWORKS",
    "NODES",
    "STYLES",
    "Coefficient",
    "Technology",
]

# The order of each tuple is its integer code in arrays of chips.
NODES = ("n7", "n5")
STYLES = ("systolic", "simt")
DATAPATHS = ("bf16", "fp8", "int8")
HBM_TYPES = ("hbm2", "hbm2e", "hbm3", "hbm3e", "hbm3e-12h", "hbm4")
LINK_TYPES = ("serdes-50g", "serdes-112g")
NETWORKS = ("infiniband-ndr", "ethernet-800g")

_FIELDS = ("low", "nominal", "high", "unit", "quality", "source")


@dataclass(frozen=True)
class Coefficient:
    """One figure of the technology table.

    Attributes
    ----------
    name : str
        Path in the table, such as ``"hbm.hbm3e.pj_per_bit"``.
    low, nominal, high : float
        Range that a sensitivity study sweeps, and the value used otherwise.
    unit : str
    quality : str
        S read in the source, R recalled from it, D derived, A assumed.
    source : str
    """

    name: str
    low: float
    nominal: float
    high: float
    unit: str
    quality: str
    source: str

    def __post_init__(self) -> None:
        if not self.low <= self.nominal <= self.high:
            raise InputError(
                f"coefficient {self.name}: nominal {self.nominal:g} is outside its range "
                f"{self.low:g} to {self.high:g}; widen the range or correct the value"
            )
        if self.quality not in ("S", "R", "D", "A"):
            raise InputError(
                f"coefficient {self.name}: quality {self.quality!r} is not one of S, R, D, A"
            )


@dataclass(frozen=True)
class Technology:
    """The coefficient table, read by path.

    ``technology["hbm.edge_mm"]`` is a nominal value;
    ``technology.column("sram.mm2_per_mb", NODES)`` is an array indexed by node code.
    """

    coefficients: Mapping[str, Coefficient]

    @classmethod
    @cache
    def default(cls) -> Technology:
        """Return the table that the project ships."""
        text = files("models").joinpath("data", "technology.toml").read_text(encoding="utf-8")
        return cls({c.name: c for c in _leaves("", tomllib.loads(text))})

    def __getitem__(self, name: str) -> float:
        if name not in self.coefficients:
            raise unknown("coefficient", name, self.coefficients)
        return self.coefficients[name].nominal

    def find(self, prefix: str) -> list[Coefficient]:
        """Return the coefficients at or below a path, or with a part of that name anywhere.

        ``"hbm"`` finds all that starts with ``hbm.``, ``"n5"`` all of that node; parts match whole,
        in any case of letters.

        Raises
        ------
        InputError
            If there are none.
        """
        path = prefix.lower().rstrip(".")
        matches = [
            c
            for c in self.coefficients.values()
            if f"{c.name.lower()}.".startswith(f"{path}.") or path in c.name.lower().split(".")
        ]
        if not matches:
            raise unknown("coefficient", prefix, self.coefficients)
        return matches

    def column(self, path: str, codes: tuple[str, ...]) -> FloatArray:
        """Return nominal values indexed by a code.

        Parameters
        ----------
        path : str
            Path with ``{}`` where the code's name goes; without one, the name is appended.
        codes : tuple of str
            Such as `NODES`.

        Returns
        -------
        ndarray, shape (len(codes),)
        """
        template = path if "{}" in path else path + ".{}"
        return np.array([self[template.format(code)] for code in codes], dtype=np.float64)

    def with_values(self, values: Mapping[str, float]) -> Technology:
        """Return a table in which some nominal values are replaced; ranges widen to hold them."""
        changed = dict(self.coefficients)
        for name, value in values.items():
            old = lookup("coefficient", name, self.coefficients)
            changed[old.name] = replace(
                old, nominal=value, low=min(old.low, value), high=max(old.high, value)
            )
        return Technology(changed)


def _leaves(prefix: str, node: Mapping[str, Any]) -> Iterator[Coefficient]:
    for key, value in node.items():
        path = f"{prefix}.{key}" if prefix else key
        if "nominal" not in value:
            yield from _leaves(path, value)
            continue
        if set(value) != set(_FIELDS):
            raise InputError(f"coefficient {path}: fields are {sorted(value)}, need {_FIELDS}")
        yield Coefficient(
            name=path,
            low=float(value["low"]),
            nominal=float(value["nominal"]),
            high=float(value["high"]),
            unit=value["unit"],
            quality=value["quality"],
            source=value["source"],
        )
