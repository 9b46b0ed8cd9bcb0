"""Indexing by the rules of the array API standard 2025.12, "Indexing", for every library."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from ..protocols.rejections import check_whole

# Parts of an index that need no conversion; a tuple, as torch.compile fails on a set of types.
PLAIN = (int, slice, type(None), type(...), bool)


def unwrapped(array: Any, key: Any) -> Any:
    """Replace Arrays in an index by native arrays; refuse to lose a mask."""
    if key.__class__ is tuple:
        return tuple([part if part.__class__ in PLAIN else unwrapped(array, part) for part in key])
    if hasattr(type(key), "__arraybridge__"):
        return array._same(key)
    if isinstance(key, numpy.ndarray):
        check_whole(key)
    return key


def set_in_place(native: Any, key: Any, value: Any) -> Any:
    """Write elements with the library's own indexing; return the array."""
    native[key] = value
    return native


def booleans_as_masks(x: Any, key: Any) -> tuple[Any, Any]:
    """Make the scalar booleans of an index masks of one element, each along a new axis of `x`.

    That is what they are in NumPy; other libraries lose their place beside other parts. Return a
    view of `x` with the new axes, and its index; both unchanged without scalar booleans.
    """
    parts = key if key.__class__ is tuple else (key,)
    if not any(map(_is_boolean, parts)):
        return x, key
    left = x.ndim - sum(axes_of(part) for part in parts)
    axes: list[Any] = []
    masks: list[Any] = []
    for part in parts:
        if _is_boolean(part):
            axes.append(None)
            part = numpy.asarray([part]) if part.__class__ is bool else part.reshape(1)
        elif part is not None:
            axes += [slice(None)] * (left if part is ... else axes_of(part))
        masks.append(part)
    return x[tuple(axes)], masks[0] if len(masks) == 1 else tuple(masks)


def _is_boolean(part: Any) -> bool:
    """Return whether a part of an index is a boolean, or a boolean array without axes."""
    if part.__class__ in PLAIN:
        return part.__class__ is bool
    return getattr(part, "ndim", 1) == 0 and "bool" in str(part.dtype)


class Steps(NamedTuple):
    """An index with negative steps, in two parts, for libraries that only support positive ones.

    The result is ``array[forward]``, flipped along ``flipped``, then indexed by ``rest``. Without
    the flip the axes ``turned`` of the result are reversed, if the index has no arrays.
    """

    forward: tuple[Any, ...]
    flipped: tuple[int, ...]
    rest: tuple[Any, ...]
    turned: tuple[int, ...]


def steps_of(key: tuple[Any, ...], shape: tuple[int, ...]) -> Steps | None:
    """Rewrite an index with positive steps; None if it has no negative ones."""
    if not any(_backward(part) for part in key):
        return None
    forward: list[Any] = []
    rest: list[Any] = []
    flipped, turned = [], []
    result = 0  # the axis of the result, if the index has no arrays
    left = len(shape) - sum(axes_of(part) for part in key)
    for part in key:
        if isinstance(part, slice):
            axis = len(forward)
            if _backward(part):
                part = _reversed(part, shape[axis] if axis < len(shape) else 0)
                flipped.append(axis)
                turned.append(result)
            forward.append(part)
            rest.append(slice(None))
            result += 1
        else:
            forward += [slice(None)] * (left if part is ... else axes_of(part))
            rest.append(part)
            result += left if part is ... else int(part is None)
    return Steps(tuple(forward), tuple(flipped), tuple(rest), tuple(turned))


def axes_of(part: Any) -> int:
    """Return how many axes of an array one part of an index consumes."""
    if part is None or part is ... or isinstance(part, bool):
        return 0
    if isinstance(part, slice):  # first, as torch.compile cannot trace hasattr of a slice
        return 1
    if hasattr(part, "ndim") and "bool" in str(part.dtype):
        return int(part.ndim)
    return 1


def set_apart(
    parts: list[Any], shape: tuple[int, ...], array_of: Callable[[int], Any]
) -> int | None:
    """Rewrite an index for libraries that apply integers before index arrays.

    NumPy treats an integer next to an index array as another one; if a slice, an ellipsis or None
    separates them, their axes come first. In that case ``array_of`` replaces the integers in
    ``parts`` by arrays of one element. Returns an axis of extent 1 to remove from the result.
    """
    places, within = [], []
    arrays = axis = 0
    left = len(shape) - sum(axes_of(part) for part in parts)
    for place, part in enumerate(parts):
        within.append(axis)
        if part is not None and part is not ... and part.__class__ is not slice:
            places.append(place)
            if hasattr(part, "ndim"):
                arrays = max(arrays, 1 if "bool" in str(part.dtype) else part.ndim)
        axis += left if part is ... else axes_of(part)
    if not arrays or places[-1] - places[0] < len(places):  # adjacent for every library
        return None
    for place in places:
        part = parts[place]
        if not hasattr(part, "ndim"):
            parts[place] = array_of(_within(part, shape, within[place]))
        elif not part.ndim:
            parts[place] = part.reshape(1)
    gap = next((i for i, part in enumerate(parts) if part is ...), -1)
    if left or not places[0] < gap < places[-1]:
        return None
    parts[gap] = None  # an ellipsis of no axes separates arrays as well
    return arrays + sum(i not in places for i in range(gap))


def _within(part: Any, shape: tuple[int, ...], axis: int) -> int:
    """Check that an integer is within an axis: devices do not check index arrays."""
    index = operator.index(part)
    if axis < len(shape) and not -shape[axis] <= index < shape[axis]:
        raise IndexError(
            f"index {index} is out of bounds for axis {axis} with {shape[axis]} elements"
        )
    return index


def _backward(part: Any) -> bool:
    return isinstance(part, slice) and part.step is not None and operator.index(part.step) < 0


def _reversed(part: slice, extent: int) -> slice:
    """Return the slice of the same elements with a positive step."""
    indices = range(*part.indices(extent))
    return slice(indices[-1], indices[0] + 1, -indices.step) if indices else slice(0, 0, 1)
