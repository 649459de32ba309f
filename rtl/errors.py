"""The one error a user is meant to read, and the lookup by name that raises it."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

__all__ = ["InputError", "lookup", "unknown"]

T = TypeVar("T")


class InputError(ValueError):
    """Input that cannot be used; the message says what was given, what is allowed and the remedy.

    The command line prints it as one line and exits with code 2.
    """


def unknown(kind: str, given: str, choices: Iterable[str]) -> InputError:
    """Build the error for a name that no choice has, with the nearest choice as a suggestion.

    Parameters
    ----------
    kind : str
        What is being named, as it reads after "unknown": ``"format"``, ``"chip"``.
    given : str
        The name that was not found.
    choices : iterable of str
        Every known name, in the order in which they should be listed.

    Returns
    -------
    InputError
        To be raised by the caller, whose traceback it then carries.
    """
    names = list(choices)
    # Matched in lower case, shown as spelled; of two spellings the first listed is suggested.
    spelled = {name.lower(): name for name in reversed(names)}
    # A name cut short ("fp8", "h10") says more than one that only looks alike.
    near = [name for name in reversed(spelled) if given and name.startswith(given.lower())]
    near = near or get_close_matches(given.lower(), spelled, n=1, cutoff=0.5)
    suggestion = f"; did you mean {spelled[near[0]]!r}?" if near else "."
    known = ", ".join(names) if names else "none"
    return InputError(f"unknown {kind} {given!r}{suggestion} Known: {known}")


def lookup(kind: str, given: str, table: Mapping[str, T]) -> T:
    """Find an entry by name, in any case of letters.

    Parameters
    ----------
    kind : str
        What is being named, for the message: see :func:`unknown`.
    given : str
        The name asked for. An exact match wins over one that differs in case.
    table : mapping of str to T
        The entries by name.

    Returns
    -------
    T
        The entry.

    Raises
    ------
    InputError
        When no name matches; the message suggests the nearest.
    """
    if given in table:
        return table[given]
    for name, entry in table.items():
        if name.lower() == given.lower():
            return entry
    raise unknown(kind, given, table)
