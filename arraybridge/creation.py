"""``asarray``: make arrays of numbers, or of any library's arrays, like another array."""

from __future__ import annotations

from typing import Any

import numpy

from .array.array_types import is_array
from .array.promotion import is_numeric, range_of
from .core.cast_rules import Casting
from .core.library import Library, place_named
from .core.records import ConversionError
from .core.registry import library_named
from .core.request import Cast, cast_of, checked_copy
from .namespaces import goal_of
from .protocols.frames import is_frame
from .xp.asarray import is_plain


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
        obj, copy = _created(obj, library_named(goal.array_type.library), cast, copy)
    found = goal.array_type.convert(obj, device=place, copy=copy, cast=cast)
    goal.check([found])
    return found


def _created(
    obj: Any, library: Library, cast: Cast | None, copy: bool | None
) -> tuple[Any, bool | None]:
    """Make an array of an object that is not one; return it and ``copy`` for its conversion.

    It has the data type of the cast only if no casting rule applies: the conversion does the rest.
    """
    own = library.native_namespace()
    kind = _kind_of_numbers(obj)
    if cast is None:
        # NumPy decides about anything else: TensorFlow makes arrays of text.
        made = library.from_python(obj) if kind is not None or is_plain(obj) else None
        if made is not None:
            return made, None
    elif kind is not None and cast.dtype is not None:
        wanted = cast.dtype
        if cast.casting == "same_value" or kind > range_of(wanted).kind:
            own = None  # NumPy's data types hold Python numbers exactly
        else:
            native = None if own is None else library.native_dtype(wanted)
            if native is None:
                own, native = None, library_named("numpy").native_dtype(wanted)
            if native is not None:
                return _asarray(own)(obj, dtype=native), None
    if kind is not None:
        return _asarray(own)(obj), None
    left = None if copy else copy
    try:
        return _asarray(own)(obj, copy=copy), left
    except ConversionError:  # the library lacks the data type, but the cast asks for another
        if own is None or cast is None:
            raise
    return _asarray(None)(obj, copy=copy), left


def _asarray(own: Any) -> Any:
    """Return ``asarray`` of a native namespace; NumPy's for None."""
    return (own or library_named("numpy").native_namespace()).asarray


def _kind_of_numbers(obj: Any) -> int | None:
    """Return the highest kind (see `Range`) of the numbers in nested sequences.

    None if they contain anything else.
    """
    if not isinstance(obj, _SEQUENCES):
        return _kind_of_type(type(obj))
    types = set(map(type, obj))
    nested = any(issubclass(cls, _SEQUENCES) for cls in types)
    highest = 0
    for kind in map(_kind_of_numbers, obj) if nested else map(_kind_of_type, types):
        if kind is None:
            return None
        highest = max(highest, kind)
    return highest


def _kind_of_type(cls: type) -> int | None:
    if issubclass(cls, numpy.generic):
        dtype = numpy.dtype(cls)
        return range_of(dtype).kind if is_numeric(dtype) else None
    return next((kind for kind, number in enumerate(_NUMBERS) if issubclass(cls, number)), None)


_SEQUENCES = (list, tuple, range)
_NUMBERS = (bool, int, float, complex)  # by kind
