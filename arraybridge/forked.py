"""What other threads were at when the process was forked: importing, or inside a compiler.

In the child the locks of other threads are held by nobody who will release them. Modules of
arraybridge that one was importing are forgotten there, and imported anew; a compiler that one was
inside is left alone. (Modules of others are theirs: what those hold, nobody here can know.)
"""

from __future__ import annotations

import os
import sys
from importlib import _bootstrap  # type: ignore[attr-defined]
from threading import get_ident
from types import FrameType

__all__ = ["compiler_lost", "lost_imports"]

_inside = _lost = False  # whether another thread is inside the compiler; whether one was, at a fork


def compiler_lost() -> bool:
    """Whether a thread that is not in this process was inside Numba or llvmlite when it forked."""
    return _lost


def _before_fork() -> None:
    """Look at the other threads' stacks: Numba has more locks than can be named."""
    global _inside
    _inside = False
    if "numba" not in sys.modules and "llvmlite" not in sys.modules:
        return
    me = get_ident()
    for thread, frame in sys._current_frames().items():
        here: FrameType | None = frame if thread != me else None
        while here is not None and not _inside:
            name = str(here.f_globals.get("__name__"))
            _inside = name.partition(".")[0] in ("numba", "llvmlite")
            here = here.f_back


def lost_imports() -> list[str]:
    """The modules whose import locks are held by threads that are not in this process."""
    here = sys._current_frames().keys()
    lost = []
    for name, reference in tuple(getattr(_bootstrap, "_module_locks", {}).items()):
        owner = getattr(reference(), "owner", None)
        if owner is not None and owner not in here:
            lost.append(name)
    return lost


def _after_fork_in_child() -> None:
    global _lost
    _lost = _lost or _inside
    for name in lost_imports():
        if name.partition(".")[0] == __package__:
            _bootstrap._module_locks.pop(name, None)  # type: ignore[attr-defined]
            sys.modules.pop(name, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
