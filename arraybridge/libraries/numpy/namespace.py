"""The namespace of native arrays, and corrections of NumPy's deviations from the standard."""

from typing import Any

import numpy
from array_api_compat import numpy as xp

from ...array.scalars import is_numeric
from ...ndarrays import canonical
from ...xp.asarray import from_dlpack, readable
from ...xp.build import make_native_namespace
from ...xp.corrections import finfo
from ...xp.special_values import Means, complex_function, floor_divide


def _complex(re: Any, im: Any) -> Any:
    result = numpy.empty_like(re, dtype=numpy.result_type(re.dtype, numpy.complex64))
    result.real = re
    result.imag = im
    return result


MEANS = Means(
    xp,
    floating=lambda dtype: dtype.kind == "f",
    complex_floating=lambda dtype: dtype.kind == "c",
    complex=_complex,
    eager=True,
    quiet=lambda: numpy.errstate(invalid="ignore"),
)


def asarray(obj: Any, /, *, copy: bool | None = None, **kwargs: Any) -> Any:
    """Create an array of numbers in native byte order."""
    if isinstance(obj, numpy.ndarray) and kwargs.get("dtype") is not None:
        obj = canonical(obj, kwargs["dtype"])
    result = numpy.asarray(obj, copy=copy, **kwargs)
    if not is_numeric(result.dtype):
        raise TypeError(
            f"the array API standard has no data type for NumPy's {result.dtype}: convert it to "
            "numbers first (x.astype, x.view('int64') for times, the fields of records)"
        )
    return readable(result, shared=copy is False)


def astype(x: Any, dtype: Any, /, **kwargs: Any) -> Any:
    """Cast, of booleans their truth."""
    return xp.astype(canonical(x, dtype), dtype, **kwargs)


def clip(x: Any, /, min: Any = None, max: Any = None, **kwargs: Any) -> Any:
    """Clip to bounds, which array_api_compat would write to if the elements are integers."""
    if x.dtype.kind in "iu":
        min, max = (each.copy() if isinstance(each, numpy.ndarray) else each for each in (min, max))
    return xp.clip(x, min, max, **kwargs)


CORRECTIONS: dict[str, Any] = {
    # Text, objects and times are refused: NumPy has more data types than the standard.
    "asarray": asarray,
    "astype": astype,  # booleans become 0 and 1 in types of ml_dtypes, too
    # Copies what NumPy's own refuses, unless copy=False.
    "from_dlpack": from_dlpack("numpy"),
    # eps, max, min and smallest_normal are Python floats: numpy/numpy#26523 (closed: intended).
    "finfo": finfo(xp.finfo),
    # Bounds are not written.
    "clip": clip,
    # Infinity by a finite number is infinity, the reverse zero: numpy/numpy#23860.
    "floor_divide": floor_divide(MEANS, numpy.floor_divide),
    # Special cases of complex numbers: numpy/numpy#21746, data-apis/array-api#1006.
    "expm1": complex_function(MEANS, "expm1"),
    "tanh": complex_function(MEANS, "tanh"),
}
native = make_native_namespace("numpy", "array_api_compat.numpy", CORRECTIONS)
