"""The namespace of native arrays, and integers that JAX does not accept."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...xp.build import make_native_namespace
from ...xp.retry import large_numbers
from .corrections import CORRECTIONS, check_dtype


def _as_scalar(value: int, dtype: Any) -> jax.Array:
    """Convert an integer that JAX would read as an overflowing int64."""
    if dtype == np.bool:  # NumPy would return True
        raise OverflowError(f"Python integer {value} out of bounds for bool")
    return jnp.asarray(np.asarray(value, dtype))


native = make_native_namespace(
    "jax",
    "jax.numpy",
    CORRECTIONS,
    (large_numbers(_as_scalar, bits=32),),  # JAX accepts 32 bits while x64 is off
    check_dtype,
)
