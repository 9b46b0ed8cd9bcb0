"""Corrected elementwise functions for JAX, and ``all`` and ``any``.

Every function here can be traced by ``jax.jit``, ``jax.vmap`` and ``jax.grad``; its derivative is
that of JAX's own function; only special values differ.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from ....xp.corrections import Correction
from ....xp.corrections.special_cases import (
    CASES,
    TURNED,
    Function,
    Means,
    complex_function,
    floor_divide,
    remainder,
    sign,
    turned,
)


@functools.cache
def _floating(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating))


@functools.cache
def _complex_floating(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.complexfloating))


MEANS = Means(jnp, floating=_floating, complex_floating=_complex_floating, complex=jax.lax.complex)


def _mended(name: str, mended: Function, *kinds: Any, base: Function | None = None) -> Function:
    """Use ``mended`` for dtypes of some kinds, and JAX's own function otherwise.

    It is compiled as JAX's own are, so that it costs one call of XLA, and has the derivative of
    ``base``: JAX's own function unless another is given.
    """
    plain = getattr(jnp, name)
    differentiable = base or plain
    rule = jax.custom_jvp(mended)

    def derivative(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        return mended(*primals), jax.jvp(differentiable, primals, tangents)[1]

    rule.defjvp(derivative)
    compiled = jax.jit(rule)

    @functools.wraps(plain)
    def function(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            for x in args:  # any() of a generator takes half a microsecond
                if _is_of(x, kinds):
                    return compiled(*[_as_array(x) for x in args])
        return plain(*args, **kwargs)

    return function


def _is_of(x: Any, kinds: tuple[Function, ...]) -> bool:
    if type(x) in (float, complex):
        return True
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        for kind in kinds:
            if kind(dtype):
                return True
    return False


def _as_array(x: Any) -> Any:
    """Convert what ``jax.numpy`` accepts and ``jax.jit`` does not."""
    convert = getattr(x, "__jax_array__", None)
    return x if convert is None else convert()


def _symmetric(name: str) -> Function:
    """A complex function, with ``f(conj(z))`` being ``conj(f(z))`` on its branch cuts too."""
    plain = getattr(jnp, name)

    def function(z: Any, /) -> Any:
        below = jnp.signbit(z.imag)
        result = plain(jnp.where(below, jnp.conj(z), z))
        return jnp.where(below, jnp.conj(result), result)

    return function


def _complex_function(name: str) -> Function:
    base = _symmetric(name)
    return _mended(name, complex_function(MEANS, name, base), _complex_floating, base=base)


def _turned(name: str) -> Function:
    """A function of ``TURNED``, made of the hyperbolic one with its special cases right."""
    source = TURNED[name]
    hyperbolic = complex_function(MEANS, source, _symmetric(source))
    return _mended(name, turned(MEANS, name, hyperbolic), _complex_floating)


# An argument that shows the wrong special case of each function, and how it shows.
_TURNED_WRONG: dict[str, tuple[float, float, Function]] = {
    "asin": (0.0, jnp.nan, lambda z: jnp.isnan(z.real)),
    "atan": (jnp.nan, 1.0, lambda z: ~jnp.isnan(z.real)),
    "cos": (jnp.nan, 0.0, lambda z: jnp.isnan(z.imag)),
    "sin": (jnp.nan, 0.0, lambda z: jnp.isnan(z.imag)),
    "tan": (2.0, jnp.inf, lambda z: jnp.signbit(z.real)),
}


def _turned_wrong(name: str) -> Function:
    re, im, shows = _TURNED_WRONG[name]
    return lambda xp: bool(shows(getattr(xp, name)(_of(re, im)))[0])


def _magnitude(z: jax.Array, /) -> jax.Array:
    """``abs`` of complex numbers, infinite where either part is."""
    infinite = jnp.isinf(z.real) | jnp.isinf(z.imag)
    result = jnp.abs(z)
    return jnp.where(infinite, jnp.asarray(jnp.inf, result.dtype), result)


def _truth(name: str) -> Function:
    """``all`` or ``any`` that takes the imaginary parts into account."""
    plain = getattr(jnp, name)

    @functools.wraps(plain)
    def function(a: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        if _complex_floating(getattr(a, "dtype", None)):
            a = jnp.astype(a, bool)
        return plain(a, axis, *args, **kwargs)

    return function


def pow(x1: Any, x2: Any, /) -> jax.Array:
    """``pow`` in the common data type, for zero-dimensional integer exponents too."""
    dtype = getattr(x2, "dtype", None)
    if dtype is not None and not x2.ndim and jnp.issubdtype(dtype, jnp.integer):
        base = getattr(x1, "dtype", None)
        if base is None and type(x1) is int:
            x1 = jnp.asarray(x1, dtype)
        elif base is not None and base != dtype and jnp.issubdtype(base, jnp.integer):
            x1 = jnp.astype(x1, jnp.promote_types(base, dtype))
    return jnp.pow(x1, x2)


def _of(re: float, im: float) -> Any:
    return jax.lax.complex(jnp.asarray([re]), jnp.asarray([im]))


def _wrong(name: str) -> Function:
    """A probe for the complex special cases of a function: the first of its cases, evaluated."""

    def needed(xp: Any) -> bool:
        numbers = {"zero": 0.0, "nonzero": 1.0, "inf": jnp.inf, "nan": jnp.nan}
        function = getattr(xp, name)
        for case in CASES[name]:
            for real in case.real.split("|"):
                for imaginary in case.imaginary.split("|"):
                    x = numbers[real.removeprefix("-")] * (-1 if real.startswith("-") else 1)
                    got = complex(function(_of(x, numbers[imaginary]))[0])
                    pairs = ((got.real, case.result.real), (got.imag, case.result.imag))
                    if not all(a == b or (a != a and b != b) for a, b in pairs):
                        return True
        return _below_the_cut(name)(xp)

    return needed


def _below_the_cut(name: str) -> Function:
    """A probe: whether f(conj(z)) is conj(f(z)) with zeros as imaginary parts."""

    def needed(xp: Any) -> bool:
        function = getattr(xp, name)
        for x in (-2.0, 0.5, 2.0):
            above, below = function(_of(x, 0.0))[0], function(_of(x, -0.0))[0]
            if above.imag != -below.imag or jnp.signbit(above.imag) == jnp.signbit(below.imag):
                return True
        return False

    return needed


_COMPLEX = "https://github.com/jax-ml/jax/issues/18353 (closed; its CI skips these cases)"
_UPSTREAM = {"sqrt": "https://github.com/jax-ml/jax/issues/39110"}
_SIGN_OF_ZERO = "https://github.com/jax-ml/jax/issues/40028"


CORRECTIONS = (
    Correction(
        "floor_divide",
        _mended("floor_divide", floor_divide(MEANS, zeros=True), _floating),
        "floor_divide: an infinity by a finite number is infinity, a finite number by it zero, and "
        "a zero has the sign of the quotient",
        _SIGN_OF_ZERO,
        lambda xp: float(xp.floor_divide(jnp.inf, 2.0)) != jnp.inf,
        operators=True,
    ),
    Correction(
        "remainder",
        _mended("remainder", remainder(MEANS), _floating),
        "remainder: a zero has the sign of the divisor",
        _SIGN_OF_ZERO,
        lambda xp: bool(jnp.signbit(xp.remainder(-0.0, 1.0))),
        operators=True,
    ),
    Correction(
        "pow",
        pow,
        "Type promotion rules: the same with arrays of no dimensions",
        "no issue known",
        lambda xp: xp.pow(jnp.ones(1, "int8"), jnp.asarray(1, "int16")).dtype != jnp.int16,
        operators=True,
    ),
    Correction(
        "sign",
        _mended("sign", sign(MEANS), _floating, _complex_floating),
        "sign: of a zero of either sign it is 0",
        "no issue known",
        lambda xp: bool(jnp.signbit(xp.sign(jnp.asarray(-0.0)))),
    ),
    Correction(
        "abs",
        _mended("abs", _magnitude, _complex_floating),
        "abs: of a complex number with an infinite part it is infinity",
        "https://github.com/jax-ml/jax/issues/37990",
        lambda xp: not jnp.isinf(xp.abs(_of(jnp.inf, jnp.nan)))[0],
        operators=True,
        until="0.12.0",
    ),
    *(
        Correction(
            name,
            _complex_function(name),
            f"{name}: special cases of complex numbers, and f(conj(z)) is conj(f(z))",
            _UPSTREAM.get(name, _COMPLEX),
            _wrong(name),
        )
        for name in CASES
    ),
    *(
        Correction(
            name,
            _turned(name),
            f"{name}: special cases of complex numbers are those of {source} of 1j * x",
            _COMPLEX,
            _turned_wrong(name),
        )
        for name, source in TURNED.items()
    ),
    *(
        Correction(
            name,
            _truth(name),
            f"{name}: a complex number with a nonzero part, imaginary or not, is true",
            "https://github.com/jax-ml/jax/pull/6290, since which imaginary parts are dropped",
            lambda xp, name=name: not getattr(xp, name)(_of(0.0, 1.0)),  # type: ignore[misc]
        )
        for name in ("all", "any")
    ),
)
