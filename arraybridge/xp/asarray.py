"""``asarray`` and ``from_dlpack`` of all namespaces: other arrays, buffers, numbers, sequences.

Arrays of other libraries, also in nested sequences, are converted by ``convert``: a library's own
conversion may give wrong numbers (PyTorch reads JAX arrays as bytes).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from ..array.array import Array
from ..array.array_types import is_array, unwrapped
from ..array.native_array import NativeArray
from ..array.operators import SCALARS
from ..array.promotion import check_narrow, is_numeric, scalar_of
from ..conversion import convert, imported, inspect
from ..core.library import Library, place_named
from ..core.planner import missing_device
from ..core.records import ConversionError, first_line, no_copy_allowed, pending_reason
from ..core.registry import RECORDS, library_named, library_of_package, library_of_type
from ..core.table import OBSERVERS, notify_copy, notify_view
from ..dlpack import DeviceType, is_capsule
from ..protocols.frames import is_frame
from ..protocols.rejections import check_whole
from .calls import Arguments, Check, Function
from .standard.data_types import DATA_TYPES

# Types that need no check, or that NumPy's own check covers.
_NO_CHECK = (numpy.ndarray, list, tuple, *SCALARS)
NUMBER, SEQUENCE, ARRAY, REFUSED, OTHER = range(5)
_NUMBERS = (*SCALARS, numpy.generic)
_NO_NUMBERS = (type(None), str, dict, set, frozenset)
_NO_SCALARS = (numpy.flexible, numpy.object_, numpy.datetime64, numpy.timedelta64)


def _category(cls: type) -> int:
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
    # A proxy of a weak reference has every method, whatever it refers to.
    iterates = issubclass(cls, Iterator) and cls not in weakref.ProxyTypes
    return REFUSED if iterates else OTHER


def _category_of(cls: type) -> int:
    record = RECORDS[cls]
    if record.sort < 0:
        record.sort = _category(cls)
    return record.sort


def is_plain(obj: Any) -> bool:
    """Whether an object is a number, an array, or nested sequences of only those."""
    category = _category_of(type(obj))
    return category in (NUMBER, ARRAY) or (category == SEQUENCE and all(map(is_plain, obj)))


def arguments(
    library: str,
    namespace: Any,
    check_dtype: Callable[[Any], Any],
    takes_numpy: bool,
    takes_nested: bool,
) -> Check:
    """Make the function that prepares the arguments for the library's own ``asarray``.

    `check_dtype` returns the data type to use for a requested one, or raises.
    `takes_numpy`: the library's own ``asarray`` copies NumPy arrays, to its default device;
    `takes_nested`: it takes nested sequences of its own arrays.
    """
    home = library_named(library)
    take = _Input(home, namespace, takes_numpy, takes_nested)

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
        if dtype is not None:
            dtype = check_dtype(dtype)
        if OBSERVERS and is_array(obj):
            _notify(home, obj, dtype, device, copy)
        if home.owns(type(obj)):
            check_whole(obj)
        elif obj.__class__ not in SCALARS:
            sequence = isinstance(obj, list | tuple)
            try:
                obj = take(obj, dtype, device, copy is False)
            except RecursionError:
                raise ValueError("a sequence is nested too deeply, or contains itself") from None
            if sequence and home.owns(type(obj)):  # it has been copied to an array
                copy = None
        if dtype is not None:
            check_narrow(obj, dtype)
        if order is not None:
            kwargs["order"] = order
        return (obj,), {"dtype": dtype, "device": device, "copy": copy, **kwargs}

    return asarray


def _notify(home: Library, x: Any, dtype: Any, device: Any, copy: bool | None) -> None:
    """Notify observers of a view, copy or cast in ``asarray`` of an array of the same library.

    For other arrays only of a cast: `convert` notifies of their conversion.
    """
    native = unwrapped(x)
    mine = library_of_type(type(native)) is home
    try:
        info = inspect(native)
    except Exception:  # a tracer, or an array for which the function will raise
        return
    wanted = None if dtype is None else home.data_type(dtype)
    why = "copy=True" if mine and copy else None
    if mine and device is not None and place_named(device) != info.device:
        why = "asked for by device="
    if wanted is not None and wanted != info.dtype:
        why = f"{info.dtype_name} becomes {wanted.name}"
    if why is not None:
        notify_copy(why, info._replace(library=home.name), call="asarray")
    elif mine:
        notify_view("nothing to convert", info, "asarray")


class _Input:
    """Conversion of any object for a library's own ``asarray``."""

    def __init__(
        self, home: Library, namespace: Any, takes_numpy: bool, takes_nested: bool
    ) -> None:
        self.home, self.namespace = home, namespace
        self.takes_numpy, self.takes_nested = takes_numpy, takes_nested

    def __call__(self, obj: Any, dtype: Any, device: Any, shared: bool) -> Any:
        """Return ``obj`` itself if the library's ``asarray`` accepts it; ``shared``: no copy."""
        category = _category_of(type(obj))
        if category == NUMBER:
            return obj if dtype is None else scalar_of(obj)
        if category == REFUSED:
            raise _refusal(obj)
        if category == SEQUENCE:
            return self.sequence(obj, dtype, device, shared)
        if category == OTHER and not is_capsule(obj):
            check_whole(obj)
            if not is_frame(type(obj)):  # NumPy would turn missing values into NaN
                found = _memory(obj, shared)
                if found is None:
                    return obj
                obj = found
        return self.array(obj, dtype, device, shared)

    def sequence(self, obj: Any, dtype: Any, device: Any, shared: bool) -> Any:
        """Convert all arrays in nested sequences to the library, or stack them."""
        kinds = set(map(type, obj))
        if {_category_of(cls) for cls in kinds} <= {NUMBER}:
            own = dtype is None or kinds.issubset(SCALARS)
            return obj if own else [scalar_of(x) for x in obj]
        found = [self.item(x, dtype, device) for x in obj]
        if OBSERVERS and not shared:
            for x in found:
                if self.home.owns(type(x)):
                    notify_copy("a sequence is stacked", self.home.describe(x), call="asarray")
        if self.takes_nested or not any(self.home.owns(type(x)) for x in found):
            return found
        if shared:
            raise ConversionError(no_copy_allowed("arrays in a sequence are copied"))
        return self.stacked(found, dtype, device)

    def stacked(self, leaves: list[Any], dtype: Any, device: Any) -> Any:
        """Stack arrays of the library, and numbers or lists of numbers among them."""
        xp, owns = self.namespace, self.home.owns
        make = xp._functions["asarray"].own
        leaves = [  # sequences and NumPy scalars have dtypes, unlike Python scalars
            make(numpy.asarray(x) if isinstance(x, numpy.generic) else x, dtype=dtype)
            if isinstance(x, list | tuple | numpy.generic)
            else x
            for x in leaves
        ]
        if device is None:
            device = next(x.device for x in leaves if owns(type(x)))
        common = xp.result_type(*leaves) if dtype is None else dtype
        parts = [make(x, dtype=common, device=device) for x in leaves]
        shapes = {tuple(part.shape) for part in parts}
        if len(shapes) > 1:
            raise ValueError(f"arrays in a sequence must have one shape, got {shapes}")
        return xp.stack(parts)

    def item(self, x: Any, dtype: Any, device: Any) -> Any:
        """Return an element of a sequence in a form that the library takes."""
        if isinstance(x, Array) and x.library == self.home.name:
            x = x.native
        if self.home.owns(type(x)):
            if isinstance(x, numpy.ndarray):
                return readable(x, False)
            check_whole(x)
            self.home.check_supported(x, read=True)
            return x
        taken = self(x, dtype, device if isinstance(x, list | tuple) else None, False)
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
                if OBSERVERS:
                    info = library_named("numpy").describe(x)
                    home = self.home.name
                    notify_copy(f"{home}'s asarray copies NumPy arrays", info, home)
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
        # The library lacks the dtype or device of x, but another one is requested.
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
    """Return a NumPy view of an object with a buffer or an array interface; else None."""
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
    """Return a NumPy array in the machine's byte order; raise if it does not contain numbers."""
    check_whole(x)
    if not is_numeric(x.dtype):
        raise no_numbers(x)
    if x.dtype.isnative:
        return x
    if shared:
        raise ConversionError(no_copy_allowed(pending_reason(["byteorder"])))
    return x.astype(x.dtype.newbyteorder("="))


def no_numbers(x: numpy.ndarray) -> Exception:
    """Make the error for arrays of text, objects, times, records or too large integers."""
    for number in x.flat if x.dtype == object else ():
        if isinstance(number, int) and not -(2**63) <= number < 2**64:
            return OverflowError(f"Python integer {number} out of bounds for every integer dtype")
    return TypeError(
        f"the array API standard has no data type for NumPy's {x.dtype}: convert it to numbers "
        "first (x.astype, x.view('int64') for times, the fields of records), or use numpy.asarray"
    )


def _refusal(x: Any) -> TypeError:
    remedy = ": pass list(x)" if isinstance(x, Iterator | set | frozenset) else ""
    return TypeError(
        "asarray takes numbers, nested lists and tuples of them, buffers and arrays, got "
        f"{type(x).__name__}{remedy}"
    )


def of_arrays(cls: type[NativeArray], made: Function) -> Callable[..., Any]:
    """Make ``asarray`` of a namespace of Arrays from the native one."""
    own, errors, recover = made.own, made.errors, made.recovery()
    before: Any = made.before
    owns, check = cls._home.owns, cls._home.check_supported

    def function(
        obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
    ) -> Any:
        if isinstance(obj, Array):
            same = obj.__class__ is cls
            # The same Array: a new one over a JAX array would not see later writes.
            if same and not copy and _has(dtype, obj.dtype) and _has(device, obj.device):
                return obj
            if same:
                obj = obj._native
                check(obj, read=True)
        elif obj.__class__ not in _NO_CHECK and owns(type(obj)):
            check(obj, read=bool(copy) or dtype is not None)
        place = native_device(cls, device)
        args, kwargs = before(obj, dtype=dtype, device=place, copy=copy)
        try:
            result = own(*args, **kwargs)
        except errors as error:
            result = recover(error, args, kwargs)
        result = cls._normal(result)
        check(result)
        return cls._of(result)

    return function


def _has(wish: Any, own: Any) -> bool:
    """Whether an array has the requested dtype or device already; None requests nothing."""
    return wish is None or bool(wish == own)  # not `in`: np.dtype("float64") equals None


def from_dlpack(library: str) -> Callable[..., Any]:
    """Make ``from_dlpack`` of a library's native namespace: a view if safe, else a copy."""

    def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
        found = imported(x, library, device, copy)
        return readable(found, copy is False) if isinstance(found, numpy.ndarray) else found

    return from_dlpack


def from_dlpack_of_arrays(cls: type[NativeArray]) -> Callable[..., Any]:
    """Make ``from_dlpack`` of a namespace of Arrays."""

    def function(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
        if x.__class__ is cls and not copy and _has(device, x.device):
            return x
        return cls._taken(imported(x, cls._home.name, device, copy))

    return function


def native_device(cls: type[NativeArray], device: Any) -> Any:
    """Return the library's device for a Device, its name, or a device of the library."""
    if device is None:
        return None
    home = cls._home
    if library_of_package(type(device)) is home:
        return device
    place = place_named(device)
    own = home.native_device(place)  # first: the library's error may be more specific
    why = missing_device(home.accepts, place)
    if why is not None:
        raise ConversionError(why)
    return own
