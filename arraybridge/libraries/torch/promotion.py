"""Corrected type promotion for PyTorch.

In PyTorch zero-dimensional arrays count less than others (``int8[3] + int64[]`` is int8), and
uint16, uint32 and uint64 cannot be combined with any other integer type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from itertools import combinations
from typing import Any

import numpy
import torch
from array_api_compat import torch as xp

from ...xp.corrections import COMPARISONS, Correction, by_value
from ...xp.dtypes import result_type as common_type
from .tables import DLPACK_DTYPES

Function = Callable[..., Any]

_SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
_INEXACT = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.complex32, torch.complex64, torch.complex128,
)  # fmt: skip
Pairs = dict[tuple[torch.dtype, torch.dtype], torch.dtype]


def _both_ways(pairs: Pairs) -> Pairs:
    return {**pairs, **{(b, a): c for (a, b), c in pairs.items()}}


def _numpys(one: torch.dtype, another: torch.dtype) -> torch.dtype:
    """Return NumPy's common dtype of two dtypes that NumPy also has."""
    names = [str(dtype).removeprefix("torch.") for dtype in (one, another)]
    common: torch.dtype = getattr(torch, numpy.promote_types(*names).name)
    return common


_INTEGERS = {pair: _numpys(*pair) for pair in combinations((*_SIGNED, *_UNSIGNED), 2)}
_NUMBERS = {pair: torch.promote_types(*pair) for pair in combinations(_INEXACT, 2)}
# Further pairs that torch refuses.
_MIXED = {
    (unsigned, other): _numpys(unsigned, other)
    for unsigned in _UNSIGNED[1:]
    for other in (torch.bool, torch.complex64, torch.complex128)
} | {(unsigned, torch.complex32): torch.complex32 for unsigned in _UNSIGNED[1:]}

# The common dtype of every pair of different dtypes of one of the standard's kinds: integers (none
# holds both uint64 and negative numbers), and floating-point numbers, real or complex.
PROMOTED = _both_ways(
    {pair: common for pair, common in _INTEGERS.items() if common in (*_SIGNED, *_UNSIGNED)}
    | _NUMBERS
)
# For other pairs torch's own dtype is right, whatever their axes.
_COMMON = _both_ways(_INTEGERS | _NUMBERS | _MIXED)


def common_dtype(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    """Return the common dtype of two."""
    # xarray passes the names of dtypes for Python scalars.
    a, b = (getattr(torch, x) if isinstance(x, str) else x for x in (a, b))
    if a == b:
        return a
    common = _COMMON.get((a, b))
    if common is None:
        if _is_small(a) or _is_small(b):  # promoted with no other
            raise TypeError(f"PyTorch has no common data type of {a} and {b}: use astype")
        common = torch.promote_types(a, b)
    return common


def _is_small(dtype: torch.dtype) -> bool:
    return str(dtype).startswith(("torch.float8", "torch.float4"))


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


def _tensor(x: Any, other: Any) -> Any:
    """Return a Python scalar as a tensor for an operation with another."""
    if not isinstance(x, bool | int | float | complex) or not isinstance(other, torch.Tensor):
        return x
    return torch.asarray(x, dtype=torch.result_type(x, other), device=other.device)


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


def _beside(dtype: torch.dtype, number: Any) -> torch.dtype:
    found = torch.result_type(torch.empty((1,), dtype=dtype), number)
    # Newer versions return a complex type of bfloat16, for which they have no functions.
    return found if found in DLPACK_DTYPES else torch.complex64


def _ordered(dtypes: list[torch.dtype]) -> list[torch.dtype]:
    """Sort dtypes so that their order does not matter: uint64 with int8 is float64."""
    whole = [x for x in dtypes if x not in _INEXACT]
    return [*whole, *(x for x in dtypes if x in _INEXACT), *whole]


result_type = common_type(common_dtype, _beside, _ordered)


def _promote_all(arrays: Any) -> Any:
    """Convert a sequence of arrays to their common dtype."""
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


_LIMITS = {
    dtype: (limits.min, limits.max)
    for dtype, limits in ((x, torch.iinfo(x)) for x in (*_SIGNED, *_UNSIGNED))
}


def _comparison(name: str) -> Function:
    plain = promoting(getattr(torch, {"equal": "eq"}.get(name, name)), "first")
    return replacing(by_value(torch, plain, name, _LIMITS), plain)


# Functions of two arrays, by the scalars that torch does not take; floor_divide and remainder are
# in `corrections`.
_OF_TWO = {
    "": "add bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor divide "
    "multiply pow subtract matmul",
    "first": "copysign",
    "both": "atan2 hypot logaddexp maximum minimum nextafter",
}
_FUNCTIONS: dict[str, Function] = {
    **{
        name: promoting(getattr(torch, name), scalars)
        for scalars, names in _OF_TWO.items()
        for name in names.split()
    },
    **{name: _comparison(name) for name in COMPARISONS},
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

_CLAUSE = "Type promotion rules: the same with arrays of no dimensions; unsigned integers"
_ISSUES = "https://github.com/pytorch/pytorch/issues/58489 and 58734"
CORRECTIONS = tuple(Correction(name, made, _CLAUSE, _ISSUES) for name, made in _FUNCTIONS.items())
