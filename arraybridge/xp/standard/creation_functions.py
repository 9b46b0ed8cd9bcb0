"""Creation functions of the array API standard 2025.12.

If ``dtype`` is None, the result has the library's default dtype of the kind that the arguments have
(integer, real or complex), or its floating-point default. If ``device`` is None, the result is on
the library's current device, or on the device of the array argument.
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
    dtype: DType = None,
    device: Device = None,
) -> Array:
    """Make a 1-D array of evenly spaced values in the half-open interval ``[start, stop)``.

    ``start``: the first value. If ``stop`` is None, this is the end, and the first value is 0.
    ``step``: the distance between values, not 0. If it points away from ``stop``, the result is
    empty. With a fractional step, rounding may change the number of values by one; use
    :func:`linspace` instead.
    """


def asarray(
    obj: ArrayLike, /, *, dtype: DType = None, device: Device = None, copy: bool | None = None
) -> Array:
    """Make an array from an array, a Python scalar, nested sequences of scalars, or a buffer.

    ``dtype``: by default, that of ``obj``. Python scalars get the default dtype of the highest kind
    among them: bool, integer, real, complex. ``copy``: True always copies, False never, which is a
    ValueError if a copy is needed, and None only if the memory cannot be shared.
    """


def empty(shape: int | Shape, *, dtype: DType = None, device: Device = None) -> Array:
    """Make an array without initializing its elements."""


def empty_like(x: Array, /, *, dtype: DType = None, device: Device = None) -> Array:
    """Make an array with the shape and, by default, dtype of ``x``, without initializing it."""


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType = None,
    device: Device = None,
) -> Array:
    """Make a matrix with ones on the ``k``-th diagonal and zeros elsewhere."""


def from_dlpack(x: object, /, *, device: Device = None, copy: bool | None = None) -> Array:
    """Import an array of another library through ``__dlpack__``, as a view if possible.

    ``device`` is by default that of ``x``. ``copy``: True always copies, False never, None only if
    a view is impossible. AttributeError if ``x`` does not support DLPack. BufferError if ``x``
    cannot be exported, or a copy is needed and ``copy`` is False. ValueError if only an explicit
    copy is possible and ``copy`` is False.
    """


def full(
    shape: int | Shape, fill_value: complex, *, dtype: DType = None, device: Device = None
) -> Array:
    """Make an array filled with ``fill_value``.

    ``dtype``: by default, the library's default of the kind of ``fill_value``: bool, integer, real
    or complex.
    """


def full_like(
    x: Array, /, fill_value: complex, *, dtype: DType = None, device: Device = None
) -> Array:
    """Make an array with the shape and, by default, dtype of ``x``, filled with ``fill_value``."""


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DType = None,
    device: Device = None,
    endpoint: bool = True,
) -> Array:
    """Make a 1-D array of ``num`` evenly spaced values from ``start`` to ``stop``.

    ``endpoint``: whether ``stop`` is the last value. If not, the last value is one step before
    ``stop``, and the interval has ``num`` steps.
    """


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    """Make coordinate arrays of a grid from 1-D coordinates, one array per axis.

    ``*arrays``: 1-D arrays of one dtype. ``indexing``: by ``"ij"``, axis ``i`` of the results
    follows the ``i``-th array (matrix indexing); by ``"xy"``, the first two axes are exchanged
    (Cartesian indexing).
    """


def ones(shape: int | Shape, *, dtype: DType = None, device: Device = None) -> Array:
    """Make an array of ones."""


def ones_like(x: Array, /, *, dtype: DType = None, device: Device = None) -> Array:
    """Make an array of ones with the shape and, by default, dtype of ``x``."""


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Return the lower triangle of each matrix, with zeros above the ``k``-th diagonal."""


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Return the upper triangle of each matrix, with zeros below the ``k``-th diagonal."""


def zeros(shape: int | Shape, *, dtype: DType = None, device: Device = None) -> Array:
    """Make an array of zeros."""


def zeros_like(x: Array, /, *, dtype: DType = None, device: Device = None) -> Array:
    """Make an array of zeros with the shape and, by default, dtype of ``x``."""
