"""Work in several threads at once, and calls of native functions on threads of any kind."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any

from arraybridge.native import C


def noisy(owner: type[Any], seen: list[BaseException]) -> Any:
    """Make an owner whose end raises an error of its own, and handles it."""

    class Noisy(owner):  # type: ignore[misc]
        def __del__(self) -> None:
            try:
                raise KeyError("of its own")
            except KeyError as error:
                seen.append(error)

    return Noisy()


def in_threads(work: Callable[[Any], object], things: Iterable[Any]) -> None:
    """Do the work on each thing in a thread of its own; an error there is the caller's."""
    errors: list[BaseException] = []

    def run(thing: Any) -> None:
        try:
            work(thing)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(thing,)) for thing in things]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def without_the_gil(function: int, argument: int) -> None:
    """Call a ``void (*)(void *)`` here."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(argument)


def on_a_thread_of_c(function: int, argument: int) -> None:
    """Call it on a thread that Python does not know."""
    _on_a_thread_of_c(ctypes.CDLL(None), function, argument)  # the GIL is free meanwhile


def while_the_gil_is_held(function: int, argument: int) -> None:
    """Call it on such a thread, which must not want the GIL, as a lock may keep it from coming."""
    _on_a_thread_of_c(ctypes.PyDLL(None), function, argument)
    time.sleep(0)  # CPython 3.11 sees a pending call once it has taken the GIL again


def _on_a_thread_of_c(libc: ctypes.CDLL, function: int, argument: int) -> None:
    thread = ctypes.c_ulong()
    # void (*)(void*) for void* (*)(void*): what is not returned is not looked at.
    start = ctypes.c_void_p(function)
    assert libc.pthread_create(ctypes.byref(thread), None, start, ctypes.c_void_p(argument)) == 0
    assert libc.pthread_join(thread, None) == 0


def on_a_thread_of_python(function: int, argument: int) -> None:
    """Call it on a thread of Python's."""
    in_threads(lambda argument: without_the_gil(function, argument), [argument])


#: Those of our deleters and release callbacks; without the extension they take the GIL.
WAYS = [without_the_gil, on_a_thread_of_c, on_a_thread_of_python]
WAYS += [while_the_gil_is_held] if C is not None else []
