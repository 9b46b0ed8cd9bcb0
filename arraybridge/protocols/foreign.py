"""Objects that are not arrays in memory, or more than their numbers; what to pass instead.

Nothing here computes a graph, reads a file or drops a unit: only an object's structure is read,
when the error is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..containers import leaves
from ..core.records import ConversionError
from ..core.registry import RECORDS, library_of_type, package_of
from .frames import speaks_arrow

METHODS = ("__dlpack__", "__array_interface__", "__cuda_array_interface__")
_NOBODYS = "__arraybridge_asks_for_what_nobody_has__"

_STORES = frozenset({"netCDF4", "tensorstore"})  # their arrays do not show that they have chunks


def has_no_memory(cls: type) -> bool:
    """Whether instances of a class look like arrays, but are not in memory.

    A graph (Dask), a file (Zarr, HDF5) or both (xarray) have ``__array__`` and chunks; others have
    the standard's namespace, and no access to memory.
    """
    if any(hasattr(cls, method) for method in METHODS) or speaks_arrow(cls):
        return False
    return hasattr(cls, "__array_namespace__") or (
        hasattr(cls, "__array__") and (hasattr(cls, "chunks") or package_of(cls) in _STORES)
    )


def no_array(x: Any, to: str = "") -> TypeError:
    """Return the error for an object that is no array in memory; ``to`` is the target, if any."""
    if isinstance(x, type):
        return TypeError(f"the class {x.__qualname__} is not an array: pass one of its instances")
    found = remedy(x, to)
    if found is None:
        expected = (
            "expected an array of a library that arraybridge knows, or an object with __dlpack__, "
            "__array_interface__, __cuda_array_interface__ or a buffer"
        )
        return TypeError(f"{_named(x)} is not an array: {expected}")
    return TypeError(f"{_named(x)} is not an array in memory: pass {found}")


def _named(x: Any) -> str:
    cls = type(x)
    lazy, package = RECORDS[cls].lazy, package_of(cls)
    if lazy is not None:  # Dask arrays have one of arraybridge's classes, too
        return f"{lazy.name}.Array"
    return cls.__qualname__ if package in ("", "builtins") else f"{package}.{cls.__qualname__}"


def own(x: Any, method: str) -> Any:
    """Return the attribute of ``x`` or its class; None if it has none, or forwards another's."""
    if hasattr(type(x), method) or method in getattr(x, "__dict__", ()):
        return getattr(x, method, None)
    return None


def speaks(x: Any) -> bool:
    """Whether ``x`` supports a protocol, itself or by forwarding, not by answering any name."""
    if all(getattr(x, method, None) is None for method in METHODS):
        return False
    return any(own(x, method) is not None for method in METHODS) or handed_on(x) is not None


def array_like(x: Any) -> bool:
    """Whether ``asarray`` would take an object whose class does not handle ufuncs itself."""
    cls = type(x)
    if x is None or cls is str or hasattr(cls, "__array_ufunc__"):
        return False
    if speaks(x) or hasattr(cls, "__array__"):
        return True
    try:
        memoryview(x).release()
    except Exception:  # a class that only looks like a buffer may raise anything
        return False
    return True


def handed_on(x: Any) -> str | None:
    """Return why protocols that ``x`` forwards from another object are refused, or None.

    A wrapper adds a meaning to an array (pint a unit), which the bare array would lose. An object
    that answers to any name forwards nothing by that.
    """
    if any(own(x, method) is not None for method in METHODS) or hasattr(x, _NOBODYS):
        return None
    if all(getattr(x, method, None) is None for method in METHODS):
        return None
    return _loses(x, "what it adds to the wrapped array", "that array itself")


def lost(x: Any) -> str | None:
    """Return why an array of a subclass, or of no library, would lose something, or None."""
    derived = isinstance(x, np.ndarray)
    if derived and hasattr(x, "mask"):
        return "a masked array would lose its mask: fill it first, x.filled(value)"
    return _loses(x, None, "numpy.asarray(x)" if derived else None)


def _loses(x: Any, what: str | None, otherwise: str | None) -> str | None:
    if hasattr(x, "units") or hasattr(x, "unit"):
        what = "its unit"
        for name in ("value", "magnitude"):
            if hasattr(x, name):
                otherwise = f"only its numbers, x.{name}"
                break
    return what and otherwise and f"{_named(x)} would lose {what}: pass {otherwise}"


def check_whole(x: Any) -> None:
    """Raise for a mask or a unit that would be lost, and for objects that are not in memory.

    As :func:`arraybridge.convert`: ConversionError, whether or not anything is masked; TypeError
    for a graph or a file, which must not be computed or read implicitly.
    """
    kind = type(x)
    if kind is np.ndarray or isinstance(x, np.generic):
        return
    if library_of_type(kind) is not None and not isinstance(x, np.ndarray):
        return
    if has_no_memory(kind):
        raise no_array(x)
    problem = lost(x) or handed_on(x)
    if problem is not None:
        raise ConversionError(problem)


# What to pass instead, by the class's attributes or its package.

_AS_NUMPY = "numpy.asarray(x)"
_IN_TREE = "arraybridge.tree.convert(x, library)"
# The first that fits; the class's own package comes before.
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
    ("get_params", f"the arrays in it, {_IN_TREE}"),
    ("state_dict", f"the arrays in it, {_IN_TREE}"),
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


def _is_array_like(x: Any) -> bool:
    return hasattr(x, "__array__") and not isinstance(x, np.generic)


def remedy(x: Any, to: str = "", name: str = "x") -> str | None:
    """Return what to pass instead of an object that is not an array in memory, if known.

    ``to`` is the intended target, and ``name`` the object's name in the code.
    """
    if isinstance(x, dict | list | tuple) and any(map(_is_array_like, leaves(x))):
        return f"its arrays one by one, or call {_IN_TREE}"
    if isinstance(x, _NUMBERS):
        lengths = {len(y) for y in x if isinstance(y, _LISTS)} if isinstance(x, _LISTS) else ()
        if len(lengths) > 1:
            return "its rows one by one, since they differ in length"
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
        attribute = getattr(cls, name, None)  # the class may set it to None
        if attribute is not None and not (found == f"x.{name}" and callable(attribute)):
            return found
    return None


def _awkward(x: Any) -> str | None:
    """Return the code that makes a NumPy array of an awkward array, by its layout.

    ``awkward.to_numpy`` raises for lists of several lengths and for unions; it masks missing
    values, and makes a structured array of records.
    """
    if hasattr(x, "snapshot"):
        return "awkward.to_numpy(x.snapshot())"
    content, axis, missing, ragged = x.layout, 0, False, 0
    while not content.is_numpy:
        if content.is_union:
            return "parts of it of one type, since unions have no dtype"
        if content.is_record:
            return f"its fields one by one, x[{content.fields[0]!r}]" if content.fields else None
        if content.is_list and content.parameter("__array__") is None:
            if missing:
                return f"its values without the missing ones, awkward.drop_none(x, axis={axis})"
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
        "its numbers, flattened, awkward.to_numpy(awkward.flatten(x, axis=None)), since its lists "
        f"differ in length, or pad them, {padded}"
    )


def _lengths(content: Any) -> int:
    """Count the different lengths of a layout's lists."""
    return len(set((np.asarray(content.stops) - np.asarray(content.starts)).tolist()))


_BY_STRUCTURE: dict[str, Callable[[Any], str | None]] = {
    "_cffi_backend": lambda _: (
        "arraybridge.from_pointer(int(ffi.cast('uintptr_t', x)), shape, dtype, device='cpu', "
        "owner=x)"
    ),
    "awkward": _awkward,
}
