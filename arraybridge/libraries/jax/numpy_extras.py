"""Functions with NumPy's signatures that JAX lacks, or takes other arguments in.

For JAX's arrays; `xp.numpy_extras` makes functions over Arrays of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy
from numpy.lib.array_utils import normalize_axis_tuple


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """All windows, whose axes are the last: a copy, which ``jax.jit`` may do without."""
    lengths = numpy.atleast_1d(window_shape)
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    if len(axes) != len(lengths):
        raise ValueError(f"{len(lengths)} lengths of windows for {len(axes)} axes")
    for each, length in zip(axes, lengths, strict=True):
        count = x.shape[each] - length + 1
        if count < 0:
            raise ValueError(f"windows of {length} in an axis of {x.shape[each]}")
        indices = numpy.arange(count)[:, None] + numpy.arange(length)
        x = jnp.moveaxis(jnp.take(x, indices, axis=each), each + 1, -1)
    return x


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = 1) -> Any:
    """``jax.numpy.gradient``, which names no order of the edges but has the first."""
    return jnp.gradient(f, *varargs, axis=axis, edge_order=None if edge_order == 1 else edge_order)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gradient": gradient,
    "lib.stride_tricks.sliding_window_view": sliding_window_view,
}
