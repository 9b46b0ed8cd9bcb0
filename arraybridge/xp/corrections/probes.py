"""Probes of defects that several libraries share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy

Probe = Callable[[Any], bool]


def infinity_by_one(xp: Any) -> bool:
    """Whether ``floor_divide`` of infinity by a finite number is another number than infinity."""
    with numpy.errstate(invalid="ignore"):
        return not xp.isinf(xp.floor_divide(xp.asarray(xp.inf), xp.asarray(1.0)))


def expm1_of_minus_infinity(xp: Any) -> bool:
    """Whether ``expm1`` of an infinite complex number with a negative real part is not -1."""
    with numpy.errstate(invalid="ignore"):
        return bool(xp.expm1(xp.asarray(complex(-xp.inf, xp.inf))) != -1)


def tan_of_infinity(xp: Any) -> bool:
    """Whether the real part of ``tan`` of an infinite imaginary number has the wrong sign."""
    return bool(xp.signbit(xp.real(xp.tan(xp.asarray(complex(2.0, xp.inf))))))


def tanh_of_infinity(xp: Any) -> bool:
    """Whether the imaginary part of ``tanh`` of an infinite number has the wrong sign."""
    return bool(xp.signbit(xp.imag(xp.tanh(xp.asarray(complex(xp.inf, 2.0))))))


def infinite_deviation(name: str) -> Probe:
    """Make a probe: whether ``std`` or ``var`` of no degrees of freedom is not NaN."""

    def needed(xp: Any) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return not xp.isnan(getattr(xp, name)(xp.asarray([1.0, 2.0]), correction=2))

    return needed


def refuses(kind: type[Exception], call: Callable[..., Any], *args: Any) -> bool:
    """Whether a call raises exactly that exception."""
    try:
        call(*args)
    except Exception as error:
        return type(error) is kind
    return False
