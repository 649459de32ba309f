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

    A batch is one write, so that a killed sweep leaves whole batches; a torn last line is cut off
    when the log is opened again.

    Parameters
    ----------
    path : Path
    fingerprint : mapping
        What the trials depend on: space, problem, seed. Kept in the first line; a log made from
        another one is refused.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, Any]) -> None:
        self.path = path
        self._header = json.dumps({"fingerprint": fingerprint}, sort_keys=True)
        self.records: dict[str, list[Record]] = defaultdict(list)
        if path.exists() and path.stat().st_size:
            self._read()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._append(self._header + "\n")

    def _read(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self.path.write_text(whole, encoding="utf-8")
        lines = whole.splitlines()
        if not lines:
            self._append(self._header + "\n")
            return
        try:
            found = json.loads(lines[0])["fingerprint"]
            records = [Record(**json.loads(line)) for line in lines[1:]]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.path} is not a trial log of this version ({error}); "
                "choose another --out, or --overwrite to begin again"
            ) from error
        wanted = json.loads(self._header)["fingerprint"]
        differing = sorted(
            key for key in set(found) | set(wanted) if found.get(key) != wanted.get(key)
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
