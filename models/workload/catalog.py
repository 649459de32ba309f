"""The built-in models, by name, and any other from its Hugging Face ``config.json``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from models.workload.transformer import Transformer
from rtl.errors import InputError, lookup

__all__ = ["CatalogEntry", "catalog", "load_model", "model_named", "model_names"]


@dataclass(frozen=True)
class CatalogEntry:
    """A built-in model.

    Attributes
    ----------
    model : Transformer
    source : str
        Where its architecture is published.
    """

    model: Transformer
    source: str


@cache
def catalog() -> Mapping[str, CatalogEntry]:
    """Return the built-in models by name, in the order of the file."""
    text = files("models").joinpath("data", "llms", "catalog.toml").read_text(encoding="utf-8")
    entries = {}
    for name, facts in tomllib.loads(text).items():
        source = facts.pop("source")
        entries[name] = CatalogEntry(Transformer(name=name, **facts), source)
    return MappingProxyType(entries)


def model_names() -> tuple[str, ...]:
    """Return the names of the built-in models."""
    return tuple(catalog())


def model_named(name: str) -> Transformer:
    """Find a built-in model by name, in any case of letters.

    Raises
    ------
    InputError
        For an unknown name; the message suggests the nearest.
    """
    return lookup("model", name, catalog()).model


def load_model(name_or_path: str | Path) -> Transformer:
    """Find a built-in model by name, or read a ``config.json``.

    Parameters
    ----------
    name_or_path : str or Path
        A name of the catalogue; otherwise the path of a Hugging Face ``config.json``, or of a
        directory that has one.

    Raises
    ------
    InputError
        If it is neither, or the file cannot be used.
    """
    path = Path(name_or_path)
    try:
        return model_named(str(name_or_path))
    except InputError as error:
        if str(name_or_path) and (path.exists() or path.suffix == ".json"):
            return Transformer.from_config(path)
        raise InputError(f"{error}; or give a path to a config.json") from None
