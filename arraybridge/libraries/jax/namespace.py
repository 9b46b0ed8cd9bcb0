"""The namespace of native arrays, NumPy functions, and integers that JAX does not accept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ...array.promotion import scalar_of
from ...xp.native_namespace import NativeNamespace, make_native_namespace
from ...xp.numbers import Wide
from .corrections import CORRECTIONS, check_dtype


def _as_scalar(value: int, dtype: Any) -> jax.Array:
    """Convert an integer that JAX would read as an overflowing int64."""
    if dtype == np.bool:  # NumPy would return True
        raise OverflowError(f"Python integer {value} out of bounds for bool")
    return jnp.asarray(np.asarray(value, dtype))


def _plain(value: Any) -> Any:
    """Convert a scalar; NumPy's keep their data type unless x64=off would narrow it."""
    if isinstance(value, np.generic):
        narrowed = isinstance(value, np.integer) and not -(2**31) <= value < 2**31
        return int(value) if narrowed and not jax.config.jax_enable_x64 else value
    return scalar_of(value)


# The range that JAX accepts with x64 off, and what even an int2 holds.
WIDE = Wide(_as_scalar, -(2**31), 2**31 - 1, _plain, held=1)

TABLE = NativeNamespace(
    "jax", "jax.numpy", CORRECTIONS, WIDE, check_dtype=check_dtype, takes_numpy=True
)
native = make_native_namespace(TABLE)


# Functions with NumPy's signatures that JAX lacks, or whose arguments differ.


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """Return all windows, with their axes last, as a copy, which ``jax.jit`` may avoid."""
    lengths = np.atleast_1d(window_shape)
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    if len(axes) != len(lengths):
        raise ValueError(f"got {len(lengths)} window lengths for {len(axes)} axes")
    for each, length in zip(axes, lengths, strict=True):
        count = x.shape[each] - length + 1
        if count < 0:
            raise ValueError(
                f"a window of {length} exceeds the {x.shape[each]} elements of axis {each}"
            )
        indices = np.arange(count)[:, None] + np.arange(length)
        x = jnp.moveaxis(jnp.take(x, indices, axis=each), each + 1, -1)
    return x


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = 1) -> Any:
    """Call ``jax.numpy.gradient``, which has no ``edge_order`` but uses the first order."""
    return jnp.gradient(f, *varargs, axis=axis, edge_order=None if edge_order == 1 else edge_order)


EXTRAS: dict[str, Callable[..., Any]] = {
    "gradient": gradient,
    "lib.stride_tricks.sliding_window_view": sliding_window_view,
}
