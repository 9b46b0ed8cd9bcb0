"""NumPy's ufuncs that the standard lacks, by its functions.

Each takes the namespace of Arrays first, and Arrays of the data types that NumPy's loop takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from .numpy_rules import cast, dtype_of


def _is_whole(x: Any) -> bool:
    return dtype_of(x).kind in "biu"


def _number(xp: Any, x: Any, value: float) -> Any:
    return xp.asarray(value, dtype=x.dtype, device=x.device)


def _not_nan(name: str) -> Callable[..., Any]:
    def function(xp: Any, x: Any, y: Any) -> Any:
        found = getattr(xp, name)(x, y)
        if _is_whole(x):
            return found
        return xp.where(xp.isnan(x), y, xp.where(xp.isnan(y), x, found))

    return function


def _divided(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a division in which integers divided by zero give zero, as in NumPy."""

    def divided(xp: Any, x: Any, y: Any) -> Any:
        if not _is_whole(x):
            return function(xp, x, y)
        zero = y == 0
        found = function(xp, x, xp.where(zero, xp.ones_like(y), y))
        return xp.where(zero, xp.zeros_like(found), found)

    return divided


def _floor(xp: Any, x: Any, y: Any) -> Any:
    found = xp.floor_divide(x, y)
    if _is_whole(x):
        return found
    return xp.where(xp.isinf(x) & (y != 0), _number(xp, x, math.nan), found)


_floor_divide = _divided(_floor)
_remainder = _divided(lambda xp, x, y: xp.remainder(x, y))


def _fmod(xp: Any, x: Any, y: Any) -> Any:
    """Return the remainder, with the sign of the dividend."""
    if not _is_whole(x):
        return xp.copysign(xp.remainder(xp.abs(x), xp.abs(y)), x)
    rest = _remainder(xp, x, y)
    if dtype_of(x).kind != "i":
        return rest
    return xp.where((rest != 0) & ((x < 0) != (y < 0)), rest - y, rest)


def _cbrt(xp: Any, x: Any) -> Any:
    if dtype_of(x).itemsize < 4:
        x = cast(x, numpy.dtype("f4"))
    root = xp.copysign(xp.pow(xp.abs(x), _number(xp, x, 1 / 3)), x)
    better = root - (root * root * root - x) / (3 * root * root)  # pow(27, 1/3) is not quite 3
    return xp.where(xp.isfinite(better), better, root)


def _logaddexp2(xp: Any, x: Any, y: Any) -> Any:
    near = xp.log1p(xp.pow(_number(xp, x, 2), -xp.abs(x - y))) / math.log(2)
    return xp.where(x == y, x + 1, xp.maximum(x, y) + near)


def _powers(x: Any, lowest: int, highest: int) -> Any:
    """Return 2**lowest to 2**highest as an Array like ``x``, since pow may be inexact."""
    host = numpy.ldexp(numpy.ones((), dtype_of(x)), numpy.arange(lowest, highest + 1))
    return x.__array_namespace__().asarray(host, device=x.device)


def _ldexp(xp: Any, x: Any, n: Any) -> Any:
    """Return ``x * 2**n``, rounded once.

    In three steps, of which only the last, if any, may leave the normal numbers.
    """
    limits = numpy.finfo(dtype_of(x))
    low, high = int(limits.minexp), int(limits.maxexp) - 1
    powers = _powers(x, low, high)
    steps = []
    for _ in range(3):
        step = xp.clip(n, low, high)
        steps.append(xp.reshape(xp.take(powers, xp.reshape(step - low, (-1,)), axis=0), n.shape))
        n = n - step
    for step in reversed(steps):
        x = x * step
    return x


def _frexp(xp: Any, x: Any) -> Any:
    """Return the mantissa, from 0.5 to 1, and the exponent of two."""
    limits = numpy.finfo(dtype_of(x))
    low = int(limits.minexp - limits.nmant)
    powers = _powers(x, low, int(limits.maxexp) - 1)
    found = xp.searchsorted(powers, xp.reshape(xp.abs(x), (-1,)), side="right")
    exponent = xp.reshape(found, x.shape) + low
    whole = xp.isfinite(x) & (x != 0)
    exponent = xp.astype(xp.where(whole, exponent, xp.zeros_like(exponent)), xp.int32)
    return xp.where(whole, _ldexp(xp, x, -exponent), x), exponent


def _modf(xp: Any, x: Any) -> Any:
    whole = xp.trunc(x)
    rest = xp.where(xp.isinf(x), xp.zeros_like(x), x - whole)
    return xp.copysign(rest, x), whole


def _spacing(xp: Any, x: Any) -> Any:
    return xp.nextafter(x, xp.copysign(_number(xp, x, math.inf), x)) - x


def _heaviside(xp: Any, x: Any, y: Any) -> Any:
    step = xp.where(x < 0, xp.zeros_like(x), xp.ones_like(x))
    return xp.where(xp.isnan(x), x, xp.where(x == 0, y, step))


UFUNCS: dict[Any, Callable[..., Any]] = {
    numpy.rint: lambda xp, x: xp.round(x),
    numpy.fabs: lambda xp, x: xp.abs(x),
    numpy.exp2: lambda xp, x: xp.pow(_number(xp, x, 2), x),
    numpy.deg2rad: lambda xp, x: x * (numpy.pi / 180),
    numpy.radians: lambda xp, x: x * (numpy.pi / 180),
    numpy.rad2deg: lambda xp, x: x * (180 / numpy.pi),
    numpy.degrees: lambda xp, x: x * (180 / numpy.pi),
    numpy.fmax: _not_nan("maximum"),
    numpy.fmin: _not_nan("minimum"),
    numpy.fmod: _fmod,
    numpy.divmod: lambda xp, x, y: (_floor_divide(xp, x, y), _remainder(xp, x, y)),
    numpy.floor_divide: _floor_divide,
    numpy.remainder: _remainder,
    numpy.float_power: lambda xp, x, y: xp.pow(x, y),
    numpy.cbrt: _cbrt,
    numpy.logaddexp2: _logaddexp2,
    numpy.ldexp: _ldexp,
    numpy.frexp: _frexp,
    numpy.modf: _modf,
    numpy.spacing: _spacing,
    numpy.heaviside: _heaviside,
}
