"""Corrected functions for JAX: data types, manipulation, searching, linear algebra."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from numpy.exceptions import AxisError

from ....xp.corrections import Correction
from ....xp.corrections.differences import differences
from ....xp.corrections.limits import floats_in_finfo
from ....xp.corrections.probes import refuses


def can_cast(from_: Any, to: Any, /) -> bool:
    """Test whether a dtype, or that of an array, promotes to another."""
    return jnp.can_cast(getattr(from_, "dtype", from_), to)


def matrix_rank(M: Any, rtol: Any = None, **kwargs: Any) -> jax.Array:
    """Count the singular values above ``rtol`` times the largest one."""
    if rtol is None:
        if M.ndim > 1 and 0 in M.shape[-2:]:
            rtol = 0.0  # what it is of no singular values, which JAX cannot find
        return jnp.linalg.matrix_rank(M, rtol=rtol, **kwargs)
    largest = jnp.linalg.norm(M, ord=2, axis=(-2, -1))
    return jnp.linalg.matrix_rank(M, rtol=rtol * largest, **kwargs)


def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, **kwargs: Any
) -> jax.Array:
    """Find insertion points, as indices of the default integer dtype."""
    found = jnp.searchsorted(a, v, side=side, sorter=sorter, **kwargs)
    return found.astype(_default_integer())


def _tupled(name: str) -> Callable[..., Any]:
    """Return the results of a function as a tuple."""
    plain = getattr(jnp, name)

    @functools.wraps(plain)
    def function(*arrays: Any, **kwargs: Any) -> tuple[Any, ...]:
        return tuple(plain(*arrays, **kwargs))

    return function


def _default_integer() -> Any:
    return jax.dtypes.canonicalize_dtype("int64")


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> jax.Array:
    """Compute cumulative products, of integers at least in the default dtype."""
    if dtype is None:
        dtype = jnp.asarray(x).dtype
        if jnp.issubdtype(dtype, jnp.unsignedinteger):
            dtype = jnp.promote_types(dtype, jax.dtypes.canonicalize_dtype("uint64"))
        elif jnp.issubdtype(dtype, jnp.signedinteger):
            dtype = jnp.promote_types(dtype, _default_integer())
        else:
            dtype = None
    return jnp.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


def expand_dims(a: Any, axis: Any) -> jax.Array:
    """Insert axes; raise IndexError for an axis out of range."""
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = jnp.ndim(a) + len(axes)
    for each in axes:
        if not -ndim <= operator.index(each) < ndim:
            raise AxisError(each, ndim)  # an IndexError, and JAX's ValueError
    return jnp.expand_dims(a, axis)


def permute_dims(a: Any, /, axes: Any) -> jax.Array:
    """Permute the axes, which may be negative."""
    ndim = jnp.ndim(a)
    return jnp.permute_dims(a, tuple([x + ndim if -ndim <= x < 0 else x for x in axes]))


def _deprecated_for_arrays(xp: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            xp.can_cast(jnp.ones(1), jnp.float32)
        except (TypeError, DeprecationWarning):
            return True
    return False


CORRECTIONS = (
    differences(jnp),
    *(
        Correction(
            name,
            _tupled(name),
            f"{name}: the results are a tuple",
            "no issue known",
            lambda xp, name=name: type(getattr(xp, name)(jnp.ones(1))) is not tuple,  # type: ignore[misc]
            until="0.11.1",
        )
        for name in ("broadcast_arrays", "meshgrid")
    ),
    Correction(
        "linalg.matrix_rank",
        matrix_rank,
        "linalg.matrix_rank: rtol is relative to the largest singular value",
        "no issue known",
        lambda xp: xp.linalg.matrix_rank(jnp.asarray([[8.0, 0.0], [0.0, 2.0]]), rtol=0.5) != 1,
    ),
    Correction(
        "can_cast",
        can_cast,
        "can_cast: of an array",
        "no issue known",
        _deprecated_for_arrays,
    ),
    Correction(
        "searchsorted",
        searchsorted,
        "searchsorted: the result has the default dtype for indices",
        "https://github.com/jax-ml/jax/issues/11375",
        lambda xp: xp.searchsorted(jnp.ones(1), jnp.ones(1)).dtype != _default_integer(),
    ),
    Correction(
        "cumulative_prod",
        cumulative_prod,
        "cumulative_prod: of an integer dtype narrower than the default one the result has the "
        "default one",
        "https://github.com/jax-ml/jax/issues/37920 (closed)",
        lambda xp: (
            xp.cumulative_prod(jnp.ones(1, "uint8")).dtype
            != jax.dtypes.canonicalize_dtype("uint64")
        ),
    ),
    Correction(
        "expand_dims",
        expand_dims,
        "expand_dims: an invalid axis is an IndexError",
        "no issue known",
        lambda xp: refuses(ValueError, xp.expand_dims, jnp.ones(1), 3),
    ),
    Correction(
        "permute_dims",
        permute_dims,
        "permute_dims: axes may be negative",
        "https://github.com/jax-ml/jax/pull/39075",
        lambda xp: xp.permute_dims(jnp.ones((1, 2)), (-1, -2)).shape != (2, 1),
        until="0.11.0",
    ),
    Correction(
        "finfo",
        floats_in_finfo(jnp.finfo),
        "finfo: eps, max, min and smallest_normal are Python floats",
        "https://github.com/jax-ml/jax/pull/21424 (closed: as NumPy)",
        lambda xp: type(xp.finfo(jnp.float32).eps) is not float,
    ),
)
