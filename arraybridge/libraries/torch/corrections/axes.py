"""Axes and extents that are integers of NumPy, where PyTorch takes Python's alone."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy
from array_api_compat import torch as xp

from ....xp.corrections import Correction

Function = Callable[..., Any]

# Of these functions which parameter; the others take by themselves whatever is an integer.
PARAMETERS = {
    **dict.fromkeys("all any max mean min prod std sum var".split(), "axis"),
    **dict.fromkeys(("expand_dims", "linalg.vector_norm", "squeeze"), "axis"),
    "tensordot": "axes",
    "full": "shape",
}
_REFUSALS = (TypeError, ValueError, RuntimeError)


def accepted(*corrections: Correction) -> tuple[Correction, ...]:
    """The corrections, their functions taking such integers; and entries for the functions left."""
    mended = [
        entry._replace(function=_accepting(entry.function, PARAMETERS[entry.name]))
        if entry.name in PARAMETERS
        else entry
        for entry in corrections
    ]
    left = [name for name in PARAMETERS if name not in {entry.name for entry in corrections}]
    return (
        *mended,
        *(
            Correction(
                name,
                _accepting(operator.attrgetter(name)(xp), PARAMETERS[name]),
                f"{name}: {PARAMETERS[name]} is whatever is an integer",
                "no issue known",
                _probe(name),
            )
            for name in left
        ),
    )


def _accepting(plain: Function, parameter: str) -> Function:
    """A function that brings one argument to a Python integer if it is refused as it is.

    Nothing is asked beforehand: what is taken as it is costs no more than the call.
    """

    def again(refused: Exception, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(plain).bind(*args, **kwargs)
        given: Any = bound.arguments.get(parameter)
        if isinstance(given, int) or not hasattr(type(given), "__index__"):
            raise refused
        bound.arguments[parameter] = operator.index(given)
        return plain(*bound.args, **bound.kwargs)

    # Three that do the same: passing on by name takes 40 ns, by * and ** 70 to 140.
    parameters = inspect.signature(plain).parameters
    if list(parameters) == ["x", "axis"]:

        @functools.wraps(plain)
        def reshaping(x, /, axis):
            try:
                return plain(x, axis)
            except _REFUSALS as error:
                return again(error, x, axis)

        return reshaping

    if {"axis", "keepdims"} <= parameters.keys():

        @functools.wraps(plain)
        def reduction(x, /, *, axis=None, keepdims=False, **kwargs):
            try:
                if kwargs:
                    return plain(x, axis=axis, keepdims=keepdims, **kwargs)
                return plain(x, axis=axis, keepdims=keepdims)
            except _REFUSALS as error:
                return again(error, x, axis=axis, keepdims=keepdims, **kwargs)

        return reduction

    @functools.wraps(plain)
    def function(*args, **kwargs):
        try:
            return plain(*args, **kwargs)
        except _REFUSALS as error:
            return again(error, *args, **kwargs)

    return function


# What the probes call, with a matrix and an integer of NumPy.
_CALLS: dict[str, Function] = {
    "tensordot": lambda function, x, integer: function(x, x, axes=integer),
    "full": lambda function, x, integer: function(integer, 7.0),
}


def _probe(name: str) -> Callable[[Any], bool]:
    call = _CALLS.get(name, lambda function, x, integer: function(x, axis=integer))

    def refuses(xp: Any) -> bool:
        call(operator.attrgetter(name)(xp), xp.ones((1, 1)), numpy.int64(0))
        return False  # an exception counts as the defect

    return refuses
