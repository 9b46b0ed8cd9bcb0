"""Statistical and utility functions of the array API standard 2025.12.

``axis`` is one axis or several, and None all of them; negative ones count from the end.
``keepdims`` says whether the axes that are reduced stay, with extent 1. NaN is carried on.
Where a sum or a product has no ``dtype``, integers narrower than the default integer are
widened to that many bits, signed or not as they are; all else keeps its data type.
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
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Array:
    """Products of the elements so far, along an axis.

    Parameters
    ----------
    axis
        May be None only if ``x`` has one axis.
    dtype
        Of the result; ``x`` is cast first. None: integers narrower than the default integer are
        widened to it (unsigned ones to the unsigned of its width), all else keeps its own.
    include_initial
        Whether a 1 comes first, which makes the axis one longer.
    """


def cumulative_sum(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Array:
    """Sums of the elements so far, along an axis.

    Parameters
    ----------
    axis
        May be None only if ``x`` has one axis.
    dtype
        Of the result; ``x`` is cast first. None: integers narrower than the default integer are
        widened to it (unsigned ones to the unsigned of its width), all else keeps its own.
    include_initial
        Whether a 0 comes first, which makes the axis one longer.
    """


def max(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Largest value along axes; of no elements what the library chooses, often an error."""


def mean(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Arithmetic mean along axes, of floating-point elements; NaN of no elements."""


def min(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Smallest value along axes; of no elements what the library chooses, often an error."""


def prod(
    x: Array, /, *, axis: Axes | None = None, dtype: DType | None = None, keepdims: bool = False
) -> Array:
    """Product along axes; 1 of no elements.

    Parameters
    ----------
    dtype
        Of the result; ``x`` is cast first. None: integers narrower than the default integer are
        widened to it (unsigned ones to the unsigned of its width), all else keeps its own.
    """


def std(
    x: Array, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Standard deviation along axes, of real floating-point elements.

    Parameters
    ----------
    correction
        Degrees of freedom to subtract from the number N of elements: 0 for the whole population, 1
        for a sample. NaN if N is not larger.
    """


def sum(
    x: Array, /, *, axis: Axes | None = None, dtype: DType | None = None, keepdims: bool = False
) -> Array:
    """Sum along axes; 0 of no elements.

    Parameters
    ----------
    dtype
        Of the result; ``x`` is cast first. None: integers narrower than the default integer are
        widened to it (unsigned ones to the unsigned of its width), all else keeps its own.
    """


def var(
    x: Array, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Variance along axes, of real floating-point elements.

    Parameters
    ----------
    correction
        Degrees of freedom to subtract from the number N of elements: 0 for the whole population, 1
        for a sample. NaN if N is not larger.
    """


def all(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Whether every element along axes is true, that is not zero; True of no elements.

    Parameters
    ----------
    axis
        None: all axes.
    keepdims
        Whether the axes that are tested stay, with extent 1.
    """


def any(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Whether some element along axes is true, that is not zero; False of no elements.

    Parameters
    ----------
    axis
        None: all axes.
    keepdims
        Whether the axes that are tested stay, with extent 1.
    """


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
