"""Matrices without elements, and functions along no axes, where NumPy and its like raise."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy

from . import Correction

_NO_ISSUE = "no issue known"


def matrix_rank(xp: Any, linalg: Any, integer: Any) -> Correction:
    """The entry of a library whose ``matrix_rank`` looks for the largest of no singular values.

    Parameters
    ----------
    xp, linalg : module
        The namespace underneath, and its extension, which may be switched off.
    integer : data type
        Of the result.
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
        "linalg.matrix_rank: 0 of a matrix without elements",
        "https://github.com/data-apis/array-api-compat, which takes the largest singular value",
        lambda xp: _raises(lambda: xp.linalg.matrix_rank(xp.ones((2, 3, 0)))),
    )


def along_no_axes(xp: Any, fft: Any, copy: Callable[[Any], Any]) -> tuple[Correction, ...]:
    """The entries of a library that refuses to move elements of arrays of no axes along none."""

    def roll(x: Any, /, shift: Any, axis: Any = None) -> Any:  # by position too, as NumPy's
        none = isinstance(axis, tuple | list) and not axis
        return copy(x) if none else xp.roll(x, shift, axis=axis)

    def shifting(plain: Any) -> Callable[..., Any]:
        def function(x: Any, /, axes: Any = None) -> Any:
            return copy(x) if not x.ndim and not axes and axes != 0 else plain(x, axes=axes)

        function.__name__ = function.__qualname__ = plain.__name__
        return function

    def entry(name: str, function: Any, call: Callable[[Any], Any]) -> Correction:
        clause = f"{name}: along no axes nothing is moved, of an array of no axes too"
        return Correction(name, function, clause, _NO_ISSUE, lambda xp: _raises(lambda: call(xp)))

    return (
        entry("roll", roll, lambda xp: xp.roll(xp.ones(()), 1, axis=())),
        entry("fft.fftshift", shifting(fft.fftshift), lambda xp: xp.fft.fftshift(xp.ones(()))),
        entry("fft.ifftshift", shifting(fft.ifftshift), lambda xp: xp.fft.ifftshift(xp.ones(()))),
    )


def _raises(call: Callable[[], Any]) -> bool:
    try:
        call()
    except (ValueError, RuntimeError, IndexError):
        return True
    return False


def has_no_elements(shape: tuple[int, ...], axes: Any) -> bool:
    """Whether the extents along an axis, several or all (None) leave nothing to reduce."""
    axes = range(len(shape)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    return not prod(shape[axis] for axis in axes)
