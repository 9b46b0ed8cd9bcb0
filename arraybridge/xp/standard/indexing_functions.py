"""Indexing functions of the array API standard 2025.12.

Whether an index out of bounds is an error is the library's choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...array import Array

__all__ = ["take", "take_along_axis"]


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Elements of ``x`` at the positions ``indices`` of one axis.

    Parameters
    ----------
    indices
        One axis of integers; negative ones count from the end.
    axis
        May be None only if ``x`` has one axis.
    """
    ...


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Elements of ``x`` at ``indices`` of one axis, chosen anew at each place of the other axes.

    Fits what :func:`argsort` and ``argmax(..., keepdims=True)`` return.

    Parameters
    ----------
    indices
        Integers, with as many axes as ``x``; all but ``axis`` broadcast against those of ``x``.
        Negative ones count from the end.
    """
    ...
