"""Creation functions of the array API standard 2025.12.

Wherever ``dtype`` is None, the library's default of the fitting kind is taken (an integer, a real
or a complex floating-point type, as the arguments ask; floating-point where nothing does), and
wherever ``device`` is None, the library's current device, or the device of the array given.
"""
# pyright: reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ...array import Array
    from .data_types import ArrayLike, Device, DType, Shape

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Array:
    """Evenly spaced values of the half-open interval ``[start, stop)``, one axis.

    Parameters
    ----------
    start
        The first value. If ``stop`` is None, this is the end and the first value is 0.
    step
        The distance between neighbors; not 0. If it leads away from ``stop``, the result is empty.
        With a step that is no integer the number of values may be off by one through rounding:
        :func:`linspace` has none of that.
    """


def asarray(
    obj: ArrayLike,
    /,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    copy: bool | None = None,
) -> Array:
    """Make an array of an array, a Python scalar, nested sequences of scalars, or a buffer.

    Parameters
    ----------
    dtype
        None: that of ``obj``; of Python scalars the default of the widest kind among them, in the
        order bool, integer, real, complex.
    copy
        True: always copy. False: never. None: only where the memory cannot be used as it is.

    Raises
    ------
    ValueError
        If ``copy`` is False and a copy is needed.
    """


def empty(shape: int | Shape, *, dtype: DType | None = None, device: Device | None = None) -> Array:
    """Make an array without setting its elements."""


def empty_like(x: Array, /, *, dtype: DType | None = None, device: Device | None = None) -> Array:
    """Make an array of the shape of ``x``, by default its data type, without setting elements."""


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Array:
    """Make a matrix of ones on the ``k``-th diagonal and zeros elsewhere.

    Parameters
    ----------
    n_cols
        None: as many as rows.
    k
        0 is the main diagonal; positive ones lie above it, negative ones below.
    """


def from_dlpack(x: object, /, *, device: Device | None = None, copy: bool | None = None) -> Array:
    """Take another library's array in through ``__dlpack__``, as a view where that is possible.

    Parameters
    ----------
    device
        None: where ``x`` lies.
    copy
        True: always copy. False: never. None: only where a view cannot be had.

    Raises
    ------
    AttributeError
        If ``x`` does not support DLPack.
    BufferError
        If ``x`` cannot be exported, or a copy is needed and ``copy`` is False.
    ValueError
        If only an explicit copy could do it and ``copy`` is False.
    """


def full(
    shape: int | Shape,
    fill_value: complex,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Array:
    """Make an array whose every element is ``fill_value``.

    Parameters
    ----------
    dtype
        None: the default of the kind of ``fill_value``: bool, integer, real or complex.
    """


def full_like(
    x: Array, /, fill_value: complex, *, dtype: DType | None = None, device: Device | None = None
) -> Array:
    """Make an array of the shape of ``x``, by default its data type, full of ``fill_value``."""


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    endpoint: bool = True,
) -> Array:
    """``num`` evenly spaced values from ``start`` to ``stop``, one axis.

    Parameters
    ----------
    num
        How many; at least 0.
    endpoint
        Whether ``stop`` is the last value. If not, the interval is cut in ``num`` steps, and the
        last value lies one step before ``stop``.
    """


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    """Spread one-dimensional coordinates over the grid that they span, one array for each.

    Parameters
    ----------
    *arrays
        Coordinates of one data type.
    indexing
        ``"ij"``: axis ``i`` of the results follows the ``i``-th array (matrix indexing).
        ``"xy"``: the first two axes are exchanged (Cartesian); the same with fewer than two arrays.
    """


def ones(shape: int | Shape, *, dtype: DType | None = None, device: Device | None = None) -> Array:
    """Make an array of ones."""


def ones_like(x: Array, /, *, dtype: DType | None = None, device: Device | None = None) -> Array:
    """Make an array of the shape of ``x``, by default its data type, of ones."""


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Lower triangle of each matrix: zero where the column is beyond the ``k``-th diagonal.

    Parameters
    ----------
    x
        ``(..., M, N)``.
    k
        0 is the main diagonal; positive ones lie above it, negative ones below.
    """


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Upper triangle of each matrix: zero where the column is short of the ``k``-th diagonal.

    Parameters
    ----------
    x
        ``(..., M, N)``.
    k
        0 is the main diagonal; positive ones lie above it, negative ones below.
    """


def zeros(shape: int | Shape, *, dtype: DType | None = None, device: Device | None = None) -> Array:
    """Make an array of zeros."""


def zeros_like(x: Array, /, *, dtype: DType | None = None, device: Device | None = None) -> Array:
    """Make an array of the shape of ``x``, by default its data type, of zeros."""
