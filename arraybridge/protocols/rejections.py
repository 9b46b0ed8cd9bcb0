"""Errors for objects that cannot be converted: graphs, files, masked arrays, units.

Nothing here computes a graph, reads a file or drops a unit: only an object's class and attributes
are looked at.
"""

from typing import Any

import numpy as np

from ..core.records import ConversionError
from ..core.registry import RECORDS, package_of
from .frames import speaks_arrow

METHODS = ("__dlpack__", "__array_interface__", "__cuda_array_interface__")
_PROBE = "__arraybridge_no_such_attribute__"
_IN_TREE = "the arrays in it, arraybridge.tree.convert(x, library)"
_LABELS = "its values without the dimensions' names, x.data"
_CHUNKS = ("chunks", "chunking", "chunk_layout")  # of Zarr and h5py, netCDF4, TensorStore
#: What to pass instead of an object: the first whose attribute its class has.
_REMEDIES = (
    ("ragged_rank", "a concrete array: it stands for one in a Keras model that is being built"),
    ("counts", "x.values()"),  # histograms
    ("variances", "its values without the dimensions' names, x.values"),  # scipp
    ("uncertainty", "only its numbers, x.data"),  # astropy
    ("to_dataarray", "x.to_dataarray().data"),  # xarray
    ("sizes", _LABELS),
    ("snapshot", "x.snapshot()"),  # awkward
    ("magnitude", "x.magnitude"),  # pint
    ("compute", "x.compute()"),
    ("chunk_layout", "x.read().result()"),
    ("chunking", "x[...]"),
    ("chunks", "x[...]"),
    ("get_params", "the arrays in it, arraybridge.tree.convert(vars(x), library)"),
    ("state_dict", _IN_TREE),
    ("toarray", "x.toarray()"),
    ("todense", "x.todense()"),
    ("collect", "x.collect()"),
    ("to_tensor", "x.to_tensor()"),
    ("to_numpy", "x.to_numpy()"),
    ("to_arrow_table", "x.to_arrow_table()"),
    ("addupdate", "x[...]"),  # jax.new_ref
    ("__array__", "numpy.asanyarray(x)"),  # which keeps a mask
)
#: Attributes of arrays, columns, sparse matrices and the like.
_LOOKS = (*METHODS, "__array__", "toarray", "addupdate", "variances", "uncertainty")


def _remedy(x: Any, to: str) -> str | None:
    """Return what to pass instead of an object, if known; ``to`` is the intended target."""
    inside = x if isinstance(x, list | tuple) else ()
    if isinstance(x, dict) or any(isinstance(y, dict) or _is_array(y) for y in inside):
        return _IN_TREE
    if isinstance(x, bool | int | float | complex | list | tuple | range):
        made = f"arraybridge.asarray(x, like={to!r}), or pass " if to else ""
        return f"{made}numpy.asarray(x)"
    for attribute, found in _REMEDIES:
        value = getattr(type(x), attribute, None)  # the class may set it to None
        if value is not None and not (found == f"x.{attribute}" and callable(value)):
            return found
    return None


def _is_array(x: Any) -> bool:
    return hasattr(x, "__array__") and not isinstance(x, np.generic)


def no_array(x: Any, to: str = "") -> TypeError:
    """Return the error for an object that is no array in memory; ``to`` is the target, if any."""
    if isinstance(x, type):
        return TypeError(f"the class {x.__qualname__} is not an array: pass one of its instances")
    found = _remedy(x, to)
    if found == _REMEDIES[-1][1] and (objection := lost(x)):  # which NumPy would drop
        return TypeError(objection)
    if found is not None:
        found = found.replace("library", repr(to or "numpy"))
        return TypeError(f"{_named(x)} is not an array in memory: pass {found}")
    return TypeError(
        f"{_named(x)} is not an array: expected an array of a library that arraybridge knows, or "
        "an object with __dlpack__, __array_interface__, __cuda_array_interface__ or a buffer"
    )


def _named(x: Any) -> str:
    cls = type(x)
    lazy, package = RECORDS[cls].lazy, package_of(cls)
    if lazy is not None:  # Dask arrays have one of arraybridge's classes, too
        return f"{lazy.name}.Array"
    return cls.__qualname__ if package in ("", "builtins") else f"{package}.{cls.__qualname__}"


def has_no_memory(cls: type) -> bool:
    """Whether instances of a class look like arrays, but are not in memory.

    A graph (Dask), a file (Zarr, HDF5) or both (xarray) have ``__array__`` and chunks; others have
    the standard's namespace, and no access to memory.
    """
    if any(hasattr(cls, method) for method in METHODS) or speaks_arrow(cls):
        return False
    return hasattr(cls, "__array_namespace__") or (
        hasattr(cls, "__array__") and any(hasattr(cls, name) for name in _CHUNKS)
    )


def is_arraylike(cls: type) -> bool:
    """Whether instances of a class look like arrays or columns, if `convert` takes them or not."""
    if hasattr(cls, "columns") or hasattr(cls, "column_names"):  # a whole frame
        return has_no_memory(cls)
    if speaks_arrow(cls) and hasattr(cls, "__len__"):  # a stream has no length
        return True
    return has_no_memory(cls) or any(getattr(cls, name, None) is not None for name in _LOOKS)


def own(x: Any, method: str) -> bool:
    """Whether ``x`` or its class has a protocol other than None, not another's; without a call."""
    known = getattr(type(x), method, None) or getattr(x, "__dict__", {}).get(method)
    return known is not None


def speaks(x: Any) -> bool:
    """Whether ``x`` supports a protocol, itself or by forwarding, not by answering any name."""
    return any(own(x, method) for method in METHODS) or handed_on(x) is not None


def handed_on(x: Any) -> str | None:
    """Return why protocols that ``x`` forwards from another object are refused, or None.

    A wrapper adds a meaning to an array (pint a unit), which the bare array would lose. An object
    that answers to any name forwards nothing by that.
    """
    if any(own(x, method) for method in METHODS) or _has(x, _PROBE, called=True):
        return None
    if not any(_has(x, method, called=True) for method in METHODS):
        return None
    what = "what it adds to the wrapped array: pass that array itself"
    return lost(x) or f"{_named(x)} would lose {what}"


#: Attributes that say more about an array than its numbers do.
_MEANINGS = {"mask": "mask", "unit": "unit", "units": "unit", "uncertainty": "uncertainty"}


def _has(x: Any, name: str, called: bool = False) -> bool:
    """Whether an attribute has a value; a method has only if it is `called`."""
    try:
        value = getattr(x, name, None)
    except Exception:  # whatever a property raises
        return False
    if name == "mask" and not (isinstance(value, int | list) or hasattr(value, "shape")):
        return False  # such as awkward's, which selects
    return value is not None and (called or not callable(value))


def lost(x: Any) -> str | None:
    """Return why an array of a subclass, or of no library, would lose something, or None.

    It is refused whether or not anything is masked.
    """
    if type(x) is np.ndarray:
        return None
    what = next((what for name, what in _MEANINGS.items() if _has(x, name)), None)
    array = isinstance(x, np.ndarray)
    if what is None or (array and x.dtype.names):  # of records, they are fields
        return None
    if what == "mask" and hasattr(x, "filled"):
        return "a masked array would lose its mask: fill it first, x.filled(value)"
    tensor = hasattr(x, "as_subclass")  # of PyTorch
    numbers = "x.as_subclass(torch.Tensor)" if tensor else "an array of its numbers alone"
    numbers = "numpy.asarray(x)" if array else numbers
    for name in ("value", "magnitude", *(() if array or tensor else ("values", "data"))):
        if _has(x, name):
            numbers = f"only its numbers, x.{name}"
            break
    return f"{_named(x)} would lose its {what}: pass {numbers}"


def check_whole(x: Any) -> None:
    """Raise ConversionError for a mask or a unit that would be lost."""
    objection = lost(x)
    if objection is not None:
        raise ConversionError(objection)
