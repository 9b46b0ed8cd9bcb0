"""Corrected type promotion for PyTorch.

PyTorch gives zero-dimensional arrays less weight than others (``int8[3] + int64[]`` is int8), and
refuses to combine uint16, uint32 and uint64 with any other integer type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from array_api_compat import torch as xp

from ....xp.corrections import Correction

Function = Callable[..., Any]

_SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)


def _table() -> dict[tuple[torch.dtype, torch.dtype], torch.dtype]:
    """The common dtype of every pair of different dtypes that the standard promotes."""
    pairs = {}
    for kind in (_SIGNED, _UNSIGNED, (torch.float32, torch.float64)):
        for i, narrow in enumerate(kind):
            for wide in kind[i + 1 :]:
                pairs[narrow, wide] = wide
    for i, signed in enumerate(_SIGNED):
        for j, unsigned in enumerate(_UNSIGNED[:3]):  # none holds uint64 and negative numbers
            pairs[signed, unsigned] = signed if i > j else _SIGNED[j + 1]
    pairs[torch.complex64, torch.complex128] = torch.complex128
    for real, complex_ in ((torch.float32, torch.complex64), (torch.float64, torch.complex128)):
        for other in (torch.complex64, torch.complex128):
            pairs[real, other] = pairs.get((other, complex_), complex_)
    pairs[torch.float32, torch.complex128] = torch.complex128
    pairs[torch.float64, torch.complex64] = torch.complex128
    return {**pairs, **{(b, a): c for (a, b), c in pairs.items()}}


PROMOTED = _table()


def promote_pair(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Convert two operands to their common dtype, if both are arrays that the standard promotes."""
    if isinstance(x1, torch.Tensor) and isinstance(x2, torch.Tensor):
        a, b = x1.dtype, x2.dtype
        if a != b:
            common = PROMOTED.get((a, b))
            if common is not None:
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


def promoting(plain: Function) -> Function:
    """Promote two arrays to their common dtype before a function is called."""

    def function(x1: Any, x2: Any, /, **kwargs: Any) -> Any:
        x1, x2 = promote_pair(x1, x2)
        return plain(x1, x2, **kwargs)

    return replacing(function, plain)


def _where(condition: Any, /, *choice: Any) -> Any:
    if not choice:  # the indices of true elements: torch's form, not the standard's
        return torch.where(condition)
    return xp.where(condition, *promote_pair(*choice))


where = replacing(_where, xp.where)


def isin(x1: Any, x2: Any, /, *, invert: bool = False, **kwargs: Any) -> torch.Tensor:
    """Test whether each element of one array is in another."""
    elements, tests = promote_pair(x1, x2)
    if isinstance(tests, torch.Tensor):
        tests = tests.reshape(-1)  # torch does this by view(), which some layouts refuse
    return torch.isin(elements, tests, invert=invert, **kwargs)


def _dtype_of(x: Any) -> Any:
    return x.dtype if isinstance(x, torch.Tensor) else x


def result_type(*arrays_and_dtypes: Any) -> torch.dtype:
    """The common dtype of arrays, dtypes and Python scalars."""
    dtypes = [_dtype_of(x) for x in arrays_and_dtypes]
    known = [x for x in dtypes if isinstance(x, torch.dtype)]
    if not known:
        return xp.result_type(*arrays_and_dtypes)
    common = known[0]
    for dtype in known[1:]:
        if dtype != common:
            common = PROMOTED.get((common, dtype)) or torch.promote_types(common, dtype)
    scalars = [x for x in dtypes if not isinstance(x, torch.dtype)]
    if not scalars:
        return common
    return torch.result_type(torch.empty((1,), dtype=common), _widest(scalars))


def _widest(scalars: list[Any]) -> Any:
    """The scalar of the kind that holds all of the scalars' kinds."""
    kinds = (bool, int, float, complex)
    return max(
        scalars, key=lambda x: next(i for i, kind in enumerate(kinds) if isinstance(x, kind))
    )


def _sequence(plain: Function) -> Function:
    """``concat`` or ``stack`` of arrays promoted to their common dtype."""

    def function(arrays: Any, /, **kwargs: Any) -> Any:
        first, *others = [x.dtype for x in arrays]
        if any(dtype != first for dtype in others):
            common = result_type(first, *others)
            arrays = [x.to(common) for x in arrays]
        return plain(arrays, **kwargs)

    return replacing(function, plain)


def stack(arrays: Any, /, *, axis: int = 0, **kwargs: Any) -> torch.Tensor:
    """``torch.stack`` with ``axis`` in its signature."""
    return torch.stack(arrays, axis, **kwargs)


# Of two arrays; floor_divide and remainder are in `elementwise`.
_BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign "
    "divide equal greater greater_equal hypot less less_equal logaddexp matmul maximum "
    "minimum multiply nextafter not_equal pow subtract tensordot vecdot linalg.cross linalg.outer "
    "linalg.solve"
).split()


def _own(name: str) -> Function:
    extension, _, name = name.rpartition(".")
    function: Function = getattr(getattr(xp, extension) if extension else xp, name)
    return function


def _promotes_otherwise(xp: Any) -> bool:
    narrow = xp.ones((2,), dtype=xp.uint8)
    return xp.result_type(narrow, xp.ones((), dtype=xp.uint16)) != xp.uint16


_CLAUSE = "Type promotion rules: the same with arrays of no dimensions; unsigned integers"
_ISSUES = "https://github.com/pytorch/pytorch/issues/58489 and 58734"

CORRECTIONS = (
    Correction("result_type", result_type, _CLAUSE, _ISSUES, _promotes_otherwise),
    Correction("where", where, _CLAUSE, _ISSUES, _promotes_otherwise),
    Correction("isin", isin, _CLAUSE, _ISSUES, _promotes_otherwise),
    *(
        Correction(name, promoting(_own(name)), _CLAUSE, _ISSUES, _promotes_otherwise)
        for name in _BINARY
    ),
    *(
        Correction(plain.__name__, _sequence(plain), _CLAUSE, _ISSUES, _promotes_otherwise)
        for plain in (xp.concat, stack)
    ),
)
