"""Where JAX departs from the standard."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from arraybridge.core.records import ConversionError
from arraybridge.xp.corrections import COMPARISONS
from arraybridge.xp.special_values import CASES

from . import NUMPY, Probe, comparison, raises


def _narrow(call: Callable[[Any], Any], error: type[Exception] = OverflowError) -> Probe:
    """A probe with x64 off: whether a call is not refused with an error."""

    def probe(xp: Any) -> bool:
        with jax.enable_x64(False):
            return not raises(lambda: call(xp), error)

    return probe


def _of(re: float, im: float) -> Any:
    return jax.lax.complex(jnp.asarray([re]), jnp.asarray([im]))


def _wrong(name: str) -> Probe:
    """A probe for the complex special cases of a function: each of its cases, evaluated."""

    def probe(xp: Any) -> bool:
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
        return _below_the_cut(function)

    return probe


def _below_the_cut(function: Any) -> bool:
    """Whether f(conj(z)) is not conj(f(z)) with zeros as imaginary parts."""
    for x in (-2.0, 0.5, 2.0):
        above, below = function(_of(x, 0.0))[0], function(_of(x, -0.0))[0]
        if above.imag != -below.imag or jnp.signbit(above.imag) == jnp.signbit(below.imag):
            return True
    return False


def _truth(name: str) -> Probe:
    return lambda xp: not getattr(xp, name)(_of(0.0, 1.0))


def _deprecated_for_arrays(xp: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            xp.can_cast(jnp.ones(1), jnp.float32)
        except (TypeError, DeprecationWarning):
            return True
    return False


def _loses_nan(call: Callable[[Any, Any], Any]) -> Probe:
    def probe(xp: Any) -> bool:
        x = jnp.concatenate([jnp.ones(5000), jnp.asarray([jnp.nan]), jnp.ones(5000)])
        return not bool(jnp.isnan(call(xp, x)))

    return probe


PROBES: dict[str, Probe] = {
    "finfo": NUMPY["finfo"],
    **{name: _wrong(name) for name in CASES},
    **{name: _truth(name) for name in ("all", "any")},
    "asarray": lambda xp: not raises(lambda: xp.asarray([1], copy=False), ConversionError),
    "reshape": lambda xp: (
        not raises(lambda: xp.reshape(xp.ones((2, 2)), (4,), copy=False), ConversionError)
    ),
    "from_dlpack": _narrow(lambda xp: xp.from_dlpack(np.ones(1)), ConversionError),
    "arange": _narrow(lambda xp: xp.arange(2**31, 2**31 + 2)),
    "full": _narrow(lambda xp: xp.full((1,), 2**40)),
    "floor_divide": lambda xp: float(xp.floor_divide(jnp.inf, 2.0)) != jnp.inf,
    "remainder": lambda xp: bool(jnp.signbit(xp.remainder(-0.0, 1.0))),
    **{name: comparison(name) for name in COMPARISONS},
    "sign": lambda xp: bool(jnp.signbit(xp.sign(jnp.asarray(-0.0)))),
    "linalg.matrix_rank": lambda xp: (
        xp.linalg.matrix_rank(jnp.asarray([[8.0, 0.0], [0.0, 2.0]]), rtol=0.5) != 1
    ),
    "can_cast": _deprecated_for_arrays,
    "expand_dims": lambda xp: not raises(lambda: xp.expand_dims(jnp.ones(2), axis=3), IndexError),
    "permute_dims": lambda xp: xp.permute_dims(jnp.ones((1, 2)), (-1, -2)).shape != (2, 1),
    "searchsorted": lambda xp: (
        xp.searchsorted(jnp.ones(1), jnp.ones(1)).dtype != jax.dtypes.canonicalize_dtype("int64")
    ),
    "cumulative_prod": lambda xp: (
        xp.cumulative_prod(jnp.ones(1, "uint8")).dtype != jax.dtypes.canonicalize_dtype("uint64")
    ),
    "max": _loses_nan(lambda xp, x: xp.max(x)),
    "min": _loses_nan(lambda xp, x: xp.min(x)),
    "linalg.vector_norm": _loses_nan(lambda xp, x: xp.linalg.vector_norm(x, ord=float("inf"))),
}
