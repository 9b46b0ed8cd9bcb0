"""The namespace of native arrays, and integers that JAX does not accept."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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
