"""Manipulation functions of the array API standard 2025.12.

Whether a result is a view or a copy is the library's choice unless ``copy`` says otherwise, so
write to neither. Negative axes count from the end.
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
    """Broadcast arrays against one another, each keeping its data type."""


def broadcast_shapes(*shapes: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Return the shape that shapes broadcast to; ``()`` of none at all.

    Parameters
    ----------
    *shapes
        None stands for an extent that is not known yet, in libraries that build graphs.

    Raises
    ------
    ValueError
        If they do not broadcast.
    """


def broadcast_to(x: Array, /, shape: Shape) -> Array:
    """Broadcast to a shape; in most libraries a view whose elements share memory.

    Raises
    ------
    ValueError
        If ``x`` does not broadcast to just that shape.
    """


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis that they have; data types are promoted.

    Parameters
    ----------
    arrays
        A tuple or list; equal extents save along ``axis``.
    axis
        None: flatten each array first.
    """


def expand_dims(x: Array, /, axis: Axes) -> Array:
    """Insert axes of extent 1.

    Parameters
    ----------
    axis
        Where they are in the result, each place once; negative ones count from the end of the
        result.

    Raises
    ------
    IndexError
        If the result has no such axis.
    """


def flip(x: Array, /, *, axis: Axes | None = None) -> Array:
    """Reverse the order of the elements along one or more axes; None: along all."""


def moveaxis(x: Array, source: Axes, destination: Axes, /) -> Array:
    """Move axes to other places; the others keep their order.

    Parameters
    ----------
    source
        Which axes, each once.
    destination
        Where each goes: as many, each once.
    """


def permute_dims(x: Array, /, axes: Shape) -> Array:
    """Reorder the axes: axis ``i`` of the result is axis ``axes[i]`` of ``x``."""


def repeat(x: Array, repeats: Array | int, /, *, axis: int | None = None) -> Array:
    """Repeat each element, or each slice across ``axis``, next to itself.

    Parameters
    ----------
    repeats
        How often: one number, or one for each element along the axis. With an array the shape of
        the result depends on data.
    axis
        None: flatten first, in row-major order.
    """


def reshape(x: Array, /, shape: Shape, *, copy: bool | None = None) -> Array:
    """Give the elements, in row-major order, another shape.

    Parameters
    ----------
    shape
        One extent may be -1: whatever is left.
    copy
        True: always copy. False: never. None: only where a view cannot be had.

    Raises
    ------
    ValueError
        If ``copy`` is False and a copy is needed.
    """


def roll(x: Array, /, shift: Axes, *, axis: Axes | None = None) -> Array:
    """Shift elements along axes; what falls off the end comes back at the start.

    Parameters
    ----------
    shift
        By how many places, toward the end if positive. A tuple pairs off with ``axis``; one number
        goes for all of its axes.
    axis
        None: flatten, shift, restore the shape.
    """


def squeeze(x: Array, /, axis: Axes) -> Array:
    """Remove axes of extent 1.

    Raises
    ------
    ValueError
        If one of them has another extent.
    """


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Join arrays of one shape along a new axis; data types are promoted.

    Parameters
    ----------
    arrays
        A tuple or list.
    axis
        Where the new axis is in the result.
    """


def tile(x: Array, repetitions: Shape, /) -> Array:
    """Repeat the whole array along each axis.

    Parameters
    ----------
    repetitions
        One number an axis. If there are fewer than axes, ones are put before them; if more, axes
        of extent 1 before those of ``x``.
    """


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split into the slices across an axis, which they lack: :func:`stack` undone."""
