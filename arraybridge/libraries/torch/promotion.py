"""Corrected type promotion for PyTorch.

In PyTorch zero-dimensional arrays count less than others (``int8[3] + int64[]`` is int8), and
uint16, uint32 and uint64 cannot be combined with most other types: issues 58489 and 58734.
"""

import inspect
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy
import torch
from array_api_compat import torch as xp

from ...array.scalars import KINDS
from ...xp.corrections import COMPARISONS, by_value
from .tables import DLPACK_DTYPES

Function = Callable[..., Any]

_SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
_INTEGERS = (*_SIGNED, *_UNSIGNED)


def _numpys(one: torch.dtype, another: torch.dtype) -> torch.dtype:
    """Return NumPy's common dtype of two dtypes that NumPy also has."""
    names = [str(dtype).removeprefix("torch.") for dtype in (one, another)]
    common: torch.dtype = getattr(torch, numpy.promote_types(*names).name)
    return common


# The pairs that torch refuses; its own dtype of two others is right, whatever their axes.
_COMMON = {
    pair: common
    for unsigned in _UNSIGNED[1:]
    for other, common in (
        *((other, _numpys(unsigned, other)) for other in (torch.bool, *_INTEGERS)),
        *((other, other) for other in (torch.complex64, torch.complex128)),
    )
    for pair in ((unsigned, other), (other, unsigned))
}


def common_dtype(a: Any, b: Any) -> torch.dtype:
    """Return the common dtype of two; xarray passes names of dtypes."""
    a, b = (getattr(torch, x) if isinstance(x, str) else x for x in (a, b))
    common: torch.dtype = _COMMON.get((a, b)) or torch.promote_types(a, b)
    return common


def _is_inexact(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def can_cast(from_: Any, to: torch.dtype, /) -> bool:
    """Return whether one dtype promotes to another; torch's own (126014) also allows narrowing."""
    from_ = getattr(from_, "dtype", from_)
    if from_ == to or torch.bool in (from_, to) or _is_inexact(from_) != _is_inexact(to):
        return bool(from_ == to)
    return common_dtype(from_, to) == to


def promote_pair(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Convert two operands to their common dtype, if both are arrays."""
    if isinstance(x1, torch.Tensor) and isinstance(x2, torch.Tensor) and x1.dtype != x2.dtype:
        common = common_dtype(x1.dtype, x2.dtype)
        return x1.to(common), x2.to(common)
    return x1, x2


def replacing(function: Any, plain: Function) -> Function:
    """Give a function the name, documentation and signature of the one that it replaces."""
    function.__name__ = function.__qualname__ = plain.__name__
    function.__doc__ = plain.__doc__
    with suppress(ValueError):  # torch's built-in functions have none
        function.__signature__ = inspect.signature(plain)
    made: Function = function
    return made


def promoting(plain: Function, scalars: str = "") -> Function:
    """Promote two operands to their common dtype before a function is called.

    `scalars`: "first" or "both" if ``plain`` has no form with a Python scalar as that operand.
    """

    def function(x1: Any, x2: Any, /, **kwargs: Any) -> Any:
        if not isinstance(x2, torch.Tensor):
            x2 = _tensor(x2, x1) if scalars == "both" else x2
        elif not isinstance(x1, torch.Tensor):
            x1 = _tensor(x1, x2) if scalars else x1
        elif x1.dtype != x2.dtype:
            x1, x2 = promote_pair(x1, x2)
        return plain(x1, x2, **kwargs) if kwargs else plain(x1, x2)

    return replacing(function, plain)


def _by_parts(plain: Function) -> Function:
    """Add or subtract complex parts apart: torch's ``alpha``, 1 + 0j, makes NaN of infinities."""

    def function(x1: Any, x2: Any, /, **kwargs: Any) -> Any:
        if not isinstance(x2, torch.Tensor):
            of_parts = x1.is_complex() or isinstance(x2, complex)
            of_parts = of_parts and not abs(x2) < 1e4  # finite in every data type
        elif not isinstance(x1, torch.Tensor):
            of_parts = x2.is_complex() or isinstance(x1, complex)
        else:
            if x1.dtype != x2.dtype:
                x1, x2 = promote_pair(x1, x2)
            of_parts = x1.is_complex()
        if not of_parts or kwargs:
            return plain(x1, x2, **kwargs)
        pair = promote_pair(_tensor(x1, x2), _tensor(x2, x1))
        parts = [torch.view_as_real(x.resolve_conj()) for x in pair]
        return torch.view_as_complex(plain(*parts))

    return replacing(function, plain)


def _tensor(x: Any, other: Any) -> Any:
    """Return a Python scalar as a tensor for an operation with another."""
    if not isinstance(x, KINDS) or not isinstance(other, torch.Tensor):
        return x
    return torch.asarray(x, dtype=torch.result_type(x, other), device=other.device)


def in_range(value: Any, dtype: torch.dtype | None) -> Any:
    """Round a number to a dtype (None: the default), beyond its range to infinity, as NumPy."""
    if value.__class__ is complex:
        return complex(in_range(value.real, dtype), in_range(value.imag, dtype))
    dtype = torch.result_type(torch.empty(0, dtype=dtype), value.__class__())
    if not _is_inexact(dtype):
        return value
    value, info = float(value), torch.finfo(dtype)  # OverflowError beyond float64, as in NumPy
    if abs(value) >= info.max + info.max / (2 - info.eps) * info.eps / 2:
        return math.copysign(math.inf, value)
    return max(min(value, info.max), -info.max)  # NaN stays


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2, **kwargs: Any) -> torch.Tensor:
    """Return products summed over pairs of axes."""
    x1, x2 = promote_pair(x1, x2)
    return torch.tensordot(x1, x2, dims=axes, **kwargs)


def where(condition: Any, /, *choice: Any) -> Any:
    """Return elements of one array or the other, by a condition."""
    if not choice:  # the indices of true elements: torch's form, not the standard's
        return torch.where(condition)
    return torch.where(condition, *promote_pair(*choice))


def isin(x1: Any, x2: Any, /, *, invert: bool = False, **kwargs: Any) -> torch.Tensor:
    """Test whether each element of one array is in another."""
    elements, tests = promote_pair(x1, x2)
    if isinstance(tests, torch.Tensor):
        tests = tests.reshape(-1)  # torch uses view(), which some layouts refuse
    return torch.isin(elements, tests, invert=invert, **kwargs)


def result_type(*arrays_and_dtypes: Any) -> torch.dtype:
    """Return the common dtype; Python scalars have a kind and no width."""
    numbers = [x for x in arrays_and_dtypes if isinstance(x, KINDS)]
    dtypes = [getattr(x, "dtype", x) for x in arrays_and_dtypes if not isinstance(x, KINDS)]
    if not dtypes:  # as array-api-strict's, which SciPy catches
        raise ValueError("result_type needs at least one array or data type")
    if len(dtypes) > 2:  # uint64 with int8 is float64, also in an order with float32 between them
        dtypes.sort(key=_is_inexact)
    found: torch.dtype = dtypes[0]
    for dtype in dtypes[1:]:
        found = common_dtype(found, dtype)
    for number in numbers:
        found = torch.result_type(torch.empty((1,), dtype=found), number)
        # Newer versions return a complex type of bfloat16, for which they have no functions.
        found = found if found in DLPACK_DTYPES else torch.complex64
    return found


def _promote_all(arrays: Any) -> Any:
    first, *others = [x.dtype for x in arrays]
    if all(dtype == first for dtype in others):
        return arrays
    common = result_type(first, *others)
    return [x.to(common) for x in arrays]


def concat(arrays: Any, /, *, axis: int | None = 0, **kwargs: Any) -> torch.Tensor:
    """Join arrays along an axis, or flattened."""
    joined: torch.Tensor = xp.concat(_promote_all(arrays), axis=axis, **kwargs)
    return joined


def stack(arrays: Any, /, *, axis: int = 0, **kwargs: Any) -> torch.Tensor:
    """Join arrays along a new axis."""
    return torch.stack(_promote_all(arrays), axis, **kwargs)


_LIMITS = {dtype: (torch.iinfo(dtype).min, torch.iinfo(dtype).max) for dtype in _INTEGERS}
_LIMITS[torch.bool] = (0, 1)


def _comparison(name: str) -> Function:
    plain = promoting(getattr(torch, {"equal": "eq"}.get(name, name)), "first")
    return replacing(by_value(torch, plain, name, _LIMITS), plain)


# Functions of two arrays, by the scalars that torch does not take; floor_divide and remainder are
# in `corrections`.
_OF_TWO = {
    "": "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor divide matmul "
    "multiply pow",
    "first": "copysign",
    "both": "atan2 hypot logaddexp maximum minimum nextafter",
}
CORRECTIONS: dict[str, Function] = {
    **{
        name: promoting(getattr(torch, name), scalars)
        for scalars, names in _OF_TWO.items()
        for name in names.split()
    },
    "add": _by_parts(torch.add),
    "subtract": _by_parts(torch.subtract),
    **{name: _comparison(name) for name in COMPARISONS},
    "can_cast": can_cast,
    "vecdot": promoting(xp.vecdot),
    "linalg.cross": promoting(xp.linalg.cross),
    "linalg.outer": promoting(torch.outer),
    "linalg.solve": promoting(xp.linalg.solve),
    "result_type": result_type,
    "where": replacing(where, xp.where),
    "isin": isin,
    "concat": concat,
    "stack": stack,
    "tensordot": replacing(tensordot, xp.tensordot),
}
