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
    """Open what the shell closed, as by ``>&-``; else the next file would get its number.

    What was imported before may have one (libffi keeps a file open): children inherit it, too, for
    the same reason.
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
    """Let what is left in the buffer go nowhere: Python writes it at exit, and would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, by default on the arguments of the process; the exit status."""
    from .parser import parse

    _open_closed()
    try:
        try:
            command = parse(argv)
            return command()
        finally:
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()  # so that a closed pipe is found here, not at exit
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
