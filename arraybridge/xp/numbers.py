"""Numbers as arguments of functions: an error if the dtype of the result does not hold them.

Some libraries convert every Python integer to int64 (JAX, with x64 off, to int32) and raise
OverflowError: `Wide` makes them accept those that the dtype holds. Some wrap integers (300 with
uint8 becomes 44), truncate fractions, or accept objects that are not numbers: `checks` raise before
the function is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from ..array import promotion
from ..array.operators import SCALARS, compared
from ..array.promotion import check, check_kind, fitting, out_of_bounds, range_of, scalar_of
from ..protocols.rejections import check_whole
from .calls import Arguments, Check, Operands
from .fallback import Handler

_NUMBERS = (int, float, complex, numpy.generic)
_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


class Wide(NamedTuple):
    """Python integers that a library does not accept together with arrays, and a replacement."""

    # ``as_scalar(value, dtype)``: the replacement of an integer, with arrays of a dtype.
    # OverflowError if the dtype does not hold it.
    as_scalar: Callable[[int, Any], Any]
    # The integers that it always accepts. (torch.compile does not support a range.)
    least: int = -(2**63)
    most: int = 2**63 - 1
    # Converts a NumPy scalar, or a subclass of a Python number, for the library.
    plain: Callable[[Any], Any] = scalar_of
    held: int = 127  # every dtype of the library holds the integers from 0 to this one

    @property
    def handler(self) -> Handler:
        """The handler that calls again with the library's own scalars."""
        # ValueError and TypeError: from NumPy's object arrays.
        errors = (OverflowError, TypeError, ValueError)
        attempt = "integers as scalars of the array's dtype"
        return Handler(errors, takes_scalars, self.retry, attempt)

    def retry(self, function: Any, error: Any, args: Any, kwargs: Any) -> Any:
        """Call again with the library's own scalars, if an integer was too large."""
        arrays = (*reversed(args), *kwargs.values())  # without dtype= that of the last array counts
        dtype = kwargs.get("dtype")
        if dtype is None:
            dtype = next((x.dtype for x in arrays if hasattr(x, "dtype")), None)
        if dtype is None or not any(map(self.holds, arrays)):
            return NotImplemented

        def scalar(x: Any) -> Any:
            return self.as_scalar(x, dtype) if self.holds(x) else x

        return function.own(*map(scalar, args), **{name: scalar(x) for name, x in kwargs.items()})

    def holds(self, x: Any) -> bool:
        """Whether ``x`` is an integer that may be too large for the library."""
        return x.__class__ is int and not self.least <= x <= self.most

    def operands(self, path: str, template: Any, namespace: Any) -> Operands | None:
        """Make the check of a scalar operand of a binary function; None for other functions."""
        if list(template.__annotations__) != ["x1", "x2", "return"] or not takes_scalars(
            path, template
        ):
            return None
        held = self.held

        def operands(x1: Any, x2: Any) -> tuple[Any, Any, Any]:
            if x2.__class__ not in SCALARS and isinstance(x2, _NUMBERS):
                x2 = self.plain(x2)
            elif x1.__class__ not in SCALARS and isinstance(x1, _NUMBERS):
                x1 = self.plain(x1)
            if (x2.__class__ is int and not 0 <= x2 <= held) or (
                x1.__class__ is int and not 0 <= x1 <= held
            ):
                return x1, x2, _compared(path, x1, x2, namespace)
            return x1, x2, None

        return operands

    def writing(self, write: Callable[..., Any]) -> Callable[..., Any]:
        """Make ``write(native, key, value)`` accept integers that the library does not."""

        def function(native: Any, key: Any, value: Any) -> Any:
            try:
                return write(native, key, value)
            except (OverflowError, TypeError, ValueError):
                if not self.holds(value):
                    raise
            return write(native, key, self.as_scalar(value, native.dtype))

        return function


def as_float(value: int, dtype: Any) -> float:
    """Convert an integer beyond int64 for a floating-point array: `Wide.as_scalar`."""
    if range_of(dtype).kind < 2:
        raise out_of_bounds(value, dtype)
    return float(value)


def takes_scalars(path: str, template: Any) -> bool:
    """Whether a function takes scalars together with arrays, or makes arrays from them."""
    kinds = [str(kind).split(" | ") for kind in template.__annotations__.values()]
    return any(
        kind == ["complex"] or (kind[0] == "Array" and {"int", "float", "complex"} & {*kind})
        for kind in kinds
    )


def _compared(name: str, x1: Any, x2: Any, namespace: Any) -> Any:
    """Return the result if an operand is an integer out of range of the other's dtype."""
    value, x = (x2, x1) if x2.__class__ is int else (x1, x2)
    if not hasattr(x, "dtype"):
        return None
    return compared(name if x is x1 else _MIRRORED.get(name, name), value, x, namespace)


def checks(
    namespace: Any,
    owns: Callable[[type], bool],
    plain: Callable[[Any], Any],
    dtype_of: Callable[[Any], Any],
) -> dict[str, Check]:
    """Make the checks of number arguments of a library's functions.

    `namespace` may still be incomplete. `owns` tests whether a type is one of its arrays, `plain`
    converts a NumPy scalar for it, and `dtype_of` returns the data type to use for a requested one,
    or raises.
    """

    def filled(x: Any, value: Any, default: Any, dtype: Any, args: Any, kwargs: Any) -> Arguments:
        """Check a fill value: a scalar, or an array of zero dimensions."""
        dtype = None if dtype is None else dtype_of(dtype)
        wanted = default if dtype is None else dtype
        if value.__class__ not in SCALARS:
            value = _number(value, owns)
            if wanted is not None and isinstance(value, numpy.generic):
                value = scalar_of(value)  # checked against the dtype like a Python number
        if value.__class__ not in SCALARS:
            if wanted is not None and hasattr(value, "dtype"):
                check_kind(value, wanted)
        elif wanted is None:
            if value.__class__ is int and not -(2**31) <= value < 2**31:
                own = namespace.__array_namespace_info__().default_dtypes()["integral"]
                if range_of(own).most >= 2**32:  # else JAX's own error shows how to get int64
                    check(value, own)
        elif value.__class__ is not int or range_of(wanted).kind:  # bools accept 0 and 1
            value = fitting(value, wanted)
        if args:
            return (x, value, dtype, *args), kwargs
        return (x, value), {"dtype": dtype, **kwargs}

    def full(
        shape: Any, fill_value: Any, dtype: Any = None, *args: Any, **kwargs: Any
    ) -> Arguments:
        return filled(shape, fill_value, None, dtype, args, kwargs)

    def full_like(
        x: Any, /, fill_value: Any, dtype: Any = None, *args: Any, **kwargs: Any
    ) -> Arguments:
        return filled(x, fill_value, x.dtype, dtype, args, kwargs)

    def where(condition: Any, /, *choice: Any, **kwargs: Any) -> Arguments | None:
        if len(choice) != 2:
            return None
        first, second = choice
        if first.__class__ is second.__class__ and not isinstance(first, numpy.generic):
            return None
        choice = tuple([plain(x) if isinstance(x, numpy.generic) else x for x in choice])
        for value, x in (choice, choice[::-1]):
            if value.__class__ is int and hasattr(x, "dtype"):
                check(value, x.dtype)
        return (condition, *choice), kwargs

    def clip(
        x: Any, /, min: Any = None, max: Any = None, *args: Any, **kwargs: Any
    ) -> Arguments | None:
        low, high = _bound(min, x, -1, namespace), _bound(max, x, 1, namespace)
        return None if low is min and high is max else ((x, low, high, *args), kwargs)

    def end(value: Any, dtype: Any, ndim: int | None = 0) -> Any:
        """Check an end of an interval; convert it to a Python number if a dtype is given."""
        if value is None or value.__class__ in SCALARS:
            return value
        value = _number(value, owns, ndim)
        if isinstance(value, numpy.generic):
            return plain(value) if dtype is None else scalar_of(value)
        return value

    def arange(
        start: Any, /, stop: Any = None, step: Any = 1, *args: Any, dtype: Any = None, **kwargs: Any
    ) -> Arguments:
        dtype = None if dtype is None else dtype_of(dtype)
        start, stop, step = (end(x, dtype) for x in (start, stop, step))
        if dtype is not None and step and range_of(dtype).kind == 1:
            start, stop, step = map(_whole, (start, stop, step))  # JAX truncates a step of -2.0
            given = (0, start, step) if stop is None else (start, stop, step)
            if {int, float}.issuperset(map(type, given)):
                for value in _ends(*given):
                    check(value, dtype)
        return (start, stop, step, *args), {"dtype": dtype, **kwargs}

    def linspace(
        start: Any, stop: Any, /, num: Any, *args: Any, dtype: Any = None, **kwargs: Any
    ) -> Arguments:
        dtype = None if dtype is None else dtype_of(dtype)
        start, stop = (end(x, dtype, ndim=None) for x in (start, stop))  # may be arrays
        for value in start, stop:
            if dtype is not None and value.__class__ is int:
                check(value, dtype)
        return (start, stop, num, *args), {"dtype": dtype, **kwargs}

    def isin(x1: Any, x2: Any, /, *args: Any, **kwargs: Any) -> Arguments | None:
        if isinstance(x1, numpy.generic) or isinstance(x2, numpy.generic):
            x1, x2 = plain(x1), plain(x2)
        for value, x in (x1, x2), (x2, x1):
            if value.__class__ is int and hasattr(x, "dtype") and promotion.side(value, x.dtype):
                none = namespace.empty((0,), dtype=x.dtype, device=x.device)
                x1, x2 = (x1, none) if value is x2 else (0, none)
        return (x1, x2, *args), kwargs

    def searchsorted(x1: Any, x2: Any, /, *, side: Any = "left", **kwargs: Any) -> Arguments | None:
        if x1.__class__ is x2.__class__:
            return None
        x2 = plain(x2) if isinstance(x2, numpy.generic) else x2
        if x2.__class__ is int and (beyond := promotion.side(x2, x1.dtype)):
            _, least, most = range_of(x1.dtype)  # before all elements, or after
            x2, side = (least, "left") if beyond < 0 else (most, "right")
        return (x1, x2), {"side": side, **kwargs}

    def count(name: str) -> Check:
        """Make the check of functions whose second argument is a count or an offset."""

        def before(*args: Any, **kwargs: Any) -> None:
            value = args[1] if len(args) > 1 else kwargs.get(name)
            own_array = owns(type(value))  # which the library itself checks
            if value.__class__ is not int and not own_array and promotion.is_fractional(value):
                raise TypeError(f"{name} must be an integer or integers, got {value!r}")

        return before

    found = (full, full_like, where, clip, arange, linspace, isin, searchsorted)
    counts = {"repeat": "repeats", "roll": "shift", "tril": "k", "triu": "k"}
    return {
        **{check.__name__: check for check in found},
        **{name: count(parameter) for name, parameter in counts.items()},
    }


def _number(value: Any, owns: Callable[[type], bool], ndim: int | None = 0) -> Any:
    """Check a number: a Python or NumPy scalar, or an array of ``ndim`` dimensions.

    ConversionError if a mask or unit would be lost; TypeError for anything else.
    """
    if not hasattr(value, "dtype"):
        number = scalar_of(value)
        fine = number.__class__ in SCALARS
    elif isinstance(value, numpy.ndarray | numpy.generic) or owns(type(value)):
        check_whole(value)
        number = value[()] if isinstance(value, numpy.ndarray) and not value.ndim else value
        fine = ndim is None or value.ndim == ndim
        if isinstance(value.dtype, numpy.dtype):
            fine = fine and promotion.is_numeric(value.dtype)
    else:
        fine = False
    if not fine:
        raise TypeError(
            "expected a number (a Python or NumPy scalar, or an array of no dimensions), got "
            f"{value!r}: for other arrays use broadcast_to or asarray"
        )
    return number


def _bound(value: Any, x: Any, open_side: int, namespace: Any) -> Any:
    """Convert a bound of ``clip`` to the dtype of ``x``; None if no element can exceed it."""
    if value is None or not hasattr(x, "dtype"):
        return value
    if not hasattr(value, "dtype") or isinstance(value, numpy.generic):
        value = value if value.__class__ is int else scalar_of(value)
        if value.__class__ is int:
            beyond = promotion.side(value, x.dtype)
            if beyond and beyond != open_side:
                raise out_of_bounds(value, x.dtype)
            return None if beyond else value
        if value.__class__ in SCALARS and range_of(x.dtype).kind < 2:
            fitting(value, x.dtype)
        return value
    check_kind(value, x.dtype)
    if value.dtype == x.dtype:
        return value
    (_, low, high), (kind, least, most) = map(range_of, (value.dtype, x.dtype))
    if kind == 1 and (low < least or most < high):  # clip the bounds to the range of the dtype
        ends = least if low < least else None, most if most < high else None
        value = namespace.clip(value, *ends)
    return namespace.astype(value, x.dtype)


def _whole(x: Any) -> Any:
    return int(x) if x.__class__ is float and x.is_integer() else x


def _ends(start: float, stop: float, step: float) -> list[int]:
    """Return the first and last number of ``arange`` as integers; none if not finite."""
    if not all(map(math.isfinite, (start, stop, step))):
        return []
    count = -int((start - stop) // step)  # rounded up
    return [int(start), int(start + (count - 1) * step)] if count > 0 else []
