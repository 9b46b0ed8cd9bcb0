"""Data frames and their columns: found by the package of the class, or by Arrow's interface.

``adapt`` and ``unify`` do not treat them as arrays and pass them on, since a function may want a
frame. ``convert``, ``from_dlpack`` and ``asarray`` accept them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.library import Library
from ..core.registry import RECORDS, frames_of, package_of

METHODS = (
    "__arrow_c_stream__",
    "__arrow_c_array__",
    "__arrow_c_device_array__",
    "__arrow_c_device_stream__",
)


def is_frame(cls: type) -> bool:
    """Whether instances of a class are frames, or columns of them."""
    return speaks_arrow(cls) or frames_of(cls) is not None


def speaks_arrow(cls: type) -> bool:
    """Whether instances of a class are read through Arrow's interface.

    Files and objects with labels are not read as tables.
    """
    if all(getattr(cls, method, None) is None for method in METHODS):
        return False
    from .foreign import BY_PACKAGE

    return package_of(cls) not in BY_PACKAGE


def opened_frame(x: Any, looking: bool = False) -> tuple[object, Library] | None:
    """Return what a frame converts as, and its library; None for another object.

    If it is only described (`looking`), reading that would consume or compute it is refused.
    """
    cls = type(x)
    opener = _opener(cls)
    if opener is None:
        return None
    found = opener(x, looking)
    if found is not None:
        RECORDS[cls].frame = opener
    return found


def _opener(cls: type) -> Callable[[Any, bool], tuple[object, Library] | None] | None:
    """Return what opens the instances of a class.

    It is cached, because attributes that a class lacks may be slow to look up, as in polars.
    """
    own, speaking = frames_of(cls), speaks_arrow(cls)
    if not speaking:
        return None if own is None else lambda x, looking: own(x)
    from .arrow import opener_of

    by_arrow = opener_of(cls)
    if own is None:
        return by_arrow
    return lambda x, looking: own(x) or by_arrow(x, looking)
