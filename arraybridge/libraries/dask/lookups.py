"""Dask's look-ups by the type of a block: joining, picking, contracting, counting.

For blocks of `chunk`, and for Arrays, PyTorch tensors and JAX arrays that others put into a Dask
array, which Dask would otherwise convert to NumPy's.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import numpy
from dask.array import chunk_types, dispatch
from numpy.lib.array_utils import normalize_axis_tuple

from ...array.array import Array
from ...array.array_types import ArrayType
from ...containers import leaves
from ...conversion import convert
from ...core.records import ConversionError
from .chunk import Chunk, chunk_class, chunked, function_of
from .numpy_rules import own_dtype

_FUNCTIONS = {
    dispatch.concatenate_lookup: numpy.concatenate,
    dispatch.take_lookup: numpy.take,
    dispatch.tensordot_lookup: numpy.tensordot,
    dispatch.einsum_lookup: numpy.einsum,
}
#: The top-level packages whose arrays are joined as they are.
_OTHERS = ("torch", "jaxlib", "jax")


@functools.cache
def register_lookups() -> None:
    """Register everything with ``dask.array``, once."""
    chunk_types.register_chunk_type(Chunk)
    for lookup, function in _FUNCTIONS.items():
        lookup.register(Chunk, _of_blocks(function))
        lookup.register(Array, _of_others(function))
        for package in _OTHERS:
            lookup.register_lazy(package, _register_others)
    dispatch.numel_lookup.register(Chunk, count)
    dispatch.divide_lookup.register(Chunk, divide)
    dispatch.empty_lookup.register(Chunk, _no_empty)
    dispatch.to_numpy_dispatch.register(
        (Chunk, Array), lambda x, **options: convert(x, "numpy", **options)
    )


def _register_others() -> None:
    """Register PyTorch tensors and JAX arrays, if these libraries have been imported."""
    classes = []
    if "torch" in sys.modules:
        classes.append(sys.modules["torch"].Tensor)
    if "jax" in sys.modules:
        classes.append(sys.modules["jax"].Array)
        from jaxlib._jax import ArrayImpl  # to Python it is no subclass of jax.Array

        classes.append(ArrayImpl)
    for cls in classes:
        for lookup, function in _FUNCTIONS.items():
            lookup.register(cls, _of_others(function))


def _of_blocks(function: Any) -> Any:
    def looked_up(*args: Any, **options: Any) -> Any:
        first = next(x for x in leaves(args) if isinstance(x, Chunk))
        return function_of(first, function, args, options)

    return looked_up


def _of_others(function: Any) -> Any:
    """Apply a function to arrays that are not blocks, and return arrays of their type."""
    of_blocks = _of_blocks(function)

    def looked_up(*args: Any, **options: Any) -> Any:
        return of_blocks(*chunked(args, False), **options).value

    return looked_up


def count(x: Chunk, axis: Any = None, keepdims: bool = False, dtype: Any = "f8", **_: Any) -> Any:
    """Return the number of elements that a reduction covers, as a block, for means."""
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    number = math.prod(x.shape[each] for each in axes)
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes)
    try:
        own, block = own_dtype(x.array, dtype), chunk_class(x.kind)
    except ConversionError:
        own, block = x.xp.float32, chunk_class(x.kind, counts=True)
    plain = int if numpy.dtype(dtype).kind in "iu" else float
    return block(x.xp.full(shape, plain(number), dtype=own, device=x.array.device))


def divide(a: Any, b: Any, dtype: Any = None) -> Any:
    """Divide the sum of a mean or a variance.

    Dask requests double precision for intermediate results, which JAX may lack.
    """
    quotient: Any = numpy.divide(a, b)
    if dtype is None:
        return quotient
    try:
        return quotient.astype(dtype)
    except ConversionError:
        if quotient.dtype.kind != "f":
            raise
        return quotient


def _no_empty(*_: Any, **__: Any) -> Any:
    raise TypeError(
        "dask.array.percentile does not support blocks of other libraries: use "
        "dask.array.nanquantile, or take NumPy's blocks with arraybridge.convert(x, 'numpy')"
    )


def restored(wrapped: bool, counts: bool, array: Any) -> Chunk:
    """Return a block that was pickled."""
    register_lookups()  # a worker may not have imported arraybridge yet
    return chunk_class(ArrayType(array.library, wrapped), counts)(array)
