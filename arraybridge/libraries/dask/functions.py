"""NumPy's functions on blocks of Dask arrays, by those of the standard in the block's own library.

Elementwise functions promote by NumPy's rules, which Dask has declared the result by. What is not
here is refused: NumPy would take the block for its own array.
"""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any

import numpy

from ...array.overrides import _in_the_standard
from ...dispatch.library import Library
from . import composed
from .chunk import Chunk
from .numpy_rules import IGNORED, cast, dtype_of, number, own_dtype, positions
from .selections import along_axis
from .ufuncs import UFUNCS

_TYPED = (numpy.generic, numpy.ndarray)  # numbers that have a data type
_PYTHON = (bool, int, float, complex)
_weak: dict[type, Any] = {bool: numpy.dtype(bool), int: int, float: float, complex: complex}
_LOGICAL = (numpy.logical_and, numpy.logical_or, numpy.logical_xor, numpy.logical_not)
_COMPARISONS = (
    numpy.equal, numpy.not_equal, numpy.less, numpy.less_equal, numpy.greater, numpy.greater_equal,
)  # fmt: skip
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


def function_of(self: Chunk, function: Any, args: Any, options: Any, host: bool = False) -> Any:
    """``Chunk.__array_function__``; with ``host`` of Dask's, which joins positions in two kinds."""
    if function is numpy.apply_along_axis:
        return along_axis(*args, **options)
    known = composed.FUNCTIONS.get(function)
    host = function in composed.WITH_HOST or (host and function is numpy.concatenate)
    xp, args, options = self.xp, opened(self, args, host), opened(self, options, host)
    if known is not None:
        return closed(self, _applied(self, functools.partial(known, xp), args, options))
    path = _in_the_standard().get(function) or _beyond(xp, function)
    if path is None or not hasattr(_within(xp, path), path.rpartition(".")[2]):
        raise _refused(self, f"{function.__module__}.{function.__name__}")
    own = getattr(_within(xp, path), path.rpartition(".")[2])
    if isinstance(options.get("dtype"), numpy.dtype | type | str):
        options["dtype"] = own_dtype(self.array, options["dtype"])
    return closed(self, _applied(self, own, *_named(function, own, args, options)))


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
    if method == "outer":
        a, b = inputs
        if numpy.ndim(a) and numpy.ndim(b):
            a = numpy.reshape(a, (*numpy.shape(a), *(1,) * numpy.ndim(b)))
        return ufunc(a, b, **options)
    if method != "__call__":
        function = _REDUCED.get((ufunc, method))
        if function is None:
            raise _refused(self, f"numpy.{ufunc.__name__}.{method}")
        defaults = {"axis": 0}  # the method's, where the function's is None
        return function_of(self, function, inputs, defaults | options)
    out, where = options.pop("out", None), options.pop("where", True)
    wanted, casting = options.pop("dtype", None), options.pop("casting", "same_kind")
    if options.keys() - {"subok", "order"}:
        raise _refused(self, f"numpy.{ufunc.__name__} with {', '.join(options)}")
    results = _called(self, ufunc, inputs, wanted, casting)
    if out is not None or where is not True:
        out = (None,) * ufunc.nout if out is None else out
        made = [
            _written(self, ufunc, *each, where, casting) for each in zip(results, out, strict=True)
        ]
        results = tuple(made)
    return results if ufunc.nout > 1 else results[0]


def _called(self: Chunk, ufunc: Any, inputs: Any, wanted: Any, casting: str) -> tuple[Any, ...]:
    """Return the results of a ufunc, each a block."""
    xp = self.xp
    own = _own(xp, ufunc)
    if own is None:
        raise _refused(self, f"numpy.{ufunc.__name__}")
    inputs = [numpy.asarray(x) if isinstance(x, list | tuple) else x for x in inputs]
    arrays = opened(self, inputs)
    for x in arrays:
        if not isinstance(x, _PYTHON) and not _is_array(x):
            raise _mixed(self, type(x))
    takes, gives = _loop(ufunc, inputs, arrays, wanted, casting)
    try:
        arrays = [
            cast(x, dtype) if _is_array(x) else number(self.array, x, dtype)
            for x, dtype in zip(arrays, takes, strict=True)
        ]
    except OverflowError:
        if ufunc not in _COMPARISONS:
            raise
        arrays = [_ordered(self, x) for x in arrays]
    result = own(*arrays)
    if self.counts:  # of what counts are beside, if anything
        self = next((x for x in inputs if isinstance(x, Chunk) and not x.counts), self)
    every = result if isinstance(result, tuple) else (result,)
    if gives is not None:
        every = tuple(cast(x, dtype) for x, dtype in zip(every, gives, strict=True))
    return tuple(self.of(x) for x in every)


@functools.cache
def _own(xp: Any, ufunc: Any) -> Any:
    """Return the function of a namespace that does what a ufunc does; None if there is none."""
    own, path = UFUNCS.get(ufunc), _in_the_standard().get(ufunc)
    if own is not None:
        return functools.partial(own, xp)
    return None if path is None else getattr(_within(xp, path), path.rpartition(".")[2], None)


def _loop(ufunc: Any, inputs: Any, arrays: Any, wanted: Any, casting: str) -> tuple[Any, Any]:
    """Return NumPy's data types of the operands and of the results."""
    given = [
        x.dtype if isinstance(x, _TYPED) else _weak.get(type(y)) or dtype_of(y)
        for x, y in zip(inputs, arrays, strict=True)
    ]
    if ufunc in _LOGICAL:
        return [numpy.dtype(bool)] * len(given), None
    wish = {}
    if wanted is not None:
        wish["signature"] = (*[None] * ufunc.nin, *[numpy.dtype(wanted)] * ufunc.nout)
    loop = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout), casting=casting, **wish)
    return loop[: ufunc.nin], loop[ufunc.nin :]


def _ordered(self: Chunk, x: Any) -> Any:
    """Return what compares as an operand does: zeros, and an infinity for an integer beyond."""
    xp, device = self.xp, self.array.device
    if _is_array(x):
        return xp.zeros(x.shape, dtype=xp.float32, device=device)
    return xp.asarray(math.copysign(math.inf, x), dtype=xp.float32, device=device)


def _written(self: Chunk, ufunc: Any, result: Any, out: Any, where: Any, casting: Any) -> Any:
    """Return ``out`` with a result written to it, where a condition says so."""
    name = f"numpy.{ufunc.__name__}"
    if out is None:  # what the condition leaves out is of any value
        return numpy.where(where, result, numpy.zeros_like(result))
    if not isinstance(out, Chunk):
        raise _refused(self, f"{name} with out= of {type(out).__name__}")
    if not numpy.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(
            f"{name} gives {result.dtype}, which out= of {out.dtype} does not take by the rule "
            f"{casting!r}: pass casting='unsafe'"
        )
    result = result.astype(out.dtype)
    if where is not True:
        result = numpy.where(where, result, out)
    if result.shape != out.shape:
        if numpy.broadcast_shapes(result.shape, out.shape) != out.shape:
            raise ValueError(f"{name} of the shape {result.shape} with out= of {out.shape}")
        result = numpy.broadcast_to(result, out.shape)
    out[...] = result
    return out


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
        return positions(self.array, x)  # an offset
    raise _mixed(self, numpy.ndarray)


def _mixed(self: Chunk, other: type) -> TypeError:
    return TypeError(
        f"a block of {self.array.library} and a {other.__module__}.{other.__qualname__} in one "
        "operation: bring the Dask arrays into one library with "
        "`xp, *arrays = arraybridge.unify(...)`"
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


def _named(function: Any, own: Any, args: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return the arguments of NumPy's function as one of a namespace takes them.

    What is NumPy's default, or changes no value, is dropped where the namespace has no such
    keyword; anything else that it lacks is refused.
    """
    takes, has = _parameters(own), _parameters(function)
    kinds = {each.kind for each in takes.values()}
    names = list(has)
    if inspect.Parameter.VAR_POSITIONAL not in kinds and len(args) <= len(names):
        places = sum(each.kind in _BY_PLACE for each in takes.values())
        options = dict(zip(names[places:], args[places:], strict=False)) | options
        args = args[:places]
    kept = {}
    for name, value in options.items():
        if name in takes or (inspect.Parameter.VAR_KEYWORD in kinds and name not in has):
            kept[name] = value
        elif name not in IGNORED and not _is_default(value, has.get(name)):
            raise TypeError(f"{function.__name__} of blocks takes no {name}=")
    return args, kept


_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@functools.cache
def _parameters(function: Any) -> Any:
    try:
        return inspect.signature(function).parameters
    except ValueError:  # of a function in C
        return inspect.signature(lambda *args, **options: None).parameters


def _is_default(value: Any, parameter: Any) -> bool:
    default = None if parameter is None else parameter.default
    return (
        value is None
        or value is numpy._NoValue
        or value is default
        or (type(value) is type(default) and bool(value == default))
    )


def _refused(self: Chunk, name: str) -> TypeError:
    library: Library = self.array._library
    return TypeError(
        f"{name} does not take blocks of {library.name}: NumPy would make its own arrays of them. "
        "Give Dask a function of the library with map_blocks, or take NumPy's blocks with "
        "arraybridge.convert(x, 'numpy')"
    )
