"""Cotangents of JAX, and gradients in the sense of PyTorch: conjugates of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp


def pulled(pull: Callable[..., Any], floats: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Pull cotangents back; those of complex numbers are conjugates here, see `Differentiation`."""
    whole = [
        jnp.zeros(y.shape, y.dtype) if g is None else conjugate(g)
        for y, g in zip(floats, cotangents, strict=True)
    ]
    return [conjugate(g) for g in pull(whole)]


def conjugate(x: Any) -> Any:
    """Return the conjugate of a complex array; any other array as it is."""
    return jnp.conj(x) if jnp.issubdtype(x.dtype, jnp.complexfloating) else x
