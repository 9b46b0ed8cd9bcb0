"""Corrected reductions for JAX: maxima, minima and norms of elements with NaN.

XLA's reductions by maximum and minimum of 4096 elements or more lose NaNs on the CPU, and may give
an infinity that is none of the elements.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ....xp.corrections import Correction

UPSTREAM = "https://github.com/jax-ml/jax/issues/39887"


@functools.cache
def _inexact(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.inexact))


def _of_numbers(x: Any) -> bool:
    return _inexact(x.dtype)


def _extremum(plain: Any) -> Callable[..., Any]:
    """``max`` or ``min`` that is NaN where any element is."""

    @functools.partial(jax.jit, static_argnames=("axis", "keepdims"))
    def among(x: Any, axis: Any, keepdims: Any, where: Any = None, **kwargs: Any) -> Any:
        found = plain(x, axis=axis, keepdims=keepdims, where=where, **kwargs)
        gone = jnp.any(jnp.isnan(x), axis=axis, keepdims=keepdims, where=where)
        return jnp.where(gone, jnp.asarray(jnp.nan, found.dtype), found)

    @functools.wraps(plain)
    def function(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **kwargs: Any
    ) -> Any:
        if out is None and hasattr(a, "dtype") and _of_numbers(a):
            return among(a, _hashable(axis), bool(keepdims), **kwargs)
        return plain(a, axis=axis, out=out, keepdims=keepdims, **kwargs)

    return function


def _hashable(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def vector_norm(
    x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2
) -> jax.Array:
    """Compute vector norms; of infinite order they are NaN where any element is."""
    found = jnp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    if ord not in (float("inf"), -float("inf")) or not _of_numbers(x):
        return found
    gone = jnp.any(jnp.isnan(x), axis=_hashable(axis), keepdims=keepdims)
    return jnp.where(gone, jnp.asarray(jnp.nan, found.dtype), found)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> jax.Array:
    """Compute matrix norms that are NaN where any element is."""
    found = jnp.linalg.matrix_norm(x, keepdims=keepdims, ord=ord)
    if ord in ("fro", "nuc") or not _of_numbers(x):  # which add up
        return found
    gone = jnp.any(jnp.isnan(x), axis=(-2, -1), keepdims=keepdims)
    return jnp.where(gone, jnp.asarray(jnp.nan, found.dtype), found)


def _probe(call: Callable[[Any, Any], Any]) -> Callable[[Any], bool]:
    def needed(xp: Any) -> bool:
        x = jnp.concatenate([jnp.ones(5000), jnp.asarray([jnp.nan]), jnp.ones(5000)])
        return not bool(jnp.isnan(call(xp, x)))

    return needed


CORRECTIONS = tuple(
    Correction(
        name,
        function,
        f"{name}: NaN where an element is, of many elements too",
        UPSTREAM,
        _probe(call),
    )
    for name, function, call in (
        ("max", _extremum(jnp.max), lambda xp, x: xp.max(x)),
        ("min", _extremum(jnp.min), lambda xp, x: xp.min(x)),
        (
            "linalg.vector_norm",
            vector_norm,
            lambda xp, x: xp.linalg.vector_norm(x, ord=float("inf")),
        ),
        (
            "linalg.matrix_norm",
            matrix_norm,
            lambda xp, x: xp.linalg.matrix_norm(x[:, None], ord=float("inf")),
        ),
    )
)
