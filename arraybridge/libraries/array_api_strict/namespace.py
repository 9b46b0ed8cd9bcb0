"""The array API standard over Arrays of array-api-strict."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import array_api_strict as xp
import numpy

from ...array.indexing import axes_of
from ...array.library_array import LibraryArray
from ...core.registry import own_library
from ...xp import corrections
from ...xp.build import NativeNamespace, make_native_namespace, open_namespace, operators_of
from ...xp.corrections import Correction
from ...xp.retry import as_float, large_integers
from ...xp.special_values import Means, joined, sign
from ...xp.standard import EXTENSIONS

_Array = type(xp.zeros(()))
_join = joined(numpy)


def _joined(re: Any, im: Any) -> Any:
    return _Array._new(_join(re._array, im._array), device=re.device)


MEANS = Means(
    xp,
    floating=lambda dtype: xp.isdtype(dtype, "real floating"),
    complex_floating=lambda dtype: xp.isdtype(dtype, "complex floating"),
    complex=_joined,
    eager=True,
    tally=lambda x: numpy.count_nonzero(x._array),
    quiet=lambda: numpy.errstate(invalid="ignore"),
)


def _extension(name: str) -> Any:
    """Return the module of an extension, which a flag may have switched off."""
    return import_module(f"{xp.__name__}._{name}")


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Test whether elements are in another array."""
    found = xp.isin(x1, x2)
    return xp.logical_not(found) if invert else found


def _copy(x: Any) -> Any:
    return xp.asarray(x, copy=True)


def _integer_name(dtype: Any) -> str | None:
    return str(dtype._np_dtype) if xp.isdtype(dtype, "integral") else None


# fmt: off
CORRECTIONS: tuple[Correction, ...] = (
    corrections.diff(xp),
    corrections.matrix_rank(xp, _extension("linalg"), xp.int64),
    corrections.roll(xp, _copy),
    *corrections.shifts(_extension("fft"), _copy),
    corrections.linspace(xp, xp.linspace, _integer_name, xp.asarray),
    corrections.from_dlpack("array_api_strict"),
    *corrections.numpy_special_cases(MEANS, xp, ", which it stands on"),
    Correction("isin", isin, "isin: invert", "no issue known"),
    Correction(
        "sign", sign(MEANS), "sign: of every complex zero it is 0 + 0j, of -0 too",
        "no issue known; array-api-strict/pull/172 mended the other zeros",
    ),
)
# fmt: on


# Indexing, of which array-api-strict refuses some legal forms.
#
# Array API standard 2025.12, "Indexing". For index arrays and masks combined with other indices,
# which the standard leaves open, the result is NumPy's, as with every other library.


def _key(native: Any, key: Any) -> tuple[Any, ...]:
    """Convert an index to a form that array-api-strict takes: a tuple, with slices within extents.

    Slices mean what they mean for a list, as in every other library.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(part, slice) for part in parts):
        return parts
    left = native.ndim - sum(axes_of(part) for part in parts)
    taken = []
    axis = 0
    for part in parts:
        if isinstance(part, slice) and axis < native.ndim:
            part = _within(part, native.shape[axis])
        taken.append(part)
        axis += left if part is ... else axes_of(part)
    return tuple(taken)


def _within(part: slice, extent: int) -> slice:
    """Convert a slice to one of the same elements with both ends within the extent."""
    if part.start is None and part.stop is None:
        return part
    start, stop, step = part.indices(extent)
    if not range(start, stop, step):
        return slice(0, 0)
    return slice(start, None if stop < 0 else stop, step)


def _opened(native: Any, key: tuple[Any, ...], *, writing: bool = False) -> tuple[Any, ...] | None:
    """Convert an index that array-api-strict refuses to NumPy's; return None for any other."""
    arrays = [part for part in key if isinstance(part, _Array)]
    integers = [part for part in arrays if part.dtype != xp.bool]
    if not arrays or not (
        (writing and integers)
        or (
            integers and any(part is None or isinstance(part, slice) or part is ... for part in key)
        )
        or (len(key) > 1 and len(integers) < len(arrays))
    ):
        return None
    whole = ... in [part for part in key if not isinstance(part, _Array)]
    if not whole and sum(axes_of(part) for part in key) < native.ndim:
        return None  # it requires every axis or an ellipsis
    if len(integers) < len(arrays) and not xp.get_array_api_strict_flags()["boolean_indexing"]:
        return None
    for part in arrays:
        if part.device != native.device:
            raise ValueError(f"cannot index an array on {native.device} by one on {part.device}")
    return tuple([part._array if isinstance(part, _Array) else part for part in key])


def get_items(native: Any, key: Any) -> Any:
    """Get elements by index."""
    key = _key(native, key)
    opened = _opened(native, key)
    if opened is None:
        return native[key]
    return _Array._new(native._array[opened], device=native.device)


def set_items(native: Any, key: Any, value: Any) -> Any:
    """Write elements, and return the array, or a written copy of a read-only one."""
    key = _key(native, key)
    if not native.size and key and isinstance(key[0], _Array) and key[0].dtype == xp.bool:
        # array-api-strict reads a mask without elements as no elements of the first axis.
        numpy.broadcast_to(getattr(value, "_array", value), native[key].shape)
        return native
    array = native._array
    if not array.flags.writeable:
        native = _Array._new(array.copy(), device=native.device)
    value, *parts = [
        _Array._new(x._array.copy(), device=x.device)
        if isinstance(x, _Array) and numpy.may_share_memory(array, x._array)
        else x
        for x in (value, *key)
    ]
    opened = _opened(native, tuple(parts), writing=True)
    if opened is None:
        native[tuple(parts)] = value
    else:
        native._array[opened] = getattr(value, "_array", value)
    return native


TABLE = NativeNamespace(
    "array_api_strict",
    "array_api_strict",
    CORRECTIONS,
    (large_integers(as_float),),
    takes_nested=False,
    switched=(*EXTENSIONS, "__array_api_version__"),
)
native = make_native_namespace(TABLE)


class StrictArray(LibraryArray):
    """The standard's array object over array-api-strict; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = own_library("array_api_strict")
    _native_namespace = native
    _native_type = _Array
    _operators = operators_of(native)
    _get = staticmethod(get_items)
    _set = staticmethod(set_items)

    @staticmethod
    def _probe(native: Any, device: Any) -> Any:
        """Make a small array on a device, if the device has every dtype.

        Any array can be brought to any device in ``devices()``. The devices "no_float64" and
        "no_x64", which array-api-strict lists as well, refuse some; they can be named.
        """
        try:
            for dtype in (native.uint64, native.complex128):
                array = native.empty((1,), dtype=dtype, device=device)
        except ValueError as error:
            raise TypeError(str(error)) from error
        return array


open_namespace(StrictArray, __doc__)
