"""Deviations of libraries from the standard, as data: one table per library.

An entry names the function, the clause and the upstream issue. `tests/support/defects` has a probe
of each defect, so that an entry can be deleted once upstream fixes it.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from . import asarray
from .dtypes import Corrected
from .special_values import Means, complex_function, deviation, floor_divide, turned


class Correction(NamedTuple):
    """A corrected function."""

    # The function in the standard, with its extension: ``"floor_divide"``, ``"linalg.qr"``.
    name: str
    function: Callable[..., Any]  # its replacement, over native arrays
    clause: str  # the clause of the standard (2025.12) that the library violates
    upstream: str  # the URL of the upstream issue, or why there is no issue
    # The first version of the library without the defect, from which on the entry is unused.
    until: str | None = None

    def applies_to(self, version: str) -> bool:
        """Whether a version of the library has the defect."""
        return self.until is None or _release(version) < _release(self.until)


def _release(version: str) -> list[int]:
    """Return the leading numbers of a version: 2, 13, 0 for ``"2.13.0+cpu"``."""
    return [int(part) for part in re.findall(r"\d+", re.split(r"[^\d.]", version)[0])]


def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """Unwrap a function of array-api-compat from the wrapper that passes it the module."""
    if getattr(function, "__code__", None) is None or function.__code__.co_name != "wrapped_f":
        return function
    f, xp = (inspect.getclosurevars(function).nonlocals.get(name) for name in ("f", "xp"))
    return function if f is None or xp is None else functools.partial(f, xp=xp)


#: The comparisons of the standard, and Python's.
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def by_value(
    xp: Any, plain: Callable[..., Any], name: str, limits: dict[Any, tuple[int, int]]
) -> Callable[..., Any]:
    """Make a comparison by value with Python integers that the dtype of the array does not hold.

    The library's own, ``plain``, wraps them. `limits` has the range of each integer dtype.
    """
    compare = COMPARISONS[name]

    def function(x1: Any, x2: Any, /, **kwargs: Any) -> Any:
        x, number = (x2, x1) if x1.__class__ is int else (x1, x2)
        if number.__class__ is int and not 0 <= number <= 127:  # every dtype holds these
            low, high = limits.get(getattr(x, "dtype", None), (number, number))
            if not low <= number <= high:
                side = 1 if number > high else -1
                true = compare(side, 0) if x is x2 else compare(0, side)
                return (xp.greater_equal if true else xp.greater)(x, x, **kwargs)
        return plain(x1, x2, **kwargs)

    return function


# Entries that several libraries share.


def diff(xp: Any) -> Correction:
    """The entry of a library whose ``diff`` with ``n=0`` ignores ``prepend`` and ``append``."""

    # positional arguments as in NumPy
    def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
        ends = {"prepend": prepend, "append": append}
        given = {name: end for name, end in ends.items() if end is not None}
        if n or not given:
            return xp.diff(x, axis=axis, n=n, **given)
        return xp.concat([part for part in (prepend, x, append) if part is not None], axis=axis)

    return Correction(
        "diff",
        diff,
        "diff: the size along the axis is M + N1 + N2 - n, also for n=0",
        "https://github.com/numpy/numpy/issues/23040; the others have the same shortcut",
    )


def matrix_rank(xp: Any, linalg: Any, integer: Any) -> Correction:
    """The entry of a library whose ``matrix_rank`` fails without singular values.

    `linalg` is the extension, which may be switched off; `integer` the data type of the result.
    """
    plain = linalg.matrix_rank

    def matrix_rank(x: Any, /, *, rtol: Any = None, **kwargs: Any) -> Any:
        if x.ndim < 2 or 0 not in x.shape[-2:]:
            return plain(x, rtol=rtol, **kwargs)
        stack = numpy.broadcast_shapes(x.shape[:-2], getattr(rtol, "shape", ()))
        return xp.zeros(stack, dtype=integer, device=x.device)

    return Correction(
        "linalg.matrix_rank",
        matrix_rank,
        "linalg.matrix_rank: 0 for a matrix without elements",
        "https://github.com/data-apis/array-api-compat, which takes the largest singular value",
    )


def roll(xp: Any, copy: Callable[[Any], Any]) -> Correction:
    """The entry of a library whose ``roll`` fails for an array without axes along no axes."""

    def roll(x: Any, /, shift: Any, axis: Any = None) -> Any:  # positional as in NumPy
        none = isinstance(axis, tuple | list) and not axis
        return copy(x) if none else xp.roll(x, shift, axis=axis)

    return Correction(
        "roll",
        roll,
        "roll: along no axes nothing is moved, also for an array without axes",
        "no issue known",
    )


def shifts(fft: Any, copy: Callable[[Any], Any]) -> tuple[Correction, ...]:
    """The entries of a library whose ``fftshift`` fails for no axes, or shifts along all."""

    def shifting(plain: Any) -> Callable[..., Any]:
        def function(x: Any, /, axes: Any = None) -> Any:
            none = not x.ndim if axes is None else isinstance(axes, tuple | list) and not axes
            return copy(x) if none else plain(x, axes=axes)

        function.__name__ = function.__qualname__ = plain.__name__
        return function

    return tuple(
        Correction(
            f"fft.{name}",
            shifting(getattr(fft, name)),
            f"fft.{name}: along no axes nothing is moved, also for an array without axes",
            "no issue known",
        )
        for name in ("fftshift", "ifftshift")
    )


def from_dlpack(
    library: str,
    upstream: str = "no issue known",
    clause: str = "copies if a copy is needed, unless copy is False",
) -> Correction:
    """The entry of a library whose own raises, or gives a wrong result, instead of copying."""
    function = asarray.from_dlpack(library)
    return Correction("from_dlpack", function, f"from_dlpack: {clause}", upstream)


def finfo(
    plain: Callable[[Any], Any],
    upstream: str = "https://github.com/numpy/numpy/issues/26523 (closed: intended)",
) -> Correction:
    """The entry of a library whose ``finfo`` has scalars of the dtype."""
    floats = ("eps", "max", "min", "smallest_normal")

    def finfo(type: Any, /) -> Any:
        own = plain(type)
        if own.bits > 64:  # longdouble: not in the standard, and too large for a float
            return own
        return Corrected(own, **{name: float(getattr(own, name)) for name in floats})

    return Correction(
        "finfo", finfo, "finfo: eps, max, min and smallest_normal are Python floats", upstream
    )


def tangents(means: Means) -> tuple[Correction, ...]:
    """The entries of ``tan`` and ``tanh`` for infinite complex numbers."""
    issue = "https://github.com/data-apis/array-api/issues/1006"
    tanh = complex_function(means, "tanh")
    return (
        Correction(
            "tan",
            turned(means, "tan", tanh),
            "tan: the special cases of complex numbers are those of -1j * tanh(1j * x)",
            issue,
        ),
        Correction(
            "tanh",
            tanh,
            "tanh: 1 + 0j for an infinite real and a finite imaginary part b, whatever sin(2b)",
            issue,
        ),
    )


def numpy_special_cases(means: Means, xp: Any, whose: str = "") -> tuple[Correction, ...]:
    """The entries of NumPy's special cases; ``xp`` is NumPy, or a library built on it."""
    numpys = "https://github.com/numpy/numpy/issues"

    return (
        *tangents(means),
        Correction(
            "floor_divide",
            floor_divide(means),
            "floor_divide: infinity by a finite number is infinity, the reverse zero",
            f"{numpys}/23860{whose}",
        ),
        Correction(
            "expm1",
            complex_function(means, "expm1"),
            "expm1: special cases of complex numbers",
            f"{numpys}/21746{whose}",
        ),
        *(
            Correction(
                name,
                deviation(getattr(xp, name)),
                f"{name}: NaN if there are fewer elements than the correction",
                f"{numpys}/26522{whose}",
            )
            for name in ("std", "var")
        ),
    )


# ``linspace`` of integers: rounded down and within the dtype, the same for every library.

_EXACT = 2**53  # float64 represents every integer up to this one


def integers_between(
    start: float, stop: float, num: int, name: str, endpoint: bool
) -> numpy.ndarray:
    """Return ``num`` integers from ``start`` to ``stop``, rounded as in NumPy; exact if large.

    OverflowError if one is out of the range of the data type.
    """
    values: Any
    if isinstance(start, int) and isinstance(stop, int) and max(abs(start), abs(stop)) >= _EXACT:
        steps = max(num - 1 if endpoint else num, 1)
        values = [start + i * (stop - start) // steps for i in range(num)]
    else:
        values = numpy.floor(numpy.linspace(start, stop, num, endpoint=endpoint))
    limits = numpy.iinfo(name)
    for value in (values[0], values[-1]) if num else ():  # the smallest and the largest
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"linspace: {value} is out of bounds for {name}")
    return numpy.asarray(values, dtype=name)


def integer_name(dtype: Any) -> str | None:
    """Return the name of a NumPy integer dtype; None for any other."""
    dtype = numpy.dtype(dtype)
    return dtype.name if dtype.kind in "iu" else None


def linspace(
    xp: Any, own: Callable[..., Any], name_of: Callable[[Any], str | None], make: Callable[..., Any]
) -> Correction:
    """The entry of a library whose ``linspace`` wraps or rounds integers, or lacks dtypes.

    Its own may also lack ``endpoint``. `name_of` returns NumPy's name of an integer data type, None
    for others; ``make(x, dtype=, device=)`` makes an array of the library from a NumPy array.
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
        return make(integers_between(start, stop, num, name, endpoint), dtype=dtype, device=device)

    return Correction(
        "linspace", linspace, "linspace: integers are within the interval", "no issue known"
    )
