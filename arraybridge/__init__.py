"""Convert arrays of any Python array library to any other.

You get a view if that is safe, a fast copy if it is not, and a clear error if neither is right::

    convert(x, "torch")     an array of another library; options: dtype=, device=, copy=
    explain(x, "torch")     what convert would do, and why
    asarray([1, 2], like=x) an array of numbers or lists
    unify(x, y)             arrays of several libraries, converted to one
    namespace(x)            the array API namespace, for functions that run in any library
    adapt("numpy")          a decorator: a function of one library takes arrays of any
    from_dlpack(x)          an Array, the array object of the standard
    tree.convert(x, "jax")  all arrays of a tree: a model's parameters, a batch
    audit()                 which lines copy

The public submodules are auditing, dlpack, sharding, tree and xp.
``python -m arraybridge info`` lists the installed libraries.

Importing arraybridge imports only NumPy. Each name below is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy  # noqa: F401 # pyright: ignore[reportUnusedImport] - so that what comes later is cheap

from . import (
    libraries,  # noqa: F401 # pyright: ignore[reportUnusedImport] - gives the table
    native,  # noqa: F401 # pyright: ignore[reportUnusedImport] - may be impossible
)

if TYPE_CHECKING:
    from . import auditing as auditing
    from . import dlpack, xp
    from . import sharding as sharding
    from . import tree as tree
    from .adapting import adapt
    from .array import Array, from_dlpack, from_pointer
    from .auditing import audit
    from .conversion import inspect
    from .copies import copyto
    from .core.kernel import register_kernel
    from .core.library import Library
    from .core.records import Accepts, ConversionError, Edge, Route, TensorInfo
    from .core.registration import register_library, unregister_library
    from .dlpack import DataType, Device, DeviceType, DLPackError
    from .kernels.cpu.pool import get_num_threads, num_threads, set_num_threads
    from .namespaces import namespace, unify
    from .native.blocks import empty_block_cache, get_block_cache_limit
    from .typing import asarray, contiguous, convert, explain

__version__ = "0.1.0.dev0"

_HOMES = {
    ".adapting": ("adapt",),
    ".array": ("Array", "from_dlpack", "from_pointer"),
    ".auditing": ("audit",),
    ".core.kernel": ("register_kernel",),
    ".core.library": ("Library",),
    ".core.registration": ("register_library", "unregister_library"),
    ".core.records": ("Accepts", "ConversionError", "Edge", "Route", "TensorInfo"),
    ".dlpack": ("DLPackError", "DataType", "Device", "DeviceType"),
    ".native.blocks": ("empty_block_cache", "get_block_cache_limit"),
    ".creation": ("asarray",),
    ".copies": ("contiguous", "copyto"),
    ".conversion": ("convert", "explain", "inspect"),
    ".kernels.cpu.pool": ("get_num_threads", "num_threads", "set_num_threads"),
    ".namespaces": ("namespace", "unify"),
}
_MODULES = ("auditing", "dlpack", "sharding", "tree", "xp")
_home_of = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Accepts", "Array", "ConversionError", "DLPackError", "DataType", "Device", "DeviceType",
    "Edge", "Library", "Route", "TensorInfo", "adapt", "asarray", "audit", "contiguous", "convert",
    "copyto", "dlpack", "empty_block_cache", "explain", "from_dlpack", "from_pointer",
    "get_block_cache_limit", "get_num_threads", "inspect", "namespace", "num_threads",
    "register_kernel", "register_library", "set_num_threads", "unify",
    "unregister_library", "xp",
]  # fmt: skip


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    home = _home_of.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home, __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
