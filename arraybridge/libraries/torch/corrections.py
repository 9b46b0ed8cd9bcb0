"""Corrections of PyTorch's deviations from the standard, except type promotion."""

from collections.abc import Callable
from typing import Any

import torch
from array_api_compat import torch as xp

from ...xp.asarray import from_dlpack
from ...xp.corrections import Corrected
from ...xp.special_values import Function, Means, complex_function, floor_divide, remainder
from .promotion import CORRECTIONS as OF_PROMOTION
from .promotion import in_range, promote_pair, promoting, replacing
from .state import differentiated, transformed

_UNSIGNED = frozenset({torch.uint8, torch.uint16, torch.uint32, torch.uint64})
_INTEGERS = _UNSIGNED | {torch.int8, torch.int16, torch.int32, torch.int64}


def _described(plain: Any) -> Any:
    """Make ``finfo`` or ``iinfo`` whose dtype is a dtype; torch's own has its name."""

    def function(type: Any, /) -> Corrected:
        own = plain(type)
        return Corrected(own, dtype=getattr(torch, own.dtype))

    return replacing(function, plain)


def asarray(obj: Any, /, **kwargs: Any) -> torch.Tensor:
    """Create a tensor, which keeps gradients without torch's warning of them."""
    if isinstance(obj, torch.Tensor):
        kwargs.setdefault("requires_grad", obj.requires_grad)
    return xp.asarray(obj, **kwargs)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, **kwargs: Any
) -> torch.Tensor:
    """Return evenly spaced values; integers are rounded down, as in NumPy."""
    kind = dtype or torch.get_default_dtype()
    if dtype in _INTEGERS or any(
        isinstance(x, int | float) and in_range(x, kind) != x for x in (start, stop)
    ):  # torch lacks unsigned integers, and numbers beyond the dtype
        exact = xp.linspace(start, stop, num, dtype=torch.float64, **kwargs)
        return (exact.floor() if dtype in _INTEGERS else exact).to(kind)
    return xp.linspace(start, stop, num, dtype=dtype, **kwargs)


def diff(x: Any, /, n: int = 1, axis: int = -1, **ends: Any) -> torch.Tensor:
    """Take the order of differences by position too, as scikit-learn's curves do."""
    if x.is_complex():  # by parts, as `subtract`
        given = {name: end for name, end in ends.items() if end is not None}
        parts = [
            diff(part(x), n, axis, **{name: part(end) for name, end in given.items()})
            for part in (torch.real, torch.imag)
        ]
        return torch.complex(*parts)
    return xp.diff(x, axis=axis, n=n, **ends)


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
    traced, eager = (complex_function(means, name) for means in (MEANS, MEANS._replace(eager=True)))

    def function(x: torch.Tensor, /, **kwargs: Any) -> torch.Tensor:
        if not x.is_complex():
            return plain(x, **kwargs)
        return (traced if transformed() else eager)(x, **kwargs)

    return replacing(function, plain)


# Reductions, which torch computes as int64 also of unsigned integers.


def _accumulating(plain: Function, own: Function) -> Function:
    """Make ``sum`` or ``prod`` unsigned of unsigned elements, by int64, which has the same bits."""

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


def _unsigned(plain: Function) -> Function:
    """Make ``cumulative_sum``, ``cumulative_prod`` or ``trace`` of unsigned integers unsigned."""

    def function(x: Any, /, *, dtype: Any = None, **kwargs: Any) -> Any:
        if dtype is None and x.dtype in _UNSIGNED:
            return plain(x, dtype=torch.int64, **kwargs).to(torch.uint64)
        return plain(x, dtype=dtype, **kwargs)

    return replacing(function, plain)


def roll(x: Any, /, shift: Any, *, axis: Any = None, **kwargs: Any) -> Any:
    """Roll elements; one shift is that of all axes."""
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return torch.roll(x, shift, axis, **kwargs)


# Indices, which torch takes as int64.


def take(x: Any, indices: Any, /, *, axis: int | None = None, **kwargs: Any) -> torch.Tensor:
    """Return elements along an axis by their indices, which may be negative."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError("take needs axis= for an array of several axes")
        axis = 0
    indices = indices.long()
    indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    return torch.index_select(x, axis, indices, **kwargs)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> torch.Tensor:
    """Return elements along an axis by separate indices for each place of the other axes.

    torch's own reads index 5 of 4 elements as index 1; on a device a check would wait.
    """
    extent, indices = x.shape[axis], indices.long()
    if indices.is_cpu and not transformed():
        outside = (indices < -extent) | (indices >= extent)
        if outside.any():
            raise IndexError(f"an index is out of bounds for axis {axis} with {extent} elements")
    return torch.take_along_dim(x, indices, dim=axis)


def searchsorted(
    x1: torch.Tensor, x2: Any, /, *, side: str = "left", sorter: Any = None, **kwargs: Any
) -> torch.Tensor:
    """Find insertion points in the order of `sort`: NaN after all numbers."""
    if not isinstance(x2, torch.Tensor):
        x2 = torch.as_tensor(x2, dtype=x1.dtype, device=x1.device)
    x1, x2 = promote_pair(x1, x2)
    kwargs |= {"side": side, "sorter": sorter}
    numbers_only = not x1.is_floating_point()
    if not numbers_only and x1.is_cpu and sorter is None and not transformed():
        numbers_only = not (x1[..., -1:].isnan().any() or x2.isnan().any())
    if numbers_only:
        return torch.searchsorted(x1, x2, **kwargs)
    nan = torch.isnan(x1)
    numbers = torch.sum(~nan, dim=-1, keepdim=x1.ndim > 1)
    found = torch.searchsorted(torch.where(nan, torch.inf, x1), x2, **kwargs)
    of_nan = numbers if side == "left" else x1.shape[-1]
    return torch.where(torch.isnan(x2), of_nan, torch.minimum(found, numbers))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape to which all broadcast; ValueError if there is none."""
    try:
        return tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from error


# Numbers are those of issues of PyTorch.
CORRECTIONS: dict[str, Callable[..., Any]] = {
    **OF_PROMOTION,
    "asarray": asarray,
    # Memory that may not be written is not written, and any strides are taken: 188023.
    "from_dlpack": from_dlpack("torch"),
    "finfo": _described(xp.finfo),
    "iinfo": _described(xp.iinfo),
    # Infinity by a finite number is infinity, the reverse zero: 170178.
    "floor_divide": floor_divide(MEANS, promoting(_floor_divide)),
    # A zero has the sign of the divisor: 193755.
    "remainder": remainder(MEANS, promoting(torch.remainder)),
    # Special cases of complex numbers: 39128, 40590.
    **{name: _complex_function(name) for name in ("acos", "expm1", "log1p", "tanh")},
    # Unsigned integers stay unsigned: data-apis/array-api-compat#298.
    "sum": _accumulating(xp.sum, torch.sum),
    "prod": _accumulating(xp.prod, torch.prod),
    "cumulative_sum": _unsigned(xp.cumulative_sum),
    "cumulative_prod": _unsigned(xp.cumulative_prod),
    "linalg.trace": _unsigned(xp.linalg.trace),
    "roll": roll,
    # Indices of any integer dtype; negative ones: 146211.
    "take": take,
    "take_along_axis": take_along_axis,
    # NaN comes last, as in sort; array-api-extra tests it.
    "searchsorted": searchsorted,
    "linspace": linspace,
    "diff": diff,
    "broadcast_shapes": broadcast_shapes,
}
