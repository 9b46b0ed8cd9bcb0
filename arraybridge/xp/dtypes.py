"""Checks of dtype arguments: refuse what is not a dtype, or one that the result would not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..array.bounds import is_numeric, scalar_of
from ..array.operators import SCALARS
from ..dispatch.registry import library_named
from ..named import NamedTuple
from .recovery import Arguments, Check, Refused

_LIMITS = {"finfo": "floating-point", "iinfo": "integer"}


def checking(place: int, check: Callable[[Any], Any]) -> Check:
    """Make a check of the dtype that a function receives by name or by position.

    Parameters
    ----------
    place : int
        Where it is among the arguments.
    check : callable
        Gives the data type to take; raises for one that the result would not have.
    """

    def before(*args: Any, **kwargs: Any) -> Arguments:
        if "dtype" in kwargs:
            if kwargs["dtype"] is not None:
                kwargs["dtype"] = check(kwargs["dtype"])
        elif args[place] is not None:
            args = (*args[:place], check(args[place]), *args[place + 1 :])
        return args, kwargs

    return before


def needing(check: Callable[[Any], Any]) -> Check:
    """Make a check for ``astype``, to which None (float64 to NumPy) is not a dtype."""

    def before(x: Any, dtype: Any, /, **kwargs: Any) -> Arguments:
        if dtype is None:
            raise TypeError("astype takes a data type, got None")
        return (x, check(dtype)), kwargs

    return before


class DtypeErrors(NamedTuple):
    """A handler for ``finfo`` and ``iinfo``, which libraries refuse with different errors.

    Attributes
    ----------
    library : str
    """

    library: str

    errors: tuple[type[Exception], ...] = (AttributeError, TypeError, ValueError)
    attempt: str = ""

    def serves(self, path: str, template: Any) -> bool:
        """Whether a function is one of them."""
        return path in _LIMITS

    def retry(self, refused: Refused) -> Any:
        """Raise TypeError."""
        raise _no_limits(refused.function.path, self.library, refused.args[0]) from None


def _no_limits(path: str, library: str, x: Any) -> TypeError:
    return _wrong(path, f"{_LIMITS[path]} arrays and data types of {library}", x)


def _wrong(path: str, takes: str, x: Any) -> TypeError:
    return TypeError(f"{path} takes {takes}, got {x!r}")


def questions(library: str, dtype: Any, taken: Callable[[Any], Any]) -> dict[str, Check]:
    """Make checks of the arguments of dtype functions: a TypeError for anything but a dtype.

    Parameters
    ----------
    library : str
    dtype : object
        One of the library's data types.
    taken : callable
        Gives the library's data type for a `DType` of it; anything else as it is.
    """
    own, numpys = type(dtype), _is_numpys(dtype)
    owns = library_named(library).owns

    def is_dtype(x: Any) -> bool:
        return (isinstance(x, own) and own is not type) or (numpys and _is_numpys(x))

    def is_one(x: Any) -> bool:
        return owns(type(x)) or is_dtype(x)

    dtypes = f"data types of {library}"
    both = f"arrays and {dtypes}"
    beside = f"{both} and Python scalars"
    kinds = f"names of kinds and {dtypes}"

    def result_type(*arrays_and_dtypes: Any) -> Arguments:
        typed, given = False, []
        for x in arrays_and_dtypes:
            if owns(type(x)):
                typed = True
                given.append(x)
                continue
            if isinstance(x, numpy.generic) and library != "numpy":
                x = scalar_of(x)  # as in operators
            x = taken(x)
            if not isinstance(x, SCALARS) or isinstance(x, numpy.generic):
                right = is_one(x) or (library == "numpy" and _is_numpys_scalar(x))
                if not right:
                    raise _wrong("result_type", beside, x)
                typed = True
            given.append(x)
        if not typed:  # NumPy's scalars alone have a dtype
            own = [taken(x.dtype) for x in arrays_and_dtypes if isinstance(x, numpy.generic)]
            typed, given = bool(own) and all(map(is_dtype, own)), [*own, *given]
        if not typed:
            raise ValueError(  # as array-api-strict has it, and SciPy catches
                "result_type takes at least one array or data type: Python scalars have none "
                "by themselves"
            )
        return tuple(given), {}

    def can_cast(from_: Any, to: Any, /) -> Arguments:
        from_, to = taken(from_), taken(to)
        if not is_one(from_):
            raise _wrong("can_cast", both, from_)
        if not is_dtype(to):
            raise _wrong("can_cast", dtypes, to)
        return (from_, to), {}

    def isdtype(dtype: Any, kind: Any) -> Arguments:
        dtype = taken(dtype)
        if not is_dtype(dtype):
            raise _wrong("isdtype", dtypes, dtype)
        kind = tuple(map(taken, kind)) if isinstance(kind, tuple) else taken(kind)
        for each in kind if isinstance(kind, tuple) else (kind,):
            if not (isinstance(each, str) or is_dtype(each)):
                raise _wrong("isdtype", kinds, each)
        return (dtype, kind), {}

    def limits(name: str) -> Check:
        def before(type: Any, /) -> Arguments:
            type = taken(type)
            if not is_one(type):
                raise _no_limits(name, library, type)
            return (type,), {}

        return before

    return {
        "result_type": result_type,
        "can_cast": can_cast,
        "isdtype": isdtype,
        **{name: limits(name) for name in _LIMITS},
    }


def _is_numpys_scalar(x: Any) -> bool:
    return isinstance(x, numpy.generic) and is_numeric(x.dtype)


def _is_numpys(x: Any) -> bool:
    """Whether NumPy accepts an object as a numeric dtype."""
    if x is None or (isinstance(getattr(x, "dtype", None), numpy.dtype) and hasattr(x, "shape")):
        return False  # an array
    try:
        return is_numeric(numpy.dtype(x))
    except TypeError:
        return False
