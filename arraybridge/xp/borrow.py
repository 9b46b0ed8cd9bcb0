"""Borrowing: run what a library lacks in another one on the same device, through views.

A library's table (`Borrowing`) says which of its dtypes few of its functions take, and which of its
errors mean "not implemented"; the other library's native namespace computes. Arrays that track
gradients or are traced never borrow, as that would cut the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from ..array.fallback import fallback_library
from ..dispatch.records import ConversionError
from ..dispatch.registry import library_named
from ..exchange import convert
from ..named import NamedTuple
from .recovery import Refused
from .standard.data_types import DATA_TYPES


class Borrowing(NamedTuple):
    """A handler that computes in another library what this one lacks.

    Attributes
    ----------
    library : str
    array : type
        The type of its arrays.
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
    attempt: str = "another library's function on the same memory"

    def serves(self, path: str, template: Any) -> bool:
        """Whether a function takes or returns arrays, and may be borrowed."""
        kinds = map(str, template.__annotations__.values())
        return path not in self.apart and any("Array" in kind for kind in kinds)

    def retry(self, refused: Refused) -> Any:
        """Compute in the lender what the library lacks, and convert the result."""
        function, error, args, kwargs = refused
        arrays = list(_arrays((args, kwargs), self.array))
        if not self.unimplemented(error) and (
            # The caller's own, whatever the dtypes: an argument, dtypes without a common one
            isinstance(error, TypeError) or not any(x.dtype in self.dtypes for x in arrays)
        ):
            return NotImplemented
        if not arrays:  # whose device would be anyone's guess
            return NotImplemented
        try:
            device = library_named(self.library).describe(arrays[0]).device
            lender = fallback_library(device, but=self.library)
            there = _There(self, function.namespace, lender)
            args, kwargs = there.array_of(args), there.array_of(kwargs)
        except (ConversionError, ImportError, TypeError) as why:
            dtypes = ", ".join(dict.fromkeys(str(x.dtype) for x in arrays))
            raise NotImplementedError(
                f"{self.library} has no {function.path} for {dtypes}, and it cannot run in another "
                f"library without a copy or a cut: {why}"
            ) from None
        try:
            result = there.function(function.path)(*args, **kwargs)
        except (TypeError, AttributeError, NotImplementedError) as lacking:
            error.add_note(f"tried with {lender}'s {function.path} on the same memory: {lacking}")
            return NotImplemented
        return there.back(result)


def _arrays(x: Any, array: type) -> Iterator[Any]:
    """List the arrays among the arguments."""
    if isinstance(x, array):
        yield x
    elif isinstance(x, list | tuple):
        for each in x:
            yield from _arrays(each, array)
    elif isinstance(x, dict):
        yield from _arrays(list(x.values()), array)


class _There:
    """Conversion of arguments and results to the lender's and back."""

    def __init__(self, table: Borrowing, namespace: Any, lender: str) -> None:
        self.table = table
        self.lender = lender
        self.namespace = library_named(lender).native_namespace()
        self.dtypes, self.names = _dtypes(namespace), _dtypes(self.namespace)
        self.own = namespace

    def function(self, path: str) -> Any:
        return functools.reduce(getattr, path.split("."), self.namespace)

    def array_of(self, x: Any) -> Any:
        """Convert an argument for the lender: views of arrays, its own dtypes, no devices."""
        if isinstance(x, self.table.array):
            return convert(x, self.lender)
        if isinstance(x, list | tuple):
            return type(x)([self.array_of(each) for each in x])
        if isinstance(x, dict):
            return {k: self.array_of(v) for k, v in x.items() if k != "device"}
        if _hashable(x) and x in self.dtypes:
            return getattr(self.namespace, self.dtypes[x])
        return x

    def back(self, x: Any) -> Any:
        """Convert a result of the lender to the library."""
        if isinstance(x, tuple):
            back = [self.back(each) for each in x]
            return type(x)._make(back) if hasattr(x, "_make") else tuple(back)
        if isinstance(x, list):
            return [self.back(each) for each in x]
        if hasattr(x, "dtype") and hasattr(x, "shape"):  # a NumPy scalar, too
            return convert(self.namespace.asarray(x), self.table.library)
        if _hashable(x) and x in self.names:
            return getattr(self.own, self.names[x])
        return x


@functools.cache
def _dtypes(namespace: Any) -> dict[Any, str]:
    """Map a namespace's dtype objects to their names in the standard."""
    return {getattr(namespace, name): name for name in DATA_TYPES if hasattr(namespace, name)}


def _hashable(x: Any) -> bool:
    # bool, int and str equal some dtypes of some libraries (numpy.dtype == "int8")
    return type(x).__hash__ is not None and not isinstance(x, bool | int | float | complex | str)
