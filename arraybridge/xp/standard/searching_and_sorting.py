"""Indexing, searching, sorting and set functions of the array API standard 2025.12.

``keepdims`` keeps reduced axes, with extent 1; without an axis, the array is flattened. ``stable``
keeps the order of equal elements. Indices have the library's default index dtype. The library
decides whether an index out of bounds is an error, and the order of NaN, -0 and +0 when it sorts.
Complex numbers have no order.

The shapes of the results of ``unique_*`` depend on values. Each NaN counts as a distinct value, and
-0 equals +0. The order of distinct values is up to the library.
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
    """Return elements along an axis by a 1-D array of integers; negative ones are from the end."""


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Return elements of ``x`` at positions along one axis, which differ along the other axes.

    Use it with the results of :func:`argsort` and ``argmax(..., keepdims=True)``. ``indices``:
    integers, with as many axes as ``x``; all axes except ``axis`` broadcast. Negative ones count
    from the end.
    """


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the position of the largest value along an axis; the first among equal values."""


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the position of the smallest value along an axis; the first among equal values."""


def count_nonzero(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """Count the elements that are not zero (or False) along axes; None: all axes."""


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Return the indices of elements that are not zero, in row-major order, one array per axis.

    The shape of the result depends on values. ``x`` must have at least one axis.
    """


def searchsorted(
    x1: Array,
    x2: Array | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> Array:
    """Return the positions at which to insert values of ``x2`` into ``x1`` to keep its order.

    ``x1``: a 1-D array in ascending order, or in the order of ``sorter``. ``side``: ``"left"`` is
    before equal values, ``"right"`` after them. ``sorter``: the result of ``argsort(x1)`` if ``x1``
    is not sorted. The result has the shape of ``x2``.
    """


def where(condition: Array, x1: Array | complex, x2: Array | complex, /) -> Array:
    """Select elements of ``x1`` if ``condition`` is True, else of ``x2``; all three broadcast.

    ``x1``, ``x2``: at least one array; dtypes are promoted.
    """


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort an array along an axis."""


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return a sorted copy along an axis."""


class UniqueAllResult(NamedTuple):
    """The result of :func:`unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """The result of :func:`unique_counts`."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """The result of :func:`unique_inverse`."""

    values: Array
    inverse_indices: Array


def isin(x1: Array | int, x2: Array | int, /, *, invert: bool = False) -> Array:
    """Test whether each element of ``x1`` occurs in ``x2``; at least one of them is an array."""


def unique_all(x: Array, /) -> UniqueAllResult:
    """Return the distinct values, with first indices, inverse indices and counts.

    ``values``: the distinct values, as a 1-D array. ``indices``: the index of the first occurrence
    of each value in the flattened array. ``inverse_indices``: indices with the shape of ``x``:
    ``values[inverse_indices]`` is ``x``. ``counts``: the number of occurrences of each value.
    """


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """Return the distinct values and the number of occurrences of each, as 1-D arrays."""


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """Return the distinct values, as a 1-D array, and the indices that restore ``x`` from them."""


def unique_values(x: Array, /) -> Array:
    """Return the distinct values, as a 1-D array."""
