"""Where NumPy departs from the standard."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy
from array_api_compat import numpy as xp

from ...array.bounds import is_numeric
from ...exchange import imported
from ...xp.corrections import Correction, probes, spaces
from ...xp.corrections.differences import differences
from ...xp.corrections.empty import along_no_axes, matrix_rank
from ...xp.corrections.limits import floats_in_finfo
from ...xp.corrections.special_cases import (
    complex_function,
    deviation,
    floor_divide,
    numpy_like,
    turned,
)
from ...xp.sources import no_numbers, readable
from .extended import isdtype, limits, result_type

MEANS = numpy_like(
    xp,
    eager=True,
    tally=numpy.count_nonzero,
    quiet=lambda: numpy.errstate(invalid="ignore"),
)


def asarray(obj: Any, /, *, copy: bool | None = None, **kwargs: Any) -> Any:
    """Create an array of numbers in native byte order."""
    if isinstance(obj, numpy.ndarray) and not is_numeric(obj.dtype):
        raise no_numbers(obj)  # with dtype= NumPy makes numbers of times and objects
    result = numpy.asarray(obj, copy=copy, **kwargs)
    if not is_numeric(result.dtype):
        raise no_numbers(result)
    return result if result.dtype.isnative else readable(result, shared=copy is False)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """Import an array; copy where its memory does not show the elements, unless ``copy=False``.

    NumPy's own reads tensors of PyTorch whose negative bit is set as they lie in memory.
    """
    return readable(imported(x, "numpy", device, copy), shared=copy is False)


def check_dtype(dtype: Any) -> Any:
    """Return a numeric data type in native byte order.

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


def _of_ml_dtypes(name: str) -> Any:
    return numpy.dtype(getattr(import_module("ml_dtypes"), name))


def _promotes_otherwise(xp: Any) -> bool:
    """Whether a data type of ml_dtypes beside a number becomes another than in a sum."""
    narrow = xp.ones(1, dtype=_of_ml_dtypes("bfloat16"))
    return bool(xp.result_type(narrow, 1.5) != (narrow + 1.5).dtype)


CORRECTIONS: tuple[Correction, ...] = (
    differences(xp),
    matrix_rank(xp, xp.linalg, numpy.int64),
    *along_no_axes(xp, xp.fft, numpy.copy),
    spaces.correction(xp, numpy.linspace, spaces.integer_name, xp.asarray),
    Correction(
        "asarray",
        asarray,
        "asarray: the array has a data type of the standard's kinds, not text, objects or times",
        "no issue: NumPy has more data types than the standard",
        _takes(numpy.asarray(["text"])),
    ),
    Correction(
        "from_dlpack",
        from_dlpack,
        "from_dlpack: what has to be copied is copied, unless copy is False",
        "no issue known",
        lambda xp: probes.refuses(BufferError, xp.from_dlpack, numpy.ones(1, ">f8")),
    ),
    Correction(
        "floor_divide",
        floor_divide(MEANS),
        "floor_divide: an infinity by a finite number is infinity, a finite number by it zero",
        "https://github.com/numpy/numpy/issues/23860",
        probes.infinity_by_one,
        operators=True,
    ),
    Correction(
        "expm1",
        complex_function(MEANS, "expm1"),
        "expm1: special cases of complex numbers",
        "https://github.com/numpy/numpy/issues/21746",
        probes.expm1_of_minus_infinity,
    ),
    Correction(
        "tanh",
        complex_function(MEANS, "tanh"),
        "tanh: of infinity and a finite imaginary part it is 1 + 0j, whatever sin(2b)",
        "https://github.com/data-apis/array-api/issues/1006",
        probes.tanh_of_infinity,
    ),
    Correction(
        "tan",
        turned(MEANS, "tan", complex_function(MEANS, "tanh")),
        "tan: special cases of complex numbers are those of -1j * tanh(1j * x)",
        "https://github.com/data-apis/array-api/issues/1006",
        probes.tan_of_infinity,
    ),
    *(
        Correction(
            name,
            deviation(getattr(numpy, name)),
            f"{name}: NaN of fewer elements than the correction",
            "https://github.com/numpy/numpy/issues/26522",
            probes.infinite_deviation(name),
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
        "result_type",
        result_type(xp.result_type),
        "result_type: the data type that a function of both gives",
        "https://github.com/jax-ml/ml_dtypes",
        _promotes_otherwise,
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
