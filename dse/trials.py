"""The trial log: one JSON line per finished trial, appended batch by batch."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rtl.errors import InputError

__all__ = ["Record", "TrialLog"]


@dataclass(frozen=True)
class Record:
    """One finished trial.

    Attributes
    ----------
    study : str
        Such as ``"equal/training"``.
    number : int
        In its study.
    params : dict
    values : list of float
        What the study minimises.
    constraints : dict of str to float
        At most 0 where met.
    usd : dict of str to float
        Dollars by objective, of which `values` are some.
    feasible : list of str
        Objectives whose constraints are all met.
    system_attrs : dict
        Optuna's own; NSGA-II keeps the generation there.
    """

    study: str
    number: int
    params: dict[str, Any]
    values: list[float]
    constraints: dict[str, float]
    usd: dict[str, float]
    feasible: list[str]
    system_attrs: dict[str, Any]


class TrialLog:
    """An append-only file of `Record` lines.

    A torn last line, as a killed sweep may leave, is cut off when the log is opened again.

    Parameters
    ----------
    path : Path
    fingerprint : mapping
        What the trials depend on, each part by the name that an error should give it. Kept in the
        first line; a log made from another one is refused.

    Raises
    ------
    InputError
        If the file is not a log, or is that of another fingerprint; it is left as it was.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, str]) -> None:
        self.path = path
        self.records: dict[str, list[Record]] = defaultdict(list)
        # A line without its end was torn: what is after the last one is cut off.
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        if whole:
            self._take(whole, fingerprint)
        if whole != data:
            os.truncate(path, len(whole))
        if not whole:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._append(json.dumps({"fingerprint": fingerprint}, sort_keys=True) + "\n")

    def _take(self, whole: bytes, fingerprint: Mapping[str, str]) -> None:
        try:
            header, *lines = [json.loads(line) for line in whole.splitlines()]
            found = dict(header["fingerprint"])
            records = [Record(**line) for line in lines]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.path} is not a trial log of this version ({error}); "
                "choose another --out, or --overwrite to begin again"
            ) from error
        differing = sorted(
            key for key in {*found, *fingerprint} if found.get(key) != fingerprint.get(key)
        )
        if differing:
            raise InputError(
                f"{self.path} was made with another {', '.join(differing)}; resume with the "
                "scenario.toml beside it, choose another --out, or --overwrite to begin again"
            )
        for record in records:
            self.records[record.study].append(record)

    def extend(self, records: Sequence[Record]) -> None:
        """Append a batch and keep it."""
        self._append("".join(json.dumps(asdict(r)) + "\n" for r in records))
        for record in records:
            self.records[record.study].append(record)

    def _append(self, text: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
