"""What to pass in the place of an object that is not an array in memory.

By what its class has, or its package is known for. Nothing is computed, read or converted to find
it: of an object only its structure is looked at, when the error is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.registry import package_of

_AS_NUMPY = "numpy.asarray(x)"
# The first that fits. A package of its own comes before.
BY_PACKAGE = {
    "h5py": (("__array__", "x[...]"),),
    "netCDF4": (("__array__", "x[...]"),),
    "tensorstore": (("read", "x.read().result()"),),
    "xarray": (
        ("to_dataarray", "the values of its variables in one array, x.to_dataarray().data"),
        ("dataset", "its datasets one by one, each as x.to_dataarray().data"),
        ("coords", "its values without the coordinates, x.data"),
        ("data", "its values without the dimensions' names, x.data"),
    ),
    "zarr": (("__array__", "x[...]"),),
}
_BY_METHOD = (
    ("magnitude", "x.magnitude"),
    ("compute", "x.compute()"),
    ("toarray", "x.toarray()"),
    ("todense", "x.todense()"),
    ("collect", "x.collect()"),
    ("to_tensor", "x.to_tensor()"),
    ("to_numpy", "x.to_numpy()"),
    ("to_arrow_table", "x.to_arrow_table()"),
    ("__array__", _AS_NUMPY),
)
_LISTS = (list, tuple)
_NUMBERS = (bool, int, float, complex, list, tuple, range)


def remedy(x: Any, to: str = "", name: str = "x") -> str | None:
    """Return what to pass instead of an object that is not an array in memory, if known.

    ``to`` is the library that it was to be converted to, and ``name`` what the code calls it.
    """
    if type(x) in (dict, list, tuple):
        nested = x.values() if isinstance(x, dict) else x
        if any(hasattr(y, "__array__") and not isinstance(y, np.generic) for y in nested):
            return "its arrays one by one, or call arraybridge.unify(x, like=library)"
    if isinstance(x, _NUMBERS):
        lengths = {len(y) for y in x if isinstance(y, _LISTS)} if isinstance(x, _LISTS) else ()
        if len(lengths) > 1:
            return "its rows one by one, as they differ in length"
        made = f"arraybridge.asarray({name}, like={to!r}), or pass " if to else ""
        return made + _AS_NUMPY
    cls = type(x)
    package = package_of(cls)
    by_structure = _BY_STRUCTURE.get(package)
    if by_structure is not None:
        try:
            return by_structure(x)
        except Exception:  # another version of the package
            pass
    for name, found in (*BY_PACKAGE.get(package, ()), *_BY_METHOD):
        attribute = getattr(cls, name, None)  # None says that there is none
        if attribute is not None and not (found == f"x.{name}" and callable(attribute)):
            return found
    return None


def _awkward(x: Any) -> str | None:
    """Return what makes NumPy's array of an awkward one, by its layout.

    ``awkward.to_numpy`` raises for lists of several lengths and for unions; what is missing it
    masks, and of records it makes a structured array.
    """
    if hasattr(x, "snapshot"):
        return "awkward.to_numpy(x.snapshot())"
    content, axis, missing, ragged = x.layout, 0, False, 0
    while not content.is_numpy:
        if content.is_union:
            return "parts of it that have one type, as unions have no dtype"
        if content.is_record:
            return f"its fields one by one, x[{content.fields[0]!r}]" if content.fields else None
        if content.is_list and content.parameter("__array__") is None:
            if missing:
                return f"what is there of it, awkward.drop_none(x, axis={axis})"
            axis += 1
            if not content.is_regular and _lengths(content) > 1:
                ragged = ragged or axis
        elif content.is_option:
            missing = True
        elif not content.is_indexed:
            break
        content = content.content
    if not ragged:
        return f"awkward.to_numpy({'awkward.fill_none(x, value)' if missing else 'x'})"
    padded = f"awkward.pad_none(x, length, axis={ragged}, clip=True)"
    return (
        "its numbers in a row, awkward.to_numpy(awkward.flatten(x, axis=None)), as its lists "
        f"differ in length, or pad them, {padded}"
    )


def _lengths(content: Any) -> int:
    """Count the lengths that the lists of a layout have."""
    return len(set((np.asarray(content.stops) - np.asarray(content.starts)).tolist()))


_BY_STRUCTURE: dict[str, Callable[[Any], str | None]] = {
    "_cffi_backend": lambda _: (
        "arraybridge.from_pointer(int(ffi.cast('uintptr_t', x)), shape, dtype, device='cpu', "
        "owner=x)"
    ),
    "awkward": _awkward,
}
