"""Where CuPy departs from the standard.

Read from the source of CuPy 14.2, not measured: only what its source leaves no doubt about.
"""

from __future__ import annotations

import math
from typing import Any

from array_api_compat import cupy as xp

from ...xp.corrections import Correction, probes
from ...xp.corrections.differences import differences
from ...xp.corrections.empty import matrix_rank
from ...xp.corrections.limits import floats_in_finfo
from ...xp.corrections.special_cases import complex_function, numpy_like, remainder, turned

# Not eager: a look at values would wait for the device.
MEANS = numpy_like(xp)


def _signed(result: Any, fill_value: Any) -> Any:
    """Give an array of zeros the sign of the fill value."""
    zero = isinstance(fill_value, float) and fill_value == 0
    if zero and math.copysign(1, fill_value) < 0 and result.dtype.kind == "f":
        xp.negative(result, out=result)
    return result


def _full(
    shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, **kwargs: Any
) -> Any:
    return _signed(xp.full(shape, fill_value, dtype=dtype, device=device, **kwargs), fill_value)


def _full_like(
    x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None, **kwargs: Any
) -> Any:
    return _signed(xp.full_like(x, fill_value, dtype=dtype, device=device, **kwargs), fill_value)


CORRECTIONS: tuple[Correction, ...] = (
    differences(xp),
    matrix_rank(xp, xp.linalg, xp.int64),
    Correction(
        "finfo",
        floats_in_finfo(xp.finfo),
        "finfo: eps, max, min and smallest_normal are Python floats",
        "https://github.com/numpy/numpy/issues/26523, whose finfo it is",
        lambda xp: type(xp.finfo(xp.float32).eps) is not float,
    ),
    Correction(
        "full",
        _full,
        "full: the array is filled with fill_value, -0.0 included",
        "https://github.com/chainer/chainer/pull/1435, which made it a memset",
        lambda xp: not bool(xp.signbit(xp.full((1,), -0.0))[0]),
    ),
    Correction(
        "full_like",
        _full_like,
        "full_like: the array is filled with fill_value, -0.0 included",
        "https://github.com/chainer/chainer/pull/1435, which made it a memset",
        lambda xp: not bool(xp.signbit(xp.full_like(xp.ones((1,)), -0.0))[0]),
    ),
    Correction(
        "remainder",
        remainder(MEANS, infinities=True),
        "remainder: by an infinity it is the dividend or the divisor; zeros are the divisor's",
        "https://github.com/cupy/cupy/issues/8807",
        lambda xp: bool(xp.isnan(xp.remainder(xp.asarray(1.0), xp.asarray(xp.inf)))),
        operators=True,
    ),
    Correction(
        "tan",
        turned(MEANS, "tan", complex_function(MEANS, "tanh")),
        "tan: special cases of complex numbers are those of -1j * tanh(1j * x)",
        "https://github.com/data-apis/array-api/issues/1006",
        probes.tan_of_infinity,
    ),
    Correction(
        "tanh",
        complex_function(MEANS, "tanh"),
        "tanh: of infinity and a finite imaginary part it is 1 + 0j, whatever sin(2b)",
        "https://github.com/data-apis/array-api/issues/1006",
        probes.tanh_of_infinity,
    ),
)
