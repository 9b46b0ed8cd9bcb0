"""Element-wise functions of the array API standard 2025.12.

Each function works on every element, or on every pair of elements after broadcasting. At least one
argument is an array. A Python scalar takes the dtype of the array unless its kind is higher, and
the dtypes of two arrays are promoted. NaN gives NaN unless stated otherwise. Branch cuts and
special cases of complex numbers follow C99: inverse functions give the principal value, with cuts
on the real axis beyond -1 and 1 (``acos``, ``asin``, ``atanh``), below 1 (``acosh``) and below 0
(``log``, ``sqrt``), and on the imaginary axis beyond -1j and 1j (``asinh``, ``atan``).
"""
# pyright: reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...array import Array

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "ceil", "clip", "conj", "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1",
    "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf",
    "isnan", "less", "less_equal", "log", "log1p", "log2", "log10", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip


def abs(x: Array, /) -> Array:
    """Return the absolute value or magnitude, real; of the smallest integer up to the library."""


def acos(x: Array, /) -> Array:
    """Compute the inverse cosine, in radians in [0, pi]; NaN for real numbers outside [-1, 1]."""


def acosh(x: Array, /) -> Array:
    """Compute the inverse hyperbolic cosine, in [0, inf]; NaN for real numbers below 1."""


def add(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Add two arrays. In most libraries, integers wrap around on overflow."""


def asin(x: Array, /) -> Array:
    """Compute the inverse sine, in radians in [-pi/2, pi/2]; NaN for reals outside [-1, 1]."""


def asinh(x: Array, /) -> Array:
    """Compute the inverse hyperbolic sine."""


def atan(x: Array, /) -> Array:
    """Compute the inverse tangent, in radians in [-pi/2, pi/2]."""


def atan2(x1: Array | float, x2: Array | float, /) -> Array:
    """Compute the angle of the point ``(x2, x1)``, in radians in [-pi, pi]; ``x1`` is the ordinate.

    The signs of zeros distinguish pi from -pi and 0 from -0.
    """


def atanh(x: Array, /) -> Array:
    """Compute the inverse hyperbolic tangent; infinite at -1 and 1, NaN for real numbers beyond."""


def bitwise_and(x1: Array | int | bool, x2: Array | int | bool, /) -> Array:
    """Compute the bitwise AND of integers or booleans."""


def bitwise_invert(x: Array, /) -> Array:
    """Invert each bit of integers, or negate booleans."""


def bitwise_left_shift(x1: Array | int, x2: Array | int, /) -> Array:
    """Shift ``x1`` left by ``x2`` bits, which must not be negative; zeros are shifted in."""


def bitwise_or(x1: Array | int | bool, x2: Array | int | bool, /) -> Array:
    """Compute the bitwise OR of integers or booleans."""


def bitwise_right_shift(x1: Array | int, x2: Array | int, /) -> Array:
    """Shift ``x1`` right by ``x2`` bits, which must not be negative; the sign is preserved."""


def bitwise_xor(x1: Array | int | bool, x2: Array | int | bool, /) -> Array:
    """Compute the bitwise exclusive OR of integers or booleans."""


def ceil(x: Array, /) -> Array:
    """Round up to the next integer; the dtype does not change."""


def clip(x: Array, /, min: Array | float | None = None, max: Array | float | None = None) -> Array:
    """Limit values to ``[min, max]``; None means no bound. The dtype does not change.

    Bounds broadcast against ``x``. The result is NaN if ``x`` or a bound is NaN. If ``min > max``,
    the result is up to the library.
    """


def conj(x: Array, /) -> Array:
    """Return the complex conjugate; real arrays are unchanged."""


def copysign(x1: Array | float, x2: Array | float, /) -> Array:
    """Combine the magnitude of ``x1`` with the sign of ``x2``; -0 and NaN also have signs."""


def cos(x: Array, /) -> Array:
    """Compute the cosine of an angle in radians; NaN for infinities."""


def cosh(x: Array, /) -> Array:
    """Compute the hyperbolic cosine."""


def divide(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Divide: infinite by 0, NaN for 0 / 0; of integers, the dtype is up to the library."""


def equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Test for equality. NaN equals no value, and -0 equals 0."""


def exp(x: Array, /) -> Array:
    """Compute e to the power of each element."""


def expm1(x: Array, /) -> Array:
    """Compute ``exp(x) - 1``, accurately for ``x`` close to 0."""


def floor(x: Array, /) -> Array:
    """Round down to the next integer; the dtype does not change."""


def floor_divide(x1: Array | float, x2: Array | float, /) -> Array:
    """Divide and round down, toward -inf; integer division by 0 is up to the library."""


def greater(x1: Array | float, x2: Array | float, /) -> Array:
    """Test whether ``x1 > x2``; False if one is NaN."""


def greater_equal(x1: Array | float, x2: Array | float, /) -> Array:
    """Test whether ``x1 >= x2``; False if one is NaN."""


def hypot(x1: Array | float, x2: Array | float, /) -> Array:
    """Compute ``sqrt(x1**2 + x2**2)`` without overflow; infinite if one is, even beside NaN."""


def imag(x: Array, /) -> Array:
    """Return the imaginary part of complex numbers, which is real-valued."""


def isfinite(x: Array, /) -> Array:
    """Test for values that are neither infinite nor NaN; complex numbers in both parts."""


def isinf(x: Array, /) -> Array:
    """Test for infinity; complex numbers in either part, even if the other is NaN."""


def isnan(x: Array, /) -> Array:
    """Test for NaN; complex numbers in either part."""


def less(x1: Array | float, x2: Array | float, /) -> Array:
    """Test whether ``x1 < x2``; False if one is NaN."""


def less_equal(x1: Array | float, x2: Array | float, /) -> Array:
    """Test whether ``x1 <= x2``; False if one is NaN."""


def log(x: Array, /) -> Array:
    """Compute the natural logarithm; -inf at 0, NaN for negative real numbers."""


def log10(x: Array, /) -> Array:
    """Compute the logarithm to base 10; -inf at 0, NaN for negative real numbers."""


def log1p(x: Array, /) -> Array:
    """Compute ``log(1 + x)``, accurately for ``x`` close to 0; -inf at -1, NaN for reals below."""


def log2(x: Array, /) -> Array:
    """Compute the logarithm to base 2; -inf at 0, NaN for negative real numbers."""


def logaddexp(x1: Array | float, x2: Array | float, /) -> Array:
    """Compute ``log(exp(x1) + exp(x2))`` without intermediate overflow."""


def logical_and(x1: Array | bool, x2: Array | bool, /) -> Array:
    """Test whether both are True."""


def logical_not(x: Array, /) -> Array:
    """Negate booleans."""


def logical_or(x1: Array | bool, x2: Array | bool, /) -> Array:
    """Test whether at least one is True."""


def logical_xor(x1: Array | bool, x2: Array | bool, /) -> Array:
    """Test whether exactly one is True."""


def maximum(x1: Array | float, x2: Array | float, /) -> Array:
    """Return the larger value of each pair; NaN if one is NaN."""


def minimum(x1: Array | float, x2: Array | float, /) -> Array:
    """Return the smaller value of each pair; NaN if one is NaN."""


def multiply(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Multiply two arrays. In most libraries, integers wrap around on overflow."""


def negative(x: Array, /) -> Array:
    """Negate. In most libraries, unsigned and the smallest signed integers wrap around."""


def nextafter(x1: Array | float, x2: Array | float, /) -> Array:
    """Return the next floating-point number from ``x1`` toward ``x2``."""


def not_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Test for inequality. NaN differs from every value, including itself."""


def positive(x: Array, /) -> Array:
    """Return the elements unchanged."""


def pow(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Raise ``x1`` to the power of ``x2``; the power of 0 is 1, even for NaN.

    The result for integers to negative powers is up to the library. A negative real number to a
    fractional power is NaN.
    """


def real(x: Array, /) -> Array:
    """Return the real part of complex numbers."""


def reciprocal(x: Array, /) -> Array:
    """Compute ``1 / x`` of floating-point numbers."""


def remainder(x1: Array | float, x2: Array | float, /) -> Array:
    """Return the remainder of :func:`floor_divide`, with the sign of ``x2``, as Python's ``%``."""


def round(x: Array, /) -> Array:
    """Round to the nearest integer, ties to even; complex numbers by parts. -0 remains -0."""


def sign(x: Array, /) -> Array:
    """Return -1, 0 or 1, for complex numbers ``x / abs(x)``; 0 for zeros, NaN for NaN."""


def signbit(x: Array, /) -> Array:
    """Test whether the sign bit is set: True for -0 and for a NaN with this bit."""


def sin(x: Array, /) -> Array:
    """Compute the sine of an angle in radians; NaN for infinities."""


def sinh(x: Array, /) -> Array:
    """Compute the hyperbolic sine."""


def sqrt(x: Array, /) -> Array:
    """Compute the square root with a real part of at least 0; NaN for negative reals, -0 for -0."""


def square(x: Array, /) -> Array:
    """Compute ``x * x``, in the dtype of ``x``."""


def subtract(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Subtract ``x2`` from ``x1``. In most libraries, integers wrap around on overflow."""


def tan(x: Array, /) -> Array:
    """Compute the tangent of an angle in radians; NaN for infinities."""


def tanh(x: Array, /) -> Array:
    """Compute the hyperbolic tangent."""


def trunc(x: Array, /) -> Array:
    """Round toward zero to an integer; the dtype does not change."""
