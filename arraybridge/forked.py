"""What other threads were at when the process was forked: importing, or inside a compiler.

In the child the locks of other threads are held by nobody who will release them. So a fork waits
for what arraybridge is importing, others' modules too, for a while. Modules of arraybridge that are
still being imported are forgotten in the child, and imported anew; a compiler that a thread was
inside is left alone. (What other code imports is its own: nobody here can know what that holds.)
"""

from __future__ import annotations

import os
import sys
from importlib import _bootstrap
from threading import get_ident
from time import monotonic, sleep
from types import FrameType
from typing import Any

__all__ = ["compiler_lost", "lost_imports", "threads"]

#: Seconds that a fork waits for imports: one of them may itself wait for the thread that forks.
PATIENCE = 5.0

# Locks that modules acquire before a fork and release after it, which imports need as well (to get
# a logger). The hooks of those that were here first are called after ours.
_HELD = {"logging": "_lock", "concurrent.futures.thread": "_global_shutdown_lock"}
_HELD = {name: lock for name, lock in _HELD.items() if name not in sys.modules}

# importlib's own: name of a module -> weak reference to its lock.
_LOCKS: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})

_inside = _lost = False  # whether another thread is inside the compiler; whether one was, at a fork


def compiler_lost() -> bool:
    """Whether a thread that is not in this process was inside Numba or llvmlite when it forked."""
    return _lost


def _before_fork() -> None:
    """Look at the other threads' stacks, and let an import that arraybridge began come to its end.

    It holds the locks of modules of others as well, which nobody could forget in the child.
    """
    global _inside
    _inside, importing = _at_work()
    if not importing:
        return
    for lock in _held():
        lock.release()
    end = monotonic() + PATIENCE
    while importing and monotonic() < end:
        sleep(0.001)
        _inside, importing = _at_work()
    for lock in _held():  # of modules that came meanwhile too: their other hooks are called
        lock.acquire()


def _held() -> list[Any]:
    """The locks of the table that the hooks of their modules hold by now."""
    found = []
    for name, lock in _HELD.items():
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        if spec is not None and not getattr(spec, "_initializing", False):
            found.append(getattr(module, lock))
    return found


def _at_work() -> tuple[bool, bool]:
    """Whether another thread is inside the compiler; and in an import that arraybridge began."""
    compiling = importing = False  # by their stacks: Numba has more locks than can be named
    frames = sys._current_frames()
    frames.pop(get_ident(), None)  # a frame that refers to itself keeps what all of them hold
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
    """Identifiers of the threads of this process that run Python."""
    return set(sys._current_frames())  # not its keys: they would keep the frames, and this one


def lost_imports() -> list[str]:
    """The modules whose import locks are held by threads that are not in this process."""
    here = threads()
    lost = []
    for name, reference in tuple(_LOCKS.items()):
        owner = getattr(reference(), "owner", None)
        if owner is not None and owner not in here:
            lost.append(name)
    return lost


def _after_fork_in_child() -> None:
    global _lost
    _lost = _lost or _inside
    for name in lost_imports():
        if name.partition(".")[0] == __package__:
            _LOCKS.pop(name, None)
            sys.modules.pop(name, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
