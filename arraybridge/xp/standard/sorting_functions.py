"""Sorting functions of the array API standard 2025.12.

Where NaN, -0 and +0 go is the library's choice; complex numbers have no order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...array import Array

__all__ = ["argsort", "sort"]


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Indices that sort along an axis, in the default data type for indices.

    Parameters
    ----------
    stable
        Whether equal elements surely keep their order, also if ``descending``.
    """
    ...


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Sorted copy along an axis.

    Parameters
    ----------
    stable
        Whether equal elements surely keep their order, also if ``descending``.
    """
    ...
