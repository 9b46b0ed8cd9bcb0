"""Run code that may crash, hang or print in separate processes.

None of them outlives this process: leaving `workers` early kills them, and each exits when its
parent is gone.
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
    """The command was interrupted: no more processes start, and this one was killed."""


@contextmanager
def workers(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of threads that may call `apart`; an exception or Ctrl-C ends the processes."""
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
    """Run a generator function in another process and yield its values; raise if that fails."""
    ours, theirs = get_context("spawn").Pipe(duplex=False)
    sends, patience = (theirs, function, *args), 180.0  # imports come first
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
        raise ChildProcessError(f"hang: no answer for {patience:.0f} s")
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
    """Start a process that ignores Ctrl-C: it would print a traceback, and we kill it anyway."""
    with _lock:
        if _ending:
            raise EndedError
        resource_tracker.ensure_running()  # separately: its start unblocks the signal
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _live.add(process)


def _send(to: Connection, function: Callable[..., Iterator[Any]], *args: str) -> None:
    for stream in (1, 2):  # discard the libraries' output
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        for answer in function(*args):
            to.send((answer, None))
    except Exception as error:
        to.send((None, f"{type(error).__name__}: {error}"))
    os._exit(86)  # skip the libraries' exit handlers


def _end_with_parent() -> None:
    """Exit when the parent ends, even if it was killed."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(86)
