"""Processes of their own for what may crash, hang or print."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from signal import Signals
from typing import Any


def apart(seconds: float, function: Callable[..., Iterator[Any]], *args: str) -> Iterator[Any]:
    """Yield what a function yields in another process; raise how that ended, if not well."""
    ours, theirs = get_context("spawn").Pipe(duplex=False)
    sends, patience = (theirs, function, *args), 180.0  # first the imports
    process = get_context("spawn").Process(target=_send, args=sends, daemon=True)
    process.start()
    theirs.close()
    try:
        while ours.poll(patience):
            answer, error = ours.recv()
            if error is not None:
                raise ChildProcessError(f"error: {error}")
            patience = seconds
            yield answer
        raise ChildProcessError(f"hang: nothing for {patience:.0f} s")
    except EOFError:
        process.join()
        if (code := process.exitcode or 0) != 86:
            how = Signals(-code).name if code < 0 else f"exit code {code}"
            raise ChildProcessError(f"crash: {how}") from None
    finally:
        process.kill()


def _send(to: Connection, function: Callable[..., Iterator[Any]], *args: str) -> None:
    for stream in (1, 2):  # what libraries print is no answer
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    try:
        for answer in function(*args):
            to.send((answer, None))
    except Exception as error:
        to.send((None, f"{type(error).__name__}: {error}"))
    os._exit(86)  # all is told; what a library does at exit is no matter of ours
