"""Statistical and utility functions of the array API standard 2025.12.

``axis`` is one axis, several axes, or None for all; negative ones count from the end. ``keepdims``
keeps the reduced axes, with extent 1. If an element is NaN, the result is NaN. Sums and products of
integers narrower than the default integer are widened to its number of bits unless you pass
``dtype``, to which the elements are cast first. Cumulative functions of one axis need no ``axis``.
"""
# pyright: reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...array import Array
    from .data_types import Axes, DType

__all__ = [
    "all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod",
    "std", "sum", "var",
]  # fmt: skip


def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False
) -> Array:
    """Compute the cumulative product along an axis; ``include_initial``: 1 is put before it."""


def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False
) -> Array:
    """Compute the cumulative sum along an axis; ``include_initial``: 0 is put before it."""


def max(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Return the largest value along axes; without elements, the result is up to the library."""


def mean(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Compute the arithmetic mean along axes; NaN without elements."""


def min(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Return the smallest value along axes; without elements, the result is up to the library."""


def prod(
    x: Array, /, *, axis: Axes | None = None, dtype: DType = None, keepdims: bool = False
) -> Array:
    """Compute the product along axes; 1 without elements."""


def std(
    x: Array, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Compute the standard deviation of real floating-point elements along axes.

    ``correction``: the number subtracted from the number N of elements in the divisor: 0 for a
    population, 1 for a sample. The result is NaN if N is not larger.
    """


def sum(
    x: Array, /, *, axis: Axes | None = None, dtype: DType = None, keepdims: bool = False
) -> Array:
    """Compute the sum along axes; 0 without elements."""


def var(
    x: Array, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Compute the variance of real numbers along axes; ``correction`` is as in :func:`std`."""


def all(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Test whether all elements along axes are nonzero or True; True without elements."""


def any(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Test whether any element along axes is nonzero or True; False without elements."""


def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Compute differences of neighbors along an axis, ``x[i+1] - x[i]``, ``n`` times.

    ``prepend``, ``append``: arrays that are first joined to the ends of the axis; the other extents
    must be equal.
    """
