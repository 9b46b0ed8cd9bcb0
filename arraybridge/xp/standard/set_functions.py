"""Set functions of the array API standard 2025.12.

The shapes of all results but :func:`isin`'s depend on data. Elements are the same if they are
equal: every NaN stands for itself alone, and of -0 and +0 one stands for both. The order of the
values is the library's choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...array import Array

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


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
    ...


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
    ...


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """Distinct values and how often each occurs, one axis each."""
    ...


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """Distinct values, one axis, and the indices, of the shape of ``x``, that restore ``x``."""
    ...


def unique_values(x: Array, /) -> Array:
    """Distinct values, one axis."""
    ...
