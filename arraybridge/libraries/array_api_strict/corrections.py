"""Where array-api-strict departs from the standard."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import array_api_strict as xp
import numpy

from ...array.bounds import is_numeric
from ...exchange import imported
from ...xp.corrections import Correction, probes, spaces
from ...xp.corrections.differences import differences
from ...xp.corrections.empty import along_no_axes, matrix_rank
from ...xp.corrections.special_cases import (
    Means,
    complex_function,
    deviation,
    floor_divide,
    joined,
    sign,
    turned,
)
from ...xp.sources import no_numbers

_Array = type(xp.zeros(()))
_join = joined(numpy)


def _joined(re: Any, im: Any) -> Any:
    return _Array._new(_join(re._array, im._array), device=re.device)


MEANS = Means(
    xp,
    floating=lambda dtype: xp.isdtype(dtype, "real floating"),
    complex_floating=lambda dtype: xp.isdtype(dtype, "complex floating"),
    complex=_joined,
    eager=True,
    tally=lambda x: numpy.count_nonzero(x._array),
    quiet=lambda: numpy.errstate(invalid="ignore"),
)


def _extension(name: str) -> Any:
    """Return the module of an extension, which a flag may have switched off."""
    return import_module(f"{xp.__name__}._{name}")


def _sign_of_zero(xp: Any) -> bool:
    return bool(xp.signbit(xp.real(xp.sign(xp.asarray(complex(-0.0, -0.0))))))


def asarray(obj: Any, /, *, device: Any = None, copy: Any = None, **kwargs: Any) -> Any:
    """Create an array; nested sequences may hold arrays."""
    if isinstance(obj, list | tuple):
        found: list[Any] = []
        obj = _opened(obj, found)
        if found:  # what has a dtype keeps it, on every device
            obj = numpy.asarray(obj, copy=copy)
            device = device or found[0].device
    try:
        return xp.asarray(obj, device=device, copy=copy, **kwargs)
    except TypeError as error:
        plain = numpy.asarray(obj)
        raise error if is_numeric(plain.dtype) else no_numbers(plain) from None


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """Import an array as NumPy's namespace does."""
    return imported(x, "array_api_strict", device, copy)


def _opened(nested: Any, found: list[Any]) -> Any:
    """Replace arrays in a nested sequence by NumPy's, and append them to ``found``."""
    if isinstance(nested, _Array):
        found.append(nested)
        return nested._array
    if isinstance(nested, list | tuple) and not {bool, int, float, complex}.issuperset(
        map(type, nested)
    ):
        return [_opened(each, found) for each in nested]
    return nested


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Test whether elements are in another array, or are not."""
    found = xp.isin(x1, x2)
    return xp.logical_not(found) if invert else found


def _integer_name(dtype: Any) -> str | None:
    return str(dtype._np_dtype) if xp.isdtype(dtype, "integral") else None


CORRECTIONS: tuple[Correction, ...] = (
    differences(xp),
    matrix_rank(xp, _extension("linalg"), xp.int64),
    *along_no_axes(xp, _extension("fft"), lambda x: xp.asarray(x, copy=True)),
    spaces.correction(xp, xp.linspace, _integer_name, xp.asarray),
    Correction(
        "asarray",
        asarray,
        "asarray: what nests arrays is stacked, as the other libraries do",
        "no issue: beyond the standard, and refused on purpose",
        lambda xp: xp.asarray([xp.ones(2), xp.ones(2)]).shape != (2, 2),
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
        "https://github.com/numpy/numpy/issues/23860, which it stands on",
        probes.infinity_by_one,
        operators=True,
    ),
    Correction(
        "expm1",
        complex_function(MEANS, "expm1"),
        "expm1: special cases of complex numbers",
        "https://github.com/numpy/numpy/issues/21746, which it stands on",
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
            deviation(getattr(xp, name)),
            f"{name}: NaN of fewer elements than the correction",
            "https://github.com/numpy/numpy/issues/26522, which it stands on",
            probes.infinite_deviation(name),
        )
        for name in ("std", "var")
    ),
    Correction(
        "isin",
        isin,
        "isin: invert",
        "no issue known",
        lambda xp: bool(xp.isin(xp.asarray([1]), xp.asarray([1]), invert=True)[0]),
    ),
    Correction(
        "sign",
        sign(MEANS),
        "sign: of every complex zero it is 0 + 0j, of -0 too",
        "no issue known; array-api-strict/pull/172 mended the other zeros",
        _sign_of_zero,
    ),
)
