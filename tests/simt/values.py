"""The values of a kernel under interpretation: operators, masks, and what must not be done.

A value is one of three: a Python object is a constant of the factory's; a NumPy scalar is the same
in all threads; an array has a number for each thread. Numbers are int64, unsigned words too. A mask
is an array of bool, or None where every thread takes part.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = [
    "BINARY",
    "BUILTINS",
    "COMPARED",
    "Fault",
    "Op",
    "active",
    "constant",
    "known",
    "merged",
    "number",
    "parted",
]


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
    return new  # a name for two things: the compiler takes it for one only where none lives on


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
    ast.Mod: _by_power_of_two(operator.mod),
}
COMPARED = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def _folded(function: Callable[[Any, Any], Any], python: Callable[..., Any]) -> Any:
    def apply(mask: Any, where: str, *values: Any) -> Any:
        if all(map(constant, values)):
            return python(*values)
        result = values[0]
        for value in values[1:]:
            result = function(result, value)
        return result

    return apply


BUILTINS = {
    "min": Op("min", _folded(np.minimum, min)),
    "max": Op("max", _folded(np.maximum, max)),
    "abs": Op("abs", lambda mask, where, value: abs(value)),
    "len": Op("len", lambda mask, where, value: len(value)),
    "range": range,
    "True": True,
    "False": False,
}


def known(value: Any, where: str) -> Any:
    if not constant(value):
        raise Fault(f"and, or, not, in: of constants alone, at {where}")
    return value


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
