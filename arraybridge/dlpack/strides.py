"""Strides of a tensor in elements; every result is cached, since layouts repeat."""

from __future__ import annotations

from functools import lru_cache

_MAX_STRIDE = 2**63 - 1


@lru_cache(maxsize=1024)
def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of the compact, row-major layout; extents of 0 count as 1."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= int(extent) or 1
    return tuple(reversed(strides))


@lru_cache(maxsize=1024)
def canonical_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """``strides`` with those of unit extents set as consumers expect them.

    A stride over an extent of 1, or in an empty tensor, is never used, yet consumers refuse "odd"
    ones (onnxruntime#27450, jax#25066).
    """
    compact = c_strides(shape)
    if strides == compact or 0 in shape:
        return compact
    if 1 not in shape:
        return strides
    if all(e == 1 or s == c for e, s, c in zip(shape, strides, compact, strict=True)):
        return compact
    # Elsewhere a unit axis steps over what lies inside it, as compact strides would.
    result = list(strides)
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        if shape[axis] == 1:
            result[axis] = min(step, _MAX_STRIDE)
        step = abs(result[axis]) * shape[axis]
    return tuple(result)
