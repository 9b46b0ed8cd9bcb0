"""NumPy's functions that choose, place and number elements, by the standard's; see `composed`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from .numpy_rules import cast, check_keywords, dtype_of, number


def _is_array(x: Any) -> bool:
    return hasattr(x, "__arraybridge__")


def _common(model: Any, choices: Any) -> list[Any]:
    """Return Arrays of one data type of Arrays and numbers, by NumPy's rules."""
    dtype = numpy.result_type(*[dtype_of(x) if _is_array(x) else x for x in choices])
    return [cast(x, dtype) if _is_array(x) else number(model, x, dtype) for x in choices]


def _beside(xp: Any, model: Any, *xs: Any) -> list[Any]:
    """Return Arrays of Arrays and of NumPy's arrays, such as bins, that Dask passes with them."""
    return [x if _is_array(x) else xp.asarray(numpy.asarray(x), device=model.device) for x in xs]


def _select(xp: Any, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if any(dtype_of(x).kind != "b" for x in condlist):
        raise TypeError("select of blocks takes conditions of booleans")
    *choices, found = _common(condlist[0], [*choicelist, default])
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        found = xp.where(condition, choice, found)
    shape = numpy.broadcast_shapes(*[x.shape for x in (*condlist, *choices)])
    return xp.broadcast_to(found, shape)


def _choose(xp: Any, a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    check_keywords("choose", {"out": out})
    choices = _common(a, choices)
    places = _within(xp, xp.astype(a, xp.int64), len(choices), mode, "choose")
    found = choices[0]
    for n, choice in enumerate(choices[1:], 1):
        found = xp.where(places == n, choice, found)
    return xp.broadcast_to(found, numpy.broadcast_shapes(a.shape, *[x.shape for x in choices]))


def _within(xp: Any, places: Any, extent: int, mode: str, name: str) -> Any:
    """Return positions inside an extent, as NumPy's ``mode`` says."""
    if mode == "wrap":
        return xp.remainder(places, extent)
    if mode == "clip":
        return xp.clip(places, 0, extent - 1)
    if places.size and bool(xp.any((places < 0) | (places >= extent))):
        raise ValueError(f"invalid entry in {name}: a position is outside of {extent}")
    return places


def _ravel_multi_index(
    xp: Any, multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C"
) -> Any:
    dims = (dims,) if isinstance(dims, int | numpy.integer) else tuple(map(int, dims))
    modes = (mode,) * len(dims) if isinstance(mode, str) else mode
    if _is_array(multi_index):
        multi_index = [multi_index[n, ...] for n in range(multi_index.shape[0])]
    if len(multi_index) != len(dims) and any(x.size for x in multi_index):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(dims)}")
    strides = [math.prod(dims[n + 1 :] if order == "C" else dims[:n]) for n in range(len(dims))]
    parts = [
        _within(xp, xp.astype(x, xp.int64), extent, each, "coordinates array") * stride
        for x, extent, each, stride in zip(multi_index, dims, modes, strides, strict=False)
    ]
    return sum(parts[1:], parts[0])


def _digitize(xp: Any, x: Any, bins: Any, right: bool = False) -> Any:
    model = x if _is_array(x) else bins
    x, bins = _common(model, _beside(xp, model, x, bins))
    steps = bins[1:] - bins[:-1] if dtype_of(bins).kind == "f" else xp.sign(bins[1:] - bins[:-1])
    falls = bins.shape[0] > 1 and not bool(xp.all(steps >= 0))
    if falls and not bool(xp.all(steps <= 0)):
        raise ValueError("bins must be monotonically increasing or decreasing")
    side = "left" if right else "right"
    if falls:
        bins = xp.flip(bins)
    found = xp.reshape(xp.searchsorted(bins, xp.reshape(x, (-1,)), side=side), x.shape)
    return bins.shape[0] - found if falls else found


def _diagonal(xp: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    axes = [n % a.ndim for n in (axis1, axis2)]
    a = xp.permute_dims(a, (*[n for n in range(a.ndim) if n not in axes], *axes))
    *outer, rows, columns = a.shape
    first = offset if offset >= 0 else -offset * columns
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    flat = xp.reshape(a, (*outer, rows * columns))
    return flat[
        ..., first : first + max(0, (count - 1) * (columns + 1) + 1) * bool(count) : columns + 1
    ]


def _diag(xp: Any, v: Any, k: int = 0) -> Any:
    if v.ndim != 1:
        return _diagonal(xp, v, k)
    n = v.shape[0] + abs(k)
    if not v.size:
        return xp.zeros((n, n), dtype=v.dtype, device=v.device)
    row = xp.arange(n, device=v.device)
    on = row[None, :] - row[:, None] == k
    moved = xp.take(v, xp.clip(row - max(k, 0), 0, v.shape[0] - 1), axis=0)
    return xp.where(on, moved[None, :], xp.zeros_like(moved)[None, :])


def _trace(
    xp: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    from .reductions import REDUCTIONS

    return REDUCTIONS[numpy.sum](xp, _diagonal(xp, a, offset, axis1, axis2), -1, dtype, out)


def along_axis(function: Any, axis: int, x: Any, *args: Any, **options: Any) -> Any:
    """``numpy.apply_along_axis``: a function of blocks, called for each line of one."""
    last = numpy.moveaxis(x, axis, -1)
    outer = last.shape[:-1]
    lines = numpy.reshape(last, (-1, last.shape[-1]))
    if not len(lines):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    found = [function(lines[n], *args, **options) for n in range(len(lines))]
    found = [each if isinstance(each, type(x)) else numpy.asarray(each, like=x) for each in found]
    made = numpy.reshape(numpy.stack(found), (*outer, *found[0].shape))
    axis %= x.ndim
    inner = range(len(outer), len(outer) + found[0].ndim)
    return numpy.moveaxis(made, tuple(inner), tuple(range(axis, axis + found[0].ndim)))


def _moveaxis(xp: Any, a: Any, source: Any, destination: Any) -> Any:
    source, destination = (
        tuple(map(int, each)) if isinstance(each, list | tuple) else int(each)
        for each in (source, destination)
    )
    return xp.moveaxis(a, source, destination)


def _count_nonzero(xp: Any, a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    from .reductions import REDUCTIONS

    return REDUCTIONS[numpy.sum](xp, cast(a, numpy.dtype(bool)), axis, numpy.int64, None, keepdims)


def _isin(
    xp: Any, element: Any, test: Any, assume_unique: bool = False, invert: bool = False, **_: Any
) -> Any:
    model = element if _is_array(element) else test
    element, test = _common(model, _beside(xp, model, element, test))
    return xp.isin(element, test, invert=invert)


def _is_complex(want: bool) -> Callable[..., Any]:
    def function(xp: Any, x: Any) -> Any:
        if dtype_of(x).kind != "c":
            return xp.full(x.shape, not want, dtype=xp.bool, device=x.device)
        return (xp.imag(x) != 0) if want else (xp.imag(x) == 0)

    return function


def _angle(xp: Any, z: Any, deg: bool = False) -> Any:
    if dtype_of(z).kind == "c":
        found = xp.atan2(xp.imag(z), xp.real(z))
    else:
        real = cast(z, numpy.angle(numpy.ones(1, dtype_of(z))).dtype)
        found = xp.atan2(xp.zeros_like(real), real)
    return found * (180 / math.pi) if deg else found


def _sinc(xp: Any, x: Any) -> Any:
    if dtype_of(x).kind in "biu":
        x = cast(x, numpy.dtype("f8"))
    y = x * math.pi
    y = xp.where(x == 0, xp.full_like(y, 1e-20), y)
    return xp.sin(y) / y


def _nan_to_num(
    xp: Any, x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    kind = dtype_of(x).kind
    if kind in "biu":
        return xp.asarray(x, copy=True)
    if kind == "c":
        re, im = (_nan_to_num(xp, f(x), copy, nan, posinf, neginf) for f in (xp.real, xp.imag))
        return re + im * number(x, 1j, dtype_of(x))
    limits = xp.finfo(x.dtype)
    replaced = (
        (xp.isnan(x), nan),
        (x == math.inf, limits.max if posinf is None else posinf),
        (x == -math.inf, limits.min if neginf is None else neginf),
    )
    for condition, value in replaced:
        x = xp.where(condition, number(x, float(value), dtype_of(x)), x)
    return x


SELECTIONS: dict[Any, Callable[..., Any]] = {
    numpy.select: _select,
    numpy.choose: _choose,
    numpy.ravel_multi_index: _ravel_multi_index,
    numpy.digitize: _digitize,
    numpy.diagonal: _diagonal,
    numpy.diag: _diag,
    numpy.trace: _trace,
    numpy.moveaxis: _moveaxis,
    numpy.count_nonzero: _count_nonzero,
    numpy.isin: _isin,
    numpy.isreal: _is_complex(False),
    numpy.iscomplex: _is_complex(True),
    numpy.angle: _angle,
    numpy.sinc: _sinc,
    numpy.nan_to_num: _nan_to_num,
}
