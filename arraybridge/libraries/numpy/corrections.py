"""Corrections of NumPy's deviations from the standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from array_api_compat import numpy as xp

from ...array.scalars import is_numeric, kind_of
from ...xp import corrections
from ...xp.asarray import readable
from ...xp.corrections import Correction
from ...xp.dtypes import result_type as common_type
from ...xp.special_values import numpy_like

MEANS = numpy_like(
    xp, eager=True, tally=numpy.count_nonzero, quiet=lambda: numpy.errstate(invalid="ignore")
)


def asarray(obj: Any, /, *, copy: bool | None = None, **kwargs: Any) -> Any:
    """Create an array of numbers in native byte order."""
    result = numpy.asarray(obj, copy=copy, **kwargs)
    if not is_numeric(result.dtype):
        raise TypeError(
            f"the array API standard has no data type for NumPy's {result.dtype}: convert it to "
            "numbers first (x.astype, x.view('int64') for times, the fields of records)"
        )
    return result if result.dtype.isnative else readable(result, shared=copy is False)


# Data types registered with NumPy: ml_dtypes' bfloat16, float8 and int4. NumPy computes with them,
# but ``isdtype``, ``finfo`` and ``iinfo`` only know its own. PyTorch and JAX count theirs as real
# floating-point and integer types: so does this module.

_KINDS = (
    ("bool",),
    ("integral", "numeric"),
    ("real floating", "numeric"),
    ("complex floating", "numeric"),
)


def _extended(x: Any) -> numpy.dtype | None:
    """Return the ml_dtypes data type that ``x`` is or has, or None."""
    if isinstance(x, type) and not issubclass(x, numpy.generic):
        return None
    dtype = x if isinstance(x, numpy.dtype | type) else getattr(x, "dtype", None)
    if isinstance(dtype, numpy.dtype | type):
        dtype = numpy.dtype(dtype)
        return dtype if dtype.isbuiltin == 2 else None  # a user-defined data type
    return None


def isdtype(plain: Callable[..., bool]) -> Callable[..., bool]:
    """Make ``isdtype`` that knows the kinds of ml_dtypes' data types."""

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
            plain(numpy.dtype("f4"), each)  # raises for an invalid kind
            if each in found:
                return True
        return False

    return isdtype


def _kinds(dtype: numpy.dtype) -> tuple[str, ...]:
    kind = kind_of(dtype)
    if kind == 1:
        sign = "unsigned" if dtype.name.startswith("u") else "signed"
        return (*_KINDS[kind], f"{sign} integer")
    return _KINDS[kind]


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Compute ``result_type``, with NumPy's operators' results for ml_dtypes' data types."""
    if not any(_extended(x) is not None for x in arrays_and_dtypes):
        return xp.result_type(*arrays_and_dtypes)
    return numpy.dtype(_promoted(*arrays_and_dtypes))


def _added(one: Any, another: Any) -> Any:
    """Return the data type of a sum, since not every pair has a registered promotion."""
    one, another = numpy.dtype(one), numpy.dtype(another)
    return one if one == another else numpy.add.resolve_dtypes((one, another, None))[2]


def _beside(dtype: Any, number: Any) -> Any:
    if isinstance(number, bool):
        return dtype
    return numpy.add.resolve_dtypes((numpy.dtype(dtype), type(number), None))[2]


_promoted = common_type(_added, _beside)


def limits(plain: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    """Make ``finfo`` or ``iinfo`` that supports ml_dtypes' data types."""

    def function(type: Any, /) -> Any:
        extended = _extended(type)
        if extended is None:
            return plain(type)
        import ml_dtypes

        return getattr(ml_dtypes, name)(extended)

    function.__name__ = function.__qualname__ = name
    return function


_ML_DTYPES = "https://github.com/jax-ml/ml_dtypes"

# fmt: off
CORRECTIONS: tuple[Correction, ...] = (
    corrections.diff(xp),
    corrections.matrix_rank(xp, xp.linalg, numpy.int64),
    corrections.roll(xp, numpy.copy),
    *corrections.shifts(xp.fft, numpy.copy),
    corrections.linspace(xp, numpy.linspace, corrections.integer_name, xp.asarray),
    corrections.from_dlpack("numpy"),
    *corrections.numpy_special_cases(MEANS, numpy),
    corrections.finfo(limits(xp.finfo, "finfo")),
    Correction(
        "asarray", asarray,
        "asarray: the array has a data type of the standard's kinds, not text, objects or times",
        "no issue: NumPy has more data types than the standard",
    ),
    Correction(
        "isdtype", isdtype(xp.isdtype),
        "isdtype: a library may count data types of its own among the kinds", _ML_DTYPES,
    ),
    Correction(
        "result_type", result_type, "result_type: the data type that a function of both gives",
        _ML_DTYPES,
    ),
    Correction(
        "iinfo", limits(xp.iinfo, "iinfo"),
        "iinfo: of a data type that isdtype counts among the integers", _ML_DTYPES,
    ),
)
# fmt: on
