"""Where array-api-strict departs from the standard."""

from __future__ import annotations

from typing import Any

import array_api_strict as xp
import numpy

from . import Correction
from .special_cases import Means, complex_function, floor_divide, sign

_Array = type(xp.zeros(()))


def _joined(re: Any, im: Any) -> Any:
    """A complex array from its parts."""
    result = numpy.empty(re.shape, numpy.result_type(re._array.dtype, numpy.complex64))
    result.real = re._array
    result.imag = im._array
    return _Array._new(result, device=re.device)


MEANS = Means(
    xp,
    floating=lambda dtype: xp.isdtype(dtype, "real floating"),
    complex_floating=lambda dtype: xp.isdtype(dtype, "complex floating"),
    complex=_joined,
    eager=True,
    tally=lambda x: numpy.count_nonzero(x._array),
    quiet=lambda: numpy.errstate(invalid="ignore"),
)


def _infinity_by_one(xp: Any) -> bool:
    with MEANS.quiet():
        return not xp.isinf(xp.floor_divide(xp.asarray(xp.inf), xp.asarray(1.0)))


def _expm1_of_minus_infinity(xp: Any) -> bool:
    with MEANS.quiet():
        return bool(xp.expm1(xp.asarray(complex(-xp.inf, xp.inf))) != -1)


def _sign_of_zero(xp: Any) -> bool:
    return bool(xp.signbit(xp.real(xp.sign(xp.asarray(complex(-0.0, -0.0))))))


def _tanh_of_infinity(xp: Any) -> bool:
    return bool(xp.signbit(xp.imag(xp.tanh(xp.asarray(complex(xp.inf, 2.0))))))


CORRECTIONS: tuple[Correction, ...] = (
    Correction(
        "floor_divide",
        floor_divide(MEANS),
        "floor_divide: an infinity by a finite number is infinity, a finite number by it zero",
        "https://github.com/numpy/numpy/issues/23860, which it stands on",
        _infinity_by_one,
        operators=True,
    ),
    Correction(
        "expm1",
        complex_function(MEANS, "expm1"),
        "expm1: special cases of complex numbers",
        "https://github.com/numpy/numpy/issues/21746, which it stands on",
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
        "sign",
        sign(MEANS),
        "sign: of every complex zero it is 0 + 0j, of -0 too",
        "no issue known; array-api-strict/pull/172 mended the other zeros",
        _sign_of_zero,
    ),
)
