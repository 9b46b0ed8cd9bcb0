"""The array API standard over Arrays of dpnp."""

from __future__ import annotations

from typing import Any

import dpnp as xp
import numpy

from ...array.indexing import axes_of, set_apart
from ...array.library_array import LibraryArray
from ...core.registry import own_library
from ...xp import corrections
from ...xp.build import NativeNamespace, make_native_namespace, open_namespace, operators_of
from ...xp.corrections import Correction
from ...xp.retry import as_float, large_integers
from ...xp.special_values import complex_function, numpy_like

# Not eager: reading values would wait for the device.
MEANS = numpy_like(xp)


def _as_complex(x: Any) -> Any:
    return xp.astype(x, xp.result_type(x.dtype, xp.complex64), copy=False)


def _eig(x: Any, /) -> Any:
    eigenvalues, eigenvectors = result = xp.linalg.eig(x)
    return type(result)(_as_complex(eigenvalues), _as_complex(eigenvectors))


def _eigvals(x: Any, /) -> Any:
    return _as_complex(xp.linalg.eigvals(x))


# fmt: off
CORRECTIONS: tuple[Correction, ...] = (
    corrections.linspace(xp, xp.linspace, corrections.integer_name, xp.asarray),
    *corrections.tangents(MEANS),
    Correction(
        "acosh", complex_function(MEANS, "acosh"),
        "acosh: of 0 and an imaginary NaN it is NaN and a quarter turn",
        "https://github.com/IntelPython/dpnp/issues/2880 (mended after 0.20.0)",
    ),
    Correction(
        "expm1", complex_function(MEANS, "expm1"), "expm1: of -0 + 0j it is 0 + 0j",
        "https://github.com/IntelPython/dpctl/pull/1332, which mended the other special cases",
    ),
    *(
        Correction(
            name, function, f"{name}: every result is complex, whatever the values",
            "https://github.com/IntelPython/dpnp/pull/2953: as NumPy does, which mends it in 2.5",
        )
        for name, function in (("linalg.eig", _eig), ("linalg.eigvals", _eigvals))
    ),
)
# fmt: on


# Corrected indexing for dpnp, which only takes adjacent index arrays.


def get_items(native: Any, key: Any) -> Any:
    """Get elements by index."""
    native, key = _opened(native, key)
    try:
        return native[key]
    except ValueError as error:
        if "mismatch" not in str(error):
            raise
        raise IndexError(str(error)) from None  # the index arrays do not broadcast


def set_items(native: Any, key: Any, value: Any) -> Any:
    """Write elements by index; return the array."""
    view, key = _opened(native, key)
    view[key] = value
    return native


def _opened(native: Any, key: Any) -> tuple[Any, Any]:
    """Return a view with the axes of index arrays first, and those arrays, or the arguments."""
    device = {"usm_type": native.usm_type, "sycl_queue": native.sycl_queue}
    parts = [_array(part, device) for part in (key if isinstance(key, tuple) else (key,))]
    arrays = [i for i, part in enumerate(parts) if isinstance(part, xp.ndarray)]
    if not arrays:
        return native, key
    extra = set_apart(parts, native.shape, lambda index: xp.asarray([index], **device))
    if extra is not None:  # an ellipsis of no axes
        del parts[next(i for i, part in enumerate(key) if part is ...)]
    arrays = [i for i, part in enumerate(parts) if isinstance(part, xp.ndarray)]
    for i in range(arrays[0], arrays[-1]):  # dpnp counts integers between them as arrays too
        if isinstance(parts[i], int) and not isinstance(parts[i], bool):
            parts[i] = xp.asarray(parts[i], **device)
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
    return xp.permute_dims(view, (*front, *rest)), tuple([parts[i] for i in arrays])


def _array(part: Any, device: dict[str, Any]) -> Any:
    """Return an index array in the form that dpnp takes; anything else as it is."""
    if isinstance(part, numpy.ndarray | list):
        part = xp.asarray(part, **device)
    unsigned = isinstance(part, xp.ndarray) and part.dtype == xp.uint64
    return part.astype(xp.int64) if unsigned else part


TABLE = NativeNamespace("dpnp", "dpnp", CORRECTIONS, (large_integers(as_float),))
native = make_native_namespace(TABLE)


class DpnpArray(LibraryArray):
    """The standard's array object over arrays of dpnp; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = own_library("dpnp")
    _native_namespace = native
    _native_type = xp.ndarray
    _operators = operators_of(native)
    _get = staticmethod(get_items)
    _set = staticmethod(set_items)
    _takes_stream = True


open_namespace(DpnpArray, __doc__)
