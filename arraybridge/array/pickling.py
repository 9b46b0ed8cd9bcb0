"""Pickles of Arrays: as NumPy arrays, whose memory pickle protocol 5 can carry out of band."""

from typing import Any

import numpy

from ..conversion import convert
from ..core.records import ConversionError
from ..core.registry import library_named
from ..dlpack import CPU


def reduced(cls: Any, native: Any, device: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return ``__reduce_ex__`` of an Array; what NumPy cannot view is pickled by its library."""
    library = cls._home.name
    try:
        if device == CPU:
            return restored, (library, *_dense(convert(native, "numpy")))
    except (ConversionError, TypeError):
        cls._check(native, read=True)
    return restored, (library, native)


def _dense(x: numpy.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Return a C-contiguous array of a builtin dtype, the dtype and the order of the axes of ``x``.

    NumPy pickles it out of band. Bytes between elements, which may be private, are not sent.
    """
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    dense = x.transpose(order)
    if not dense.flags.c_contiguous:
        dense = convert(dense, "numpy", copy=True)
    if x.dtype.isbuiltin == 2:  # registered by another package, such as bfloat16
        dense = dense.view(f"u{x.itemsize}")
    return dense, x.dtype, order


def restored(library: str, memory: Any, dtype: Any = None, order: Any = None) -> Any:
    """Return the pickled Array. Pickles contain the name of this function."""
    home = library_named(library)
    if dtype is not None:
        memory = memory.view(dtype).transpose(numpy.argsort(order))
    native = memory if home.owns(type(memory)) else convert(memory, library)
    return home.computing.array_class()._of(native)
