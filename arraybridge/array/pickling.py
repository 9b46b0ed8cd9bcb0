"""Pickles of Arrays and native arrays: NumPy arrays, which pickle can carry out of band."""

from __future__ import annotations

from typing import Any

import numpy

from ..conversion import convert, imported
from ..core.records import ConversionError
from ..core.registry import library_named, library_of_type
from ..dlpack import CPU


def reduced(library: str, native: Any, device: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the result of ``__reduce_ex__`` for an Array over a native array.

    If NumPy can view the array, its memory can travel out of band (pickle protocol 5).
    """
    try:
        if device == CPU:
            return restored, (library, *_out_of_band(convert(native, "numpy")))
    except (ConversionError, TypeError):  # such as for a gradient
        library_named(library).check_supported(native, read=True)
    return restored, (library, native)


def reduced_native(native: Any, readonly: bool = True) -> tuple[Any, tuple[Any, ...]] | None:
    """Return a reducer's result for a native array; None if the library must pickle it.

    Memory that is read-only on arrival stays so if `readonly`, else it is copied.
    """
    library = library_of_type(type(native))
    if library is None:
        return None
    try:
        info = library.describe(native)
        if info.device != CPU or info.pending or info.refused or not library.only_memory(native):
            return None
        _, (name, *carried) = reduced(library.name, native, CPU)
    except (ConversionError, TypeError):
        return None
    if carried[0] is native:
        return None
    return restored_native if readonly else restored_writable, (name, *carried)


def _out_of_band(x: numpy.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Return an array that NumPy pickles out of band (dense, of a builtin dtype), and its layout.

    The order and direction of the axes are kept, and repeated elements (a stride of 0) are sent
    once. The bytes between the elements of a slice are not sent: they may be private, and copying
    only the elements pays off with the first copy that follows.
    """
    dtype = x.dtype
    layout: tuple[Any, ...] = ()
    if not (x.flags.c_contiguous or dtype.hasobject):
        x, layout = _dense(x)
    if dtype.isbuiltin == 2:  # registered by another package, such as bfloat16
        return x.view(f"u{dtype.itemsize}"), dtype, *layout
    return (x, None, *layout) if layout else (x,)


def _dense(x: numpy.ndarray[Any, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the elements of ``x`` in memory order, and the layout of ``x`` over them.

    The layout: the shape, the strides in bytes, and the offset of the first element in bytes.
    """
    steps = x.strides
    order = sorted(range(x.ndim), key=lambda axis: -abs(steps[axis]))
    key = tuple(slice(None, None, -1) if step < 0 else slice(None if step else 1) for step in steps)
    dense = x[key].transpose(order)
    if not dense.flags.c_contiguous:
        dense = convert(dense, "numpy", copy=True)
        if not x.flags.writeable:
            dense.flags.writeable = False
    strides, offset, step = [0] * x.ndim, 0, x.itemsize
    for axis in reversed(order):
        if not steps[axis]:
            continue
        extent = x.shape[axis]
        strides[axis] = step if steps[axis] > 0 else -step
        offset += 0 if steps[axis] > 0 else step * (extent - 1)
        step *= extent
    return dense, (x.shape, tuple(strides), offset)


def _native(
    readonly: bool,
    library: str,
    native: Any,
    dtype: Any = None,
    shape: Any = None,
    strides: Any = (),
    offset: int = 0,
) -> Any:
    """Return a native array of a library from the result of `reduced`.

    If its memory is read-only, so is the array, or it is a copy if not ``readonly``. ``native`` is
    an array of the library or of NumPy; ``dtype`` is the type of its elements if NumPy's differs;
    ``shape``, ``strides`` and ``offset`` (in bytes) are the layout over it.
    """
    home = library_named(library)
    if dtype is not None:
        native = native.view(dtype)
    if shape is not None:  # NumPy checks that it is within the memory
        native = numpy.ndarray(shape, native.dtype, native, offset, strides)
    if home.owns(type(native)):
        return native
    if readonly and not home.accepts.readonly and not native.flags.writeable:
        view = home.read_only(native)
        if view is not None:
            return view
    # Read-only memory of a pickle belongs to the array: nobody writes to it.
    return convert(native, library) if native.flags.writeable else imported(native, library)


# Pickles, also of earlier versions, contain the names of these functions.


def restored(library: str, *memory: Any) -> Any:
    """Return a pickled Array; see `_native`."""
    return library_named(library).array_class()._of(_native(True, library, *memory))


def restored_native(library: str, *memory: Any) -> Any:
    """Return a pickled native array; read-only if its memory is."""
    return _native(True, library, *memory)


def restored_writable(library: str, *memory: Any) -> Any:
    """Return a pickled native array; a copy if its memory is read-only."""
    return _native(False, library, *memory)
