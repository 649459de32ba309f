"""The one error a user is meant to read."""

__all__ = ["InputError"]


class InputError(ValueError):
    """Input that cannot be used; the message says what was given, what is allowed and the remedy.

    The command line prints it as one line and exits with code 2.
    """
