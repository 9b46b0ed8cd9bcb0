"""Data types registered with NumPy: ml_dtypes' bfloat16, float8 and int4.

NumPy computes with them, but ``isdtype``, ``finfo`` and ``iinfo`` know its own alone. PyTorch and
JAX count theirs among the real floating-point and the integer ones: so they do here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ...array.bounds import range_of

_KINDS = (
    ("bool",),
    ("integral", "numeric"),
    ("real floating", "numeric"),
    ("complex floating", "numeric"),
)


def _extended(x: Any) -> numpy.dtype | None:
    """The data type of ml_dtypes that ``x`` means or has; None for other data types."""
    if isinstance(x, type) and not issubclass(x, numpy.generic):
        return None
    dtype = x if isinstance(x, numpy.dtype | type) else getattr(x, "dtype", None)
    if isinstance(dtype, numpy.dtype | type):
        dtype = numpy.dtype(dtype)
        return dtype if dtype.isbuiltin == 2 else None  # a user-defined data type
    return None


def isdtype(plain: Callable[..., bool]) -> Callable[..., bool]:
    """``isdtype`` that knows the kinds of ml_dtypes' data types."""

    def isdtype(dtype: Any, kind: Any) -> bool:
        extended = _extended(dtype)
        if extended is None:
            return plain(dtype, kind)
        found = _kinds(extended)
        for each in kind if isinstance(kind, tuple) else (kind,):
            if not isinstance(each, str):
                if extended == each:
                    return True
                continue
            plain(numpy.dtype("f4"), each)  # which refuses what is no kind
            if each in found:
                return True
        return False

    return isdtype


def _kinds(dtype: numpy.dtype) -> tuple[str, ...]:
    kind, least, _ = range_of(dtype)
    if kind == 1:
        return (*_KINDS[kind], "signed integer" if least else "unsigned integer")
    return _KINDS[kind]


def result_type(plain: Callable[..., Any]) -> Callable[..., Any]:
    """``result_type`` that knows what NumPy's operators make of ml_dtypes' data types."""

    def result_type(*arrays_and_dtypes: Any) -> Any:
        if not any(_extended(x) is not None for x in arrays_and_dtypes):
            return plain(*arrays_and_dtypes)
        numbers = [x for x in arrays_and_dtypes if isinstance(x, bool | int | float | complex)]
        numbers = [x for x in numbers if not isinstance(x, numpy.generic)]
        found: Any = None
        for x in arrays_and_dtypes:
            if not any(x is number for number in numbers):
                dtype = numpy.dtype(getattr(x, "dtype", x))
                same = found is None or found == dtype
                found = dtype if same else _added(found, dtype)
        for number in numbers:
            if not isinstance(number, bool):
                found = _added(found, type(number))
        return found

    return result_type


def _added(one: numpy.dtype, another: Any) -> Any:
    """The data type of a sum; that of both has not been registered for every pair."""
    return numpy.add.resolve_dtypes((one, another, None))[2]


def limits(plain: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    """``finfo`` or ``iinfo`` that asks ml_dtypes about its own data types."""

    def function(type: Any, /) -> Any:
        extended = _extended(type)
        if extended is None:
            return plain(type)
        import ml_dtypes

        return getattr(ml_dtypes, name)(extended)

    function.__name__ = function.__qualname__ = name
    return function
