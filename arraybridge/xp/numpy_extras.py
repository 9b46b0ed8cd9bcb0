"""NumPy functions beyond the standard, over Arrays, for programs that use them.

xarray takes them from the namespace of its data (``nanmean``, ``median``, ``pad``). Each calls the
library's function of that name with native arrays; functions that the library lacks are missing.
opt_einsum, which xarray uses for contractions, looks for three of them in the package of an array's
class, and falls back to NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy

from ..array.array import Array
from ..array.array_types import lazy_library
from ..array.dtypes import DType, numpys
from ..array.native_array import NativeArray
from ..containers import mapped
from .array_namespace import unwrapped

_WINDOWS = "lib.stride_tricks.sliding_window_view"

FUNCTIONS = frozenset(
    "cross cumprod cumsum einsum gradient median nanargmax nanargmin nancumprod nancumsum nanmax "
    "nanmean nanmedian nanmin nanprod nanquantile nanstd nansum nanvar pad quantile".split()
)


def attributes(cls: type[NativeArray], module: Any) -> Callable[[str], Any]:
    """Make ``__getattr__`` of a namespace's module, which makes a function on its first use."""

    def __getattr__(name: str) -> Any:
        path = _WINDOWS if name == "lib" else name
        own = cls._numpy_extra(path) if name == "lib" or name in FUNCTIONS else None
        if own is None:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        made = _over_arrays(cls, own, path, module.__name__)
        if name == "lib":
            made = SimpleNamespace(stride_tricks=SimpleNamespace(sliding_window_view=made))
        setattr(module, name, made)
        return made

    return __getattr__


def _over_arrays(cls: type[NativeArray], own: Callable[..., Any], path: str, module: str) -> Any:
    """Wrap a function of the library to take and return Arrays, also in containers."""
    owns, normal = cls._home.owns, cls._normal
    dtype_of = numpys if cls._dtypes is None else cls._dtypes.taken

    def given(x: Any) -> Any:
        if isinstance(x, Array):
            return unwrapped(x, cls)
        return dtype_of(x) if type(x) is DType else x

    def taken(x: Any) -> Any:
        return cls._of(normal(x)) if owns(type(x)) or isinstance(x, numpy.generic) else x

    def function(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        # The operands must be Arrays; other arguments, such as quantiles, may be NumPy arrays.
        x = x if isinstance(x, str | list | tuple) else unwrapped(x, cls)
        if path == "einsum":
            args = tuple([unwrapped(each, cls) for each in args])
        x, args, kwargs = mapped(given, (x, args, kwargs))
        return mapped(taken, own(x, *args, **kwargs))

    function.__name__ = function.__qualname__ = path.rpartition(".")[2]
    function.__doc__ = own.__doc__
    function.__module__ = module
    vars(function)["__wrapped__"] = own  # the keywords that it takes
    return function


def _first_namespace(operands: tuple[Any, ...]) -> Any:
    """Return the namespace of the first Array, which checks the others.

    Without Arrays, that of arraybridge's Dask arrays.
    """
    for x in operands:
        if isinstance(x, Array):
            return x.__array_namespace__()
    lazy = next(library for x in operands if (library := lazy_library(x)) is not None)
    return lazy.native_namespace()


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Any:
    """Contract two Arrays by the ``tensordot`` of their namespace."""
    return _first_namespace((x1, x2)).tensordot(x1, x2, axes=axes)


def transpose(x: Any, axes: Any) -> Any:
    """Permute the axes of an Array by the ``permute_dims`` of its namespace."""
    return _first_namespace((x,)).permute_dims(x, tuple(axes))


def einsum(subscripts: str, /, *operands: Any) -> Any:
    """Contract Arrays by the ``einsum`` of their library."""
    return _first_namespace(operands).einsum(subscripts, *operands)
