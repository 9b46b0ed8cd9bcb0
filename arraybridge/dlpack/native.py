"""The functions of `release` in machine code, ready to be called by anybody.

On Linux their code is part of the package and only has to be mapped: no compiler is loaded, so a
first export costs nothing, and a child that was forked while a thread was inside LLVM exports like
any other. Elsewhere llvmlite compiles them on the first call, in 0.1 s.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from typing import NamedTuple

from . import pyapi
from .machine_code import CODE
from .release import ENTRIES, TABLE, source

__all__ = ["UNDER_LOCK", "Functions", "functions"]

#: Modules in C of libraries that call a producer's deleter under a lock of theirs.
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
    """The functions of this process and what they work on."""

    __slots__ = ("functions", "table", "words")

    def __init__(self) -> None:
        # Consumers release tensors from static destructors, after the last Python object is gone:
        # neither table nor code is ever freed.
        self.table = pyapi.malloc(8 * len(TABLE))
        if not self.table:
            raise MemoryError("no memory for the functions of the DLPack core")
        self.words = memoryview((ctypes.c_uint64 * len(TABLE)).from_address(self.table)).cast("B")
        self.words = self.words.cast("Q")
        known = pyapi.addresses()
        for place, name in enumerate(TABLE):
            self.words[place] = known.get(name) or 0
        made = _mapped(self.table) or _compiled(self.table)
        self.words[TABLE.index("drain")] = made["drain"]
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
    """The functions, made on the first call; what other threads have left is released now."""
    made = _functions or _first()
    if _words[0]:
        made.drain(1)
    if not _marked and UNDER_LOCK in sys.modules:
        _mark()
    return made


def _first() -> Functions:
    global _functions, _words
    # One thread's state wins; another's is complete as well, but no struct refers to it.
    state = _states.setdefault(None, _State())
    _words = state.words
    _functions = state.functions
    return _functions


# Before a function's own code, an instruction that has the address of the table in the register of
# the second argument.
_BEFORE = {
    "x86_64": bytes.fromhex("48be"),  # movabs rsi, table
    "aarch64": bytes.fromhex("4100005803000014"),  # ldr x1, table; b code; table: ...; code:
}


def _mapped(table: int) -> dict[str, int] | None:
    """Addresses of the code that is part of the package; None where it is for other machines."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in CODE or sys.byteorder != "little":
        return None
    before = _BEFORE[machine] + table.to_bytes(8, "little")
    image, offsets = bytearray(), {}
    for name in ENTRIES:
        image += bytes(-len(image) % 16)
        offsets[name] = len(image)
        image += before + bytes.fromhex(CODE[machine][name])
    start = pyapi.map_code(bytes(image))
    return None if start is None else {name: start + at for name, at in offsets.items()}


def _compiled(table: int) -> dict[str, int]:
    """The same from the IR, by llvmlite."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = source().replace(", ptr %table)", ")")
    module = llvm.parse_assembly(text.replace("%table", f"inttoptr (i64 {table} to ptr)"))
    module.verify()
    target = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    found = {name: engine.get_function_address(name) for name in ENTRIES}
    engine.detach()
    module.detach()
    return found


def _mark() -> None:
    """Tell the deleters where the code lies that calls them under a lock."""
    global _marked
    low, high = 0, 2**64 - 1  # where nobody tells, every caller may be it
    file = getattr(sys.modules[UNDER_LOCK], "__file__", None)
    if file is not None:
        low, high = pyapi.code_of(os.path.realpath(file)) or (low, high)
    _words[TABLE.index("low")], _words[TABLE.index("high")] = low, high
    _marked = True


def _after_fork_in_child() -> None:
    """A thread that is not in this child may have been about to have the list emptied."""
    if _functions is not None:
        _words[TABLE.index("called")] = 0
        functions()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
