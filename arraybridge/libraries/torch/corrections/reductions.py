"""Corrected reductions, ``roll`` and ``unique_all`` for PyTorch."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from array_api_compat import torch as xp

from ....xp.corrections import Correction
from ....xp.corrections.differences import differences
from ....xp.corrections.empty import has_no_elements
from .promotion import replacing

Function = Callable[..., Any]

_UNSIGNED = frozenset({torch.uint8, torch.uint16, torch.uint32, torch.uint64})


def _accumulating(plain: Function, own: Function) -> Function:
    """``sum`` or ``prod`` whose result is unsigned if the elements are.

    It is computed as int64, which has the same bits, as few functions take uint64.
    """

    def function(
        x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False, **kwargs: Any
    ) -> Any:
        unsigned = dtype is None and x.dtype in _UNSIGNED
        if unsigned:
            dtype = torch.int64
        if axis is None and not keepdims:
            result = own(x, dtype=dtype, **kwargs)
        elif isinstance(axis, int):
            result = own(x, axis, dtype=dtype, keepdims=keepdims, **kwargs)
        else:  # several axes, or none, of which torch makes all
            result = plain(x, axis=axis, dtype=dtype, keepdims=keepdims, **kwargs)
        return result.to(torch.uint64) if unsigned else result

    return replacing(function, plain)


def _alone(own: Function, accumulating: Function) -> Function:
    """Return what ``sum`` or ``prod`` does with a single tensor."""

    def function(x: Any) -> Any:
        return accumulating(x) if x.dtype in _UNSIGNED else own(x)

    return function


def _cumulative(plain: Function, own: Function) -> Function:
    """``cumulative_sum`` or ``cumulative_prod`` whose result is unsigned if the elements are."""

    def function(
        x: Any,
        /,
        *,
        axis: int | None = None,
        dtype: Any = None,
        include_initial: bool = False,
        **kwargs: Any,
    ) -> Any:
        unsigned = dtype is None and x.dtype in _UNSIGNED
        if unsigned:
            dtype = torch.int64
        if axis is None and x.ndim < 2:
            axis = 0
        if axis is None or include_initial:
            result = plain(x, axis=axis, dtype=dtype, include_initial=include_initial, **kwargs)
        else:
            result = own(x, axis, dtype=dtype, **kwargs)
        return result.to(torch.uint64) if unsigned else result

    return replacing(function, plain)


_sum = _accumulating(xp.sum, torch.sum)
_prod = _accumulating(xp.prod, torch.prod)

# What array-api-compat's functions, and these, do with a single tensor.
ALONE = {
    "sum": _alone(torch.sum, _sum),
    "prod": _alone(torch.prod, _prod),
    "max": torch.amax,
    "min": torch.amin,
}


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums of the diagonals of a stack of matrices."""
    return _sum(torch.diagonal(x, offset=offset, dim1=-2, dim2=-1), axis=-1, dtype=dtype)


def _deviating(own: Function) -> Function:
    """``std`` or ``var`` with any correction, along no axis too.

    NaN where the correction takes all degrees of freedom.
    """

    def function(
        x: Any,
        /,
        *,
        axis: Any = None,
        correction: float = 0.0,
        keepdims: bool = False,
        **kwargs: Any,
    ) -> Any:
        axes = tuple(range(x.ndim)) if axis is None else axis
        if axes == ():  # of one element each; torch's own would take all axes
            result = own(x.unsqueeze(-1), -1, correction=correction, **kwargs)
        else:
            result = own(x, axes, correction=correction, keepdim=keepdims, **kwargs)
        if not correction:
            return result
        axes = axes if isinstance(axes, tuple) else (axes,)
        none_left = math.prod([x.shape[each] for each in axes]) <= correction
        return result * math.nan if none_left else result

    function.__name__ = function.__qualname__ = own.__name__
    return function


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Count nonzero elements; along no axes each counts for itself."""
    if not isinstance(axis, int | tuple | None):
        axis = operator.index(axis)  # array-api-compat mistakes integers of NumPy with keepdims
    if axis == ():  # torch's own would take all axes
        return (x != 0).long()
    if keepdims:
        return xp.count_nonzero(x, axis=axis, keepdims=True)
    return torch.count_nonzero(x, dim=axis)


def roll(x: Any, /, shift: Any, *, axis: Any = None, **kwargs: Any) -> Any:
    """Roll elements; shifts and axes broadcast, and along no axes nothing moves."""
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


def _shifted(plain: Function) -> Function:
    """``fftshift`` or ``ifftshift`` along no axes, too."""

    def function(x: Any, /, *, axes: Any = None, **kwargs: Any) -> Any:
        if axes == () or (axes is None and not x.ndim):
            return x.clone()
        return plain(x, axes=axes, **kwargs)

    return replacing(function, plain)


def vector_norm(
    x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2, **kwargs: Any
) -> Any:
    """Norms of vectors, of one element each along no axes; of none, as sums and powers give."""
    if axis == ():
        return xp.linalg.vector_norm(x.unsqueeze(-1), axis=-1, ord=ord, **kwargs)
    if (ord < 0 or ord == math.inf) and ord != -math.inf and has_no_elements(tuple(x.shape), axis):
        found = xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=2, **kwargs)
        return found if ord > 0 else found + math.inf  # a power of 0
    return xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord, **kwargs)


def unique_all(x: Any, /) -> xp.UniqueAllResult:
    """Unique values, first indices, inverse indices and counts."""
    flat = x.reshape(-1)
    ordered, order = torch.sort(flat, stable=True)
    first = torch.ones(flat.shape, dtype=torch.bool, device=x.device)
    first[1:] = ordered[1:] != ordered[:-1]  # each NaN is a value of its own
    starts = torch.nonzero(first)[:, 0]
    inverse = torch.empty_like(order)
    inverse[order] = torch.cumsum(first, 0) - 1
    end = torch.full((1,), flat.shape[0], device=x.device)
    counts = torch.diff(starts, append=end)
    return xp.UniqueAllResult(ordered[starts], order[starts], inverse.reshape(x.shape), counts)


CORRECTIONS = (
    differences(torch),
    *(
        Correction(
            name,
            function,
            f"{name}: unsigned integers stay unsigned",
            "https://github.com/data-apis/array-api-compat/pull/298",
            lambda xp, name=name: getattr(xp, name)(xp.ones(2, dtype=xp.uint8)).dtype != xp.uint64,  # type: ignore[misc]
        )
        for name, function in (
            ("sum", _sum),
            ("prod", _prod),
            ("cumulative_sum", _cumulative(xp.cumulative_sum, torch.cumsum)),
            ("cumulative_prod", _cumulative(xp.cumulative_prod, torch.cumprod)),
        )
    ),
    Correction(
        "linalg.trace",
        trace,
        "linalg.trace: unsigned integers stay unsigned",
        "https://github.com/data-apis/array-api-compat/pull/298",
        lambda xp: xp.linalg.trace(xp.ones((2, 2), dtype=xp.uint8)).dtype != xp.uint64,
    ),
    Correction(
        "std",
        _deviating(torch.std),
        "std: correction is a real number",
        "https://github.com/pytorch/pytorch/issues/61492",
        lambda xp: not xp.isfinite(xp.std(xp.asarray([1.0, 2.0]), correction=0.5)),
    ),
    Correction(
        "var",
        _deviating(torch.var),
        "var: NaN of fewer elements than the correction, along no axis too",
        "https://github.com/pytorch/pytorch/issues/29137",
        lambda xp: not xp.isnan(xp.var(xp.asarray(1.0), axis=(), correction=1)),
    ),
    Correction(
        "count_nonzero",
        count_nonzero,
        "count_nonzero: along no axis each element counts for itself",
        "https://github.com/pytorch/pytorch/issues/29137",
        lambda xp: xp.count_nonzero(xp.ones(2), axis=()).shape != (2,),
    ),
    Correction(
        "roll",
        roll,
        "roll: one shift goes for all axes",
        "no issue known",
        lambda xp: xp.roll(xp.ones((2, 2)), 1, axis=(0, 1)).shape != (2, 2),
    ),
    *(
        Correction(
            f"fft.{name}",
            _shifted(getattr(xp.fft, name)),
            f"{name}: along no axes nothing is moved",
            "no issue known",
            lambda xp, name=name: getattr(xp.fft, name)(xp.ones(())).shape != (),  # type: ignore[misc]
        )
        for name in ("fftshift", "ifftshift")
    ),
    Correction(
        "linalg.vector_norm",
        vector_norm,
        "linalg.vector_norm: of an array of no axes; 0 of no elements by the infinite order",
        "https://github.com/pytorch/pytorch/issues/29137",
        lambda xp: xp.linalg.vector_norm(xp.ones(0), ord=math.inf) != 0,
    ),
    Correction(
        "unique_all",
        unique_all,
        "unique_all: indices of the first occurrences",
        "https://github.com/pytorch/pytorch/issues/36748",
        lambda xp: xp.unique_all(xp.asarray([2, 1, 2])).indices.shape != (2,),
    ),
)
