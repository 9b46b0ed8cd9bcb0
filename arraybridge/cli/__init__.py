"""The command line: ``arraybridge``, and the same as ``python -m arraybridge``."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from .screen import Status

__all__ = ["Status", "main"]


_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _open_closed() -> None:
    """Open streams that the shell closed (``>&-``): else the next file would get the number.

    An import may have opened such a file already (libffi keeps one open), so children inherit
    these numbers too.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for number in range(3):
        os.set_inheritable(number, True)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115


def _drop_output() -> None:
    """Discard the rest of the buffer: Python would write it at exit, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, by default with the process's arguments; return the exit status."""
    from .parser import parse

    _open_closed()
    try:
        try:
            command = parse(argv)
            return command()
        finally:
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()  # to notice a closed pipe here, not at exit
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # the terminal has echoed ^C
        return Status.INTERRUPTED
    except BrokenPipeError:  # `| head`
        _drop_output()
        return Status.CLOSED_PIPE
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        _drop_output()
        print(f"arraybridge: cannot write: {error}", file=sys.stderr)
        return Status.REFUSED
