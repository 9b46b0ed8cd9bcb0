"""Linear algebra functions of the array API standard 2025.12: those of the main namespace.

The others are in the extension :mod:`~arraybridge.xp.standard.linalg`, and these are there again.
"""
# pyright: reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...array import Array

__all__ = [
    "matmul", "matrix_transpose", "tensordot", "vecdot",
]  # fmt: skip


def matmul(x1: Array, x2: Array, /) -> Array:
    """Matrix product over the last two axes; the axes before them broadcast.

    Arguments without an axis, or with two different ``K``, are an error.

    Parameters
    ----------
    x1
        ``(..., M, K)``, or ``(K,)``: a row, whose axis the result lacks.
    x2
        ``(..., K, N)``, or ``(K,)``: a column, whose axis the result lacks.
    """


def matrix_transpose(x: Array, /) -> Array:
    """Exchange the last two axes: ``(..., M, N)`` becomes ``(..., N, M)``. Conjugates nothing."""


def tensordot(
    x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Array:
    """Sum of products over pairs of axes: a tensor contraction. Nothing is conjugated.

    Parameters
    ----------
    axes
        A number ``n``: the last ``n`` axes of ``x1`` with the first ``n`` of ``x2``, in order.
        A pair: the axes of ``x1``, and their partners in ``x2``. Paired extents must be equal.

    Returns
    -------
    Array
        The axes of ``x1`` that are left, then those of ``x2``.
    """


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Dot product of the vectors along one axis, with the conjugate of ``x1``; the rest broadcasts.

    Parameters
    ----------
    axis
        Of both arrays, counted from the end (negative); its extents must be equal.
    """
