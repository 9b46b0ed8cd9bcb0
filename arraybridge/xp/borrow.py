"""Borrowing: what a library lacks runs in another one on the same device, through views.

A library's table (`Borrowing`, in ``corrections``) says which of its dtypes few of its functions
take, and which of its errors mean "not implemented"; the other library's native face computes.
Nothing is asked beforehand: a function that the library has costs no more than a ``try``. What
tracks gradients or is traced is never borrowed: the graph would be cut.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..array.adoption import adopter
from ..dispatch.records import ConversionError
from ..dispatch.registry import library_named
from ..exchange import convert
from .standard import functions_of
from .standard.data_types import DATA_TYPES


class Borrowing(NamedTuple):
    """What a library has to borrow.

    Attributes
    ----------
    library : str
    array : type
        Its arrays' type.
    dtypes : frozenset
        Those of its dtypes that only some of its functions take.
    errors : tuple of exception types
        What it raises for a function that cannot do a dtype; of another dtype than ``dtypes`` only
        those that ``unimplemented`` says.
    unimplemented : callable
        Whether an error says, whatever the dtypes, that a function is not implemented for them.
    apart : frozenset of str
        Functions that are not to be borrowed, such as what makes arrays on a given device.
    """

    library: str
    array: type
    dtypes: frozenset[Any]
    errors: tuple[type[Exception], ...]
    unimplemented: Callable[[Exception], bool]
    apart: frozenset[str] = frozenset()


def lend(face: Any, table: Borrowing) -> None:
    """Give a native face what it lacks: its functions fall back on another library's.

    Parameters
    ----------
    face : module
        The library's native face, its corrections applied; changed in place.
    table : Borrowing
    """
    for room, path, name, template in functions_of(face):
        if name in table.apart or path in table.apart:
            continue
        if any(str(a).find("Array") >= 0 for a in template.__annotations__.values()):
            setattr(room, name, _borrowing(getattr(room, name, None), face, path, table))


def _borrowing(own: Any, face: Any, path: str, table: Borrowing) -> Any:
    """A function of the library that falls back on the lender's."""
    if own is None:

        def missing(*args: Any, **kwargs: Any) -> Any:
            return _borrowed(None, face, path, table, args, kwargs)

        missing.__name__ = missing.__qualname__ = path.rpartition(".")[2]
        return missing

    errors = table.errors

    @functools.wraps(own)
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            return own(*args, **kwargs)
        except errors as error:
            if not _worth_it(error, table, args, kwargs):
                raise
            refused = error
        return _borrowed(refused, face, path, table, args, kwargs)

    return function


def _worth_it(error: Exception, table: Borrowing, args: Any, kwargs: Any) -> bool:
    return table.unimplemented(error) or any(
        x.dtype in table.dtypes for x in _arrays((args, kwargs), table.array)
    )


def _arrays(x: Any, array: type) -> Iterator[Any]:
    """The arrays among the arguments."""
    if isinstance(x, array):
        yield x
    elif isinstance(x, list | tuple):
        for each in x:
            yield from _arrays(each, array)
    elif isinstance(x, dict):
        yield from _arrays(list(x.values()), array)


def _borrowed(
    refused: Exception | None, face: Any, path: str, table: Borrowing, args: Any, kwargs: Any
) -> Any:
    """What the lender's function gives, as arrays of the library."""
    arrays = list(_arrays((args, kwargs), table.array))
    dtypes = ", ".join(dict.fromkeys(str(x.dtype) for x in arrays))
    if not arrays:  # whose device would be anyone's guess
        raise refused or NotImplementedError(f"{table.library} has no {path}")
    try:
        device = library_named(table.library).describe(arrays[0]).device
        lender = adopter(device, but=table.library)
        there = _There(table, face, lender)
        args, kwargs = there.array_of(args), there.array_of(kwargs)
    except (ConversionError, ImportError, TypeError) as why:
        raise NotImplementedError(
            f"{table.library} has no {path} for {dtypes}, and it cannot run in another library "
            f"without a copy or a cut: {why}"
        ) from refused
    try:
        result = there.function(path)(*args, **kwargs)
    except (TypeError, AttributeError, NotImplementedError):
        if refused is None:
            raise
        raise refused from None  # nor does the lender have it
    return there.back(result)


class _There:
    """Arguments and results on their way to the lender and back."""

    def __init__(self, table: Borrowing, face: Any, lender: str) -> None:
        self.table = table
        self.lender = lender
        self.face = library_named(lender).native_namespace()
        self.dtypes, self.names = _dtypes(face), _dtypes(self.face)
        self.own = face

    def function(self, path: str) -> Any:
        return functools.reduce(getattr, path.split("."), self.face)

    def array_of(self, x: Any) -> Any:
        """An argument as the lender takes it: views of arrays, its own dtypes, no devices."""
        if isinstance(x, self.table.array):
            return convert(x, self.lender)
        if isinstance(x, list | tuple):
            return type(x)([self.array_of(each) for each in x])
        if isinstance(x, dict):
            return {k: self.array_of(v) for k, v in x.items() if k != "device"}
        if _hashable(x) and x in self.dtypes:
            return getattr(self.face, self.dtypes[x])
        return x

    def back(self, x: Any) -> Any:
        """A result of the lender's as the library's."""
        if isinstance(x, tuple):
            back = [self.back(each) for each in x]
            return type(x)._make(back) if hasattr(x, "_make") else tuple(back)
        if isinstance(x, list):
            return [self.back(each) for each in x]
        if hasattr(x, "dtype") and hasattr(x, "shape"):  # a NumPy scalar, too
            return convert(self.face.asarray(x), self.table.library)
        if _hashable(x) and x in self.names:
            return getattr(self.own, self.names[x])
        return x


@functools.cache
def _dtypes(face: Any) -> dict[Any, str]:
    """From a namespace's dtype objects to their names in the standard."""
    return {getattr(face, name): name for name in DATA_TYPES if hasattr(face, name)}


def _hashable(x: Any) -> bool:
    # bool, int and str equal some dtypes of some libraries (numpy.dtype == "int8")
    return type(x).__hash__ is not None and not isinstance(x, bool | int | float | complex | str)
