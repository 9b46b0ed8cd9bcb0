"""``linspace`` of integers: rounded down and within the dtype, the same in every library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from . import Correction

Function = Callable[..., Any]
_EXACT = 2**53  # up to where float64 holds every integer


def between(start: float, stop: float, num: int, name: str, endpoint: bool) -> numpy.ndarray:
    """Return ``num`` integers from ``start`` to ``stop``, rounded as in NumPy; exact if large.

    Raises
    ------
    OverflowError
        If the data type does not hold one of them.
    """
    values: Any
    if isinstance(start, int) and isinstance(stop, int) and max(abs(start), abs(stop)) >= _EXACT:
        steps = max(num - 1 if endpoint else num, 1)
        values = [start + i * (stop - start) // steps for i in range(num)]
    else:
        values = numpy.floor(numpy.linspace(start, stop, num, endpoint=endpoint))
    limits = numpy.iinfo(name)
    for value in (values[0], values[-1]) if num else ():  # the least and the largest
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"linspace: {value} is out of bounds for {name}")
    return numpy.asarray(values, dtype=name)


def integer_name(dtype: Any) -> str | None:
    """Return the name of a NumPy integer dtype; None for any other."""
    dtype = numpy.dtype(dtype)
    return dtype.name if dtype.kind in "iu" else None


def correction(
    xp: Any, own: Function, name_of: Callable[[Any], str | None], make: Function
) -> Correction:
    """Make the correction for a library whose own wraps, rounds otherwise, or lacks dtypes.

    Parameters
    ----------
    xp : module
        The namespace underneath.
    own : callable
        The library's own ``linspace``, which may lack ``endpoint``.
    name_of : callable
        NumPy's name of an integer data type; None for another one.
    make : callable
        An array of the library from one of NumPy's: ``make(x, dtype=, device=)``.
    """

    def linspace(
        start: Any,
        stop: Any,
        /,
        num: int,
        *,
        dtype: Any = None,
        device: Any = None,
        endpoint: bool = True,
        **kwargs: Any,
    ) -> Any:
        name = None if dtype is None or kwargs else name_of(dtype)
        if name is None or not all(isinstance(x, int | float) for x in (start, stop)):
            kwargs |= {"dtype": dtype, "device": device}
            if endpoint:
                return own(start, stop, num, **kwargs)
            return xp.linspace(start, stop, num, endpoint=False, **kwargs)
        return make(between(start, stop, num, name, endpoint), dtype=dtype, device=device)

    return Correction(
        "linspace",
        linspace,
        "linspace: integers are those of the interval",
        "no issue known",
        _linspace_wraps,
    )


def _linspace_wraps(xp: Any) -> bool:
    try:
        xp.linspace(0, 300, 3, dtype=xp.int8)
    except OverflowError:
        return False
    return True
