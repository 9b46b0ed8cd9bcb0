"""The native deleters and capsule destructors of this process (``machine_code.release``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from ctypes import sizeof

from ..named import NamedTuple
from . import pyapi

__all__ = ["UNDER_LOCK", "Functions", "functions"]

#: The extension module of a library that calls a producer's deleter under a lock.
UNDER_LOCK = "paddle.base.libpaddle"  # DeleterBridge's mutex, which is not recursive


class Functions(NamedTuple):
    """Addresses of the functions; those that Python calls itself are ctypes functions."""

    release_legacy: int
    release_versioned: int
    destroy_legacy: int
    destroy_versioned: int
    claim_legacy: Callable[[object], int | None]
    claim_versioned: Callable[[object], int | None]
    drain: Callable[[int], int]


class _State:
    """The functions of this process and their table."""

    __slots__ = ("functions", "table", "words")

    def __init__(self) -> None:
        from arraybridge.machine_code.release import SYMBOLS, Table, loaded

        # Consumers release tensors from static destructors, after the last Python object is gone:
        # neither table nor code is ever freed.
        address = pyapi.malloc(sizeof(Table))
        if not address:
            raise MemoryError("no memory for the functions of the DLPack core")
        self.table = Table.from_address(address)
        self.words = memoryview(self.table).cast("B").cast("Q")
        known = pyapi.addresses()
        for name in ("list", "called", "low", "high", *SYMBOLS):
            setattr(self.table, name, known.get(name) or 0)
        made = loaded(address)
        self.table.drain = made["drain"]
        self.functions = Functions(
            made["release_legacy"],
            made["release_versioned"],
            made["destroy_legacy"],
            made["destroy_versioned"],
            pyapi.claim_function(made["claim_legacy"]),
            pyapi.claim_function(made["claim_versioned"]),
            pyapi.drain_function(made["drain"]),
        )


_states: dict[None, _State] = {}
_functions: Functions | None = None
_words = memoryview(bytes(8)).cast("Q")  # the table's; its first is the list of what to release
_marked = False  # whether the code that calls under a lock has been looked for


def functions() -> Functions:
    """Return the functions, loaded on the first call; release what other threads have left."""
    made = _functions or _first()
    if _words[0]:
        made.drain(1)
    if not _marked and UNDER_LOCK in sys.modules:
        _mark()
    return made


def _first() -> Functions:
    global _functions, _words
    # Of several threads, the state of the first is used; no struct refers to the others.
    state = _states.setdefault(None, _State())
    _words = state.words
    _functions = state.functions
    return _functions


def _mark() -> None:
    """Tell the deleters where the code lies that calls them under a lock."""
    global _marked
    low, high = 0, 2**64 - 1  # where the code is not found, any caller may be it
    file = getattr(sys.modules[UNDER_LOCK], "__file__", None)
    if file is not None:
        low, high = _code_of(os.path.realpath(file)) or (low, high)
    table = _states[None].table
    table.low, table.high = low, high
    _marked = True


def _code_of(file: str) -> tuple[int, int] | None:
    """Return (first, past the last) address of a loaded library's code; None where unknown."""
    ends: list[int] = []
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                place, mode, *rest = line.split(maxsplit=5)
                if "x" in mode and len(rest) == 4 and rest[3].rstrip("\n") == file:
                    ends += (int(end, 16) for end in place.split("-"))
    except OSError:
        return None
    return (min(ends), max(ends)) if ends else None


def _after_fork_in_child() -> None:
    """Release what a thread of the parent was about to release."""
    if _functions is not None:
        _states[None].table.called = 0
        functions()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
