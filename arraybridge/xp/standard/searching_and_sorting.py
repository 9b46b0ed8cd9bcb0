"""Indexing, searching, sorting and set functions of the array API standard 2025.12.

Positions have the default data type for indices. Whether an index out of bounds is an error, and
where sorting puts NaN, -0 and +0, is the library's choice; complex numbers have no order.

The shapes of all results of set functions but :func:`isin`'s depend on data. Elements are the same
if they are equal: every NaN stands for itself alone, and of -0 and +0 one stands for both. The
order of the values is the library's choice.
"""
# pyright: reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from ...array import Array
    from .data_types import Axes

__all__ = [
    "argmax", "argmin", "argsort", "count_nonzero", "isin", "nonzero", "searchsorted", "sort",
    "take", "take_along_axis", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "where",
]  # fmt: skip


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Elements of ``x`` at the positions ``indices`` of one axis.

    Parameters
    ----------
    indices
        One axis of integers; negative ones count from the end.
    axis
        May be None only if ``x`` has one axis.
    """


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Elements of ``x`` at ``indices`` of one axis, chosen anew at each place of the other axes.

    Fits what :func:`argsort` and ``argmax(..., keepdims=True)`` return.

    Parameters
    ----------
    indices
        Integers, with as many axes as ``x``; all but ``axis`` broadcast against those of ``x``.
        Negative ones count from the end.
    """


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Positions of the largest values along an axis, the first of equals.

    Parameters
    ----------
    axis
        None: one position, in the flattened array.
    keepdims
        Whether the axes that are searched stay, with extent 1.
    """


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Positions of the smallest values along an axis, the first of equals.

    Parameters
    ----------
    axis
        None: one position, in the flattened array.
    keepdims
        Whether the axes that are searched stay, with extent 1.
    """


def count_nonzero(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """How many elements are not zero (not False), along axes; None: of all.

    Parameters
    ----------
    keepdims
        Whether the axes that are counted stay, with extent 1.
    """


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Positions of the elements that are not zero, in row-major order, one array per axis of ``x``.

    The shape of the result depends on data. ``x`` must have an axis.
    """


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


def where(condition: Array, x1: Array | complex, x2: Array | complex, /) -> Array:
    """Elements of ``x1`` where ``condition`` is True, of ``x2`` elsewhere; all three broadcast.

    Parameters
    ----------
    condition
        Booleans.
    x1, x2
        Their data types are promoted; at least one is an array.
    """


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Indices that sort along an axis, in the default data type for indices.

    Parameters
    ----------
    stable
        Whether equal elements surely keep their order, also if ``descending``.
    """


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Sorted copy along an axis.

    Parameters
    ----------
    stable
        Whether equal elements surely keep their order, also if ``descending``.
    """


class UniqueAllResult(NamedTuple):
    """What :func:`unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What :func:`unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What :func:`unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def isin(x1: Array | int, x2: Array | int, /, *, invert: bool = False) -> Array:
    """Whether each element of ``x1`` occurs in ``x2``; at least one of them is an array.

    Parameters
    ----------
    invert
        Whether it does not occur, instead.
    """


def unique_all(x: Array, /) -> UniqueAllResult:
    """Distinct values, where each occurs first, how to restore ``x``, and how often each occurs.

    Returns
    -------
    values
        One axis.
    indices
        Of the first occurrences, in the flattened array.
    inverse_indices
        The shape of ``x``: ``values[inverse_indices]`` is ``x``.
    counts
        How often each value occurs.
    """


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """Distinct values and how often each occurs, one axis each."""


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """Distinct values, one axis, and the indices, of the shape of ``x``, that restore ``x``."""


def unique_values(x: Array, /) -> Array:
    """Distinct values, one axis."""
