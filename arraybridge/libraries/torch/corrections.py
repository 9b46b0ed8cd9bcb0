"""Corrections of PyTorch's deviations from the standard, except type promotion."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy
import torch
from array_api_compat import torch as xp

from ...array.indexing import elements_along
from ...xp import corrections
from ...xp.corrections import Correction
from ...xp.dtypes import Corrected
from ...xp.special_values import (
    Function,
    Means,
    complex_function,
    deviation,
    floor_divide,
    remainder,
    turned,
)
from .promotion import CORRECTIONS as OF_PROMOTION
from .promotion import PROMOTED, promote_pair, promoting, replacing
from .state import check_shape, differentiated, transformed

_UNSIGNED = frozenset({torch.uint8, torch.uint16, torch.uint32, torch.uint64})

# Data types.


def _described(plain: Any) -> Any:
    """Make ``finfo`` or ``iinfo`` whose dtype is a dtype; torch's own has its name."""

    def function(type: Any, /) -> Corrected:
        own = plain(type)
        return Corrected(own, dtype=getattr(torch, own.dtype))

    return replacing(function, plain)


def can_cast(from_: Any, to: torch.dtype, /) -> bool:
    """Return whether one dtype promotes to another; torch's own also allows narrowing."""
    if isinstance(from_, torch.Tensor):
        from_ = from_.dtype
    return from_ == to or PROMOTED.get((from_, to)) == to


# Creation.


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None, **kwargs: Any
) -> torch.Tensor:
    """Create a tensor of numbers that the data type holds; keep gradients."""
    if isinstance(obj, torch.Tensor):
        check_shape(obj)
        device = obj.device if device is None else device  # torch's own default differs
        # torch's own warns of gradients, although it keeps them.
        kwargs.setdefault("requires_grad", obj.requires_grad)
    elif dtype in _UNSIGNED:  # torch's own wraps negative numbers
        obj = numpy.asarray(obj, str(dtype).removeprefix("torch."), copy=copy)
    try:
        return torch.asarray(obj, dtype=dtype, device=device, copy=copy, **kwargs)
    except (RuntimeError, ValueError) as error:
        if "verflow" in str(error):
            raise OverflowError(f"{error}: pass a dtype that holds the numbers") from None
        if "infer dtype" in str(error):
            raise TypeError(str(error)) from None
        raise


def _integer_name(dtype: Any) -> str | None:
    name = str(dtype).removeprefix("torch.")
    return name if name.removeprefix("u").startswith("int") else None


def _from_numpy(x: numpy.ndarray, *, dtype: torch.dtype, device: Any) -> torch.Tensor:
    return torch.asarray(x, dtype=dtype, device=device)


# Special cases.


def _turned_zero(x: torch.Tensor) -> torch.Tensor:
    """Compute ``-x`` with the derivative of ``x``."""
    if not differentiated(x):
        return -x
    value = x.detach()
    return -value - (value - x)  # minus +0, which preserves -0 and +0


MEANS = Means(
    xp,
    floating=lambda dtype: dtype.is_floating_point,
    complex_floating=lambda dtype: dtype.is_complex,
    complex=torch.complex,
    detach=torch.Tensor.detach,
    turned_zero=_turned_zero,
)


def _floor_divide(x1: Any, x2: Any, /, **kwargs: Any) -> torch.Tensor:
    """Compute ``floor_divide`` with a derivative (zero), which torch's own lacks."""
    if isinstance(x1, torch.Tensor):
        return torch.div(x1, x2, rounding_mode="floor", **kwargs)
    return xp.floor_divide(x1, x2, **kwargs)


def _complex_function(name: str) -> Function:
    """Make a complex function that reads values for special cases, unless it is traced."""
    plain = getattr(xp, name)
    traced, eager = (_special(means, name) for means in (MEANS, MEANS._replace(eager=True)))

    def function(x: torch.Tensor, /, **kwargs: Any) -> torch.Tensor:
        if not x.is_complex():
            return plain(x, **kwargs)
        return (traced if transformed() else eager)(x, **kwargs)

    return replacing(function, plain)


def _special(means: Means, name: str) -> Function:
    if name == "tan":
        return turned(means, name, complex_function(means, "tanh"))
    return complex_function(means, name)


# Reductions, roll, unique_all.


def _accumulating(plain: Function, own: Function) -> Function:
    """Make ``sum`` or ``prod`` whose result is unsigned if the elements are.

    They are computed as int64, which has the same bits, since few functions support uint64.
    """

    def function(
        x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False, **kwargs: Any
    ) -> Any:
        if dtype is None and x.dtype in _UNSIGNED:
            kwargs |= {"axis": axis, "keepdims": keepdims}
            return function(x, dtype=torch.int64, **kwargs).to(torch.uint64)
        if axis is None and not keepdims:
            return own(x, dtype=dtype, **kwargs)
        if isinstance(axis, int):
            return own(x, axis, dtype=dtype, keepdims=keepdims, **kwargs)
        # Several axes, or none, which torch reads as all.
        return plain(x, axis=axis, dtype=dtype, keepdims=keepdims, **kwargs)

    return replacing(function, plain)


def _cumulative(plain: Function, own: Function) -> Function:
    """Make ``cumulative_sum`` or ``cumulative_prod`` that keeps unsigned integers unsigned."""

    def function(
        x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False,
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        if dtype is None and x.dtype in _UNSIGNED:
            kwargs |= {"axis": axis, "include_initial": include_initial}
            return function(x, dtype=torch.int64, **kwargs).to(torch.uint64)
        if axis is None and x.ndim < 2:
            axis = 0
        if axis is None or include_initial:
            return plain(x, axis=axis, dtype=dtype, include_initial=include_initial, **kwargs)
        return own(x, axis, dtype=dtype, **kwargs)

    return replacing(function, plain)


_sum = _accumulating(xp.sum, torch.sum)
_prod = _accumulating(xp.prod, torch.prod)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return the sums of the diagonals of a stack of matrices."""
    return _sum(torch.diagonal(x, offset=offset, dim1=-2, dim2=-1), axis=-1, dtype=dtype)


def _deviating(own: Function) -> Function:
    """Make ``std`` or ``var`` with any correction, along no axis too."""

    def plain(x: Any, axis: Any, correction: float, keepdims: bool, **kwargs: Any) -> Any:
        axes = tuple(range(x.ndim)) if axis is None else axis
        if axes == ():  # one element each; torch's own would reduce all axes
            return own(x.unsqueeze(-1), -1, correction=correction, **kwargs)
        return own(x, axes, correction=correction, keepdim=keepdims, **kwargs)

    plain.__name__ = own.__name__
    return deviation(plain)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Count nonzero elements; along no axes, each separately."""
    if not isinstance(axis, int | tuple | None):
        axis = operator.index(axis)  # array-api-compat misreads NumPy integers with keepdims
    if axis == ():  # torch's own would reduce all axes
        return (x != 0).long()
    if keepdims:
        return xp.count_nonzero(x, axis=axis, keepdims=True)
    return torch.count_nonzero(x, dim=axis)


def roll(x: Any, /, shift: Any, *, axis: Any = None, **kwargs: Any) -> Any:
    """Roll elements; shifts and axes broadcast, and without axes nothing moves."""
    if axis is None:
        shift = sum(shift) if isinstance(shift, tuple) else shift
        return torch.roll(x, shift, **kwargs)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,)
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    elif len(axes) == 1:
        axes = axes * len(shifts)
    if not (axes or shifts):
        return x.clone()
    if len(axes) != len(shifts):
        raise ValueError(f"{len(shifts)} shifts and {len(axes)} axes do not broadcast")
    return torch.roll(x, shifts, axes, **kwargs)


def vector_norm(
    x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2, **kwargs: Any
) -> Any:
    """Compute norms of vectors: of single elements along no axes, and of empty ones."""
    if axis == ():
        return xp.linalg.vector_norm(x.unsqueeze(-1), axis=-1, ord=ord, **kwargs)
    refused_empty = (ord < 0 or ord == math.inf) and ord != -math.inf
    if refused_empty and not elements_along(tuple(x.shape), axis):
        found = xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=2, **kwargs)
        return found if ord > 0 else found + math.inf  # a power of 0
    return xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord, **kwargs)


def unique_all(x: Any, /) -> xp.UniqueAllResult:
    """Return unique values, first indices, inverse indices and counts."""
    flat = x.reshape(-1)
    ordered, order = torch.sort(flat, stable=True)
    first = torch.ones(flat.shape, dtype=torch.bool, device=x.device)
    first[1:] = ordered[1:] != ordered[:-1]  # each NaN is a separate value
    starts = torch.nonzero(first)[:, 0]
    inverse = torch.empty_like(order)
    inverse[order] = torch.cumsum(first, 0) - 1
    end = torch.full((1,), flat.shape[0], device=x.device)
    counts = torch.diff(starts, append=end)
    return xp.UniqueAllResult(ordered[starts], order[starts], inverse.reshape(x.shape), counts)


# Indices and repeats as arrays.

_OTHER_INTEGERS = _UNSIGNED | {torch.int8, torch.int16, torch.int32}


def _long(x: Any) -> Any:
    """Convert integers to int64, which torch always accepts.

    It also holds the negative indices, to which an extent is added; narrow integers would overflow.
    """
    return x.long() if isinstance(x, torch.Tensor) and x.dtype in _OTHER_INTEGERS else x


def _out_of_bounds(error: Exception) -> Exception:
    """Return an IndexError for an index out of bounds of any dtype; other errors as they are."""
    said = str(error)
    return IndexError(said) if "out of" in said and "bounds" in said else error


def take(x: Any, indices: Any, /, *, axis: int | None = None, **kwargs: Any) -> torch.Tensor:
    """Return elements along an axis by their indices."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError("take needs axis= for an array of several axes")
        axis = 0
    if indices.__class__ is int:  # beyond the standard: drop the axis, as NumPy does
        return x.select(axis, indices)
    indices = _long(indices)
    indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    try:
        return torch.index_select(x, axis, indices, **kwargs)
    except RuntimeError as error:
        raise _out_of_bounds(error) from None


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> torch.Tensor:
    """Return elements along an axis by separate indices for each place of the other axes.

    torch's own reads index 5 of 4 elements as index 1. On the CPU `gather` checks at no cost; on a
    device its check would abort the process.
    """
    indices = _long(indices)
    if not -x.ndim <= axis < x.ndim:
        return xp.take_along_axis(x, indices, axis=axis)
    extent = x.shape[axis]
    indices = torch.where(indices < 0, indices + extent, indices)
    if x.device.type != "cpu" or x.ndim != indices.ndim:
        return torch.take_along_dim(x, indices, dim=axis)
    shapes = [list(each.shape) for each in (x, indices)]
    shapes[0][axis] = shapes[1][axis] = 1
    if shapes[0] != shapes[1]:
        common = list(torch.broadcast_shapes(*shapes))
        common[axis] = -1
        x, indices = x.expand(common), indices.expand(common)
    try:
        return torch.gather(x, axis, indices)
    except RuntimeError as error:
        raise _out_of_bounds(error) from None


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> torch.Tensor:
    """Repeat each element a number of times."""
    return torch.repeat_interleave(x, _long(repeats), axis)


def searchsorted(
    x1: torch.Tensor, x2: Any, /, *, side: str = "left", sorter: Any = None, **kwargs: Any
) -> torch.Tensor:
    """Find insertion points in the order of `sort`: NaN after all numbers."""
    if not isinstance(x2, torch.Tensor):
        x2 = torch.as_tensor(x2, dtype=x1.dtype, device=x1.device)
    x1, x2 = promote_pair(x1, x2)
    if kwargs.pop("right", False):
        side = "right"
    if not x1.is_floating_point() or _without_nan(x1, x2, sorter):
        return torch.searchsorted(x1, x2, side=side, sorter=sorter, **kwargs)
    nan = torch.isnan(x1)
    numbers = torch.count_nonzero(~nan, dim=-1)
    if x1.ndim > 1:
        numbers = numbers.unsqueeze(-1)
    filled = torch.where(nan, torch.inf, x1)
    found = torch.searchsorted(filled, x2, side=side, sorter=sorter, **kwargs)
    of_nan = numbers if side == "left" else x1.shape[-1]
    found = torch.where(torch.isnan(x2), of_nan, torch.minimum(found, numbers))
    return found.to(torch.int32) if kwargs.get("out_int32") else found


def _without_nan(x1: torch.Tensor, x2: torch.Tensor, sorter: Any) -> bool:
    """Whether a quick check finds no NaN: on the CPU, if nothing is traced."""
    if x1.device.type != "cpu" or transformed():
        return False
    if not x1.numel():
        return True
    last = x1[..., -1] if sorter is None else torch.take_along_dim(x1, sorter[..., -1:], -1)
    return not (torch.isnan(last).any() or torch.isnan(x2).any())


# Broadcasting: shapes that do not broadcast raise ValueError.


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape to which all broadcast."""
    try:
        return tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise _refusal(shapes) from error


def broadcast_arrays(*arrays: Any) -> tuple[torch.Tensor, ...]:
    """Return arrays as views of the shape to which all broadcast."""
    if not arrays:
        return ()
    try:
        shape = torch.broadcast_tensors(*arrays)[0].shape
    except RuntimeError as error:
        raise _refusal([tuple(x.shape) for x in arrays]) from error
    return tuple([x.expand(shape) for x in arrays])  # broadcast_tensors may return `x` itself


def broadcast_to(x: Any, /, shape: Any) -> torch.Tensor:
    """Return an array as a view of a shape to which it broadcasts."""
    try:
        return torch.broadcast_to(x, shape)
    except RuntimeError as error:
        raise ValueError(
            f"an array of shape {tuple(x.shape)} cannot be broadcast to {tuple(shape)}"
        ) from error


def _refusal(shapes: Any) -> ValueError:
    given = ", ".join(map(str, shapes))
    return ValueError(f"the shapes {given} cannot be broadcast to a single shape")


_NONE = "no issue known"
_COMPAT = "https://github.com/data-apis/array-api-compat/pull/298"
_TORCH = "https://github.com/pytorch/pytorch/issues"
_BROADCAST = "a ValueError if the shapes do not broadcast"
_INDICES = "indices of any integer data type; out of bounds they are an IndexError"

# fmt: off
CORRECTIONS: tuple[Correction, ...] = (
    *OF_PROMOTION,
    corrections.diff(torch),
    corrections.linspace(xp, torch.linspace, _integer_name, _from_numpy),
    corrections.from_dlpack(
        "torch", f"{_TORCH}/188023",
        "memory that may not be written is not written, and any strides are taken",
    ),
    Correction("finfo", _described(xp.finfo), "finfo: dtype is a data type", _NONE),
    Correction("iinfo", _described(xp.iinfo), "iinfo: dtype is a data type", _NONE),
    Correction(
        "floor_divide", floor_divide(MEANS, promoting(_floor_divide)),
        "floor_divide: an infinity by a finite number is infinity, a finite number by it zero",
        f"{_TORCH}/170178",
    ),
    Correction(
        "remainder", remainder(MEANS, promoting(torch.remainder)),
        "remainder: a zero has the sign of the divisor", f"{_TORCH}/193755",
    ),
    *(
        Correction(
            name, _complex_function(name), f"{name}: special cases of complex numbers",
            f"{_TORCH}/39128 and 40590",
        )
        for name in ("acos", "expm1", "log1p", "tan", "tanh")
    ),
    *(
        Correction(name, function, f"{name}: unsigned integers stay unsigned", _COMPAT)
        for name, function in (
            ("sum", _sum),
            ("prod", _prod),
            ("cumulative_sum", _cumulative(xp.cumulative_sum, torch.cumsum)),
            ("cumulative_prod", _cumulative(xp.cumulative_prod, torch.cumprod)),
            ("linalg.trace", trace),
        )
    ),
    Correction("std", _deviating(torch.std), "std: correction is a real number", f"{_TORCH}/61492"),
    Correction(
        "var", _deviating(torch.var),
        "var: NaN of fewer elements than the correction, along no axis too", f"{_TORCH}/29137",
    ),
    *corrections.shifts(xp.fft, torch.clone),
    Correction(
        "linalg.vector_norm", vector_norm,
        "linalg.vector_norm: of an array of no axes; 0 of no elements by the infinite order",
        f"{_TORCH}/29137",
    ),
    *(
        Correction(function.__name__, function, f"{function.__name__}: {clause}", upstream)
        for function, clause, upstream in (
            (asarray, "an integer that the data type does not hold is an OverflowError", _NONE),
            (broadcast_arrays, _BROADCAST, _NONE),
            (broadcast_shapes, _BROADCAST, _NONE),
            (broadcast_to, _BROADCAST, _NONE),
            (can_cast, "by type promotion", f"{_TORCH}/126014"),
            (count_nonzero, "along no axis each element counts for itself", f"{_TORCH}/29137"),
            (repeat, "repeats of any integer data type", f"{_TORCH}/151311"),
            (roll, "one shift goes for all axes", _NONE),
            (searchsorted, "as sort orders, NaN included; two data types are promoted", _NONE),
            (take, _INDICES, _NONE),
            (take_along_axis, _INDICES, f"{_TORCH}/146211, of negative ones"),
            (unique_all, "indices of the first occurrences", f"{_TORCH}/36748"),
        )
    ),
)
# fmt: on
