"""The special cases of the standard, for any library, on top of its own functions.

Defects that several libraries share are corrected here once, with the library's functions in
:class:`Means`. In ordinary cases the library's own result stays.

Array API standard 2025.12, "Special cases" of each function.
"""

import math
import operator
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

Function = Callable[..., Any]


def _same(x: Any) -> Any:
    return x


class Means(NamedTuple):
    """The functions of a library that the corrections below use."""

    xp: Any  # its uncorrected namespace
    floating: Callable[[Any], bool]  # like the next, tests the kind of a dtype
    complex_floating: Callable[[Any], bool]
    # A complex array from its real and imaginary parts, exactly (``re + 1j * im`` is not).
    complex: Callable[[Any, Any], Any]
    detach: Callable[[Any], Any] = _same  # the array as a constant for differentiation
    # ``-x`` with the derivative of ``x``, to change the sign of a zero.
    turned_zero: Callable[[Any], Any] = operator.neg
    # Whether control flow may depend on values: then ordinary cases only cost a check.
    eager: bool = False
    # A context without the library's warnings of invalid values.
    quiet: Callable[[], Any] = nullcontext


def floor_divide(means: Means, plain: Function, *, zeros: bool = False) -> Function:
    """Make ``floor_divide`` treat infinities, and with ``zeros`` also zeros, as ``divide`` does.

    Infinity by a finite number is infinity, a finite number by infinity zero, with the sign of the
    quotient; libraries that follow Python's ``divmod`` return NaN and -1.
    """
    xp = means.xp

    def floor_divide(x1: Any, x2: Any, /, **kwargs: Any) -> Any:
        if not (_may_be_floating(means, x1) or _may_be_floating(means, x2)):
            return plain(x1, x2, **kwargs)
        special = _test(xp, "isinf", x1) | _test(xp, "isinf", x2)
        if zeros:
            special = special | (x1 == 0)
        if means.eager and not xp.any(special):
            return plain(x1, x2, **kwargs)
        with means.quiet():
            result = plain(x1, x2, **kwargs)
        exact = means.detach(xp.divide(x1, x2))
        return _replaced(xp, special, exact, result, **kwargs)

    return floor_divide


def remainder(means: Means, plain: Function) -> Function:
    """Make ``remainder`` give zeros the sign of the divisor."""
    xp = means.xp

    def remainder(x1: Any, x2: Any, /) -> Any:
        result = plain(x1, x2)
        if not means.floating(result.dtype):
            return result
        wrong = (result == 0) & (xp.signbit(result) != _test(xp, "signbit", x2))
        return xp.where(wrong, means.turned_zero(result), result)

    return remainder


class Case(NamedTuple):
    """One special case of a complex function, in the quadrant without negative parts.

    ``real`` and ``imaginary`` name ``_KINDS``; the other quadrants follow by symmetry.
    """

    real: str
    imaginary: str
    result: complex


_INF, _NAN = math.inf, math.nan
_QUARTER = math.pi / 2

# The special cases that some library gets wrong.
CASES: dict[str, tuple[Case, ...]] = {
    "acos": (
        Case("zero|-zero", "nan", complex(_QUARTER, _NAN)),
        Case("zero|-zero", "zero", complex(_QUARTER, -0.0)),
        Case("nonzero|-nonzero", "nan", complex(_NAN, _NAN)),
    ),
    "acosh": (
        Case("nonzero|-nonzero", "nan", complex(_NAN, _NAN)),
        Case("zero|-zero", "nan", complex(_NAN, _QUARTER)),
    ),
    "asinh": (Case("nan", "zero", complex(_NAN, 0.0)), Case("nan", "nonzero", complex(_NAN, _NAN))),
    "atanh": (
        Case("zero|inf", "nan", complex(0.0, _NAN)),
        Case("nonzero", "nan", complex(_NAN, _NAN)),
        Case("nan", "zero|nonzero|nan", complex(_NAN, _NAN)),
    ),
    "cosh": (
        Case("zero", "inf|nan", complex(_NAN, 0.0)),
        Case("inf", "inf|nan", complex(_INF, _NAN)),
    ),
    "exp": (
        Case("-inf", "inf|nan", complex(0.0, 0.0)),
        Case("inf", "inf|nan", complex(_INF, _NAN)),
    ),
    "expm1": (
        Case("zero|-zero", "zero", complex(0.0, 0.0)),
        Case("inf", "zero", complex(_INF, 0.0)),
        Case("nan", "zero", complex(_NAN, 0.0)),
        Case("-inf", "inf|nan", complex(-1.0, 0.0)),
        Case("inf", "inf|nan", complex(_INF, _NAN)),
    ),
    "log": (Case("inf|-inf", "nan", complex(_INF, _NAN)), Case("nan", "inf", complex(_INF, _NAN))),
    "log1p": (
        Case("inf|-inf", "nan", complex(_INF, _NAN)),
        Case("nan", "inf", complex(_INF, _NAN)),
        Case("zero|-zero|nonzero|-nonzero", "inf", complex(_INF, _QUARTER)),
    ),
    "sinh": (
        Case("zero", "inf|nan", complex(0.0, _NAN)),
        Case("inf", "inf|nan", complex(_INF, _NAN)),
    ),
    "sqrt": (
        Case("-inf", "nan", complex(_NAN, _INF)),
        Case("inf", "nan", complex(_INF, _NAN)),
        Case("nan", "inf", complex(_INF, _INF)),
    ),
    "tanh": (
        Case("zero", "inf|nan", complex(0.0, _NAN)),
        Case("inf", "nonzero", complex(1.0, 0.0)),
    ),
}

# f(conj(z)) is conj(f(z)) for all; f(-z) is -f(z) for the odd ones, f(z) for the even ones.
_ODD = ("asinh", "atanh", "sinh", "tanh")
_EVEN = ("cosh",)

# Kinds of numbers: a test of |x|; a leading "-" in a case means a negative x.
_KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "zero": lambda xp, x: x == 0,
    "nonzero": lambda xp, x: xp.isfinite(x) & (x != 0),
    "inf": lambda xp, x: xp.isinf(x),
    "nan": lambda xp, x: xp.isnan(x),
}


def complex_function(means: Means, name: str, plain: Function | None = None) -> Function:
    """Make a function of ``CASES`` with its complex special cases."""
    xp = means.xp
    plain = plain or getattr(xp, name)
    cases = CASES[name]
    symmetric = name in _ODD + _EVEN

    def function(x: Any, /, **kwargs: Any) -> Any:
        dtype = getattr(x, "dtype", None)
        if dtype is None or not means.complex_floating(dtype):
            return plain(x, **kwargs)
        # every case is for zero, or for a number that is not finite
        if means.eager and not xp.any(~xp.isfinite(x) | (x == 0)):
            return plain(x, **kwargs)
        with means.quiet():
            result = plain(x, **kwargs)
        re, im = xp.real(x), xp.imag(x)
        left, below = _negative(xp, re), _negative(xp, im)
        real, imaginary = xp.real(result), xp.imag(result)
        # the signs by which the symmetries turn a case into that of another quadrant
        one = xp.ones_like(re)
        mirror_real = xp.where(left, -one, one) if name in _ODD else one
        flipped = below ^ left if name in _EVEN else below
        mirror_imaginary = xp.where(flipped, -one, one)
        concerned = xp.zeros_like(below)
        for case in cases:
            here = _is(xp, case.real, re, None if symmetric else left)
            here = here & _is(xp, case.imaginary, im, None)
            real = xp.where(here, case.result.real * mirror_real, real)
            imaginary = xp.where(here, case.result.imag * mirror_imaginary, imaginary)
            concerned = concerned | here
        return _replaced(xp, concerned, means.complex(real, imaginary), result, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


def _negative(xp: Any, x: Any) -> Any:
    """Test which numbers are negative or -0, but not NaN."""
    return xp.signbit(x) & ~xp.isnan(x)


def _is(xp: Any, kinds: str, x: Any, negative: Any) -> Any:
    """Test which numbers have one of the kinds, and its sign unless ``negative`` is None."""
    found = None
    for kind in kinds.split("|"):
        here = _KINDS[kind.removeprefix("-")](xp, x)
        if negative is not None:
            here = here & (negative if kind.startswith("-") else ~negative)
        found = here if found is None else found | here
    return found


def _may_be_floating(means: Means, x: Any) -> bool:
    if isinstance(x, (int, float)):
        return isinstance(x, float)
    dtype = getattr(x, "dtype", None)
    return dtype is None or means.floating(dtype)


def _test(xp: Any, name: str, x: Any) -> Any:
    """Apply ``isinf`` or ``signbit`` to an array or a Python scalar."""
    if not isinstance(x, (int, float)):
        return getattr(xp, name)(x)
    return _OF_SCALARS[name](x)


_OF_SCALARS: dict[str, Callable[[float], bool]] = {
    "isinf": math.isinf,
    "signbit": lambda x: math.copysign(1, x) < 0,
}


def _replaced(
    xp: Any, special: Any, right: Any, result: Any, *, where: Any = True, out: Any = None, **_: Any
) -> Any:
    """Replace the special cases in ``result``; honor NumPy's keywords."""
    if where is not True:
        special = special & where
    if right.dtype != result.dtype:
        right = xp.astype(right, result.dtype)
    mended = xp.where(special, right, result)
    if out is not None:
        out = out[0] if isinstance(out, tuple) else out
        out[...] = mended
        return out
    # NumPy scalars stay scalars
    return mended if isinstance(mended, type(result)) else mended[()]
