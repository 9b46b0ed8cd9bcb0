"""Data types as arguments: what is none, or one that the result would not have, is refused."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy

from ..array.bounds import is_numeric, scalar_of
from ..array.operators import SCALARS
from ..dispatch.registry import library_named
from .standard import functions_of

_LIMITS = {"finfo": "floating-point", "iinfo": "integer"}


def check_dtypes(face: Any, check: Callable[[Any], Any] | None) -> None:
    """Have every function of a native face that takes a data type look at it first.

    Parameters
    ----------
    face : module
        The library's native face, its corrections applied; changed in place.
    check : callable or None
        Gives the data type to take; raises for one that the result would not have. None takes
        every one, but none at all where one must be given: of that NumPy makes float64.
    """
    for room, _, name, template in functions_of(face):
        parameters = inspect.signature(template).parameters
        if "dtype" in parameters and template.__annotations__["return"] == "Array":
            needed = parameters["dtype"].default is inspect.Parameter.empty
            if check is not None:
                setattr(room, name, _checking(getattr(room, name), check, needed))
            elif needed:
                setattr(room, name, _needing(getattr(room, name)))


def _checking(own: Any, check: Callable[[Any], Any], needed: bool) -> Any:
    names = list(inspect.signature(own).parameters)
    place = names.index("dtype") if "dtype" in names else sys.maxsize  # among **kwargs

    @functools.wraps(own)
    def function(*args: Any, **kwargs: Any) -> Any:
        dtype = kwargs.get("dtype")
        if dtype is not None:
            kwargs["dtype"] = check(dtype)
        elif len(args) > place and args[place] is not None:
            args = (*args[:place], check(args[place]), *args[place + 1 :])
        elif needed:
            raise TypeError(f"{own.__name__} takes a data type, got None")
        return own(*args, **kwargs)

    return function


def _needing(own: Any) -> Any:
    @functools.wraps(own)
    def function(x: Any, dtype: Any, /, **kwargs: Any) -> Any:
        if dtype is None:
            raise TypeError(f"{own.__name__} takes a data type, got None")
        return own(x, dtype, **kwargs)

    return function


def ask_rightly(library: str, face: Any) -> None:
    """Have the functions about data types raise TypeError for what is none.

    Parameters
    ----------
    library : str
    face : module
        The library's native face, its corrections applied; changed in place.
    """
    own = type(face.float32)
    owns = library_named(library).owns

    def is_dtype(x: Any) -> bool:
        if isinstance(x, own) and own is not type:
            return True
        return _is_numpys(x) if own.__module__ not in _OF_ITS_OWN else False

    def is_one(x: Any) -> bool:
        return owns(type(x)) or is_dtype(x)

    def is_one_or_scalar(x: Any) -> bool:
        return is_one(x) or (library == "numpy" and _is_numpys_scalar(x))

    def check(name: str, kind: str, x: Any, right: Callable[[Any], bool]) -> None:
        if not right(x):
            raise TypeError(f"{name} takes {kind}, got {x!r}")

    dtypes = f"data types of {library}"
    both = f"arrays and {dtypes}"
    plain = {name: getattr(face, name) for name in ("result_type", "can_cast", "isdtype", *_LIMITS)}

    @functools.wraps(plain["result_type"])
    def result_type(*arrays_and_dtypes: Any) -> Any:
        typed, given = False, []
        for x in arrays_and_dtypes:
            if isinstance(x, numpy.generic) and library != "numpy":
                x = scalar_of(x)  # as in operators
            if not isinstance(x, SCALARS) or isinstance(x, numpy.generic):
                check("result_type", f"{both} and Python scalars", x, is_one_or_scalar)
                typed = True
            given.append(x)
        if not typed:
            raise ValueError(  # as array-api-strict has it, and SciPy catches
                "result_type takes at least one array or data type: Python scalars have none "
                "by themselves"
            )
        return plain["result_type"](*given)

    @functools.wraps(plain["can_cast"])
    def can_cast(from_: Any, to: Any, /) -> Any:
        check("can_cast", both, from_, is_one)
        check("can_cast", dtypes, to, is_dtype)
        return plain["can_cast"](from_, to)

    @functools.wraps(plain["isdtype"])
    def isdtype(dtype: Any, kind: Any) -> Any:
        check("isdtype", dtypes, dtype, is_dtype)
        for each in kind if isinstance(kind, tuple) else (kind,):
            if not isinstance(each, str):
                check("isdtype", f"names of kinds and {dtypes}", each, is_dtype)
        return plain["isdtype"](dtype, kind)

    vars(face).update(result_type=result_type, can_cast=can_cast, isdtype=isdtype)
    for name, kind in _LIMITS.items():
        vars(face)[name] = _limits(plain[name], f"{name} takes {kind} {both}", is_one)


def _limits(plain: Any, takes: str, is_one: Callable[[Any], bool]) -> Any:
    @functools.wraps(plain)
    def function(type: Any, /) -> Any:
        try:
            if is_one(type):
                return plain(type)
        except (AttributeError, TypeError, ValueError) as error:
            raise TypeError(f"{takes}, got {type!r}") from error
        raise TypeError(f"{takes}, got {type!r}")

    return function


_OF_ITS_OWN = ("torch", "array_api_strict._dtypes")  # whose data types are not NumPy's


def _is_numpys_scalar(x: Any) -> bool:
    return isinstance(x, numpy.generic) and is_numeric(x.dtype)


def _is_numpys(x: Any) -> bool:
    """Whether NumPy takes an object for a data type of numbers."""
    if x is None or (isinstance(getattr(x, "dtype", None), numpy.dtype) and hasattr(x, "shape")):
        return False  # an array
    try:
        return is_numeric(numpy.dtype(x))
    except TypeError:
        return False
