"""Element-wise functions of the array API standard 2025.12.

Every function works on each element, or each pair of elements after broadcasting. Of two
arguments at least one is an array; a Python scalar takes the data type of the other if its kind is
not the higher one, and two arrays' data types are promoted. Where a docstring says nothing of NaN,
it is carried on. Branch cuts and special cases of complex functions are C99's.
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
    """Absolute value; of a complex number its magnitude, which is real.

    The smallest signed integer has none: its result is the library's choice.
    """


def acos(x: Array, /) -> Array:
    """Inverse cosine, in radians within [0, pi]; NaN outside [-1, 1] for real numbers.

    Complex: the principal value, with branch cuts along the real axis beyond -1 and 1.
    """


def acosh(x: Array, /) -> Array:
    """Inverse hyperbolic cosine, within [0, inf]; NaN below 1 for real numbers.

    Complex: the principal value, with a branch cut along the real axis below 1.
    """


def add(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Sum. Integers that overflow wrap around in most libraries."""


def asin(x: Array, /) -> Array:
    """Inverse sine, in radians within [-pi/2, pi/2]; NaN outside [-1, 1] for real numbers.

    Complex: the principal value, with branch cuts along the real axis beyond -1 and 1.
    """


def asinh(x: Array, /) -> Array:
    """Inverse hyperbolic sine.

    Complex: the principal value, with branch cuts along the imaginary axis beyond -1j and 1j.
    """


def atan(x: Array, /) -> Array:
    """Inverse tangent, in radians within [-pi/2, pi/2].

    Complex: the principal value, with branch cuts along the imaginary axis beyond -1j and 1j.
    """


def atan2(x1: Array | float, x2: Array | float, /) -> Array:
    """Angle of the point ``(x2, x1)``, in radians within [-pi, pi]: ``x1`` is the ordinate.

    The signs of zeros count: they tell pi from -pi and 0 from -0.
    """


def atanh(x: Array, /) -> Array:
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond for real numbers.

    Complex: the principal value, with branch cuts along the real axis beyond -1 and 1.
    """


def bitwise_and(x1: Array | int | bool, x2: Array | int | bool, /) -> Array:
    """AND of each bit of integers, or of booleans."""


def bitwise_invert(x: Array, /) -> Array:
    """Inversion of each bit of integers; negation of booleans."""


def bitwise_left_shift(x1: Array | int, x2: Array | int, /) -> Array:
    """``x1`` shifted left by ``x2`` bits, which must not be negative; zeros enter."""


def bitwise_or(x1: Array | int | bool, x2: Array | int | bool, /) -> Array:
    """OR of each bit of integers, or of booleans."""


def bitwise_right_shift(x1: Array | int, x2: Array | int, /) -> Array:
    """``x1`` shifted right by ``x2`` bits, which must not be negative.

    The sign is kept: it is a division by powers of 2, rounded down.
    """


def bitwise_xor(x1: Array | int | bool, x2: Array | int | bool, /) -> Array:
    """Exclusive OR of each bit of integers, or of booleans."""


def ceil(x: Array, /) -> Array:
    """Smallest integer that is not less; the data type stays."""


def clip(x: Array, /, min: Array | float | None = None, max: Array | float | None = None) -> Array:
    """Nearest value within ``[min, max]``; None: no bound on that side. The data type stays.

    Bounds broadcast against ``x``. NaN if one of the three is NaN; where ``min > max`` the result
    is the library's choice.
    """


def conj(x: Array, /) -> Array:
    """Complex conjugate. A real array is left as it is."""


def copysign(x1: Array | float, x2: Array | float, /) -> Array:
    """The magnitude of ``x1`` with the sign of ``x2``, of which -0 and NaN have one as well."""


def cos(x: Array, /) -> Array:
    """Cosine of an angle in radians; NaN of the infinities."""


def cosh(x: Array, /) -> Array:
    """Hyperbolic cosine."""


def divide(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Quotient of floating-point numbers; by 0 infinite, and NaN of 0 / 0.

    What it gives of integers is the library's choice.
    """


def equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether they are equal. NaN equals nothing, -0 equals 0."""


def exp(x: Array, /) -> Array:
    """The constant e raised to each element."""


def expm1(x: Array, /) -> Array:
    """``exp(x) - 1``, accurate where ``x`` is close to 0."""


def floor(x: Array, /) -> Array:
    """Largest integer that is not greater; the data type stays."""


def floor_divide(x1: Array | float, x2: Array | float, /) -> Array:
    """Quotient rounded down, toward -inf; integers by 0 are the library's choice."""


def greater(x1: Array | float, x2: Array | float, /) -> Array:
    """Whether ``x1 > x2``; False where one is NaN."""


def greater_equal(x1: Array | float, x2: Array | float, /) -> Array:
    """Whether ``x1 >= x2``; False where one is NaN."""


def hypot(x1: Array | float, x2: Array | float, /) -> Array:
    """``sqrt(x1**2 + x2**2)`` without overflow on the way.

    Infinite if one is infinite, though the other be NaN.
    """


def imag(x: Array, /) -> Array:
    """Imaginary part of complex numbers, real-valued."""


def isfinite(x: Array, /) -> Array:
    """Whether it is neither infinite nor NaN; of a complex number both parts."""


def isinf(x: Array, /) -> Array:
    """Whether it is infinite; of a complex number either part, though the other be NaN."""


def isnan(x: Array, /) -> Array:
    """Whether it is NaN; of a complex number either part."""


def less(x1: Array | float, x2: Array | float, /) -> Array:
    """Whether ``x1 < x2``; False where one is NaN."""


def less_equal(x1: Array | float, x2: Array | float, /) -> Array:
    """Whether ``x1 <= x2``; False where one is NaN."""


def log(x: Array, /) -> Array:
    """Natural logarithm; -inf at 0, NaN below for real numbers.

    Complex: the principal value, with a branch cut along the negative real axis.
    """


def log10(x: Array, /) -> Array:
    """Logarithm to base 10; -inf at 0, NaN below for real numbers."""


def log1p(x: Array, /) -> Array:
    """``log(1 + x)``, accurate where ``x`` is close to 0; -inf at -1, NaN below if real."""


def log2(x: Array, /) -> Array:
    """Logarithm to base 2; -inf at 0, NaN below for real numbers."""


def logaddexp(x1: Array | float, x2: Array | float, /) -> Array:
    """``log(exp(x1) + exp(x2))`` without overflow on the way."""


def logical_and(x1: Array | bool, x2: Array | bool, /) -> Array:
    """Whether both are True."""


def logical_not(x: Array, /) -> Array:
    """Whether it is False."""


def logical_or(x1: Array | bool, x2: Array | bool, /) -> Array:
    """Whether at least one is True."""


def logical_xor(x1: Array | bool, x2: Array | bool, /) -> Array:
    """Whether exactly one is True."""


def maximum(x1: Array | float, x2: Array | float, /) -> Array:
    """The larger one; NaN if one is NaN."""


def minimum(x1: Array | float, x2: Array | float, /) -> Array:
    """The smaller one; NaN if one is NaN."""


def multiply(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Product. Integers that overflow wrap around in most libraries."""


def negative(x: Array, /) -> Array:
    """Negation. Unsigned integers, and the smallest signed one, wrap around in most libraries."""


def nextafter(x1: Array | float, x2: Array | float, /) -> Array:
    """The next floating-point number from ``x1`` toward ``x2``."""


def not_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether they differ. NaN differs from all, itself included."""


def positive(x: Array, /) -> Array:
    """The elements as they are."""


def pow(x1: Array | complex, x2: Array | complex, /) -> Array:
    """``x1`` raised to the power of ``x2``; to the power of 0 always 1, even of NaN.

    Integers to negative powers are the library's choice; a negative real number to a power that is
    no integer is NaN.
    """


def real(x: Array, /) -> Array:
    """Real part of complex numbers, real-valued."""


def reciprocal(x: Array, /) -> Array:
    """``1 / x`` of floating-point numbers."""


def remainder(x1: Array | float, x2: Array | float, /) -> Array:
    """Remainder of :func:`floor_divide`, with the sign of ``x2``: Python's ``%``."""


def round(x: Array, /) -> Array:
    """Nearest integer, the even one of two as near; the data type stays.

    Complex: the parts are rounded each by itself. -0 stays -0.
    """


def sign(x: Array, /) -> Array:
    """-1, 0 or 1 by the sign; 0 of either zero, NaN of NaN.

    Complex: ``x / abs(x)``, and 0 at 0.
    """


def signbit(x: Array, /) -> Array:
    """Whether the sign bit is set: True of -0, and of a NaN that carries it."""


def sin(x: Array, /) -> Array:
    """Sine of an angle in radians; NaN of the infinities."""


def sinh(x: Array, /) -> Array:
    """Hyperbolic sine."""


def sqrt(x: Array, /) -> Array:
    """Principal square root; NaN below 0 for real numbers, while -0 stays -0.

    Complex: the real part is not negative; a branch cut along the negative real axis.
    """


def square(x: Array, /) -> Array:
    """``x * x``, in the data type of ``x``."""


def subtract(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Difference. Integers that overflow wrap around in most libraries."""


def tan(x: Array, /) -> Array:
    """Tangent of an angle in radians; NaN of the infinities."""


def tanh(x: Array, /) -> Array:
    """Hyperbolic tangent."""


def trunc(x: Array, /) -> Array:
    """Nearest integer toward zero; the data type stays."""
