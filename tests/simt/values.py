"""The values of a kernel under interpretation: operators, masks, and what must not be done.

A value is one of three: a Python object is a constant of the factory's; a NumPy scalar is the same
in all threads; an array has a number for each thread. Numbers are int64, unsigned words too. A mask
is an array of bool, or None where every thread takes part.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np


class Fault(AssertionError):
    """What a kernel must not do; says where in its source."""


class Op:
    """An operation: ``apply(mask, where, *values)``."""

    __slots__ = ("apply", "name")

    def __init__(self, name: str, apply: Callable[..., Any]) -> None:
        self.name = name
        self.apply = apply

    def __repr__(self) -> str:
        return f"<{self.name}>"


def active(mask: Any, wrong: Any) -> bool:
    """Whether something is so in a thread that takes part."""
    if isinstance(wrong, np.ndarray):
        return bool((wrong if mask is None else wrong & mask).any())
    return bool(wrong)


def merged(mask: Any, new: Any, old: Any) -> Any:
    """`new` in the threads of a mask, `old` in the others."""
    if new is old:
        return old
    if isinstance(new, tuple) and isinstance(old, tuple) and len(new) == len(old):
        return tuple([merged(mask, *pair) for pair in zip(new, old, strict=True)])
    numbers = (int, np.ndarray, np.generic)
    if isinstance(new, numbers) and isinstance(old, numbers):
        return np.where(mask, new, old)
    return new  # a name for two things: the compiler accepts it only if neither is used later


def constant(value: Any) -> bool:
    return not isinstance(value, (np.ndarray, np.generic))


def number(value: Any) -> Any:
    """Bools are added as numbers."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype == bool:
        return value.astype(np.int64)
    return value


def _arithmetic(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, str], Any]:
    return lambda a, b, where: function(number(a), number(b))


def _bitwise(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, str], Any]:
    return lambda a, b, where: function(a, b)


def _by_power_of_two(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, str], Any]:
    def divided(a: Any, b: Any, where: str) -> Any:
        if not constant(b) or b <= 0 or b & (b - 1):
            raise Fault(f"a division by {b!r}, no power of two that is constant, at {where}")
        return function(a, b)

    return divided


BINARY = {
    ast.Add: _arithmetic(operator.add),
    ast.Sub: _arithmetic(operator.sub),
    ast.Mult: _arithmetic(operator.mul),
    ast.BitAnd: _bitwise(operator.and_),
    ast.BitOr: _bitwise(operator.or_),
    ast.BitXor: _bitwise(operator.xor),
    ast.LShift: _arithmetic(operator.lshift),
    ast.RShift: _arithmetic(operator.rshift),
    ast.FloorDiv: _by_power_of_two(operator.floordiv),
}
UNARY = {ast.USub: operator.neg, ast.Invert: operator.invert}  # of a bool ~ is -1 or -2
COMPARED = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def _least(mask: Any, where: str, *values: Any) -> Any:
    return min(values) if all(map(constant, values)) else reduce(np.minimum, values)


BUILTINS = {
    "min": Op("min", _least),
    "abs": Op("abs", lambda mask, where, value: abs(value)),
    "range": range,
}


def parted(held: np.ndarray, mask: Any) -> tuple[Any, Any]:
    """The masks of the threads where a condition holds, and of the others; None: there are none."""
    if held.dtype != bool:
        held = held != 0
    yes = held if mask is None else held & mask
    count = np.count_nonzero(yes)
    if count == 0:
        return None, mask
    if count == (held.size if mask is None else np.count_nonzero(mask)):
        return yes, None
    return yes, (~held if mask is None else mask & ~held)


# -- operations that refuse what does not fit

MASK = 0xFFFFFFFF


def i32(mask: Any, where: str, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value if value.dtype == np.int64 else value.astype(np.int64)
        if active(mask, (value + 2**31) >> 32 != 0):
            raise Fault(f"{_first(mask, value, (value + 2**31) >> 32)} is no int32 at {where}")
        return value
    if not -(2**31) <= int(value) < 2**31:
        raise Fault(f"{value} is no int32 at {where}")
    return np.int64(value)


def i64(mask: Any, where: str, value: Any) -> Any:
    return value.astype(np.int64) if isinstance(value, np.ndarray) else np.int64(value)


def u32(mask: Any, where: str, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value if value.dtype == np.int64 else value.astype(np.int64)
        if active(mask, value >> 32 != 0):
            raise Fault(f"{_first(mask, value, value >> 32)} is no uint32 at {where}")
        return value
    if not 0 <= int(value) <= MASK:
        raise Fault(f"{value} is no uint32 at {where}")
    return np.int64(value)


def shr(mask: Any, where: str, value: Any, count: Any) -> Any:
    if active(mask, (count < 0) | (count > 31)):
        raise Fault(f"a shift by 32 or more, or less than 0, at {where}")
    return (value & MASK) >> count


def mulhi(mask: Any, where: str, a: Any, b: Any) -> Any:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        product = np.asarray(a).astype(np.uint64) * np.asarray(b).astype(np.uint64)
        return (product >> np.uint64(32)).astype(np.int64)
    return np.int64(int(a) * int(b) >> 32)


def _first(mask: Any, values: np.ndarray, wrong: np.ndarray) -> int:
    found = wrong != 0 if mask is None else (wrong != 0) & mask
    return int(values[np.flatnonzero(found)[0]])


#: By the name that kernels know.
NUMBERS = {made.__name__: Op(made.__name__, made) for made in (i32, i64, u32, shr, mulhi)}


# -- accesses of whatever memory

#: Bytes of an access, and the words that it is seen as.
WIDTHS = (1, 2, 4, 8, 16)
WORD = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint32, 16: np.uint32}


def vectors(part: np.ndarray, width: int) -> np.ndarray:
    words = part.view(WORD[width])
    return words if width <= 4 else words.reshape(-1, width // 4)


def aligned(addresses: np.ndarray, width: int, what: str, where: str) -> None:
    if width > 1 and (addresses & (width - 1)).any():
        wrong = int(addresses[np.flatnonzero(addresses & (width - 1))[0]])
        raise Fault(f"{what} of {width} bytes is misaligned: {wrong:#x} at {where}")


def inside(good: np.ndarray, offsets: np.ndarray, width: int, what: str, where: str) -> None:
    if not good.all():
        wrong = int(offsets[np.flatnonzero(~good)[0]])
        raise Fault(f"{width} bytes at {wrong} {what} at {where}")
