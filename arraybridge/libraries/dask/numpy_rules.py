"""The rules of NumPy's functions that blocks follow: data types, promotion, keywords."""

from __future__ import annotations

from typing import Any

import numpy

from ...conversion import convert
from ...ndarrays import numpy_dtype

#: NumPy's keywords that change no value.
IGNORED = frozenset(
    "order like subok casting assume_unique kind stable overwrite_input optimize".split()
)

_numpys: dict[Any, numpy.dtype[Any]] = {}  # by the library's own data type


def dtype_of(x: Any) -> numpy.dtype[Any]:
    """Return NumPy's data type of the elements of an Array."""
    own = x._native.dtype
    if isinstance(own, numpy.dtype):
        return own
    found = _numpys.get(own)
    if found is None:
        found = _numpys[own] = numpy_dtype(x.info.dtype)
    return found


def own_dtype(x: Any, dtype: Any) -> Any:
    """Return the library's own data type for NumPy's."""
    dtype = numpy.dtype(dtype)
    if dtype == dtype_of(x):
        return x._native.dtype
    return convert(numpy.empty(0, dtype), x.library).dtype


def cast(x: Any, dtype: numpy.dtype[Any]) -> Any:
    """Convert an Array to a NumPy data type."""
    own = dtype_of(x)
    if own == dtype:
        return x
    xp = x.__array_namespace__()
    if own.kind == "c" and dtype.kind not in "cb":
        x = xp.real(x)  # as NumPy does; the standard lacks this cast
    return xp.astype(x, own_dtype(x, dtype))


def number(x: Any, value: Any, dtype: numpy.dtype[Any]) -> Any:
    """Return a number as an Array like ``x``, with a NumPy data type.

    OverflowError for a Python integer that the data type cannot hold, as in NumPy.
    """
    if dtype.kind != "V":  # bfloat16 has no such rules
        value = numpy.asarray(value, dtype)
    return x.__array_namespace__().asarray(
        value.item() if hasattr(value, "item") else value,
        dtype=own_dtype(x, dtype),
        device=x.device,
    )


def positions(x: Any, host: Any) -> Any:
    """Return NumPy positions, a NumPy mask or a list as an Array like ``x``.

    Positions are int32 if they fit, since they determine no result's data type.
    """
    host = numpy.asarray(host)
    if host.dtype.kind == "i" and host.itemsize > 4 and (not host.size or abs(host).max() < 2**31):
        host = host.astype(numpy.int32)
    return x.__array_namespace__().asarray(host, device=x.device)


def joined(xs: Any, model: Any = None) -> list[Any]:
    """Convert Arrays, and numbers if there is a model, to the type that NumPy promotes to."""
    common = numpy.result_type(*[dtype_of(x) if is_array(x) else x for x in xs])
    return [cast(x, common) if is_array(x) else number(model, x, common) for x in xs]


def mixed(what: str) -> TypeError:
    """Return the error for arrays of several libraries."""
    return TypeError(
        f"{what} in one operation: bring the Dask arrays into one library with "
        "`xp, *arrays = arraybridge.unify(...)`"
    )


def is_array(x: Any) -> bool:
    """Whether an argument is an Array."""
    return hasattr(type(x), "__arraybridge__")
