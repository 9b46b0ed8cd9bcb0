"""Functions with NumPy's signatures that PyTorch has under other names, or in parts.

For tensors; `xp.numpy_extras` makes functions of Arrays from those in its table. As in NumPy,
``axis`` is one integer, several, or None for all; gradients flow through.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy
import torch
from numpy.lib.array_utils import normalize_axis_tuple
from torch import Tensor

from ...array.promotion import fitting
from .namespace import native as xp


def _axes(x: Tensor, axis: Any) -> tuple[int, ...]:
    """Return non-negative axes; all of them for None."""
    return normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)


def _inexact(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def _floating(x: Tensor) -> Tensor:
    """Convert integers and bools to the default floating-point type."""
    return x if _inexact(x) else x.to(torch.get_default_dtype())


def _holes(x: Tensor, value: float) -> Tensor:
    """Fill the NaNs."""
    return torch.where(torch.isnan(x), value, x) if _inexact(x) else x


def _beside(value: Any, x: Tensor) -> Tensor:
    """Convert numbers to a tensor with another's dtype and device; NumPy arrays are copied."""
    numbers = value if isinstance(value, Tensor) else numpy.array(value)
    return torch.as_tensor(numbers, dtype=x.dtype, device=x.device)


# Sums and products, along axes or cumulative.


def cumsum(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative sum along an axis, or of the flattened array."""
    return _accumulated(xp.cumulative_sum, x, axis, dtype)


def cumprod(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative product along an axis, or of the flattened array."""
    return _accumulated(xp.cumulative_prod, x, axis, dtype)


def nancumsum(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return ``cumsum`` with NaN replaced by 0."""
    return cumsum(_holes(x, 0), axis, dtype)


def nancumprod(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return ``cumprod`` with NaN replaced by 1."""
    return cumprod(_holes(x, 1), axis, dtype)


def _accumulated(function: Any, x: Tensor, axis: int | None, dtype: Any) -> Tensor:
    flat = x.reshape(-1) if axis is None else x
    found: Tensor = function(flat, axis=-1 if axis is None else axis, dtype=dtype)
    return found


def nansum(x: Tensor, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum, ignoring NaN."""
    found: Tensor = xp.sum(_holes(x, 0), axis=axis, dtype=dtype, keepdims=keepdims)
    return found


def nanprod(x: Tensor, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product, ignoring NaN."""
    x = _holes(x, 1)
    for each in sorted(_axes(x, axis)):  # torch multiplies along one axis at a time
        x = xp.prod(x, axis=each, dtype=dtype, keepdims=True)
    return x if keepdims else x.squeeze(_axes(x, axis))


# Averages and deviations.


def nanmean(x: Tensor, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean, ignoring NaN; NaN for all-NaN slices."""
    x = _floating(x if dtype is None else x.to(dtype))
    return torch.nanmean(x, _axes(x, axis), keepdim=keepdims)


def nanvar(
    x: Tensor,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the variance, ignoring NaN; NaN without degrees of freedom."""
    x = _floating(x if dtype is None else x.to(dtype))
    axes = _axes(x, axis)
    there = ~torch.isnan(x)
    # Filled before squaring, or the gradient of ignored elements would be NaN.
    apart = torch.where(there, x - torch.nanmean(x, axes, keepdim=True), 0)
    squares = (apart * apart.conj()).real if x.is_complex() else apart * apart
    left = there.sum(axes, keepdim=keepdims) - (ddof if correction is None else correction)
    return torch.where(left > 0, squares.sum(axes, keepdim=keepdims) / left, math.nan)


def nanstd(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the square root of ``nanvar``."""
    return torch.sqrt(nanvar(x, *args, **kwargs))


# Extremes.


def nanmin(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the minimum, ignoring NaN; NaN for all-NaN slices."""
    return _extreme(xp.min, math.inf, x, axis, keepdims)


def nanmax(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the maximum, ignoring NaN; NaN for all-NaN slices."""
    return _extreme(xp.max, -math.inf, x, axis, keepdims)


def _extreme(function: Any, end: float, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    axes = _axes(x, axis)
    found: Tensor = function(_holes(x, end), axis=axes, keepdims=keepdims)
    if not x.is_floating_point():
        return found
    return torch.where(xp.all(torch.isnan(x), axis=axes, keepdims=keepdims), math.nan, found)


def nanargmin(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the minimum, ignoring NaN; all-NaN slices raise, which waits for GPUs."""
    return _index(torch.argmin, math.inf, x, axis, keepdims)


def nanargmax(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the maximum, ignoring NaN; all-NaN slices raise."""
    return _index(torch.argmax, -math.inf, x, axis, keepdims)


def _index(function: Any, end: float, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if x.is_floating_point() and xp.any(xp.all(torch.isnan(x), axis=axis)):
        raise ValueError("All-NaN slice encountered")
    found: Tensor = function(_holes(x, end), axis, keepdim=keepdims)
    return found


# Quantiles.


def quantile(
    x: Tensor, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return quantiles, along a new first axis if ``q`` has one; NaN if there is a NaN."""
    return _quantiles(False, x, q, axis, method, keepdims)


def nanquantile(
    x: Tensor, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return quantiles, ignoring NaN."""
    return _quantiles(True, x, q, axis, method, keepdims)


def median(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the median; for an even number the mean of the middle two, unlike ``torch.median``."""
    return quantile(x, 0.5, axis, keepdims=keepdims)


def nanmedian(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the median, ignoring NaN."""
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


def _quantiles(skip: bool, x: Tensor, q: Any, axis: Any, method: str, keepdims: bool) -> Tensor:
    """Compute quantiles by sorting, as ``torch.quantile`` does up to 2**24 elements."""
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
    x, axes = _floating(x), _axes(x, axis)
    q = q if isinstance(q, Tensor) else numpy.array(q, numpy.float64)
    q = torch.as_tensor(q, dtype=torch.float64, device=x.device)
    if not bool(((q >= 0) & (q <= 1)).all()):
        raise ValueError("quantiles must be in the range [0, 1]")
    kept = [i for i in range(x.ndim) if i not in axes]
    flat = x.permute(*kept, *axes).reshape([*(x.shape[i] for i in kept), -1])
    if not flat.shape[-1]:
        raise ValueError("an array without elements has no quantiles")
    ordered = flat.sort(-1).values  # NaNs last
    nans = torch.isnan(ordered).sum(-1)
    last = (flat.shape[-1] - 1 - nans).clamp(min=0) if skip else flat.shape[-1] - 1
    at = q.reshape(-1, *[1] * len(kept)) * last * torch.ones_like(nans)  # (q, *kept), float64
    ends = ordered.expand(*at.shape, flat.shape[-1])
    low, high = (
        ends.gather(-1, end.long().unsqueeze(-1)).squeeze(-1) for end in (at.floor(), at.ceil())
    )
    found = _METHODS[method](low, high, at)
    if not skip:
        found = torch.where(nans > 0, torch.nan, found)
    if keepdims:
        return found.reshape([*q.shape, *(1 if i in axes else n for i, n in enumerate(x.shape))])
    return found.reshape([*q.shape, *found.shape[1:]])


#: How a quantile is interpolated between two elements.
_METHODS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "linear": lambda low, high, at: torch.lerp(low, high, (at - at.floor()).to(low.dtype)),
    "lower": lambda low, high, at: low,
    "higher": lambda low, high, at: high,
    "nearest": lambda low, high, at: torch.where(at.round() == at.floor(), low, high),
    "midpoint": lambda low, high, at: (low + high) / 2,
}


# Products, differences, edges, windows.


def einsum(subscripts: str, *operands: Tensor) -> Tensor:
    """Return ``torch.einsum``, of operands of several dtypes too."""
    common = xp.result_type(*operands)
    return torch.einsum(subscripts, *(each.to(common) for each in operands))


def cross(x1: Tensor, x2: Tensor, axis: int = -1) -> Tensor:
    """Return the cross product along an axis of three elements."""
    found: Tensor = xp.linalg.cross(x1, x2, axis=axis)
    return found


def gradient(f: Tensor, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return central differences along each axis, for spacings or coordinates."""
    axes = _axes(f, axis)
    f = _floating(f)
    given = varargs * len(axes) if len(varargs) == 1 else varargs
    if len(given) not in (0, len(axes)):
        raise TypeError(f"gradient takes a spacing for each axis, got {len(given)} for {len(axes)}")
    found = []
    for i, each in itertools.zip_longest(axes, given, fillvalue=1.0):
        if numpy.ndim(each) or isinstance(each, Tensor):
            each = _beside(each, f)
            steps = torch.diff(each)
            if each.ndim and bool((steps == steps[:1]).all()):  # would skip the middle
                each = steps[0]
        spacing = (each,) if isinstance(each, Tensor) and each.ndim else float(each)
        found += torch.gradient(f, spacing=spacing, dim=i, edge_order=edge_order)
    return found[0] if len(axes) == 1 else tuple(found)


_INDICES = frozenset({"edge", "reflect", "symmetric", "wrap"})


def pad(
    x: Tensor,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    stat_length: Any = None,
) -> Tensor:
    """Pad each axis with a constant, or with copies of other elements.

    NotImplementedError for modes that compute elements ("mean", with ``stat_length``;
    "linear_ramp").
    """
    widths = numpy.broadcast_to(numpy.asarray(pad_width), (x.ndim, 2)).tolist()
    if mode in _INDICES:
        for axis, width in enumerate(widths):
            if any(width):
                indices = numpy.pad(numpy.arange(x.shape[axis]), width, mode)  # type: ignore[call-overload]
                x = x.index_select(axis, torch.as_tensor(indices, device=x.device))
        return x
    if mode != "constant":
        known = ", ".join(sorted(_INDICES))
        raise NotImplementedError(f"pad of PyTorch has the modes constant, {known}, got {mode!r}")
    values = numpy.broadcast_to(numpy.asarray(constant_values), (x.ndim, 2)).tolist()
    for axis, (width, value) in enumerate(zip(widths, values, strict=True)):
        if any(width):
            before, after = (_block(x, axis, n, v) for n, v in zip(width, value, strict=True))
            x = torch.cat([before, x, after], axis)
    return x


def _block(x: Tensor, axis: int, length: int, value: Any) -> Tensor:
    shape = [length if i == axis else n for i, n in enumerate(x.shape)]
    return x.new_full(shape, fitting(value, x.dtype))


def sliding_window_view(
    x: Tensor, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tensor:
    """Return a view of all windows, with their axes last; with torch it is writable."""
    lengths = tuple(numpy.atleast_1d(window_shape).tolist())
    axes = _axes(x, axis)
    if len(axes) != len(lengths):
        raise ValueError(f"got {len(lengths)} window lengths for {len(axes)} axes")
    for each, length in zip(axes, lengths, strict=True):
        x = x.unfold(each, length, 1)
    return x
