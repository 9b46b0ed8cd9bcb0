"""Probes of the defects that arraybridge corrects: by library, and by the name of the function.

``probe(xp)`` says whether the defect shows in a namespace of native arrays; False, and the entry of
the library's ``CORRECTIONS`` can go. An exception counts as the defect.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy

from arraybridge.xp.corrections import COMPARISONS

Probe = Callable[[Any], bool]


def raises(call: Callable[[], Any], *kinds: type[Exception]) -> bool:
    """Whether a call raises an exception of one of some kinds; of any without them."""
    try:
        call()
    except Exception as error:
        return isinstance(error, kinds) if kinds else True
    return False


def shows(probe: Probe, xp: Any) -> bool:
    """Whether a probe finds the defect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return raises(lambda: probe(xp)) or probe(xp)


def comparison(name: str) -> Probe:
    """A probe of a comparison with 300, which is 44 in 8 bits."""
    true = COMPARISONS[name](44, 300)
    return lambda xp: any(
        bool(getattr(xp, name)(xp.asarray(x, dtype=xp.uint8), 300)) is not true
        for x in (43, 44, 45)
    )


NUMPY: dict[str, Probe] = {
    "asarray": lambda xp: not raises(lambda: xp.asarray(numpy.asarray(["text"])), TypeError),
    "from_dlpack": lambda xp: raises(lambda: xp.from_dlpack(numpy.ones(1, ">f8"))),
    "finfo": lambda xp: type(xp.finfo(xp.float32).eps) is not float,
    "astype": lambda xp: xp.astype(numpy.uint8([9]).view(bool), ml_dtypes.bfloat16)[0] != 1,
    "clip": lambda xp: raises(lambda: xp.clip(numpy.arange(2), numpy.broadcast_to(1, 2))),
    "floor_divide": lambda xp: not xp.isinf(xp.floor_divide(xp.asarray(xp.inf), xp.asarray(1.0))),
    "expm1": lambda xp: bool(xp.expm1(xp.asarray(complex(-xp.inf, xp.inf))) != -1),
    "tanh": lambda xp: bool(xp.signbit(xp.imag(xp.tanh(xp.asarray(complex(xp.inf, 2.0)))))),
}


def probes_of(library: str) -> dict[str, Probe]:
    """The probe of each correction of a library."""
    if library == "cupy":
        return {"finfo": NUMPY["finfo"]}
    if library in ("torch", "jax"):
        probes: dict[str, Probe] = import_module(f"{__name__}.{library}").PROBES
        return probes
    return NUMPY if library == "numpy" else {}
