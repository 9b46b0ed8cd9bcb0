"""How Arrays of a library with a namespace are pickled: as NumPy's arrays, where they can be."""

from __future__ import annotations

from typing import Any

import numpy

from ..dispatch.records import ConversionError
from ..dispatch.registry import library_named
from ..dlpack import CPU
from ..exchange import convert


def reduced(library: str, native: Any, device: Any) -> tuple[Any, tuple[Any, ...]]:
    """What ``__reduce_ex__`` returns for an Array over a native array.

    A NumPy view where there is one: its memory can then travel out of band (pickle protocol 5).
    """
    try:
        if device == CPU:
            return restored, (library, *_out_of_band(convert(native, "numpy")))
    except (ConversionError, TypeError):  # a gradient, say
        pass
    return restored, (library, native)


def _out_of_band(x: numpy.ndarray[Any, Any]) -> tuple[Any, ...]:
    """An array as NumPy pickles it out of band: compact, and of NumPy's own dtypes."""
    dtype = x.dtype
    if not (x.flags.c_contiguous or x.flags.f_contiguous):
        writeable = x.flags.writeable
        x = numpy.ascontiguousarray(x)
        x.flags.writeable = writeable
    if dtype.isbuiltin == 2:  # made elsewhere: bfloat16
        return x.view(f"u{dtype.itemsize}"), dtype
    return (x,)


def restored(library: str, native: Any, dtype: Any = None) -> Any:
    """An Array from what it was pickled as: a native array, or NumPy's of the bytes of a dtype."""
    home = library_named(library)
    if dtype is not None:
        native = native.view(dtype)
    return home.array_class()._of(native if home.owns(type(native)) else convert(native, library))
