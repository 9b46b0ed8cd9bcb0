"""Corrected indexing for dpnp, which takes no index arrays with anything else between them."""

from __future__ import annotations

from typing import Any

import dpnp
import numpy

from ...array.indexing import axes_of, set_apart


def get(native: Any, key: Any) -> Any:
    """Get elements by index."""
    native, key = _opened(native, key)
    try:
        return native[key]
    except ValueError as error:
        if "mismatch" not in str(error):
            raise
        raise IndexError(str(error)) from None  # the index arrays do not broadcast


def set(native: Any, key: Any, value: Any) -> Any:
    """Write elements by index; return the array."""
    view, key = _opened(native, key)
    view[key] = value
    return native


def _opened(native: Any, key: Any) -> tuple[Any, Any]:
    """Return a view with the axes of index arrays in front, and these; else what is given."""
    device = {"usm_type": native.usm_type, "sycl_queue": native.sycl_queue}
    parts = [_array(part, device) for part in (key if isinstance(key, tuple) else (key,))]
    arrays = [i for i, part in enumerate(parts) if isinstance(part, dpnp.ndarray)]
    if not arrays:
        return native, key
    extra = set_apart(parts, native.shape, lambda index: dpnp.asarray([index], **device))
    if extra is not None:  # an ellipsis of no axes
        del parts[next(i for i, part in enumerate(key) if part is ...)]
    arrays = [i for i, part in enumerate(parts) if isinstance(part, dpnp.ndarray)]
    for i in range(arrays[0], arrays[-1]):  # integers between them count as arrays to dpnp as well
        if isinstance(parts[i], int) and not isinstance(parts[i], bool):
            parts[i] = dpnp.asarray(parts[i], **device)
            arrays = sorted({*arrays, i})
    if extra is None and arrays[-1] - arrays[0] < len(arrays):
        return native, tuple(parts)
    left = native.ndim - sum(axes_of(part) for part in parts)
    basic: list[Any] = []
    front: list[int] = []
    axis = 0
    for place, part in enumerate(parts):
        extent = left if part is ... else axes_of(part) if place in arrays else 1
        if place in arrays:
            basic += [slice(None)] * extent
            front += range(axis, axis + extent)
        else:
            basic.append(part)
        axis += extent
    view = native[tuple(basic)]
    rest = [axis for axis in range(view.ndim) if axis not in front]
    return dpnp.permute_dims(view, (*front, *rest)), tuple([parts[i] for i in arrays])


def _array(part: Any, device: dict[str, Any]) -> Any:
    """Return an index array as dpnp takes it; anything else as it is."""
    if isinstance(part, numpy.ndarray | list):
        part = dpnp.asarray(part, **device)
    unsigned = isinstance(part, dpnp.ndarray) and part.dtype == dpnp.uint64
    return part.astype(dpnp.int64) if unsigned else part
