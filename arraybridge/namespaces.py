"""``namespace``: the array API namespace of arrays; ``unify``: convert arrays to one library."""

from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

import numpy

from .array.array import Array
from .array.array_types import (
    OWN,
    PLAIN,
    RECOGNIZED,
    ArrayType,
    array_type_of,
    arrays_in,
    device_of,
    is_array,
    is_data,
    lazy_library,
    ways_to,
)
from .array.device_namespace import fallback_library
from .array.library_array import array_class, check_version
from .core.cast_rules import Casting
from .core.library import place_named
from .core.records import ConversionError
from .core.registry import KNOWN, RECORDS, library_named, library_of_type
from .core.request import Request, cast_of, checked_copy
from .dlpack import Device
from .protocols.rejections import no_array
from .pytree import items

_PYTHON: frozenset[type] = frozenset((bool, int, float, complex, type(None)))
_SCALARS = (*_PYTHON, numpy.generic)


def namespace(*xs: Any, api_version: str | None = None) -> Any:
    """Return the array API namespace of arrays, or of a library by name.

    Parameters
    ----------
    *xs : array or scalar
        Arrays of one library. Python scalars, NumPy scalars and None are ignored; NumPy scalars
        without any array stand for NumPy. Or a single library, such as ``"torch"`` or ``torch``.
    api_version : str, optional
        The version of the standard that the namespace must serve, such as ``"2024.12"``.

    Returns
    -------
    module
        For native arrays and names, the library's native namespace: array-api-compat's with its
        errors corrected, which takes and returns native arrays. For an :class:`Array`, the module
        ``arraybridge.xp.<library>``. The result is cached by type.

    Raises
    ------
    TypeError
        If the arrays belong to several libraries (:func:`unify` converts them to one), there is no
        array, the library has no array API namespace, or a name is passed with other arguments.
    ValueError
        If the library is unknown, or the namespace does not serve the version.
    ImportError
        If the named library is not installed.

    See Also
    --------
    unify

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> def softmax(x):
    ...     xp = ab.namespace(x)
    ...     e = xp.exp(x - xp.max(x))
    ...     return e / xp.sum(e)
    >>> softmax(torch.zeros(2))
    tensor([0.5000, 0.5000])
    >>> softmax(np.zeros(2))
    array([0.5, 0.5])
    >>> ab.namespace(np.zeros(2), torch.zeros(2))
    Traceback (most recent call last):
        ...
    TypeError: arrays of several libraries (numpy.ndarray, torch.Tensor): bring them into
        one with `xp, *arrays = arraybridge.unify(...)`
    >>> xp = ab.namespace("torch")          # before there is an array
    >>> xp is ab.namespace(xp.zeros(2))
    True
    """
    if api_version is None:  # quickly, if the types are known; traced by torch.compile
        try:
            xp = KNOWN[type(xs[0])].namespace
            for x in xs[1:]:
                if type(x) not in _PYTHON and KNOWN[type(x)].namespace is not xp:
                    xp = None
        except (KeyError, IndexError):
            xp = None
        if xp is not None:
            return xp
    return _namespace_of(xs, api_version)


def _namespace_of(xs: Any, api_version: str | None) -> Any:
    for x in xs:
        if isinstance(x, str | ModuleType):
            if len(xs) > 1:
                raise TypeError(
                    f"namespace() takes arrays or one library, got {len(xs)} arguments with {x!r}: "
                    "omit it, or convert the arrays to it with arraybridge.unify(like=)"
                )
            xp = goal_of(x).array_type.namespace
            check_version(api_version, xp)
            return xp
    found: dict[int, tuple[Any, type]] = {}
    arrays = [x for x in xs if not isinstance(x, _SCALARS)]
    for x in arrays or [x for x in xs if isinstance(x, numpy.generic)]:
        xp = RECORDS[type(x)].namespace if api_version is None else None
        if xp is None:
            xp = x.__array_namespace__() if isinstance(x, Array) else _of_native(x)
            check_version(api_version, xp)
            if api_version is None and type(x) is not Array:  # an Array's depends on its device
                RECORDS[type(x)].namespace = xp
        found.setdefault(id(xp), (xp, type(x)))
    if len(found) == 1:
        return next(iter(found.values()))[0]
    if not found:
        raise TypeError(
            "namespace() needs at least one array; got "
            + (", ".join(type(x).__name__ for x in xs) or "nothing")
        )
    kinds = ", ".join(f"{kind.__module__}.{kind.__qualname__}" for _, kind in found.values())
    raise TypeError(
        f"arrays of several libraries ({kinds}): bring them into one with "
        "`xp, *arrays = arraybridge.unify(...)`"
    )


def _of_native(x: Any) -> Any:
    library = library_of_type(type(x))
    if isinstance(x, numpy.generic):  # not an array for convert and adapt
        library = library_named("numpy")
    own = None if library is None else library.computing.native_namespace()
    if own is not None:
        return own
    import array_api_compat

    try:
        return array_api_compat.array_namespace(x)
    except TypeError as error:
        kind = f"{type(x).__module__}.{type(x).__qualname__}"
        remedy = "asarray(x, like='numpy')" if library is None else "from_dlpack(x)"
        raise TypeError(
            f"{kind} has no array-API namespace: pass an array, such as arraybridge.{remedy}"
        ) from error


def unify(
    *xs: Any,
    like: Any = None,
    device: object = None,
    copy: bool | None = None,
    dtype: object = None,
    casting: Casting = "same_kind",
    order: object = None,
) -> tuple[Any, ...]:
    """Convert arrays to one library and one device, and return their namespace.

    Parameters
    ----------
    *xs : array, container or scalar
        Arrays of any library and columns, also in nested lists, tuples, dicts and dataclasses. A
        container is returned as one of the same class. Other objects are returned unchanged.
    like : array, container, str or module, optional
        The model: an array, or the first array of a container, whose library, kind and device all
        others get, by copies across devices if necessary. Or a library, such as ``"jax"``, to whose
        native arrays all others are converted on their device. By default the model is the first
        array of ``xs``, and arrays that would need a copy to another device are an error.
    device : Device, (int, int), str or a library's own device, optional
        The device of the results, instead of the model's.
    copy : bool, optional
        As in :func:`arraybridge.convert`: None, views if they are safe; False, views or an error;
        True, fresh copies.
    dtype, casting, order
        As in :func:`arraybridge.convert`, for every array.

    Returns
    -------
    tuple
        ``(xp, x1, x2, ...)``: the namespace, then the converted ``xs`` in order. An array of the
        model's kind is returned itself, and an array that is passed twice is converted once. If the
        model is an :class:`arraybridge.Array`, the results are Arrays over its library, else native
        arrays. A model without a library (a capsule, an object that only supports DLPack) counts as
        an array of the library that computes on its device: NumPy on the CPU.

    Raises
    ------
    TypeError
        If there is no array, or the model's library has no array API namespace.
    ConversionError
        If an array cannot be converted; see :func:`arraybridge.convert`.
    ValueError
        If a device, dtype, casting or order is unknown, or ``copy`` is not a boolean.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> x, y = torch.ones(3), np.arange(3, dtype=np.float32)
    >>> xp, x, y = ab.unify(x, y)           # the first array is the model
    >>> type(y).__name__, xp.sum(x * y)
    ('Tensor', tensor(3.))
    >>> _, batch = ab.unify({"image": x, "label": 7}, like="numpy")
    >>> batch
    {'image': array([1., 1., 1.], dtype=float32), 'label': 7}
    """
    cast = None
    if dtype is not None or order is not None:
        cast = cast_of(dtype, casting, order)
    goal, flat = None, like is None
    for x in xs:
        known = RECOGNIZED[type(x)]
        if known.library is not None:
            goal = goal or known.array_type
        elif known.is_array is not False:
            flat = False
    place = None
    if not flat or goal is None:
        goal, place = _goal_of_call(xs, like)
    if device is not None:
        place = place_named(device)
    request = PLAIN
    if not (place is None and copy is None and cast is None):
        request = Request(place, checked_copy(copy), cast=cast)
    xp = goal.namespace  # before anything is converted
    # A capsule is consumed by its conversion: the model may be one.
    done: dict[int, tuple[Any, Any]] = {}
    if flat:
        ways = goal.ways if request is PLAIN else ways_to(goal.library, request)
        results = []
        for x in xs:
            way = ways[type(x)]
            if way is not None and way is not OWN:
                x, made = done.get(id(x)) or (x, way.run(x))
                done[id(x)] = x, made
                x = made
            results.append(x)
    else:

        def leaf(x: Any) -> Any:
            if is_data(x) and id(x) not in done:
                done[id(x)] = x, goal.convert(x, request)
            return done.get(id(x), (x, x))[1]

        results = items(leaf, xs, is_data)
    if place is None and not goal.one_device:
        _check_one_device(arrays_in(results))
    return (xp, *results)


class Goal(NamedTuple):
    """The type and device that arrays are converted to."""

    array_type: ArrayType
    device: Device | None = None  # the model's, if the caller passed one


def _goal_of_call(xs: Any, like: Any) -> Goal:
    """Return what `unify` converts its arguments to; TypeError if there is none."""
    found = arrays_in(xs, is_data)
    if like is None and not found:
        raise TypeError("unify() needs at least one array")
    goal = goal_of(like, next(filter(is_array, found), found[0]) if like is None else None)
    for x in found:
        if lazy_library(x) is not None:
            raise no_array(x)
    return goal


def _check_one_device(arrays: list[Any]) -> None:
    """Check that arrays that stay where they are, of one library, are on one device."""
    with suppress(AttributeError, NotImplementedError, RuntimeError, TypeError):  # such as tracers
        if len({x.device for x in arrays}) == 1:
            return
    places = {place for x in arrays if (place := device_of(x)) is not None}
    if len(places) > 1:
        names = " and ".join(sorted(map(str, places)))
        raise ConversionError(
            f"the arrays are on {names}: pass device= or like= to copy them to one device"
        )


def goal_of(like: Any, model: Any = None) -> Goal:
    """Interpret ``like``, a library, an array or a container; `model` is its array if known."""
    if isinstance(like, str | ModuleType):
        return Goal(ArrayType(library_named(like).name, False))
    if model is None:
        model = next(iter(arrays_in(like, is_data)), None)
    if model is None:
        raise TypeError(f"like= must be a library, an array, or a container with one, got {like!r}")
    array_type = array_type_of(model)
    if array_type.wrapped and array_class(array_type.library) is None:
        array_type = ArrayType(fallback_library(model.device), True)
    return Goal(array_type, None if like is None else device_of(model))
