"""NumPy functions that the standard lacks, or has with another name or other arguments.

Each takes the namespace of Arrays first, and Arrays in place of blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy.lib.array_utils import normalize_axis_tuple

from .numpy_rules import cast, dtype_of, is_array, joined, mixed, number, own_dtype, positions
from .reductions import REDUCTIONS, inverted_cdf

_NO = numpy._NoValue


def _concatenate(xp: Any, arrays: Any, axis: Any = 0, dtype: Any = None) -> Any:
    model = next(x for x in arrays if is_array(x))
    arrays = [x if is_array(x) else positions(model, x) for x in arrays]
    made = xp.concat(joined(arrays), axis=axis)
    return made if dtype is None else cast(made, numpy.dtype(dtype))


def _where(xp: Any, condition: Any, x: Any = _NO, y: Any = _NO) -> Any:
    if x is _NO:
        return xp.nonzero(condition)
    model = next(each for each in (condition, x, y) if is_array(each))
    if any(isinstance(each, numpy.ndarray) and each.ndim for each in (x, y)):
        raise mixed(f"a block of {model.library} and a numpy.ndarray")
    if not is_array(condition):
        condition = xp.asarray(numpy.asarray(condition), device=model.device)
    if dtype_of(condition).kind != "b":
        condition = condition != 0
    return xp.where(condition, *joined((x, y), model))


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
    if -1 in shape and not a.size:  # PyTorch finds -1 ambiguous
        shape = tuple((0 if n == -1 else n) for n in shape)
    return xp.reshape(a, shape, copy=copy)


def _ravel(xp: Any, a: Any, order: str = "C") -> Any:
    return _reshape(xp, a, (a.size,), order)


def _full_like(xp: Any, a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    wanted = numpy.dtype(dtype_of(a) if dtype is None else dtype)
    if wanted.fields:
        raise TypeError("blocks have no structured data types")  # Dask keeps a dict instead
    if shape is not None and not isinstance(shape, tuple):
        shape = tuple(numpy.ravel(shape).tolist())
    if is_array(fill_value):
        fill_value = fill_value._number()
    plain = {"b": bool, "i": int, "u": int, "f": float, "c": complex}.get(wanted.kind, float)
    shape, own = a.shape if shape is None else shape, own_dtype(a, wanted)
    return xp.full(shape, plain(fill_value), dtype=own, device=a.device)


def _like(value: int) -> Callable[..., Any]:
    def function(xp: Any, a: Any, dtype: Any = None, shape: Any = None) -> Any:
        return _full_like(xp, a, value, dtype, shape)

    return function


def _dot(xp: Any, a: Any, b: Any) -> Any:
    a, b = joined((a, b))
    if not a.ndim or not b.ndim:
        return a * b
    return xp.tensordot(a, b, axes=((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def _tensordot(xp: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    if not isinstance(axes, int):
        axes = tuple((n,) if isinstance(n, int) else tuple(map(int, n)) for n in axes)
    return xp.tensordot(*joined((a, b)), axes=axes)


def _einsum(xp: Any, subscripts: str, *operands: Any, dtype: Any = None) -> Any:
    if not hasattr(xp, "einsum"):  # not part of any standard
        raise TypeError(f"{operands[0].library} has no einsum for blocks")
    arrays = joined(operands)
    if dtype is not None:
        arrays = [cast(x, numpy.dtype(dtype)) for x in arrays]
    return xp.einsum(subscripts, *arrays)


def _take(xp: Any, a: Any, indices: Any, axis: Any = None) -> Any:
    if axis is None:
        a, axis = xp.reshape(a, (-1,)), 0
    if not is_array(indices):
        indices = positions(a, indices)
    if indices.ndim != 1:
        axis %= a.ndim
        flat = xp.take(a, xp.reshape(indices, (-1,)), axis=axis)
        return xp.reshape(flat, a.shape[:axis] + indices.shape + a.shape[axis + 1 :])
    return xp.take(a, indices, axis=axis)


def _clip(
    xp: Any, a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    return xp.clip(a, a_min if a_min is not None else min, a_max if a_max is not None else max)


def _round(xp: Any, a: Any, decimals: int = 0) -> Any:
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


def _asarray(
    xp: Any, a: Any, dtype: Any = None, order: Any = None, *, ndmin: int = 0, **_: Any
) -> Any:
    """Make an Array as ``like=`` requires."""
    if not is_array(a):
        plain = isinstance(a, list | int | float) and dtype is None
        a = xp.asarray(a if plain else numpy.asarray(a, dtype=dtype))
    elif dtype is not None:
        a = cast(a, numpy.dtype(dtype))
    return a[(None,) * max(0, ndmin - a.ndim) + (...,)]


def _arange(xp: Any, *args: Any, dtype: Any = None, **_: Any) -> Any:
    *ends, given = args if len(args) == 4 else (*args, None)
    dtype = given if dtype is None else dtype
    return xp.arange(*ends) if dtype is None else xp.asarray(numpy.arange(*ends, dtype=dtype))


def _isclose(
    xp: Any, a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    near = xp.abs(a - b) <= atol + rtol * xp.abs(b)
    same = a == b
    if equal_nan:
        same = same | (xp.isnan(a) & xp.isnan(b))
    return same | (near & xp.isfinite(b))


def _unravel_index(xp: Any, indices: Any, shape: Any, order: Any = "C") -> Any:
    """Return Python integers, to which Dask adds offsets."""
    found: Any = numpy.unravel_index(int(indices), shape, order)
    return tuple(map(int, found))


def _take_along_axis(xp: Any, arr: Any, indices: Any, axis: Any = -1) -> Any:
    if not is_array(arr):
        arr = xp.asarray(arr, device=indices.device)
    if not is_array(indices):
        indices = positions(arr, indices)
    return xp.take_along_axis(arr, indices, axis=axis)


def _stacked(axis: int) -> Callable[..., Any]:
    def function(xp: Any, tup: Any, dtype: Any = None) -> Any:
        arrays = [xp.reshape(x, (1,) * (2 - axis - x.ndim) + x.shape) for x in tup]
        return _concatenate(xp, arrays, axis=min(axis, arrays[0].ndim - 1), dtype=dtype)

    return function


def _outer(xp: Any, a: Any, b: Any) -> Any:
    a, b = joined((a, b))
    return xp.linalg.outer(xp.reshape(a, (-1,)), xp.reshape(b, (-1,)))


def _quantile(name: str) -> Callable[..., Any]:
    def function(
        xp: Any, a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False,
        *, weights: Any = None,
    ) -> Any:  # fmt: skip
        if method == "inverted_cdf" and not is_array(q) and dtype_of(a).kind != "c":
            if weights is not None and not is_array(weights):
                weights = xp.asarray(numpy.asarray(weights), device=a.device)
            return inverted_cdf(xp, a, q, axis, keepdims, weights, name == "nanquantile")
        if weights is not None:
            raise TypeError(f"{name} of blocks takes no weights=")
        if not hasattr(xp, name):
            raise TypeError(f"{a.library} has no {name} for blocks")
        found = getattr(xp, name)(a, q, axis=axis, method=method, keepdims=keepdims)
        model = numpy.ones(1, dtype_of(q)) / 2 if is_array(q) else q
        dtype = getattr(numpy, name)(numpy.ones(1, dtype_of(a)), model, method=method).dtype
        return cast(found, dtype)

    return function


def _beside(xp: Any, *xs: Any) -> list[Any]:
    """Join Arrays with the NumPy arrays that Dask passes with them, such as bins."""
    device = next(x for x in xs if is_array(x)).device
    return joined([x if is_array(x) else xp.asarray(numpy.asarray(x), device=device) for x in xs])


def _select(xp: Any, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if any(dtype_of(x).kind != "b" for x in condlist):
        raise TypeError("select of blocks takes conditions of booleans")
    *choices, found = joined([*choicelist, default], condlist[0])
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        found = xp.where(condition, choice, found)
    shape = numpy.broadcast_shapes(*[x.shape for x in (*condlist, *choices)])
    return xp.broadcast_to(found, shape)


def _choose(xp: Any, a: Any, choices: Any, mode: str = "raise") -> Any:
    choices = joined(choices, a)
    places = _within(xp, xp.astype(a, xp.int64), len(choices), mode, "choose")
    found = choices[0]
    for n, choice in enumerate(choices[1:], 1):
        found = xp.where(places == n, choice, found)
    return xp.broadcast_to(found, numpy.broadcast_shapes(a.shape, *[x.shape for x in choices]))


def _within(xp: Any, places: Any, extent: int, mode: str, name: str) -> Any:
    """Return positions within an extent, by NumPy's ``mode``."""
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
    if is_array(multi_index):
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
    x, bins = _beside(xp, x, bins)
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
    axes = normalize_axis_tuple((axis1, axis2), a.ndim)
    a = xp.permute_dims(a, (*[n for n in range(a.ndim) if n not in axes], *axes))
    return xp.linalg.diagonal(a, offset=offset)


def _diag(xp: Any, v: Any, k: int = 0) -> Any:
    if v.ndim != 1:
        return _diagonal(xp, v, k)
    n = v.size + abs(k)
    flat = xp.zeros((n * n,), dtype=v.dtype, device=v.device)
    first = k if k >= 0 else -k * n
    flat[first : first + v.size * (n + 1) : n + 1] = v
    return xp.reshape(flat, (n, n))


def _trace(
    xp: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Any:
    return REDUCTIONS[numpy.sum](xp, _diagonal(xp, a, offset, axis1, axis2), -1, dtype)


def along_axis(function: Any, axis: int, x: Any, *args: Any, **options: Any) -> Any:
    """Implement ``numpy.apply_along_axis``: call a function of blocks for each line of one."""
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


def _isin(xp: Any, element: Any, test_elements: Any, *, invert: bool = False) -> Any:
    return xp.isin(*_beside(xp, element, test_elements), invert=invert)


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


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **REDUCTIONS,
    numpy.select: _select,
    numpy.choose: _choose,
    numpy.ravel_multi_index: _ravel_multi_index,
    numpy.digitize: _digitize,
    numpy.diagonal: _diagonal,
    numpy.diag: _diag,
    numpy.trace: _trace,
    numpy.isin: _isin,
    numpy.isreal: _is_complex(False),
    numpy.iscomplex: _is_complex(True),
    numpy.angle: _angle,
    numpy.sinc: _sinc,
    numpy.nan_to_num: _nan_to_num,
    numpy.concatenate: _concatenate,
    numpy.stack: lambda xp, arrays, axis=0: xp.stack(joined(arrays), axis=axis),
    numpy.where: _where,
    numpy.transpose: _transpose,
    numpy.reshape: _reshape,
    numpy.ravel: _ravel,
    numpy.full_like: _full_like,
    numpy.empty_like: _like(0),
    numpy.zeros_like: _like(0),
    numpy.ones_like: _like(1),
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
    numpy.sort: lambda xp, a, axis=-1: (
        xp.sort(xp.reshape(a, (-1,))) if axis is None else xp.sort(a, axis=axis)
    ),
    # a full sort is one of the orders that they allow
    numpy.partition: lambda xp, a, kth, axis=-1: xp.sort(a, axis=axis),
    numpy.argpartition: lambda xp, a, kth, axis=-1: xp.argsort(a, axis=axis),
    numpy.asarray: _asarray,
    numpy.asanyarray: _asarray,
    numpy.array: _asarray,
    numpy.ascontiguousarray: _asarray,
    numpy.arange: _arange,
    numpy.real: lambda xp, a: xp.real(a) if dtype_of(a).kind == "c" else a,
    numpy.imag: lambda xp, a: xp.imag(a) if dtype_of(a).kind == "c" else xp.zeros_like(a),
    numpy.isclose: _isclose,
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

#: Functions that take ndarrays with blocks: positions, conditions, and data to convert.
WITH_HOST = frozenset(
    (
        numpy.asarray, numpy.asanyarray, numpy.array, numpy.ascontiguousarray, numpy.take,
        numpy.take_along_axis, numpy.where, numpy.unravel_index, numpy.quantile,
        numpy.nanquantile, numpy.digitize, numpy.isin, numpy.apply_along_axis,
    )
)  # fmt: skip
