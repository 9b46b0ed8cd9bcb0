"""NumPy's functions on blocks of Dask arrays, by those of the standard in the block's own library.

Elementwise functions promote by NumPy's rules, which Dask has declared the result by. What is not
here is refused: NumPy would take the block for its own array.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy

from ...array.overrides import _in_the_standard
from ...dispatch.library import Library
from . import composed
from .chunk import Chunk
from .numpy_rules import IGNORED, cast, dtype_of, own_dtype

_TYPED = (numpy.generic, numpy.ndarray)  # numbers that have a data type
_PYTHON = (bool, int, float, complex)
_weak: dict[type, Any] = {bool: numpy.dtype(bool), int: int, float: float, complex: complex}
_LOGICAL = (numpy.logical_and, numpy.logical_or, numpy.logical_xor, numpy.logical_not)
#: ufuncs that the standard lacks.
_UFUNCS: dict[Any, Callable[..., Any]] = {
    numpy.rint: lambda xp, x: xp.round(x),
    numpy.fabs: lambda xp, x: xp.abs(x),
    numpy.exp2: lambda xp, x: xp.pow(2.0, x),
    numpy.deg2rad: lambda xp, x: x * (numpy.pi / 180),
    numpy.radians: lambda xp, x: x * (numpy.pi / 180),
    numpy.rad2deg: lambda xp, x: x * (180 / numpy.pi),
    numpy.degrees: lambda xp, x: x * (180 / numpy.pi),
    numpy.fmax: lambda xp, x, y: xp.where(
        xp.isnan(x), y, xp.where(xp.isnan(y), x, xp.maximum(x, y))
    ),
    numpy.fmin: lambda xp, x, y: xp.where(
        xp.isnan(x), y, xp.where(xp.isnan(y), x, xp.minimum(x, y))
    ),
}
#: ufunc.reduce and ufunc.accumulate, by the function that NumPy has for each.
_REDUCED = {
    (numpy.add, "reduce"): numpy.sum,
    (numpy.multiply, "reduce"): numpy.prod,
    (numpy.maximum, "reduce"): numpy.max,
    (numpy.minimum, "reduce"): numpy.min,
    (numpy.logical_and, "reduce"): numpy.all,
    (numpy.logical_or, "reduce"): numpy.any,
    (numpy.add, "accumulate"): numpy.cumsum,
    (numpy.multiply, "accumulate"): numpy.cumprod,
}


def function_of(self: Chunk, function: Any, args: Any, options: Any) -> Any:
    """``Chunk.__array_function__``."""
    known = composed.FUNCTIONS.get(function)
    host = function in composed.WITH_HOST
    xp, args, options = self.xp, opened(self, args, host), opened(self, options, host)
    if known is not None:
        return closed(self, _applied(self, functools.partial(known, xp), args, options))
    path = _in_the_standard().get(function) or _beyond(xp, function)
    if path is None or not hasattr(_within(xp, path), path.rpartition(".")[2]):
        raise _refused(self, f"{function.__module__}.{function.__name__}")
    own = getattr(_within(xp, path), path.rpartition(".")[2])
    if isinstance(options.get("dtype"), numpy.dtype | type | str):
        options["dtype"] = own_dtype(self.array, options["dtype"])
    return closed(self, _applied(self, own, args, _named(function, own, options)))


def _beyond(xp: Any, function: Any) -> str | None:
    """Return the name of one of NumPy's functions that a namespace has beyond the standard."""
    name = function.__name__
    if function is numpy.lib.stride_tricks.sliding_window_view:
        return f"lib.stride_tricks.{name}"
    return name if getattr(numpy, name, None) is function and hasattr(xp, name) else None


def _applied(self: Chunk, own: Any, args: Any, options: Any) -> Any:
    """Apply a function; to Dask's empty model of a block even one that takes no empty array.

    (A transform, a median.) What it gives is empty then: nothing else is known of it.
    """
    try:
        return own(*args, **options)
    except (ValueError, RuntimeError):
        if self.size or any(self.shape) or not self.ndim:
            raise
        ones = [self.xp.ones((1,) * x.ndim, dtype=x.dtype) if _is_array(x) else x for x in args]
        result = own(*ones, **options)
        every = result if isinstance(result, tuple) else (result,)
        if not all(_is_array(x) and x.ndim for x in every):
            raise
        made = [x[(slice(0, 0),) * x.ndim] for x in every]
        return tuple(made) if isinstance(result, tuple) else made[0]


def _is_array(x: Any) -> bool:
    return hasattr(type(x), "__arraybridge__")


def ufunc_of(self: Chunk, ufunc: Any, method: str, inputs: Any, options: dict[str, Any]) -> Any:
    """``Chunk.__array_ufunc__``."""
    if any(hasattr(x, "_elemwise") for x in inputs):
        return NotImplemented  # a Dask array takes the block
    if method != "__call__":
        function = _REDUCED.get((ufunc, method))
        if function is None:
            raise _refused(self, f"numpy.{ufunc.__name__}.{method}")
        return function_of(self, function, inputs, options)
    out, where = options.pop("out", None), options.pop("where", True)
    wanted, casting = options.pop("dtype", None), options.pop("casting", "same_kind")
    if options.keys() - {"subok", "order"}:
        raise _refused(self, f"numpy.{ufunc.__name__} with {', '.join(options)}")
    if out is not None and out[0] is None:
        out = None
    if where is not True or out is not None:
        return _written(self, ufunc, inputs, out, where, wanted)
    xp, arrays = self.xp, opened(self, inputs)
    if ufunc is numpy.matmul:
        return closed(self, composed.matmul(xp, *arrays))
    own = _own(xp, ufunc)
    if own is None:
        raise _refused(self, f"numpy.{ufunc.__name__}")
    takes, gives = _loop(ufunc, inputs, arrays, wanted, casting)
    arrays = [
        x if isinstance(x, _PYTHON) else cast(x, dtype)
        for x, dtype in zip(arrays, takes, strict=True)
    ]
    if all(isinstance(x, _PYTHON) for x in arrays):
        raise _refused(self, f"numpy.{ufunc.__name__} of numbers alone")
    result = own(*arrays)
    if self.counts:  # of what counts are beside, if anything
        self = next((x for x in inputs if isinstance(x, Chunk) and not x.counts), self)
    return closed(self, result if gives is None else cast(result, gives))


@functools.cache
def _own(xp: Any, ufunc: Any) -> Any:
    """Return the function of a namespace that does what a ufunc does; None if there is none."""
    own, path = _UFUNCS.get(ufunc), _in_the_standard().get(ufunc)
    if own is not None:
        return functools.partial(own, xp)
    return None if path is None else getattr(_within(xp, path), path.rpartition(".")[2], None)


def _loop(ufunc: Any, inputs: Any, arrays: Any, wanted: Any, casting: str) -> tuple[Any, Any]:
    """Return NumPy's data types of the operands and of the result."""
    given = [
        x.dtype if isinstance(x, _TYPED) else _weak.get(type(y)) or dtype_of(y)
        for x, y in zip(inputs, arrays, strict=True)
    ]
    if ufunc in _LOGICAL:
        return [numpy.dtype(bool)] * len(given), None
    wish = {} if wanted is None else {"signature": (*[None] * ufunc.nin, numpy.dtype(wanted))}
    loop = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout), casting=casting, **wish)
    return loop[: ufunc.nin], loop[-1]


def _written(self: Chunk, ufunc: Any, inputs: Any, out: Any, where: Any, wanted: Any) -> Any:
    """Apply a ufunc with ``out=`` or ``where=``: blocks are made anew, and written by selection."""
    result = ufunc(*inputs) if wanted is None else ufunc(*inputs, dtype=wanted)
    target = None if out is None else out[0]
    if where is not True:
        if target is None:
            raise _refused(self, f"numpy.{ufunc.__name__} with where= and without out=")
        result = numpy.where(where, result, target)
    if target is None:
        return result
    if not isinstance(target, Chunk):
        raise _refused(self, f"numpy.{ufunc.__name__} with out= of {type(target).__name__}")
    target.array = cast(result.array, target.dtype)
    return target


def opened(self: Chunk, x: Any, host: bool = False) -> Any:
    """Replace blocks by Arrays, and scalars of NumPy's by Python's.

    With ``host``, for functions of positions and conditions, which Dask makes by NumPy, ndarrays
    pass; elsewhere they are refused.
    """
    if isinstance(x, Chunk):
        if x.array.library != self.array.library:
            raise TypeError(
                f"blocks of {self.array.library} and {x.array.library} in one operation: bring the "
                "Dask arrays into one library with `xp, *arrays = arraybridge.unify(...)`"
            )
        return x.array
    if isinstance(x, tuple | list):
        return type(x)([opened(self, each, host) for each in x])
    if isinstance(x, dict):
        return {name: opened(self, each, host) for name, each in x.items()}
    if isinstance(x, numpy.generic) and not host:
        return x.item()
    if isinstance(x, numpy.ndarray) and not host:
        return _host_array(self, x)
    return x


def _host_array(self: Chunk, x: numpy.ndarray[Any, Any]) -> Any:
    """Refuse an ndarray beside a block, unless it is a number without axes."""
    if not x.ndim:
        return x.item()
    if x.size == 1 and x.dtype.kind in "iu" and self.dtype.kind in "iu":
        return cast(self.xp.asarray(x, device=self.array.device), self.dtype)  # an offset
    raise TypeError(
        f"a block of {self.array.library} and a numpy.ndarray in one operation: bring the Dask "
        "arrays into one library with `xp, *arrays = arraybridge.unify(...)`"
    )


def closed(self: Chunk, x: Any) -> Any:
    """Make blocks of the Arrays in a result."""
    if hasattr(type(x), "__arraybridge__") and not isinstance(x, Chunk):
        return self.of(x)
    if isinstance(x, tuple):
        made = [closed(self, each) for each in x]
        return type(x)(*made) if hasattr(x, "_fields") else tuple(made)
    return [closed(self, each) for each in x] if isinstance(x, list) else x


def _within(xp: Any, path: str) -> Any:
    for extension in path.split(".")[:-1]:
        xp = getattr(xp, extension, None)
    return xp


def _named(function: Any, own: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Drop the keywords that have their defaults, of NumPy's that the standard does not have."""
    takes = inspect.signature(own).parameters
    every = any(each.kind is each.VAR_KEYWORD for each in takes.values())  # beyond the standard
    kept = {}
    for name, value in options.items():
        if name in takes or (every and value is not numpy._NoValue):
            kept[name] = value
        elif value is not None and value is not numpy._NoValue and name not in IGNORED:
            raise TypeError(f"{function.__name__} of blocks takes no {name}=")
    return kept


def _refused(self: Chunk, name: str) -> TypeError:
    library: Library = self.array._library
    return TypeError(
        f"{name} does not take blocks of {library.name}: NumPy would make its own arrays of them. "
        "Give Dask a function of the library with map_blocks, or take NumPy's blocks with "
        "arraybridge.convert(x, 'numpy')"
    )
