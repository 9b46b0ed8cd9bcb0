"""Searching functions of the array API standard 2025.12.

Positions have the default data type for indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ...array import Array
    from .types import Axes

__all__ = ["argmax", "argmin", "count_nonzero", "nonzero", "searchsorted", "where"]


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Positions of the largest values along an axis, the first of equals.

    Parameters
    ----------
    axis
        None: one position, in the flattened array.
    keepdims
        Whether the axes that are searched stay, with extent 1.
    """
    ...


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Positions of the smallest values along an axis, the first of equals.

    Parameters
    ----------
    axis
        None: one position, in the flattened array.
    keepdims
        Whether the axes that are searched stay, with extent 1.
    """
    ...


def count_nonzero(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """How many elements are not zero (not False), along axes; None: of all.

    Parameters
    ----------
    keepdims
        Whether the axes that are counted stay, with extent 1.
    """
    ...


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Positions of the elements that are not zero, in row-major order, one array per axis of ``x``.

    The shape of the result depends on data. ``x`` must have an axis.
    """
    ...


def searchsorted(
    x1: Array,
    x2: Array | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> Array:
    """Positions in ``x1`` before which the values of ``x2`` would keep its order.

    Parameters
    ----------
    x1
        One axis, ascending (as ``sorter`` orders it).
    side
        Among equals: ``"left"`` before the first, ``"right"`` after the last.
    sorter
        What ``argsort(x1)`` gives, if ``x1`` is not sorted itself.

    Returns
    -------
    Array
        The shape of ``x2``.
    """
    ...


def where(condition: Array, x1: Array | complex, x2: Array | complex, /) -> Array:
    """Elements of ``x1`` where ``condition`` is True, of ``x2`` elsewhere; all three broadcast.

    Parameters
    ----------
    condition
        Booleans.
    x1, x2
        Their data types are promoted; at least one is an array.
    """
    ...
