"""Reading what a user wrote: one line that says what is wrong with a file, never a traceback."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from rtl.errors import InputError

__all__ = ["parse_toml", "read_text"]


def read_text(path: Path, kind: str) -> str:
    """Return a text file, with or without a byte-order mark.

    Parameters
    ----------
    path : Path
    kind : str
        What the file should be, as it reads after "cannot read the".

    Raises
    ------
    InputError
        If it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read the {kind} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start}); save the {kind} as UTF-8"
        ) from error


def parse_toml(text: str, label: str) -> dict[str, Any]:
    """Return a TOML document as a table.

    Raises
    ------
    InputError
        If it is not TOML; `label` says where it came from.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{label} is not valid TOML: {error}") from error
