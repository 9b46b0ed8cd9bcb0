"""Probes of defects that several libraries share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy

from arraybridge.xp.corrections import COMPARISONS

from . import Probe


def raises(call: Callable[[], Any], *kinds: type[Exception]) -> bool:
    """Whether a call raises an exception of one of some kinds; of any without them."""
    try:
        call()
    except Exception as error:
        return isinstance(error, kinds) if kinds else True
    return False


def refuses(kind: type[Exception], call: Callable[..., Any], *args: Any) -> bool:
    """Whether a call raises exactly that exception."""
    try:
        call(*args)
    except Exception as error:
        return type(error) is kind
    return False


def _divides(xp: Any) -> bool:
    with numpy.errstate(invalid="ignore"):
        return not xp.isinf(xp.floor_divide(xp.asarray(xp.inf), xp.asarray(1.0)))


def _expm1(xp: Any) -> bool:
    with numpy.errstate(invalid="ignore"):
        return bool(xp.expm1(xp.asarray(complex(-xp.inf, xp.inf))) != -1)


def _deviates(name: str) -> Probe:
    def probe(xp: Any) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return not xp.isnan(getattr(xp, name)(xp.asarray([1.0, 2.0]), correction=2))

    return probe


def comparison(name: str) -> Probe:
    """A probe of a comparison with 300, which is 44 in 8 bits."""
    true = COMPARISONS[name](44, 300)
    return lambda xp: any(
        bool(getattr(xp, name)(xp.asarray(x, dtype=xp.uint8), 300)) is not true
        for x in (43, 44, 45)
    )


DIFF: dict[str, Probe] = {
    "diff": lambda xp: xp.diff(xp.ones((1,)), n=0, prepend=xp.ones((1,))).shape != (2,),
}
FINFO: dict[str, Probe] = {"finfo": lambda xp: type(xp.finfo(xp.float32).eps) is not float}
FROM_DLPACK: dict[str, Probe] = {
    "from_dlpack": lambda xp: refuses(BufferError, xp.from_dlpack, numpy.ones(1, ">f8")),
}
LINSPACE: dict[str, Probe] = {
    "linspace": lambda xp: not raises(lambda: xp.linspace(0, 300, 3, dtype=xp.int8), OverflowError),
}
MATRIX_RANK: dict[str, Probe] = {
    "linalg.matrix_rank": lambda xp: raises(lambda: xp.linalg.matrix_rank(xp.ones((2, 3, 0)))),
}
ROLL: dict[str, Probe] = {"roll": lambda xp: raises(lambda: xp.roll(xp.ones(()), 1, axis=()))}
SHIFTS: dict[str, Probe] = {
    "fft.fftshift": lambda xp: raises(lambda: xp.fft.fftshift(xp.ones(()))),
    "fft.ifftshift": lambda xp: raises(lambda: xp.fft.ifftshift(xp.ones(()))),
}
TANGENTS: dict[str, Probe] = {
    "tan": lambda xp: bool(xp.signbit(xp.real(xp.tan(xp.asarray(complex(2.0, xp.inf)))))),
    "tanh": lambda xp: bool(xp.signbit(xp.imag(xp.tanh(xp.asarray(complex(xp.inf, 2.0)))))),
}
NUMPY_SPECIAL_CASES: dict[str, Probe] = {
    **TANGENTS,
    "floor_divide": _divides,
    "expm1": _expm1,
    "std": _deviates("std"),
    "var": _deviates("var"),
}
