"""NumPy's reductions and accumulations of blocks, by the standard's functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy.lib.array_utils import normalize_axis_tuple

from .numpy_rules import cast, dtype_of


def _axes(a: Any, axis: Any) -> tuple[int, ...]:
    return normalize_axis_tuple(range(a.ndim) if axis is None else axis, a.ndim)


def _reduced(xp: Any, function: Any, a: Any, axis: Any, keepdims: bool, **extra: Any) -> Any:
    """Reduce over NumPy's axes; over no axes, each element separately.

    The standard does not define ``axis=()`` and reductions of arrays without axes.
    """
    axes = _axes(a, axis)
    if not axes:
        return function(xp.expand_dims(a, axis=a.ndim), axis=a.ndim, **extra)
    return function(a, axis=axes, keepdims=keepdims, **extra)


def _check_ordered(a: Any, name: str) -> None:
    if dtype_of(a).kind == "c":
        raise TypeError(f"the standard has no order of complex numbers, so blocks have no {name}")


def _total(name: str, neutral: float | None = None) -> Callable[..., Any]:
    """Make ``sum`` or ``prod``, which replaces NaN by `neutral` if that is given."""

    def function(
        xp: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> Any:
        a, extra = _to_add(xp, a if neutral is None else _without_nan(xp, a, neutral), dtype)
        if dtype_of(a).kind == "b":  # as booleans add and multiply in NumPy
            return _reduced(xp, xp.any if name == "sum" else xp.all, a, axis, keepdims)
        return _reduced(xp, getattr(xp, name), a, axis, keepdims, **extra)

    return function


def _without_nan(xp: Any, a: Any, value: float) -> Any:
    if dtype_of(a).kind in "biu":
        return a
    return xp.where(xp.isnan(a), xp.asarray(value, dtype=a.dtype, device=a.device), a)


def _to_add(xp: Any, a: Any, dtype: Any) -> tuple[Any, dict[str, Any]]:
    """Return an Array in the data type in which NumPy adds, and the standard's keyword for it."""
    if dtype is None:
        return (xp.astype(a, xp.int8) if dtype_of(a).kind == "b" else a), {}
    a = cast(a, numpy.dtype(dtype))
    return a, {"dtype": a._native.dtype}


def _truth(name: str) -> Callable[..., Any]:
    def function(xp: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return _reduced(xp, getattr(xp, name), a, axis, keepdims)

    return function


def _extreme(name: str, missing: float | None = None) -> Callable[..., Any]:
    """Make ``max`` or ``min``, which replaces NaN by ``missing``."""

    def function(xp: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        _check_ordered(a, name)
        if not a.size:  # Dask makes other extents of an empty block: no axis is reliable
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        if dtype_of(a).kind == "b":
            return _reduced(xp, xp.any if name == "max" else xp.all, a, axis, keepdims)
        if missing is None or dtype_of(a).kind in "iu":
            return _reduced(xp, getattr(xp, name), a, axis, keepdims)
        found = _reduced(xp, getattr(xp, name), _without_nan(xp, a, missing), axis, keepdims)
        nothing = _reduced(xp, xp.all, xp.isnan(a), axis, keepdims)
        return xp.where(nothing, xp.asarray(math.nan, dtype=a.dtype, device=a.device), found)

    return function


def _moment(name: str) -> Callable[..., Any]:
    def function(
        xp: Any, a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0,
        keepdims: bool = False,
    ) -> Any:  # fmt: skip
        if dtype is not None and numpy.dtype(dtype).kind in "biu":
            raise TypeError(f"{name} of blocks has no dtype={numpy.dtype(dtype)}: cast the result")
        extra = {} if name == "mean" else {"correction": ddof}
        return _reduced(xp, getattr(xp, name), _inexact(a, dtype), axis, keepdims, **extra)

    return function


def _inexact(a: Any, dtype: Any) -> Any:
    if dtype is None and dtype_of(a).kind in "biu":
        dtype = numpy.float64
    return a if dtype is None else cast(a, numpy.dtype(dtype))


def _place(name: str, missing: float | None = None) -> Callable[..., Any]:
    def function(xp: Any, a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        _check_ordered(a, name)
        if missing is not None and dtype_of(a).kind not in "biu":
            if bool(xp.any(xp.all(xp.isnan(a), axis=axis))):
                raise ValueError("All-NaN slice encountered")
            a = _without_nan(xp, a, missing)
        if dtype_of(a).kind == "b":
            a = xp.astype(a, xp.int8)
        return getattr(xp, name)(a, axis=axis, keepdims=keepdims)

    return function


def _cumulative(name: str, neutral: float | None = None) -> Callable[..., Any]:
    def function(xp: Any, a: Any, axis: Any = None, dtype: Any = None) -> Any:
        a, extra = _to_add(xp, a if neutral is None else _without_nan(xp, a, neutral), dtype)
        if axis is None or not a.ndim:
            a, axis = xp.reshape(a, (-1,)), 0
        if dtype_of(a).kind == "b":
            raise TypeError(f"{name} of blocks has no dtype=bool: pass a numeric data type")
        return getattr(xp, name)(a, axis=axis, **extra)

    return function


class _Lines:
    """An array as lines of the elements along some axes, and results in its shape."""

    def __init__(self, xp: Any, a: Any, axis: Any) -> None:
        self.xp, self.full = xp, a.shape
        self.axes = _axes(a, axis)
        self.kept = [n for n in range(a.ndim) if n not in self.axes]
        self.shape = tuple(a.shape[n] for n in self.kept)
        self.length = math.prod(a.shape[n] for n in self.axes)

    def of(self, x: Any) -> Any:
        x = self.xp.permute_dims(x, (*self.kept, *self.axes))
        return self.xp.reshape(x, (*self.shape, self.length))

    def reduced(self, x: Any, keepdims: bool) -> Any:
        kept = tuple(1 if n in self.axes else extent for n, extent in enumerate(self.full))
        return self.xp.reshape(x, kept if keepdims else self.shape)


def _median(skips_nan: bool) -> Callable[..., Any]:
    """Make ``median`` or, if NaN is skipped, ``nanmedian``."""

    def function(xp: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        _check_ordered(a, "median")
        lines = _Lines(xp, a, axis)
        flat = xp.sort(_inexact(lines.of(a), None), axis=-1)  # NaN last
        nan, n = xp.asarray(math.nan, dtype=flat.dtype, device=a.device), lines.length
        if not n:
            return lines.reduced(xp.broadcast_to(nan, lines.shape), keepdims)
        nans = xp.isnan(flat)
        count = xp.sum(~nans, axis=-1, keepdims=True, dtype=xp.int32)
        count = count if skips_nan else xp.full_like(count, n)
        first, second = (
            xp.take_along_axis(flat, xp.clip(at // 2, 0, n - 1), axis=-1)
            for at in (count - 1, count)
        )
        middle = xp.squeeze((first + second) / 2, axis=-1)
        if not skips_nan:
            middle = xp.where(xp.any(nans, axis=-1), nan, middle)
        return lines.reduced(middle, keepdims)

    return function


def inverted_cdf(
    xp: Any, a: Any, q: Any, axis: Any, keepdims: bool, weights: Any, skips_nan: bool
) -> Any:
    """Return the elements at which the cumulative weight or count first reaches the quantiles."""
    lines = _Lines(xp, a, axis)
    flat = lines.of(a)
    order = xp.argsort(flat, axis=-1)  # NaN last
    flat = xp.take_along_axis(flat, order, axis=-1)
    whole = dtype_of(a).kind in "biu"
    counted = xp.astype(xp.ones_like(flat) if whole else ~xp.isnan(flat), xp.float64)
    if not skips_nan:
        counted = xp.ones_like(counted)
    count = xp.sum(counted, axis=-1, keepdims=True)
    if weights is not None:
        if weights.ndim == 1 and a.ndim > 1:
            weights = xp.reshape(
                weights, tuple(-1 if n in lines.axes else 1 for n in range(a.ndim))
            )
        weights = lines.of(xp.broadcast_to(cast(weights, numpy.dtype("f8")), a.shape))
        reached = xp.cumulative_sum(xp.take_along_axis(weights, order, axis=-1) * counted, axis=-1)
        reached = reached / reached[..., -1:]
    results = []
    for each in numpy.ravel(q).tolist():
        if weights is None:
            place = xp.ceil(count * each) - 1
        else:  # the quantile 0 is the first element with a weight
            below = reached <= 0 if each == 0 else reached < each
            place = xp.sum(xp.astype(below, xp.float64), axis=-1, keepdims=True)
        place = xp.astype(xp.clip(place, 0, lines.length - 1), xp.int64)
        found = xp.take_along_axis(flat, place, axis=-1)
        if not skips_nan and not whole:
            missing = xp.any(xp.isnan(flat), axis=-1, keepdims=True)
            found = xp.where(missing, xp.asarray(math.nan, dtype=a.dtype, device=a.device), found)
        results.append(lines.reduced(found, keepdims))
    return xp.reshape(xp.stack(results), (*numpy.shape(q), *results[0].shape))


REDUCTIONS: dict[Any, Callable[..., Any]] = {
    numpy.sum: _total("sum"),
    numpy.prod: _total("prod"),
    numpy.any: _truth("any"),
    numpy.all: _truth("all"),
    numpy.max: _extreme("max"),
    numpy.min: _extreme("min"),
    numpy.amax: _extreme("max"),
    numpy.amin: _extreme("min"),
    numpy.mean: _moment("mean"),
    numpy.var: _moment("var"),
    numpy.std: _moment("std"),
    numpy.nansum: _total("sum", 0),
    numpy.nanprod: _total("prod", 1),
    numpy.nanmax: _extreme("max", -math.inf),
    numpy.nanmin: _extreme("min", math.inf),
    numpy.argmax: _place("argmax"),
    numpy.argmin: _place("argmin"),
    numpy.nanargmax: _place("argmax", -math.inf),
    numpy.nanargmin: _place("argmin", math.inf),
    numpy.cumsum: _cumulative("cumulative_sum"),
    numpy.cumprod: _cumulative("cumulative_prod"),
    numpy.nancumsum: _cumulative("cumulative_sum", 0),
    numpy.nancumprod: _cumulative("cumulative_prod", 1),
    numpy.median: _median(False),
    numpy.nanmedian: _median(True),
}
