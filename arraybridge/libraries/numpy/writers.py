"""Whether anybody may still write to the memory of a read-only array.

The flag only restricts this array. A column of pandas, a view of a writable array,
``memoryview.toreadonly`` and a mapped file show memory that others write to. The chain of bases,
down to the owner of the memory, decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.registry import RECORDS
from ...layout import Memory
from ...native.blocks import Block
from ...native.pyapi import holds_alone
from ...protocols.frames import speaks_arrow

_WRITEABLE = 0x400  # read without the warning of `flags.writeable`
_HOLDS = (
    (np.ndarray, "base"),
    (memoryview, "obj"),
    (Memory, "owner"),
    (type(np.lib.stride_tricks.as_strided(np.empty(2), (1,)).base), "base"),
)


def is_frozen(x: np.ndarray) -> bool:
    """Whether nobody can write to the memory of a read-only array.

    A writable base counts only if something else refers to it: otherwise it can only be reached
    through `x`.
    """
    owner: Any = x
    while True:
        name = next((name for kind, name in _HOLDS if isinstance(owner, kind)), None)
        if name is None:
            return _never_changes(owner)
        alone = holds_alone(owner, name)
        held = getattr(owner, name)
        if held is None:
            return isinstance(owner, np.ndarray) and owner.flags.owndata
        if type(held) is Block:
            return alone
        if isinstance(held, np.ndarray) and held.flags.num & _WRITEABLE and not alone:
            return False
        owner = held


def _never_changes(owner: Any) -> bool:
    """Whether the memory that an object itself holds never changes."""
    kind = type(owner)
    if kind is bytes:
        return True
    if speaks_arrow(kind):  # Arrays do too, over any memory
        return not hasattr(kind, "__arraybridge__")
    library = RECORDS[kind].library
    return library is not None and library.accepts.immutable
