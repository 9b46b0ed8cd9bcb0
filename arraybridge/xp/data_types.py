"""Data types: checks of the arguments that take one, ``result_type``, ``finfo`` and ``iinfo``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..array.operators import SCALARS
from ..array.promotion import BY_KIND, is_numeric, scalar_of
from ..core.registry import library_named
from .calls import Arguments, Check, Function
from .fallback import Handler
from .standard.data_types import DATA_TYPES

_LIMITS = {"finfo": "floating-point", "iinfo": "integer"}


def checking_dtype(place: int, check: Callable[[Any], Any]) -> Check:
    """Make a check of the dtype that a function receives by name or position.

    `check` returns the data type to use for a requested one, or raises.
    """

    def before(*args: Any, **kwargs: Any) -> Arguments:
        if "dtype" in kwargs:
            if kwargs["dtype"] is not None:
                kwargs["dtype"] = check(kwargs["dtype"])
        elif args[place] is not None:
            args = (*args[:place], check(args[place]), *args[place + 1 :])
        return args, kwargs

    return before


def checking_astype(check: Callable[[Any], Any]) -> Check:
    """Make a check for ``astype``, which does not accept None (float64 for NumPy)."""

    def before(x: Any, dtype: Any, /, **kwargs: Any) -> Arguments:
        if dtype is None:
            raise TypeError("astype takes a data type, got None")
        return (x, check(dtype)), kwargs

    return before


def limits_errors(library: str) -> Handler:
    """Replace the different errors of ``finfo`` and ``iinfo`` by a TypeError."""

    def retry(function: Function, error: Any, args: Any, kwargs: Any) -> Any:
        raise _no_limits(function.path, library, args[0]) from None

    errors = (AttributeError, TypeError, ValueError)
    return Handler(errors, lambda path, _: path in _LIMITS, retry)


def refusing_other_dtypes(function: Function, namespace: Any) -> Function:
    """Make a function raise TypeError for a ``dtype=`` that a namespace of Arrays does not have.

    ``namespace`` is a function, as the namespace is not complete yet.
    """
    if "dtype" not in function.parameters or function.path == "isdtype":
        return function

    def retry(function: Function, error: Any, args: Any, kwargs: Any) -> Any:
        given = dict(zip(function.parameters, args, strict=False)) | kwargs
        dtype, xp = given.get("dtype"), namespace()
        if dtype is None:
            return NotImplemented
        try:
            xp.isdtype(dtype, ("bool", "numeric"))
        except TypeError:
            name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
            name = name if name in DATA_TYPES and hasattr(xp, name) else "float32"
            own = f"{xp.__name__}, such as {xp.__name__}.{name}"
            raise TypeError(f"dtype must be a data type of {own}, got {dtype!r}") from None
        return NotImplemented

    handler = Handler((AttributeError, TypeError, ValueError), lambda *_: True, retry)
    return function._replace(handlers=(*function.handlers, handler))


def _no_limits(path: str, library: str, x: Any) -> TypeError:
    return _wrong(path, f"{_LIMITS[path]} arrays and data types of {library}", x)


def _wrong(path: str, takes: str, x: Any) -> TypeError:
    return TypeError(f"{path} takes {takes}, got {x!r}")


def dtype_checks(library: str, dtype: Any, taken: Callable[[Any], Any]) -> dict[str, Check]:
    """Make checks of the arguments of dtype functions: TypeError for anything but a dtype.

    `dtype` is any dtype of the library; `taken` returns the library's for a `DType`, and anything
    else unchanged.
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
                scalar = library == "numpy" and isinstance(x, numpy.generic) and is_numeric(x.dtype)
                if not (scalar or is_one(x)):
                    raise _wrong("result_type", beside, x)
                typed = True
            given.append(x)
        if not typed:  # only NumPy scalars: their dtypes count
            own = [taken(x.dtype) for x in arrays_and_dtypes if isinstance(x, numpy.generic)]
            typed, given = bool(own) and all(map(is_dtype, own)), [*own, *given]
        if not typed:
            raise ValueError(  # as in array-api-strict; SciPy catches it
                "result_type needs at least one array or data type: Python scalars have no dtype"
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


def _is_numpys(x: Any) -> bool:
    """Whether NumPy accepts an object as a numeric dtype."""
    if x is None or (isinstance(getattr(x, "dtype", None), numpy.dtype) and hasattr(x, "shape")):
        return False  # an array
    try:
        return is_numeric(numpy.dtype(x))
    except TypeError:
        return False


def result_type(
    pair: Callable[[Any, Any], Any],
    beside: Callable[[Any, Any], Any],
    ordered: Callable[[list[Any]], list[Any]] = list,
) -> Callable[..., Any]:
    """Make ``result_type`` for a library whose own is wrong for some dtypes or lacks them.

    ``pair(a, b)`` promotes two dtypes, ``beside(dtype, number)`` a dtype with the Python number of
    the highest kind; `ordered` returns the order in which more than two dtypes are promoted.
    """

    def result_type(*arrays_and_dtypes: Any) -> Any:
        dtypes, highest = [], None
        for x in arrays_and_dtypes:
            if isinstance(x, SCALARS) and not isinstance(x, numpy.generic):
                if highest is None or _kind_of(x) > _kind_of(highest):
                    highest = x
            else:
                dtypes.append(x if isinstance(x, type) else getattr(x, "dtype", x))
        found, *others = ordered(dtypes) if len(dtypes) > 2 else dtypes
        for dtype in others:
            found = pair(found, dtype)
        return found if highest is None else beside(found, highest)

    return result_type


def _kind_of(number: Any) -> int:
    return next(i for i, kind in enumerate(BY_KIND) if isinstance(number, kind))


class Corrected:
    """An information object of a library (``finfo``, ...) with some attributes corrected.

    Other attributes are the library's own (``tiny``, ``resolution``).
    """

    def __init__(self, own: Any, **right: Any) -> None:
        self._own = own
        vars(self).update(right)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_own":
            raise AttributeError(name)
        return getattr(self._own, name)

    def __repr__(self) -> str:
        return repr(self._own)

    def __eq__(self, other: object) -> bool:
        return bool(self._own == (other._own if isinstance(other, Corrected) else other))

    def __hash__(self) -> int:
        return hash(self._own)
