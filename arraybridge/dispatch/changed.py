"""Which values a cast has changed: ``casting="same_value"``.

Written with operators alone, so that one text serves the arrays of every library that has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dlpack import DataType, DataTypeCode

__all__ = ["changed"]

_FLOAT32, _FLOAT64 = DataType.named("float32"), DataType.named("float64")
_BITS: dict[int, int] = {
    DataTypeCode.BOOL: 1,
    DataTypeCode.UINT: 0,
    DataTypeCode.INT: -1,
}  # of the largest value

Cast = Callable[[Any, DataType], Any]


def changed(old: Any, new: Any, given: DataType, made: DataType, cast: Cast) -> Any:
    """Return an array of bools: where ``new``, the cast of ``old``, has another value.

    Parameters
    ----------
    old, new : array
        Of one shape and library.
    given, made : DataType
        Theirs.
    cast : callable
        Makes an array of another data type.

    Notes
    -----
    What comes back from a cast of a value that does not fit depends on the machine, hence more than
    one comparison. NaN counts as the same as NaN, -0.0 as 0.0.
    """
    if given.code == DataTypeCode.COMPLEX:
        part = DataType(DataTypeCode.FLOAT, given.bits // 2)
        if made.code != DataTypeCode.COMPLEX:
            return changed(old.real, new, part, made, cast) | (old.imag != 0)
        into = DataType(DataTypeCode.FLOAT, made.bits // 2)
        return changed(old.real, new.real, part, into, cast) | changed(
            old.imag, new.imag, part, into, cast
        )
    if made.code == DataTypeCode.COMPLEX:
        return changed(old, new.real, given, DataType(DataTypeCode.FLOAT, made.bits // 2), cast)
    differ = cast(new, given) != old
    whole, into_whole = given.code in _BITS, made.code in _BITS
    if whole and into_whole:
        if given.code == made.code or DataTypeCode.BOOL in (given.code, made.code):
            return differ
        if given.code == DataTypeCode.INT:
            return differ | (old < 0)
        return differ | (new < 0)
    if not whole and not into_whole:
        return differ & ~((old != old) & (new != new))
    # Beyond the integers' range a cast gives anything, the extreme value that it came from as well.
    if whole:
        wide = cast(new, _wide(made))
        end = 2.0 ** (given.bits + _BITS[given.code])
        return differ | ~((wide >= -end) & (wide < end))
    wide = cast(old, _wide(given))
    end = 2.0 ** (made.bits + _BITS[made.code]) if made.code != DataTypeCode.BOOL else 2.0
    return differ | ~((wide >= (-end if made.code == DataTypeCode.INT else 0)) & (wide < end))


def _wide(dtype: DataType) -> DataType:
    """Return a real data type that has all values of another; JAX may have 32 bits alone."""
    return _FLOAT32 if dtype.bits <= 32 else _FLOAT64
