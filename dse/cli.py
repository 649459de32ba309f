"""The `diptych` command: runs the commands and turns what goes wrong into a line and a code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

UNUSABLE, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        sys.exit(_run(arguments))
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(INTERRUPTED)


def _run(arguments: Sequence[str] | None) -> int:
    # Imported here, so that Ctrl-C while they load is answered like any other.
    import typer

    from dse.commands.app import app
    from rtl.errors import InputError

    try:
        code = app(args=arguments, prog_name="diptych", standalone_mode=False)
    except InputError as error:
        _say(str(error))
    except typer.TyperException as error:
        # What the parser refuses. Without a message the help has been printed.
        where = getattr(getattr(error, "ctx", None), "command_path", "diptych")
        if message := error.format_message():
            # A validator of the parser begins its messages with the kind of error.
            message = message.replace("Value error, ", "").rstrip(".")
            _say(f"{message}; see `{where} --help`")
    except OSError as error:
        # A full disk, a folder that can't be written: the system says it best.
        _say(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
    else:
        if code == INTERRUPTED:
            _say("interrupted")
        return code if isinstance(code, int) else 0
    return UNUSABLE


def _say(message: str) -> None:
    print(f"diptych: {message}", file=sys.stderr)  # noqa: T201
