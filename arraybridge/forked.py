"""Modules of arraybridge that another thread was importing when the process was forked.

In the child their import locks are held by nobody who will release them, and whoever imports one
waits for ever. They are forgotten there, and imported anew when they are needed. (The modules of
others are theirs: what those hold by then, nobody here can know.)
"""

from __future__ import annotations

import os
import sys
from importlib import _bootstrap  # type: ignore[attr-defined]

__all__ = ["lost_imports"]


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
    for name in lost_imports():
        if name.partition(".")[0] == __package__:
            _bootstrap._module_locks.pop(name, None)  # type: ignore[attr-defined]
            sys.modules.pop(name, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
