"""The operations on numbers, those that refuse what does not fit among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .values import Fault, Op, active

__all__ = ["MASK", "NUMBERS"]

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


def funnel(mask: Any, where: str, low: Any, high: Any, bits: Any) -> Any:
    """The lower half of high:low shifted right by so many bits, modulo 32."""
    bits = bits & 31
    return ((low & MASK) >> bits) | ((high << (32 - bits)) & MASK)


def _first(mask: Any, values: np.ndarray, wrong: np.ndarray) -> int:
    found = wrong != 0 if mask is None else (wrong != 0) & mask
    return int(values[np.flatnonzero(found)[0]])


#: By the name that kernels know.
NUMBERS = {made.__name__: Op(made.__name__, made) for made in (i32, i64, u32, shr, mulhi, funnel)}
