"""The state of other threads at a fork: importing, or compiling.

In the child nobody releases the locks of the parent's other threads. So a fork waits a while for
the imports that arraybridge has begun, of other packages too. Modules of arraybridge that are then
still being imported are forgotten in the child, and imported anew; a compiler that a thread was
inside is not used. (Imports that other code has begun are not waited for: nothing is known of the
locks that they hold.)

A fork waits for the end of a call into LLVM too. LLVM locks what belongs to the C library, the
locale for one (``LLVMPY_PrintModuleToString``), and a child that finds that locked hangs as soon as
it looks for a file that does not exist: ``strerror`` translates the message.
"""

from __future__ import annotations

import os
import sys
from importlib import _bootstrap
from threading import get_ident
from time import monotonic, sleep
from types import FrameType
from typing import Any

__all__ = ["compiler_locks", "compiler_lost", "lost_imports", "threads"]

#: Seconds that a fork waits, for imports and for LLVM: they may wait for the thread that forks.
PATIENCE = 5.0

# Modules that acquire a lock before a fork and release it after, which imports need as well (to get
# a logger). The hooks of modules imported before this one are called after ours.
_HELD = {"logging": "_lock", "concurrent.futures.thread": "_global_shutdown_lock"}
_HELD = {name: lock for name, lock in _HELD.items() if name not in sys.modules}

# importlib's own: name of a module -> weak reference to its lock.
_LOCKS: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})

_inside = _lost = False  # whether another thread is inside the compiler; whether one was, at a fork
_entering: dict[int, Any] = {}  # thread that forks -> llvmlite's lock, if it is to leave it


def compiler_lost() -> bool:
    """Tell whether a thread of the parent was inside Numba or llvmlite at the fork."""
    return _lost


def compiler_locks() -> list[Any]:
    """Return Numba's lock, held while it compiles, and llvmlite's, held while LLVM runs.

    None stands for that of a package that has not been imported.
    """
    found = []
    for module, *attributes in (
        ("numba.core.compiler_lock", "global_compiler_lock", "_lock"),
        ("llvmlite.binding.ffi", "lib", "_lock", "_lock"),
    ):
        lock = sys.modules.get(module)
        for attribute in attributes:
            lock = getattr(lock, attribute, None)
        found.append(lock)
    return found


def _before_fork() -> None:
    """Wait for the imports that arraybridge has begun and for LLVM; look at the other threads."""
    global _inside
    if _at_work()[1]:
        _wait_for_imports()
    llvm = compiler_locks()[1]
    if llvm is not None and not llvm._is_owned():
        _entering[get_ident()] = llvm  # before it is, as an interrupt may come between
        llvm.acquire(timeout=PATIENCE)
    _inside = _at_work()[0]


def _wait_for_imports() -> None:
    """Wait: an import holds the locks of other packages' modules, which a child cannot release."""
    for lock in _held():
        lock.release()
    end = monotonic() + PATIENCE
    try:
        while _at_work()[1] and monotonic() < end:
            sleep(0.001)
    finally:
        for lock in _held():  # of modules imported meanwhile too: their hooks release it later
            lock.acquire()


def _held() -> list[Any]:
    """Return the locks of `_HELD` whose modules have been imported, and so hold them now."""
    found = []
    for name, lock in _HELD.items():
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        if spec is not None and not getattr(spec, "_initializing", False):
            found.append(getattr(module, lock))
    return found


def _at_work() -> tuple[bool, bool]:
    """Tell whether another thread is compiling, and whether one imports for arraybridge."""
    compiling = importing = False  # told from the stacks, as Numba has too many locks to ask
    frames = sys._current_frames()
    frames.pop(get_ident(), None)  # else this frame, in a cycle, would keep all of them
    for frame in frames.values():
        here: FrameType | None = frame
        called = ""
        while here is not None:
            package = str(here.f_globals.get("__name__")).partition(".")[0]
            compiling = compiling or package in ("numba", "llvmlite")
            importing = importing or (package == __package__ and called == "importlib")
            called, here = package, here.f_back
    return compiling, importing


def threads() -> set[int]:
    """Return the identifiers of the threads of this process that run Python."""
    return set(sys._current_frames())  # a copy: the dictionary keeps the frames, this one too


def lost_imports() -> list[str]:
    """Name the modules whose import locks belong to threads of another process."""
    here = threads()
    lost = []
    for name, reference in tuple(_LOCKS.items()):
        owner = getattr(reference(), "owner", None)
        if owner is not None and owner not in here:
            lost.append(name)
    return lost


def _leave_llvm() -> None:
    lock = _entering.get(get_ident())
    if lock is not None and lock._is_owned():
        lock.release()
    _entering.pop(get_ident(), None)


def _after_fork_in_child() -> None:
    global _lost
    _leave_llvm()
    _entering.clear()
    _lost = _lost or _inside
    for name in lost_imports():
        if name.partition(".")[0] == __package__:
            _LOCKS.pop(name, None)
            sys.modules.pop(name, None)


if hasattr(os, "register_at_fork"):
    for _ in range(2):  # CPython goes on where an interrupt ends a call: the other makes up for it
        os.register_at_fork(before=_before_fork, after_in_parent=_leave_llvm)
    os.register_at_fork(after_in_child=_after_fork_in_child)
