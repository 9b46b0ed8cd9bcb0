"""Manipulation functions of the array API standard 2025.12.

Unless you pass ``copy``, the library decides whether a result is a view or a copy, so do not write
to the argument or the result. Negative axes count from the end.
"""
# pyright: reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...array import Array
    from .data_types import Axes, Shape

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip",
    "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile",
    "unstack",
]  # fmt: skip


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Broadcast arrays against each other; each keeps its dtype."""


def broadcast_shapes(*shapes: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Return the shape that shapes broadcast to; ``()`` without arguments.

    None is an unknown extent, in libraries that build graphs. ValueError if the shapes do not
    broadcast.
    """


def broadcast_to(x: Array, /, shape: Shape) -> Array:
    """Broadcast to a shape, in most libraries as a view; ValueError if that is impossible."""


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis; dtypes are promoted.

    ``arrays``: a tuple or list of arrays, with equal extents except along ``axis``. Without an
    ``axis``, each is flattened first.
    """


def expand_dims(x: Array, /, axis: Axes) -> Array:
    """Insert axes of extent 1.

    ``axis``: the position or positions of the new axes in the result, without repetition.
    IndexError if the result has no such axis.
    """


def flip(x: Array, /, *, axis: Axes | None = None) -> Array:
    """Reverse the order of the elements along axes; None: along all axes."""


def moveaxis(x: Array, source: Axes, destination: Axes, /) -> Array:
    """Move axes to other positions; the other axes keep their order.

    ``source``: the axes to move, without repetition. ``destination``: their new positions, as many
    as ``source``, without repetition.
    """


def permute_dims(x: Array, /, axes: Shape) -> Array:
    """Reorder the axes: axis ``i`` of the result is axis ``axes[i]`` of ``x``."""


def repeat(x: Array, repeats: Array | int, /, *, axis: int | None = None) -> Array:
    """Repeat each element, or each slice along ``axis``, consecutively.

    ``repeats``: the number of repetitions, or one number per element along the axis. With an array,
    the shape of the result depends on values. Without an ``axis``, the array is flattened first, in
    row-major order.
    """


def reshape(x: Array, /, shape: Shape, *, copy: bool | None = None) -> Array:
    """Change the shape; the elements keep their row-major order.

    ``shape``: the new shape. One extent may be -1, and is computed from the others. ``copy``: True
    always copies, False never, which is a ValueError if a copy is needed, and None only if a view
    is impossible.
    """


def roll(x: Array, /, shift: Axes, *, axis: Axes | None = None) -> Array:
    """Shift elements along axes; elements that leave at one end enter at the other.

    ``shift``: the number of positions, positive toward the end. A tuple has one number per axis; a
    single number applies to all axes. Without an ``axis``, flatten, shift, and restore the shape.
    """


def squeeze(x: Array, /, axis: Axes) -> Array:
    """Remove axes of extent 1; ValueError if an axis has another extent."""


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Join a tuple or list of arrays of one shape along a new axis; dtypes are promoted."""


def tile(x: Array, repetitions: Shape, /) -> Array:
    """Repeat the whole array along each axis.

    ``repetitions``: one number per axis. Missing numbers are 1, for the first axes. If there are
    more numbers than axes, axes of extent 1 are added at the front of ``x``.
    """


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into its slices along an axis, as the inverse of :func:`stack`."""
