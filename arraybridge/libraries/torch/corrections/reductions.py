"""Corrected reductions, ``roll`` and ``unique_all`` for PyTorch."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from array_api_compat import torch as xp

from ....xp.corrections import Correction
from ....xp.corrections.differences import differences
from ....xp.corrections.special_cases import deviation
from .promotion import replacing

Function = Callable[..., Any]

_UNSIGNED = frozenset({torch.uint8, torch.uint16, torch.uint32, torch.uint64})


def _accumulating(plain: Function) -> Function:
    """A sum or product whose result is unsigned if the elements are.

    It is computed as int64, which has the same bits, as few functions take uint64.
    """

    def function(
        x: torch.Tensor,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        **kwargs: Any,
    ) -> torch.Tensor:
        unsigned = dtype is None and x.dtype in _UNSIGNED
        if unsigned:
            dtype = torch.int64
        if keepdims:
            kwargs["keepdims"] = keepdims
        # even an empty ** costs time
        result = (
            plain(x, axis=axis, dtype=dtype, **kwargs)
            if kwargs
            else plain(x, axis=axis, dtype=dtype)
        )
        return result.to(torch.uint64) if unsigned else result

    return replacing(function, plain)


sum_ = _accumulating(xp.sum)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums of the diagonals of a stack of matrices."""
    return sum_(torch.diagonal(x, offset=offset, dim1=-2, dim2=-1), axis=-1, dtype=dtype)


def _deviating(plain: Function) -> Function:
    """``std`` or ``var`` with a real correction, along no axes too."""

    def function(
        x: torch.Tensor,
        /,
        *,
        axis: Any = None,
        correction: Any = 0.0,
        keepdims: bool = False,
        **kwargs: Any,
    ) -> torch.Tensor:
        if axis is None:
            axis = tuple(range(x.ndim))
        if axis == ():  # of one element each; torch's own would take all axes
            return plain(x.unsqueeze(-1), -1, correction=correction, **kwargs)
        return plain(x, axis, correction=correction, keepdim=keepdims, **kwargs)

    function.__name__ = function.__qualname__ = plain.__name__
    return deviation(function)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Count nonzero elements; along no axes each counts for itself."""
    if not isinstance(axis, int | tuple | None):
        axis = operator.index(axis)  # array-api-compat mistakes integers of NumPy with keepdims
    if axis == ():  # torch's own would take all axes
        return (x != 0).long()
    return xp.count_nonzero(x, axis=axis, keepdims=keepdims)


def roll(x: Any, /, shift: Any, *, axis: Any = None, **kwargs: Any) -> Any:
    """Roll elements; a single shift applies to all axes."""
    if isinstance(axis, tuple) and not isinstance(shift, tuple):
        shift = (shift,) * len(axis)
    return xp.roll(x, shift, axis=axis, **kwargs)


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
    differences(xp),
    *(
        Correction(
            name,
            _accumulating(getattr(xp, name)),
            f"{name}: unsigned integers stay unsigned",
            "https://github.com/data-apis/array-api-compat/pull/298",
            lambda xp, name=name: getattr(xp, name)(xp.ones(2, dtype=xp.uint8)).dtype != xp.uint64,  # type: ignore[misc]
        )
        for name in ("sum", "prod", "cumulative_sum", "cumulative_prod")
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
    Correction(
        "unique_all",
        unique_all,
        "unique_all: indices of the first occurrences",
        "https://github.com/pytorch/pytorch/issues/36748",
        lambda xp: xp.unique_all(xp.asarray([2, 1, 2])).indices.shape != (2,),
    ),
)
