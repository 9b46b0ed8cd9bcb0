"""Objects that are not arrays in memory, or mean more than their numbers; what to pass instead.

Nothing here computes a graph, reads a file or drops a unit on the caller's behalf.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.records import ConversionError
from ..core.registry import RECORDS, library_of_type, package_of
from .frames import speaks_arrow

METHODS = ("__dlpack__", "__array_interface__", "__cuda_array_interface__")
_NOBODYS = "__arraybridge_asks_for_what_nobody_has__"

_STORES = frozenset({"netCDF4", "tensorstore"})  # whose arrays do not say that they have chunks


def has_no_memory(cls: type) -> bool:
    """Whether instances of a class look like arrays, but do not lie in memory.

    A graph (Dask), a file (Zarr, HDF5) or both (xarray) have ``__array__`` and chunks; others have
    the standard's namespace, and no way to their memory.
    """
    if any(hasattr(cls, method) for method in METHODS) or speaks_arrow(cls):
        return False
    return hasattr(cls, "__array_namespace__") or (
        hasattr(cls, "__array__") and (hasattr(cls, "chunks") or package_of(cls) in _STORES)
    )


def no_array(x: Any, to: str = "") -> TypeError:
    """Make the error for an object that is not an array in memory; ``to`` is the target, if any."""
    if isinstance(x, type):
        return TypeError(f"the class {x.__qualname__} is not an array: pass one of its instances")
    from .remedies import remedy  # when something is wrong

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
    if lazy is not None:  # arrays of Dask have a class of arraybridge's, too
        return f"{lazy.name}.Array"
    return cls.__qualname__ if package in ("", "builtins") else f"{package}.{cls.__qualname__}"


def own(x: Any, method: str) -> Any:
    """Return the attribute of ``x`` or its class; None if it has none, or forwards another's."""
    if hasattr(type(x), method) or method in getattr(x, "__dict__", ()):
        return getattr(x, method, None)
    return None


def speaks(x: Any) -> bool:
    """Whether ``x`` supports a protocol, itself or by forwarding; not by answering any name."""
    if all(getattr(x, method, None) is None for method in METHODS):
        return False
    return any(own(x, method) is not None for method in METHODS) or handed_on(x) is not None


def array_like(x: Any) -> bool:
    """Whether ``asarray`` would take an object whose class has no ufuncs of its own to answer."""
    cls = type(x)
    if x is None or cls is str or hasattr(cls, "__array_ufunc__"):
        return False
    if speaks(x) or hasattr(cls, "__array__"):
        return True
    try:
        memoryview(x).release()
    except Exception:  # whatever a class raises that only looks like a buffer
        return False
    return True


def handed_on(x: Any) -> str | None:
    """Return why protocols that ``x`` forwards from another object are refused; None if none are.

    A wrapper adds a meaning to what it wraps (pint a unit), which the bare array would lose. What
    answers to any name at all says nothing by that.
    """
    if any(own(x, method) is not None for method in METHODS) or hasattr(x, _NOBODYS):
        return None
    if all(getattr(x, method, None) is None for method in METHODS):
        return None
    return _loses(x, "what it adds to the array that it wraps", "that array itself")


def lost(x: Any) -> str | None:
    """Return why an array of a derived class, or of no library, would lose something, or None."""
    derived = isinstance(x, np.ndarray)
    if derived and hasattr(x, "mask"):
        return "a masked array would lose its mask: fill it first, x.filled(value)"
    return _loses(x, None, "numpy.asarray(x)" if derived else None)


def _loses(x: Any, what: str | None, otherwise: str | None) -> str | None:
    if hasattr(x, "units") or hasattr(x, "unit"):
        what = "its unit"
        for name in ("value", "magnitude"):
            if hasattr(x, name):
                otherwise = f"its numbers alone, x.{name}"
                break
    return what and otherwise and f"{_named(x)} would lose {what}: pass {otherwise}"


def check_whole(x: Any) -> None:
    """Refuse what has a mask or a unit that would be lost, and what is not in memory.

    As :func:`arraybridge.convert` does: ConversionError, whether anything is masked or not;
    TypeError for a graph or a file, which nobody asked to compute or read.
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
