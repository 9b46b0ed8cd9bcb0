"""Data types that a library would replace by others in silence: refused instead."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .standard import functions_of


def check_dtypes(face: Any, check: Callable[[Any], None]) -> None:
    """Have every function of a native face that takes a data type look at it first.

    Parameters
    ----------
    face : module
        The library's native face, its corrections applied; changed in place.
    check : callable
        Raises for a data type that the result would not have; None asks for none.
    """
    for room, _, name, template in functions_of(face):
        parameters = inspect.signature(template).parameters
        if "dtype" in parameters and template.__annotations__["return"] == "Array":
            setattr(room, name, _checking(getattr(room, name), check))


def _checking(own: Any, check: Callable[[Any], None]) -> Any:
    place = list(inspect.signature(own).parameters).index("dtype")

    @functools.wraps(own)
    def function(*args: Any, **kwargs: Any) -> Any:
        dtype = kwargs.get("dtype")
        if dtype is None and len(args) > place:
            dtype = args[place]
        if dtype is not None:
            check(dtype)
        return own(*args, **kwargs)

    return function
