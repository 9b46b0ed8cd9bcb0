"""Linear algebra functions in the main namespace of the array API standard 2025.12.

The extension :mod:`~arraybridge.xp.standard.linalg` has these and others.
"""
# pyright: reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...array import Array

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Array, x2: Array, /) -> Array:
    """Compute the matrix product over the last two axes; the axes before them broadcast.

    An argument without axes, or with another ``K``, is an error. ``x1``: an array of shape ``(...,
    M, K)``, or a row ``(K,)``, whose axis the result lacks. ``x2``: an array of shape ``(..., K,
    N)``, or a column ``(K,)``, whose axis the result lacks.
    """


def matrix_transpose(x: Array, /) -> Array:
    """Exchange the last two axes: ``(..., M, N)`` becomes ``(..., N, M)``, unconjugated."""


def tensordot(
    x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Array:
    """Compute a tensor contraction: the sum of products over pairs of axes. It does not conjugate.

    ``axes``: a number ``n`` pairs the last ``n`` axes of ``x1`` with the first ``n`` of ``x2``, in
    order. A pair of sequences has the axes of ``x1`` and those of ``x2``. Paired axes have equal
    extents. The result has the remaining axes of ``x1``, then those of ``x2``.
    """


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Compute dot products, of ``x1`` conjugated, along a negative ``axis``; others broadcast."""
