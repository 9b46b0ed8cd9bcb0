"""How Arrays, and native arrays, are pickled: as memory that NumPy's pickles carry out of band."""

from __future__ import annotations

from typing import Any

import numpy

from ..conversion import convert, imported
from ..core.records import ConversionError
from ..core.registry import library_named, library_of_type
from ..dlpack import CPU


def reduced(library: str, native: Any, device: Any) -> tuple[Any, tuple[Any, ...]]:
    """What ``__reduce_ex__`` returns for an Array over a native array.

    A NumPy view where there is one: its memory can then travel out of band (pickle protocol 5).
    """
    try:
        if device == CPU:
            return restored, (library, *_out_of_band(convert(native, "numpy")))
    except (ConversionError, TypeError):  # a gradient, say
        library_named(library).check_supported(native, read=True)
    return restored, (library, native)


def reduced_native(native: Any, readonly: bool = True) -> tuple[Any, tuple[Any, ...]] | None:
    """Return what a reducer of native arrays returns; None where the library's own must do.

    `readonly`: memory that is read-only on arrival stays so; else it is copied then.
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
    """An array as NumPy pickles it out of band: dense, of NumPy's own dtypes; and its layout.

    The order and the direction of the axes are kept, and elements that are repeated (a stride of 0)
    are sent once. What lies between the elements of a slice is not sent: it is not the caller's to
    give, and to copy the elements alone costs less than what is saved in each copy that follows.
    """
    dtype = x.dtype
    layout: tuple[Any, ...] = ()
    if not (x.flags.c_contiguous or dtype.hasobject):
        x, layout = _dense(x)
    if dtype.isbuiltin == 2:  # made elsewhere: bfloat16
        return x.view(f"u{dtype.itemsize}"), dtype, *layout
    return (x, None, *layout) if layout else (x,)


def _dense(x: numpy.ndarray[Any, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the elements of ``x`` in the order of memory, and the layout over these.

    The layout is the shape, the strides in bytes and the offset of the first element in bytes.
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
    """Return a native array of a library, from what `reduced` made of one.

    It is read-only where the memory is; a copy of that if not ``readonly``. ``native`` is an array
    of the library, or NumPy's of the bytes: ``dtype`` then says what these are, and ``shape``,
    ``strides`` and ``offset`` (in bytes) the layout over them.
    """
    home = library_named(library)
    if dtype is not None:
        native = native.view(dtype)
    if shape is not None:  # NumPy checks that it is inside the memory
        native = numpy.ndarray(shape, native.dtype, native, offset, strides)
    if home.owns(type(native)):
        return native
    if readonly and not home.accepts.readonly and not native.flags.writeable:
        view = home.read_only(native)
        if view is not None:
            return view
    # Read-only memory in which a pickle arrives is the array's own: nobody writes to it.
    return convert(native, library) if native.flags.writeable else imported(native, library)


# Pickles name these functions, and so may those of earlier versions.


def restored(library: str, *memory: Any) -> Any:
    """An Array from what it was pickled as: the arguments of `_native`."""
    return library_named(library).array_class()._of(_native(True, library, *memory))


def restored_native(library: str, *memory: Any) -> Any:
    """A native array from what it was pickled as; read-only where the memory is."""
    return _native(True, library, *memory)


def restored_writable(library: str, *memory: Any) -> Any:
    """A native array from what it was pickled as; a copy where the memory is read-only."""
    return _native(False, library, *memory)
