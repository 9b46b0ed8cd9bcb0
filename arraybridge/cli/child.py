"""Processes of their own for what may crash, hang or print.

None outlives this process, however it ends: leaving `workers` early kills them, and each ends by
itself once its parent is gone.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

_live: set[BaseProcess] = set()
_lock = threading.Lock()
_ending = False


class EndedError(Exception):
    """No process is started any more, or this one was killed: somebody interrupted the command."""


@contextmanager
def workers(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """Give threads to call `apart` in; an exception, Ctrl-C too, kills their processes."""
    global _ending
    pool = ThreadPoolExecutor(jobs)
    try:
        yield pool
    except BaseException:
        with _lock:
            _ending = True
            for process in _live:
                process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=_ending)
        _ending = False


def apart(seconds: float, function: Callable[..., Iterator[Any]], *args: str) -> Iterator[Any]:
    """Yield what a function yields in another process; raise how that ended, if not well."""
    ours, theirs = get_context("spawn").Pipe(duplex=False)
    sends, patience = (theirs, function, *args), 180.0  # first the imports
    process = get_context("spawn").Process(target=_send, args=sends, daemon=True)
    _start(process)
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
        if _ending:
            raise EndedError from None
        if (code := process.exitcode or 0) != 86:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise ChildProcessError(f"crash: {how}") from None
    finally:
        with _lock:
            _live.discard(process)
        process.kill()
        process.join()


def _start(process: BaseProcess) -> None:
    """Start a process that Ctrl-C does not reach: it would print where it was; we kill it."""
    with _lock:
        if _ending:
            raise EndedError
        resource_tracker.ensure_running()  # by itself, as it unblocks the signal where it starts
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _live.add(process)


def _send(to: Connection, function: Callable[..., Iterator[Any]], *args: str) -> None:
    for stream in (1, 2):  # what libraries print is no answer
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        for answer in function(*args):
            to.send((answer, None))
    except Exception as error:
        to.send((None, f"{type(error).__name__}: {error}"))
    os._exit(86)  # all is told; what a library does at exit is no matter of ours


def _end_with_parent() -> None:
    """Wait for the end of the parent, which may have been killed, and end this process."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(86)
