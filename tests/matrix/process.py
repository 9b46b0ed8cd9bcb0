"""Run code that may crash, hang or print in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

ENDED = 86  # exit status of a process that reported everything
LOADING_S = 180.0


def apart(seconds: float, function: Callable[..., Iterator[Any]], *args: Any) -> Iterator[Any]:
    """Yield what a generator function yields in another process.

    Raises ChildProcessError ("crash: ...", "hang: ...") if it ends otherwise. Each answer may take
    ``seconds``, the first, before which libraries are imported, `LOADING_S`.
    """
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_send, args=(theirs, function, *args), daemon=True)
    process.start()
    theirs.close()
    patience = LOADING_S
    try:
        while ours.poll(patience):
            yield ours.recv()
            patience = seconds
        raise ChildProcessError(f"hang: no answer for {patience:.0f} s")
    except EOFError:
        process.join()
        code = process.exitcode or 0
        if code != ENDED:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise ChildProcessError(f"crash: {how}") from None
    finally:
        process.kill()
        process.join()


def _send(to: Connection, function: Callable[..., Iterator[Any]], *args: Any) -> None:
    for stream in (1, 2):  # discard what the libraries print
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    for answer in function(*args):
        to.send(answer)
    os._exit(ENDED)  # skip the libraries' exit handlers
