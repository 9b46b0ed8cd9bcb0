"""Utility functions of the array API standard 2025.12."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...array import Array
    from .types import Axes

__all__ = ["all", "any", "diff"]


def all(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Whether every element along axes is true, that is not zero; True of no elements.

    Parameters
    ----------
    axis
        None: all axes.
    keepdims
        Whether the axes that are tested stay, with extent 1.
    """
    ...


def any(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Whether some element along axes is true, that is not zero; False of no elements.

    Parameters
    ----------
    axis
        None: all axes.
    keepdims
        Whether the axes that are tested stay, with extent 1.
    """
    ...


def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Differences of neighbors along an axis, ``x[i+1] - x[i]``, taken ``n`` times.

    Parameters
    ----------
    prepend, append
        What is joined to the ends of the axis first; equal extents along the other axes.
    """
    ...
