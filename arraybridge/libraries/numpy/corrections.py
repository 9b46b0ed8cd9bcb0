"""Where NumPy departs from the standard."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy
from array_api_compat import numpy as xp

from ...array.bounds import is_numeric
from ...xp.corrections import Correction, spaces
from ...xp.corrections.differences import differences
from ...xp.corrections.limits import floats_in_finfo
from ...xp.corrections.special_cases import Means, complex_function, deviation, floor_divide, turned
from ...xp.sources import no_numbers, readable
from .extended import isdtype, limits


def joined(re: Any, im: Any) -> Any:
    """A complex array from its parts."""
    result = numpy.empty(re.shape, numpy.result_type(re.dtype, numpy.complex64))
    result.real = re
    result.imag = im
    return result


MEANS = Means(
    xp,
    floating=lambda dtype: dtype.kind == "f",
    complex_floating=lambda dtype: dtype.kind == "c",
    complex=joined,
    eager=True,
    tally=numpy.count_nonzero,
    quiet=lambda: numpy.errstate(invalid="ignore"),
)


def _infinity_by_one(xp: Any) -> bool:
    with MEANS.quiet():
        return not xp.isinf(xp.floor_divide(xp.asarray(xp.inf), xp.asarray(1.0)))


def _expm1_of_minus_infinity(xp: Any) -> bool:
    with MEANS.quiet():
        return xp.expm1(xp.asarray(complex(-xp.inf, xp.inf))) != -1


def _inf_of_none_left(name: str) -> Callable[[Any], bool]:
    def needed(xp: Any) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return not numpy.isnan(getattr(xp, name)(xp.asarray([1.0, 2.0]), correction=2))

    return needed


def _tanh_of_infinity(xp: Any) -> bool:
    return bool(xp.signbit(xp.imag(xp.tanh(xp.asarray(complex(xp.inf, 2.0))))))


def asarray(obj: Any, /, *, copy: bool | None = None, **kwargs: Any) -> Any:
    """An array of numbers, in the machine's byte order."""
    if isinstance(obj, numpy.ndarray) and not is_numeric(obj.dtype):
        raise no_numbers(obj)  # with dtype= NumPy makes numbers of times and objects
    result = xp.asarray(obj, copy=copy, **kwargs)
    if not is_numeric(result.dtype):
        raise no_numbers(result)
    return result if result.dtype.isnative else readable(result, shared=copy is False)


def check_dtype(dtype: Any) -> Any:
    """A data type of numbers, in the machine's byte order.

    Raises
    ------
    TypeError
        For one of text, objects, times or records.
    """
    try:
        known = numpy.dtype(dtype)
    except TypeError:
        return dtype  # which NumPy refuses itself
    if not is_numeric(known):
        raise TypeError(f"the array API standard has no data type for NumPy's {known}")
    return known if known.isnative else known.newbyteorder("=")


def _takes(obj: Any) -> Callable[[Any], bool]:
    def needed(xp: Any) -> bool:
        try:
            xp.asarray(obj)
        except TypeError:
            return False
        return True

    return needed


def _integer_name(dtype: Any) -> str | None:
    dtype = numpy.dtype(dtype)
    return dtype.name if dtype.kind in "iu" else None


def _of_ml_dtypes(name: str) -> Any:
    return numpy.dtype(getattr(import_module("ml_dtypes"), name))


CORRECTIONS: tuple[Correction, ...] = (
    differences(xp),
    spaces.correction(xp, _integer_name, xp.asarray),
    Correction(
        "asarray",
        asarray,
        "asarray: the array has a data type of the standard's kinds, not text, objects or times",
        "no issue: NumPy has more data types than the standard",
        _takes(numpy.asarray(["text"])),
    ),
    Correction(
        "floor_divide",
        floor_divide(MEANS),
        "floor_divide: an infinity by a finite number is infinity, a finite number by it zero",
        "https://github.com/numpy/numpy/issues/23860",
        _infinity_by_one,
        operators=True,
    ),
    Correction(
        "expm1",
        complex_function(MEANS, "expm1"),
        "expm1: special cases of complex numbers",
        "https://github.com/numpy/numpy/issues/21746",
        _expm1_of_minus_infinity,
    ),
    Correction(
        "tanh",
        complex_function(MEANS, "tanh"),
        "tanh: of infinity and a finite imaginary part it is 1 + 0j, whatever sin(2b)",
        "https://github.com/data-apis/array-api/issues/1006",
        _tanh_of_infinity,
    ),
    Correction(
        "tan",
        turned(MEANS, "tan", complex_function(MEANS, "tanh")),
        "tan: special cases of complex numbers are those of -1j * tanh(1j * x)",
        "https://github.com/data-apis/array-api/issues/1006",
        lambda xp: bool(xp.signbit(xp.real(xp.tan(xp.asarray(complex(2.0, xp.inf)))))),
    ),
    *(
        Correction(
            name,
            deviation(getattr(xp, name)),
            f"{name}: NaN of fewer elements than the correction",
            "https://github.com/numpy/numpy/issues/26522",
            _inf_of_none_left(name),
        )
        for name in ("std", "var")
    ),
    Correction(
        "isdtype",
        isdtype(xp.isdtype),
        "isdtype: a library may count data types of its own among the kinds",
        "https://github.com/jax-ml/ml_dtypes",
        lambda xp: not xp.isdtype(_of_ml_dtypes("bfloat16"), "real floating"),
    ),
    Correction(
        "iinfo",
        limits(xp.iinfo, "iinfo"),
        "iinfo: of a data type that isdtype counts among the integers",
        "https://github.com/jax-ml/ml_dtypes",
        lambda xp: xp.iinfo(_of_ml_dtypes("int4")).max != 7,
    ),
    Correction(
        "finfo",
        floats_in_finfo(limits(xp.finfo, "finfo")),
        "finfo: eps, max, min and smallest_normal are Python floats",
        "https://github.com/numpy/numpy/issues/26523 (closed: as intended there)",
        lambda xp: type(xp.finfo(xp.float32).eps) is not float,
    ),
)
