"""NumPy's reductions and accumulations of blocks, by the standard's; see `composed`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from .numpy_rules import cast, check_keywords, dtype_of, own_dtype

_NO = numpy._NoValue


def _axis(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _keeps(keepdims: Any) -> bool:
    return keepdims is not _NO and bool(keepdims)


def _reduction(name: str, typed: bool = False) -> Callable[..., Any]:
    def function(
        xp: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None,
        keepdims: Any = False, **options: Any,
    ) -> Any:  # fmt: skip
        check_keywords(name, {"out": out, **options})
        extra = {"dtype": own_dtype(a, dtype)} if typed and dtype is not None else {}
        if typed and dtype_of(a).kind == "b":
            a = xp.astype(a, extra.get("dtype", xp.int8))
        axis = tuple(range(a.ndim)) if axis is None else _axis(axis)
        if axis == ():
            return a if not extra else xp.astype(a, extra["dtype"])
        return getattr(xp, name)(a, axis=axis, keepdims=_keeps(keepdims), **extra)

    return function


def _extreme(name: str) -> Callable[..., Any]:
    reduced = _reduction(name)

    def function(
        xp: Any, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any
    ) -> Any:
        if not a.size:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        return reduced(xp, a, axis, None, out, keepdims, **options)

    return function


def _moment(name: str) -> Callable[..., Any]:
    def function(
        xp: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
        keepdims: Any = False, **options: Any,
    ) -> Any:  # fmt: skip
        check_keywords(name, {"out": out, **options})
        a = _inexact(xp, a, dtype)
        extra = {} if name == "mean" else {"correction": ddof}
        return getattr(xp, name)(a, axis=_axis(axis), keepdims=_keeps(keepdims), **extra)

    return function


def _inexact(xp: Any, a: Any, dtype: Any) -> Any:
    if dtype is None and dtype_of(a).kind in "biu":
        dtype = numpy.float64
    return a if dtype is None else cast(a, numpy.dtype(dtype))


def _without_nan(name: str, neutral: float, typed: bool) -> Callable[..., Any]:
    reduced = _reduction(name, typed)

    def function(xp: Any, a: Any, *args: Any, **options: Any) -> Any:
        if dtype_of(a).kind in "biu":
            return reduced(xp, a, *args, **options)
        missing = xp.isnan(a)
        found = reduced(xp, xp.where(missing, neutral, a), *args, **options)
        if math.isfinite(neutral):
            return found
        axis = args[0] if args else options.get("axis")
        empty = _reduction("all")(xp, missing, axis, keepdims=options.get("keepdims", False))
        return xp.where(empty, math.nan, found)

    return function


def _place(name: str, neutral: float | None = None) -> Callable[..., Any]:
    def function(
        xp: Any, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False
    ) -> Any:
        check_keywords(name, {"out": out})
        if neutral is not None and dtype_of(a).kind not in "biu":
            missing = xp.isnan(a)
            if bool(xp.any(xp.all(missing) if axis is None else xp.all(missing, axis=axis))):
                raise ValueError("All-NaN slice encountered")
            a = xp.where(missing, neutral, a)
        return getattr(xp, name)(a, axis=axis, keepdims=_keeps(keepdims))

    return function


def _cumulative(name: str, empty: float | None = None) -> Callable[..., Any]:
    def function(xp: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        check_keywords(name, {"out": out})
        if empty is not None and dtype_of(a).kind not in "biu":
            a = xp.where(xp.isnan(a), empty, a)
        if axis is None:
            a, axis = xp.reshape(a, (-1,)), 0
        extra = {} if dtype is None else {"dtype": own_dtype(a, dtype)}
        return getattr(xp, name)(a, axis=axis, **extra)

    return function


def _median(
    xp: Any,
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: Any = False,
) -> Any:
    check_keywords("median", {"out": out})
    axes = tuple(range(a.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = tuple(n % a.ndim for n in axes)
    kept = [n for n in range(a.ndim) if n not in axes]
    shape = tuple(a.shape[n] for n in kept)
    flat = xp.reshape(
        xp.permute_dims(a, (*kept, *axes)), (*shape, math.prod(a.shape[n] for n in axes))
    )
    flat = xp.sort(_inexact(xp, flat, None), axis=-1)
    n = flat.shape[-1]
    if not n:
        raise ValueError("median of no elements")
    middle = (flat[..., (n - 1) // 2] + flat[..., n // 2]) / 2
    middle = xp.where(xp.any(xp.isnan(flat), axis=-1), math.nan, middle)
    if _keeps(keepdims):
        return xp.reshape(middle, tuple(1 if n in axes else a.shape[n] for n in range(a.ndim)))
    return middle


REDUCTIONS: dict[Any, Callable[..., Any]] = {
    numpy.sum: _reduction("sum", typed=True),
    numpy.prod: _reduction("prod", typed=True),
    numpy.any: _reduction("any"),
    numpy.all: _reduction("all"),
    numpy.max: _extreme("max"),
    numpy.min: _extreme("min"),
    numpy.amax: _extreme("max"),
    numpy.amin: _extreme("min"),
    numpy.mean: _moment("mean"),
    numpy.var: _moment("var"),
    numpy.std: _moment("std"),
    numpy.nansum: _without_nan("sum", 0, True),
    numpy.nanprod: _without_nan("prod", 1, True),
    numpy.nanmax: _without_nan("max", -math.inf, False),
    numpy.nanmin: _without_nan("min", math.inf, False),
    numpy.argmax: _place("argmax"),
    numpy.argmin: _place("argmin"),
    numpy.nanargmax: _place("argmax", -math.inf),
    numpy.nanargmin: _place("argmin", math.inf),
    numpy.cumsum: _cumulative("cumulative_sum"),
    numpy.cumprod: _cumulative("cumulative_prod"),
    numpy.nancumsum: _cumulative("cumulative_sum", 0),
    numpy.nancumprod: _cumulative("cumulative_prod", 1),
    numpy.median: _median,
}
