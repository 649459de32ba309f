"""How every command answers: one JSON object, or text for a person."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

__all__ = ["AsJson", "console", "print_json", "remark"]

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]


def console() -> Console:
    """Return the console for answers: standard output, at least wide enough for four designs."""
    wide = Console(highlight=False)
    if not wide.is_terminal:
        wide.width = max(wide.width, 120)
    return wide


def print_json(answer: dict[str, Any]) -> None:
    """Print the answer for programs."""
    # The whole text first: an object that can't be written leaves nothing half written.
    text = json.dumps(answer, indent=1, allow_nan=False)
    sys.stdout.write(text + "\n")


def remark(text: str) -> None:
    """Say something beside the answer, on standard error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)
