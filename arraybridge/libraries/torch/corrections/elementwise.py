"""Corrected special cases of PyTorch's elementwise functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from array_api_compat import torch as xp

from ....xp.corrections import Correction
from ....xp.corrections.special_cases import (
    Function,
    Means,
    complex_function,
    floor_divide,
    remainder,
    turned,
)
from ..tracing import differentiated, transformed
from .promotion import promoting


def _turned_zero(x: torch.Tensor) -> torch.Tensor:
    """``-x`` with the derivative of ``x``."""
    if not differentiated(x):
        return -x
    value = x.detach()
    return -value - (value - x)  # less +0, which leaves -0 and +0 what they are


MEANS = Means(
    xp,
    floating=lambda dtype: dtype.is_floating_point,
    complex_floating=lambda dtype: dtype.is_complex,
    complex=torch.complex,
    detach=torch.Tensor.detach,
    turned_zero=_turned_zero,
)


def _floor_divide(x1: Any, x2: Any, /, **kwargs: Any) -> torch.Tensor:
    """``floor_divide`` with a derivative (zero), which torch's own lacks."""
    if isinstance(x1, torch.Tensor):
        return torch.div(x1, x2, rounding_mode="floor", **kwargs)
    return xp.floor_divide(x1, x2, **kwargs)


def _complex_function(name: str) -> Function:
    """A complex function that looks at values for special cases, unless it is traced."""
    plain = getattr(xp, name)
    traced, eager = (_special(means, name) for means in (MEANS, MEANS._replace(eager=True)))

    def function(x: torch.Tensor, /, **kwargs: Any) -> torch.Tensor:
        if not x.is_complex():
            return plain(x, **kwargs)
        return (traced if transformed() else eager)(x, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = plain.__doc__
    return function


def _special(means: Means, name: str) -> Function:
    if name == "tan":
        return turned(means, name, complex_function(means, "tanh"))
    return complex_function(means, name)


# An argument that shows the wrong special case of each function, and the right result.
_WRONG = {
    "acos": (0j, complex(math.pi / 2, -0.0)),
    "expm1": (complex(math.inf, 0.0), complex(math.inf, 0.0)),
    "log1p": (complex(math.inf, math.nan), complex(math.inf, math.nan)),
    "tan": (complex(2.0, math.inf), 1j),
    "tanh": (complex(math.inf, 2.0), 1 + 0j),
}


def _wrong(name: str) -> Callable[[Any], bool]:
    argument, right = _WRONG[name]
    return lambda xp: str(complex(getattr(xp, name)(_double(argument)))) != str(right)


def _double(number: complex) -> torch.Tensor:
    return torch.tensor(number, dtype=torch.complex128)


CORRECTIONS = (
    Correction(
        "floor_divide",
        floor_divide(MEANS, promoting(_floor_divide)),
        "floor_divide: an infinity by a finite number is infinity, a finite number by it zero",
        "https://github.com/pytorch/pytorch/issues/170178",
        lambda xp: not bool(xp.isinf(xp.floor_divide(xp.asarray(xp.inf), xp.asarray(1.0)))),
        operators=True,
    ),
    Correction(
        "remainder",
        remainder(MEANS, promoting(torch.remainder)),
        "remainder: a zero has the sign of the divisor",
        "https://github.com/pytorch/pytorch/issues/193755",
        lambda xp: bool(xp.signbit(xp.remainder(xp.asarray(-0.0), xp.asarray(1.0)))),
        operators=True,
    ),
    *(
        Correction(
            name,
            _complex_function(name),
            f"{name}: special cases of complex numbers",
            "https://github.com/pytorch/pytorch/issues/39128 and 40590",
            _wrong(name),
        )
        for name in _WRONG
    ),
)
