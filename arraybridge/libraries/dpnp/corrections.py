"""Where dpnp departs from the standard."""

from __future__ import annotations

from typing import Any

import dpnp as xp

from ...xp.corrections import Correction, probes, spaces
from ...xp.corrections.special_cases import complex_function, numpy_like, turned

# Not eager: a look at values would wait for the device.
MEANS = numpy_like(xp)


def _as_complex(x: Any) -> Any:
    return xp.astype(x, xp.result_type(x.dtype, xp.complex64), copy=False)


def _eig(x: Any, /) -> Any:
    eigenvalues, eigenvectors = result = xp.linalg.eig(x)
    return type(result)(_as_complex(eigenvalues), _as_complex(eigenvectors))


def _eigvals(x: Any, /) -> Any:
    return _as_complex(xp.linalg.eigvals(x))


def _real_eigenvalues(xp: Any) -> bool:
    return xp.linalg.eigvals(xp.eye(2)).dtype.kind != "c"


CORRECTIONS: tuple[Correction, ...] = (
    spaces.correction(xp, xp.linspace, spaces.integer_name, xp.asarray),
    Correction(
        "acosh",
        complex_function(MEANS, "acosh"),
        "acosh: of 0 and an imaginary NaN it is NaN and a quarter turn",
        "https://github.com/IntelPython/dpnp/issues/2880 (mended after 0.20.0)",
        lambda xp: bool(xp.isnan(xp.imag(xp.acosh(xp.asarray(complex(0.0, xp.nan)))))),
    ),
    Correction(
        "expm1",
        complex_function(MEANS, "expm1"),
        "expm1: of -0 + 0j it is 0 + 0j",
        "https://github.com/IntelPython/dpctl/pull/1332, which mended the other special cases",
        lambda xp: bool(xp.signbit(xp.real(xp.expm1(xp.asarray(complex(-0.0, 0.0)))))),
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
    Correction(
        "linalg.eig",
        _eig,
        "linalg.eig: both results are complex, whatever the values",
        "https://github.com/IntelPython/dpnp/pull/2953: as NumPy does, which mends it in 2.5",
        _real_eigenvalues,
    ),
    Correction(
        "linalg.eigvals",
        _eigvals,
        "linalg.eigvals: the result is complex, whatever the values",
        "https://github.com/IntelPython/dpnp/pull/2953: as NumPy does, which mends it in 2.5",
        _real_eigenvalues,
    ),
)
