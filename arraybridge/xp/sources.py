"""The input of ``asarray`` besides a library's own arrays: other arrays, buffers, numbers.

Other libraries' arrays come in by ``convert``, bare and in nested sequences alike: what a library
makes of a stranger's array by itself may be wrong numbers (PyTorch reads JAX's as bytes).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from ..array.bounds import is_numeric, scalar_of
from ..array.carrier import Array
from ..array.operators import SCALARS
from ..dispatch.library import Library
from ..dispatch.records import ConversionError, first_line, no_copy_allowed, pending_told
from ..dispatch.registry import RECORDS, library_named, library_of_type
from ..dlpack import DeviceType, is_capsule
from ..exchange import convert
from ..named import NamedTuple
from ..protocols.foreign import check_whole
from ..protocols.frames import is_frame
from .recovery import Arguments, Check, Refused
from .standard.data_types import DATA_TYPES

NUMBER, SEQUENCE, ARRAY, REFUSED, OTHER = range(5)
_NUMBERS = (*SCALARS, numpy.generic)
_NO_NUMBERS = (type(None), str, dict, set, frozenset)
_NO_SCALARS = (numpy.flexible, numpy.object_, numpy.datetime64, numpy.timedelta64)


def _sort(cls: type) -> int:
    """Classify instances of a class for asarray."""
    if issubclass(cls, _NO_NUMBERS) or issubclass(cls, _NO_SCALARS):
        return REFUSED
    if issubclass(cls, _NUMBERS):
        return NUMBER
    if issubclass(cls, list | tuple):
        return SEQUENCE
    if library_of_type(cls) is not None or issubclass(cls, Array):
        return ARRAY
    if any(hasattr(cls, name) for name in ("__dlpack__", "__cuda_array_interface__")):
        return ARRAY
    # A weak reference's proxy has every method, whatever it is of.
    iterates = issubclass(cls, Iterator) and cls not in weakref.ProxyTypes
    return REFUSED if iterates else OTHER


def _sort_of(cls: type) -> int:
    record = RECORDS[cls]
    if record.sort < 0:
        record.sort = _sort(cls)
    return record.sort


def is_plain(obj: Any) -> bool:
    """Whether an object is a number, an array, or nested sequences of nothing else."""
    sort = _sort_of(type(obj))
    return sort in (NUMBER, ARRAY) or (sort == SEQUENCE and all(map(is_plain, obj)))


def taking_all(
    library: str, namespace: Any, check_dtype: Callable[[Any], Any] | None, takes_numpy: bool
) -> Check:
    """Make the function that converts the arguments of ``asarray`` for the library's own.

    Parameters
    ----------
    library : str
    namespace : module
        The library's native namespace.
    check_dtype : callable or None
        Gives the data type to take; raises for one that the result would not have.
    takes_numpy : bool
        Whether the library's own ``asarray`` copies NumPy's arrays, to its default device.
    """
    home = library_named(library)
    take = _Taking(home, namespace, takes_numpy)

    def asarray(
        obj: Any,
        /,
        dtype: Any = None,
        order: Any = None,
        *,
        device: Any = None,
        copy: bool | None = None,
        **kwargs: Any,
    ) -> Arguments:
        if check_dtype is not None and dtype is not None:
            dtype = check_dtype(dtype)
        if home.owns(type(obj)):
            check_whole(obj)
        elif obj.__class__ not in SCALARS:
            try:
                obj = take(obj, dtype, device, copy is False)
            except RecursionError:
                raise ValueError("a sequence is nested too deeply, or holds itself") from None
        if order is not None:
            kwargs["order"] = order
        return (obj,), {"dtype": dtype, "device": device, "copy": copy, **kwargs}

    return asarray


class _Taking:
    """Conversion of any object for a library's own ``asarray``."""

    def __init__(self, home: Library, namespace: Any, takes_numpy: bool) -> None:
        self.home = home
        self.namespace = namespace
        self.takes_numpy = takes_numpy

    def __call__(self, obj: Any, dtype: Any, device: Any, shared: bool) -> Any:
        """Return ``obj`` itself if the library's ``asarray`` accepts it; ``shared``: no copy."""
        sort = _sort_of(type(obj))
        if sort == NUMBER:
            return obj if dtype is None else scalar_of(obj)
        if sort == REFUSED:
            raise _refusal(obj)
        if sort == SEQUENCE:
            return self.sequence(obj, dtype)
        if sort == OTHER and not is_capsule(obj):
            check_whole(obj)
            if not is_frame(type(obj)):  # NumPy would make NaN of what is missing
                found = _memory(obj, shared)
                if found is None:
                    return obj
                obj = found
        return self.array(obj, dtype, device, shared)

    def sequence(self, obj: Any, dtype: Any) -> Any:
        """Replace all arrays in nested sequences by arrays of the library."""
        kinds = set(map(type, obj))
        if {_sort_of(cls) for cls in kinds} <= {NUMBER}:
            own = dtype is None or kinds.issubset(SCALARS)
            return obj if own else [scalar_of(x) for x in obj]
        return [self.item(x, dtype) for x in obj]

    def item(self, x: Any, dtype: Any) -> Any:
        if self.home.owns(type(x)):
            if isinstance(x, numpy.ndarray):
                return readable(x, False)
            check_whole(x)
            self.home.check_carried(x, read=True)
            return x
        taken = self(x, dtype, None, False)
        if isinstance(taken, numpy.ndarray) and not self.home.owns(numpy.ndarray):
            return self.namespace.asarray(taken, dtype=dtype)
        return taken

    def array(self, x: Any, dtype: Any, device: Any, shared: bool) -> Any:
        """Convert another library's array to the library's own, or to NumPy's."""
        if isinstance(x, Array) and x.library == self.home.name:
            return x.native
        if isinstance(x, numpy.ndarray):
            x = readable(x, shared)
            if self.takes_numpy and not shared:
                plain = dtype is None or x.dtype.kind in "biufc"
                return x if plain else x.astype(self.name_of(dtype) or x.dtype)  # ml_dtypes'
        to = self.home.name if DeviceType.CPU in self.home.accepts.devices else "numpy"
        try:
            found = convert(x, to, copy=False if shared else None)
            own = to == self.home.name
            return found if own or shared else self.array(found, dtype, device, shared)
        except ConversionError as error:
            if shared or (dtype is None and device is None):
                raise
            refused = error
        # The library lacks the dtype or the device, and another one is requested.
        try:
            found = convert(x, "numpy", device=None if device is None else "cpu")
        except ConversionError:
            raise refused from None
        name = None if dtype is None else self.name_of(dtype)
        if name is not None and found.dtype.name != name:
            found = found.astype(name)
        return convert(found, to)

    def name_of(self, dtype: Any) -> str | None:
        """Return the standard's name of a dtype of the library."""
        return next((n for n in DATA_TYPES if getattr(self.namespace, n, None) == dtype), None)


def _memory(obj: Any, shared: bool) -> Any:
    """Return a NumPy array on an object with a buffer or an array interface; else None."""
    try:
        return numpy.asarray(memoryview(obj))
    except TypeError:
        pass
    if hasattr(obj, "__jax_array__") or not (
        hasattr(obj, "__array__") or hasattr(obj, "__array_interface__")
    ):
        return None
    if not shared:
        return numpy.asarray(obj)
    try:
        return numpy.asarray(obj, copy=False)
    except ValueError as error:
        raise ConversionError(no_copy_allowed(first_line(error))) from error


def readable(x: numpy.ndarray, shared: bool) -> numpy.ndarray:
    """Return a NumPy array of numbers in the machine's byte order."""
    check_whole(x)
    if not is_numeric(x.dtype):
        raise no_numbers(x)
    if x.dtype.isnative:
        return x
    if shared:
        raise ConversionError(no_copy_allowed(pending_told(["byteorder"])))
    return x.astype(x.dtype.newbyteorder("="))


def no_numbers(x: numpy.ndarray) -> Exception:
    """Make the error for arrays of text, objects, times, records or oversized integers."""
    for number in x.flat if x.dtype == object else ():
        if isinstance(number, int) and not -(2**63) <= number < 2**64:
            return OverflowError(f"Python integer {number} out of bounds for every integer dtype")
    return TypeError(
        f"the array API standard has no data type for NumPy's {x.dtype}: bring it to numbers first "
        "(x.astype, x.view('int64') of times, the fields of records), or take numpy.asarray"
    )


class SharingErrors(NamedTuple):
    """A handler for ``copy=False``, which libraries refuse with different errors."""

    errors: tuple[type[Exception], ...] = (
        ValueError,
        AttributeError,
    )  # the latter array-api-strict
    attempt: str = ""

    def serves(self, path: str, template: Any) -> bool:
        """Whether a function takes ``copy`` and is bound to keep it."""
        return path in ("asarray", "reshape")

    def retry(self, refused: Refused) -> Any:
        """Raise ConversionError, which is a ValueError."""
        error = refused.error
        if refused.kwargs.get("copy") is not False or isinstance(error, ConversionError):
            return NotImplemented
        raise ConversionError(no_copy_allowed(first_line(error))) from error


def _refusal(x: Any) -> TypeError:
    remedy = ": pass list(x)" if isinstance(x, Iterator | set | frozenset) else ""
    return TypeError(
        "asarray takes numbers, nested lists and tuples of them, buffers and arrays, got "
        f"{type(x).__name__}{remedy}"
    )
