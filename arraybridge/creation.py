"""``asarray``: make arrays of numbers, or of any library's arrays, like another array."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy

from .array.array_types import is_array
from .array.scalars import KINDS, is_numeric, kind_of, scalar_of
from .core.cast_rules import Casting
from .core.library import Library, place_named
from .core.records import ConversionError
from .core.registry import library_named
from .core.request import Cast, Request, cast_of, checked_copy
from .core.table import OBSERVERS, notify_copy
from .dlpack import DataType, DataTypeCode
from .namespaces import goal_of
from .ndarrays import numpy_dtype
from .protocols.frames import is_frame


def asarray(
    obj: Any,
    /,
    *,
    like: Any,
    dtype: object = None,
    casting: Casting = "same_kind",
    device: object = None,
    copy: bool | None = None,
) -> Any:
    """Make an array in the library of ``like`` from numbers, sequences or an array of any library.

    Parameters
    ----------
    obj : scalar, sequence or array
        Any argument of the library's own ``asarray`` or of :func:`arraybridge.convert`.
    like : str, module, array or container
        The library, such as ``"jax"``, or an array whose library, kind and device the result gets.
    dtype : data type or mapping, optional
        As for :func:`arraybridge.convert`. By default, an array keeps its dtype, and numbers get
        the library's default: PyTorch and JAX make float32 from ``[1.0]``.
    casting : {"no", "equiv", "safe", "same_kind", "unsafe", "same_value"}, default "same_kind"
        Which casts ``dtype`` may make, as in :func:`arraybridge.convert`. Numbers have a kind
        (bool, integer, real, complex) but no width. All rules except ``"unsafe"`` and
        ``"same_value"`` allow each dtype of this or a higher kind that can represent the numbers:
        integers must be in range; floats are rounded, and become infinite out of range.
    device : Device, (int, int), str or a library's own device, optional
        The device of the result. By default, the device of ``like`` if that is an array.
    copy : bool, optional
        As in :func:`arraybridge.convert`; numbers are always copied.

    Returns
    -------
    array
        A native array, or an :class:`arraybridge.Array` if ``like`` is one.

    Raises
    ------
    ConversionError
        If an array cannot be converted, or ``casting`` does not allow the cast.
    OverflowError
        If an integer is out of the range of an integer ``dtype``, or of all floats.
    TypeError, ValueError
        If no library accepts ``obj`` as an array, and as in :func:`arraybridge.unify`.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> ab.asarray([1.5, 2.5], like="jax")
    Array([1.5, 2.5], dtype=float32)
    >>> model = torch.zeros(2, dtype=torch.float64)
    >>> x = np.ones(3, np.float32)
    >>> ab.asarray(x, like=model)           # the model's library, the dtype of x
    tensor([1., 1., 1.])
    """
    goal = goal_of(like)
    place = goal.device if device is None else place_named(device)
    cast, copy = cast_of(dtype, casting), checked_copy(copy)
    if not (is_array(obj) or is_frame(type(obj))):
        library = library_named(goal.array_type.library)
        kind = _kind_of_numbers(obj)
        if kind is not None:
            obj, cast, copy = *_of_numbers(obj, kind, library, cast), None
        else:
            obj = _of_arrays(obj, library, cast, copy)
            copy = None if copy else copy
    return goal.array_type.convert(obj, Request(place, copy, cast=cast))


def _of_numbers(
    obj: Any, kind: int, library: Library, cast: Cast | None
) -> tuple[Any, Cast | None]:
    """Make an array of nested numbers, and return the cast that remains to be done."""
    numpys = library_named("numpy").computing.native_namespace()
    own = library.computing.native_namespace()
    dtype = None if cast is None else cast.dtype
    if cast is None or dtype is None:  # the library decides, and a table casts what it made
        if KINDS[kind] is int:
            obj = _exact(obj, library)
            if isinstance(obj, numpy.ndarray):
                return obj, cast
        made = library.computing.from_python(obj) if own is None else own.asarray(obj)
        return numpys.asarray(obj) if made is None else made, cast
    if cast.casting in ("unsafe", "same_value"):
        return _of_any_numbers(obj, kind, cast.casting, dtype, numpys), cast
    if kind > kind_of(dtype):
        return numpys.asarray(obj), cast  # which is refused
    # As Python's numbers, which NumPy checks; it wraps its own.
    plain = _plain(obj)
    made = _of_dtype(plain, kind, dtype, numpys)
    small = KINDS[kind_of(dtype)] is int and dtype.subbyte
    if small and (made.astype("int64") != numpy.asarray(plain)).any():  # ml_dtypes wraps all
        raise OverflowError(f"a number is out of the range of {dtype}")
    return made, None


def _of_dtype(plain: Any, kind: int, dtype: DataType, numpys: Any) -> Any:
    if KINDS[kind] is int and KINDS[kind_of(dtype)] is float:
        plain = _plain(plain, float)  # ml_dtypes takes no integers beyond int64
    return numpys.asarray(plain, dtype=numpy_dtype(dtype))


def _of_any_numbers(obj: Any, kind: int, casting: str, dtype: DataType, numpys: Any) -> Any:
    """Make an array of numbers of any kind, of `dtype` if possible.

    NumPy's array of unlike integers, or with floats, is of floats, which may not hold them.
    """
    plain = _plain(obj)
    if KINDS[kind] is complex and KINDS[kind_of(dtype)] is not complex:
        plain = _plain(plain, lambda x: x if casting == "same_value" and x.imag else x.real)
    new = None
    with suppress(OverflowError, TypeError, ValueError):
        new = _of_dtype(plain, kind, dtype, numpys)
        if casting == "unsafe" or all(map(_equal, _flat(plain), new.reshape(-1).tolist())):
            return new
    if casting == "same_value":
        lost = next((x for x in _flat(plain) if not _holds(x, dtype)), None)
        raise ConversionError(
            f"casting='same_value', but {dtype} does not hold {lost!r}: pass another casting, or a "
            "data type that does"
        )
    if dtype.code not in (DataTypeCode.INT, DataTypeCode.UINT):
        return _of_dtype(plain, kind, dtype, numpys)  # which raises
    each = (numpy.asarray(x if type(x) is float else numpy.uint64(x % 2**64)) for x in _flat(plain))
    with numpy.errstate(all="ignore"):
        made = numpy.asarray([x.astype(numpy_dtype(dtype)) for x in each])
    return made.reshape(numpy.shape(plain))


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))


def _holds(number: Any, dtype: DataType) -> bool:
    with suppress(OverflowError, TypeError, ValueError):
        kind = _kind_of_type(type(number)) or 0
        return _equal(number, _of_dtype(number, kind, dtype, numpy).item())
    return False


def _plain(obj: Any, kind: Callable[[Any], Any] = scalar_of) -> Any:
    return [_plain(x, kind) for x in obj] if isinstance(obj, _SEQUENCES) else kind(obj)


def _flat(obj: Any) -> Iterator[Any]:
    if isinstance(obj, _SEQUENCES):
        for x in obj:
            yield from _flat(x)
    else:
        yield obj


def _exact(obj: Any, library: Library) -> Any:
    """Return nested integers as Python's, not rounded, or an array; OverflowError beyond int64."""
    numbers = [*_flat(obj)]
    kinds = {*map(type, numbers)}
    if len(kinds) == 1 and isinstance(numbers[0], numpy.generic):
        known = numbers[0].dtype.name in library.accepts.dtypes
        return numpy.asarray(obj) if known else _plain(obj)
    for number in numbers:
        if not -(2**63) <= number < 2**63:
            raise OverflowError(f"{number} is out of the range of int64{_remedy(numbers, library)}")
    return _plain(obj)


def _remedy(numbers: list[Any], library: Library) -> str:
    """Return what to pass for integers beyond int64: a data type of the library with them all."""
    known = [name for name in ("uint64", "float64", "float32") if name in library.accepts.dtypes]
    for name in known:
        if all(_holds(int(number), DataType.named(name)) for number in numbers):
            return f": pass dtype={name!r}"
    for name in known:
        if name[0] == "f" and all(abs(int(n)) <= float(numpy.finfo(name).max) for n in numbers):
            return f": pass dtype={name!r}, which rounds it"
    return f", and no data type of {library.name} has it"


def _of_arrays(obj: Any, library: Library, cast: Cast | None, copy: bool | None) -> Any:
    """Make an array of a buffer, or of a sequence with arrays in it."""
    rows = isinstance(obj, list | tuple) and {*map(type, obj)} == {numpy.ndarray}
    alike = rows and len({(x.shape, x.dtype) for x in obj}) == 1 and obj[0].dtype.isnative
    if copy is not False and alike:
        made = numpy.array(obj)  # in C order, as of numbers
        if OBSERVERS:
            notify_copy("a sequence is stacked", library_named("numpy").describe(made))
        return made
    for x in _flat(obj):
        if x is None or isinstance(x, str):
            raise TypeError(
                "asarray takes numbers, nested lists and tuples of them, buffers and arrays, got "
                f"{type(x).__name__}"
            )
    own = library.computing.native_namespace()
    numpys = library_named("numpy").computing.native_namespace()
    try:
        return (own or numpys).asarray(obj, copy=copy)
    except ConversionError:  # the library lacks the data type, but the cast asks for another
        if own is None or cast is None:
            raise
        return numpys.asarray(obj, copy=copy)


def _kind_of_numbers(obj: Any) -> int | None:
    """Return the highest kind (`KINDS`) of nested numbers; None if there is anything else."""
    if not isinstance(obj, _SEQUENCES):
        return _kind_of_type(type(obj))
    types = set(map(type, obj))
    nested = any(issubclass(cls, _SEQUENCES) for cls in types)
    kinds = [*(map(_kind_of_numbers, obj) if nested else map(_kind_of_type, types))]
    known = [kind for kind in kinds if kind is not None]
    return max(known, default=0) if len(known) == len(kinds) else None


def _kind_of_type(cls: type) -> int | None:
    if issubclass(cls, numpy.generic):
        dtype = numpy.dtype(cls)
        return kind_of(dtype) if is_numeric(dtype) else None
    return next((kind for kind, number in enumerate(KINDS) if issubclass(cls, number)), None)


_SEQUENCES = (list, tuple, range)
