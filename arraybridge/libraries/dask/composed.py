"""NumPy's functions that the standard has under other names, with other arguments, or not at all.

Each takes the namespace of Arrays first, and Arrays for blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from .numpy_rules import (
    cast,
    check_keywords,
    dtype_of,
    joined,
    number,
    own_dtype,
    positions,
)
from .reductions import REDUCTIONS, inverted_cdf
from .selections import SELECTIONS

_NO = numpy._NoValue


def _no_host(name: str, *xs: Any) -> None:
    if any(isinstance(x, numpy.ndarray) and x.ndim for x in xs):
        raise TypeError(
            f"numpy.{name} of blocks and a numpy.ndarray: bring the Dask arrays into one library "
            "with `xp, *arrays = arraybridge.unify(...)`"
        )


def _concatenate(
    xp: Any, arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, **options: Any
) -> Any:
    check_keywords("concatenate", {"out": out, **options})
    model = next(x for x in arrays if hasattr(x, "__arraybridge__"))
    arrays = [x if hasattr(x, "__arraybridge__") else positions(model, x) for x in arrays]
    made = xp.concat(joined(arrays), axis=axis)
    return made if dtype is None else cast(made, numpy.dtype(dtype))


def _stack(xp: Any, arrays: Any, axis: int = 0, out: Any = None, **options: Any) -> Any:
    check_keywords("stack", {"out": out, **options})
    return xp.stack(joined(arrays), axis=axis)


def _where(xp: Any, condition: Any, x: Any = _NO, y: Any = _NO) -> Any:
    if x is _NO:
        return xp.nonzero(condition)
    _no_host("where", x, y)
    model = next(each for each in (condition, x, y) if hasattr(each, "__arraybridge__"))
    if not hasattr(condition, "__arraybridge__"):
        condition = xp.asarray(numpy.asarray(condition), device=model.device)
    if dtype_of(condition).kind != "b":
        condition = condition != 0
    common = numpy.result_type(
        *[dtype_of(each) if hasattr(each, "__arraybridge__") else each for each in (x, y)]
    )
    x, y = (
        cast(each, common) if hasattr(each, "__arraybridge__") else number(model, each, common)
        for each in (x, y)
    )
    return xp.where(condition, x, y)


def _transpose(xp: Any, a: Any, axes: Any = None) -> Any:
    return xp.permute_dims(a, tuple(reversed(range(a.ndim))) if axes is None else tuple(axes))


def _reshape(
    xp: Any,
    a: Any,
    /,
    shape: Any = None,
    order: str = "C",
    *,
    newshape: Any = None,
    copy: Any = None,
) -> Any:
    shape = newshape if shape is None else shape
    shape = tuple(map(int, shape)) if isinstance(shape, tuple | list) else (int(shape),)
    if order == "F":
        made = xp.reshape(_transpose(xp, a), tuple(reversed(shape)), copy=copy)
        return _transpose(xp, made)
    if -1 in shape and not a.size:  # PyTorch finds it ambiguous
        shape = tuple((0 if n == -1 else n) for n in shape)
    return xp.reshape(a, shape, copy=copy)


def _ravel(xp: Any, a: Any, order: str = "C") -> Any:
    return _reshape(xp, a, (a.size,), order)


def _full(value: Any) -> Callable[..., Any]:
    def function(xp: Any, a: Any, *args: Any, **options: Any) -> Any:
        names = (("fill_value",) if value is None else ()) + ("dtype", "order", "subok", "shape")
        options |= dict(zip(names, args, strict=False))
        dtype, shape = options.get("dtype"), options.get("shape")
        if dtype is not None and numpy.dtype(dtype).fields:
            raise TypeError("blocks have no structured data types")  # Dask keeps a dict instead
        own = own_dtype(a, dtype_of(a) if dtype is None else dtype)
        shape = (
            a.shape
            if shape is None
            else (shape if isinstance(shape, tuple) else tuple(numpy.ravel(shape).tolist()))
        )
        filled = options["fill_value"] if value is None else value
        if hasattr(filled, "__arraybridge__"):
            filled = filled._number()
        kind = numpy.dtype(dtype_of(a) if dtype is None else dtype).kind
        plain = {"b": bool, "i": int, "u": int, "f": float, "c": complex}.get(kind, float)
        return xp.full(shape, plain(filled), dtype=own, device=a.device)

    return function


def _dot(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    check_keywords("dot", {"out": out})
    a, b = joined((a, b))
    if not a.ndim or not b.ndim:
        return a * b
    return xp.tensordot(a, b, axes=((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def _tensordot(xp: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    if not isinstance(axes, int):
        axes = tuple((n,) if isinstance(n, int) else tuple(map(int, n)) for n in axes)
    return xp.tensordot(*joined((a, b)), axes=axes)


def _einsum(xp: Any, subscripts: str, *operands: Any, dtype: Any = None, **options: Any) -> Any:
    check_keywords("einsum", {name: each for name, each in options.items() if name != "optimize"})
    if not hasattr(xp, "einsum"):  # of no standard
        raise TypeError(f"{operands[0].library} has no einsum for blocks")
    arrays = joined(operands)
    if dtype is not None:
        arrays = [cast(x, numpy.dtype(dtype)) for x in arrays]
    return xp.einsum(subscripts, *arrays)


def _take(
    xp: Any, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Any:
    check_keywords("take", {"out": out, "mode": None if mode == "raise" else mode})
    if axis is None:
        a, axis = xp.reshape(a, (-1,)), 0
    if isinstance(indices, int | numpy.integer):
        indices = int(indices)
        return xp.take(a, xp.asarray([indices]), axis=axis)[(slice(None),) * (axis % a.ndim) + (0,)]
    if not hasattr(indices, "__arraybridge__"):
        indices = positions(a, indices)
    if indices.ndim != 1:
        axis %= a.ndim
        flat = xp.take(a, xp.reshape(indices, (-1,)), axis=axis)
        return xp.reshape(flat, a.shape[:axis] + indices.shape + a.shape[axis + 1 :])
    return xp.take(a, indices, axis=axis)


def _clip(
    xp: Any,
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **options: Any,
) -> Any:
    check_keywords("clip", {"out": out, **options})
    return xp.clip(a, a_min if a_min is not None else min, a_max if a_max is not None else max)


def _round(xp: Any, a: Any, decimals: int = 0, out: Any = None) -> Any:
    check_keywords("round", {"out": out})
    if not decimals or (dtype_of(a).kind in "biu" and decimals > 0):
        return xp.round(a)
    scale = 10.0**decimals
    return xp.round(a * scale) / scale


def _squeeze(xp: Any, a: Any, axis: Any = None) -> Any:
    axes = tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else axis
    return xp.squeeze(a, axis=axes)


def _swapaxes(xp: Any, a: Any, axis1: int, axis2: int) -> Any:
    axes = list(range(a.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return xp.permute_dims(a, tuple(axes))


def _broadcast_to(xp: Any, array: Any, shape: Any, subok: bool = False) -> Any:
    return xp.broadcast_to(array, tuple(shape) if isinstance(shape, tuple | list) else (shape,))


def _sort(
    xp: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    if axis is None:
        a, axis = xp.reshape(a, (-1,)), 0
    return xp.sort(a, axis=axis)


def _argsort(
    xp: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    return xp.argsort(a, axis=axis)


def _partition(xp: Any, a: Any, kth: Any, axis: int = -1, **_: Any) -> Any:
    return xp.sort(a, axis=axis)  # sorted is one of the orders that it allows


def _argpartition(xp: Any, a: Any, kth: Any, axis: int = -1, **_: Any) -> Any:
    return xp.argsort(a, axis=axis)


def _asarray(
    xp: Any,
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    copy: Any = None,
    like: Any = None,
    ndmin: int = 0,
    **_: Any,
) -> Any:
    """Make an Array as ``like=`` asks."""
    if not hasattr(a, "__arraybridge__"):
        plain = isinstance(a, list | int | float) and dtype is None
        a = xp.asarray(a if plain else numpy.asarray(a, dtype=dtype))
    elif dtype is not None:
        a = cast(a, numpy.dtype(dtype))
    return a[(None,) * max(0, ndmin - a.ndim) + (...,)]


def _arange(xp: Any, *args: Any, dtype: Any = None, **_: Any) -> Any:
    *ends, given = args if len(args) == 4 else (*args, None)
    dtype = given if dtype is None else dtype
    return xp.arange(*ends) if dtype is None else xp.asarray(numpy.arange(*ends, dtype=dtype))


def _real(xp: Any, a: Any) -> Any:
    return xp.real(a) if dtype_of(a).kind == "c" else a


def _imag(xp: Any, a: Any) -> Any:
    return xp.imag(a) if dtype_of(a).kind == "c" else xp.zeros_like(a)


def _isclose(
    xp: Any, a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    near = xp.abs(a - b) <= atol + rtol * xp.abs(b)
    same = a == b
    if equal_nan:
        same = same | (xp.isnan(a) & xp.isnan(b))
    return same | (near & xp.isfinite(b))


def _unravel_index(xp: Any, indices: Any, shape: Any, order: Any = "C") -> Any:
    """Return Python's integers, which Dask adds offsets to."""
    found: Any = numpy.unravel_index(int(indices), shape, order)
    return tuple(map(int, found))


def _take_along_axis(xp: Any, arr: Any, indices: Any, axis: Any = -1) -> Any:
    if not hasattr(arr, "__arraybridge__"):
        arr = xp.asarray(arr, device=indices.device)
    if not hasattr(indices, "__arraybridge__"):
        indices = positions(arr, indices)
    return xp.take_along_axis(arr, indices, axis=axis)


def _stacked(axis: int) -> Callable[..., Any]:
    def function(xp: Any, tup: Any, **options: Any) -> Any:
        arrays = [
            xp.reshape(x, (1,) * (axis + 1 - x.ndim) + x.shape) if axis == 0 else x for x in tup
        ]
        if axis == 0:
            arrays = [xp.reshape(x, (1, *x.shape)) if x.ndim == 1 else x for x in arrays]
        return _concatenate(xp, arrays, axis=min(axis, arrays[0].ndim - 1), **options)

    return function


def _outer(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    check_keywords("outer", {"out": out})
    a, b = joined((a, b))
    return xp.reshape(a, (-1, 1)) * xp.reshape(b, (1, -1))


def _quantile(name: str) -> Callable[..., Any]:
    def function(
        xp: Any, a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
        method: str = "linear", keepdims: Any = False, *, weights: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        check_keywords(name, {"out": out, **options})
        if (
            method == "inverted_cdf"
            and not hasattr(q, "__arraybridge__")
            and dtype_of(a).kind != "c"
        ):
            if weights is not None and not hasattr(weights, "__arraybridge__"):
                weights = xp.asarray(numpy.asarray(weights), device=a.device)
            keeps = keepdims is not _NO and bool(keepdims)
            return inverted_cdf(xp, a, q, axis, keeps, weights, name == "nanquantile")
        check_keywords(name, {"weights": weights})
        if not hasattr(xp, name):
            raise TypeError(f"{a.library} has no {name} for blocks")
        keepdims = keepdims is not _NO and bool(keepdims)
        found = getattr(xp, name)(a, q, axis=axis, method=method, keepdims=keepdims)
        model = numpy.ones(1, dtype_of(q)) / 2 if hasattr(q, "__arraybridge__") else q
        dtype = getattr(numpy, name)(numpy.ones(1, dtype_of(a)), model, method=method).dtype
        return cast(found, dtype)

    return function


def _expand_dims(xp: Any, a: Any, axis: Any) -> Any:
    for each in sorted(axis) if isinstance(axis, tuple | list) else (axis,):
        a = xp.expand_dims(a, axis=each)
    return a


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **REDUCTIONS,
    **SELECTIONS,
    numpy.concatenate: _concatenate,
    numpy.stack: _stack,
    numpy.where: _where,
    numpy.transpose: _transpose,
    numpy.reshape: _reshape,
    numpy.ravel: _ravel,
    numpy.full_like: _full(None),
    numpy.empty_like: _full(0),
    numpy.zeros_like: _full(0),
    numpy.ones_like: _full(1),
    numpy.dot: _dot,
    numpy.tensordot: _tensordot,
    numpy.einsum: _einsum,
    numpy.take: _take,
    numpy.clip: _clip,
    numpy.round: _round,
    numpy.around: _round,
    numpy.squeeze: _squeeze,
    numpy.swapaxes: _swapaxes,
    numpy.broadcast_to: _broadcast_to,
    numpy.sort: _sort,
    numpy.argsort: _argsort,
    numpy.partition: _partition,
    numpy.argpartition: _argpartition,
    numpy.asarray: _asarray,
    numpy.asanyarray: _asarray,
    numpy.array: _asarray,
    numpy.ascontiguousarray: _asarray,
    numpy.arange: _arange,
    numpy.real: _real,
    numpy.imag: _imag,
    numpy.isclose: _isclose,
    numpy.expand_dims: _expand_dims,
    numpy.unravel_index: _unravel_index,
    numpy.take_along_axis: _take_along_axis,
    numpy.vstack: _stacked(0),
    numpy.hstack: _stacked(1),
    numpy.outer: _outer,
    numpy.quantile: _quantile("quantile"),
    numpy.nanquantile: _quantile("nanquantile"),
    numpy.shape: lambda xp, a: a.shape,
    numpy.ndim: lambda xp, a: a.ndim,
    numpy.size: lambda xp, a, axis=None: a.size if axis is None else a.shape[axis],
    numpy.iscomplexobj: lambda xp, x: dtype_of(x).kind == "c",
    numpy.isrealobj: lambda xp, x: dtype_of(x).kind != "c",
    numpy.result_type: lambda xp, *xs: numpy.result_type(
        *[dtype_of(x) if hasattr(x, "info") else x for x in xs]
    ),
    numpy.can_cast: lambda xp, from_, to, casting="safe": numpy.can_cast(
        dtype_of(from_), to, casting
    ),
    numpy.copy: lambda xp, a, *_, **__: xp.asarray(a, copy=True),
}

#: Those that take ndarrays beside blocks: positions, conditions, and what is to be an array.
WITH_HOST = frozenset(
    (
        numpy.asarray, numpy.asanyarray, numpy.array, numpy.ascontiguousarray, numpy.take,
        numpy.take_along_axis, numpy.where, numpy.unravel_index, numpy.quantile,
        numpy.nanquantile, numpy.digitize, numpy.isin, numpy.apply_along_axis,
    )
)  # fmt: skip
