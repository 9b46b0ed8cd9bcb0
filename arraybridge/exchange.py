"""``convert`` and ``inspect``: from the array of one library to that of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from ctypes import c_void_p
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from .dispatch.execute import execute
from .dispatch.library import Library, place_named
from .dispatch.records import Route, TensorInfo, of_native
from .dispatch.registry import KNOWN, RECORDS, library_named
from .dispatch.route import route_between
from .dispatch.ways import Way, ways_between
from .dlpack import Device, Tensor, is_capsule, peek
from .protocols.objects import as_source

if TYPE_CHECKING:  # casts are imported by the first that is asked for: a fifth of a first view
    from .dispatch.casting import Casting
    from .dispatch.form import Form

# Python looks up the defaults of parameters after "*" one by one, and copies these at once: 45 of
# the 900 ns of a view. Type checkers see `signatures.Convert`, and `inspect` what is set below.
_KEYWORDS: Any = object()

_DEVICES = frozenset({type(None), str, Device})  # types of `device` in the keys of `ways_with`
_COPIES = (None, False, True)
_MOST_WAYS = 256  # of a type


def convert(
    x: Any,
    /,
    to: object,
    _: object = _KEYWORDS,
    device: object = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
    dtype: object = None,
    casting: Casting = "same_kind",
    order: object = None,
) -> Any:
    """Convert ``x`` to an array of library ``to``.

    Parameters
    ----------
    x : array
        A native array of any library, an :class:`arraybridge.Array`, an object that supports DLPack
        or an array interface, a DLPack capsule (which is consumed), or a buffer.
    to : str or module
        The library, such as ``"torch"`` or ``torch``.
    device : Device, (int, int), str or a library's own device, optional
        The device of the result; by default the device of ``x``.
    copy : bool, optional
        None: a view where that is safe, else a copy. False: a view or an error. True: a fresh copy.
        Writable memory is safe to share with libraries whose arrays can change, but not with JAX
        and TensorFlow.
    alias_readonly : bool, default False
        Take a view of read-only memory even where the target's arrays are always writable.
    dtype : data type, optional
        The data type of the result, by default that of ``x``: a name such as ``"float32"``, a data
        type of NumPy or of any library, or ``float``, ``int``, ``bool``, ``complex`` as in NumPy.
        Equal to that of ``x`` it changes nothing; else the elements are cast as they are copied.
        A mapping, ``{"float64": "float32"}``, casts arrays of its keys alone.
    casting : {"no", "equiv", "safe", "same_kind", "unsafe", "same_value"}, default "same_kind"
        Which casts ``dtype`` may ask for, as in :func:`numpy.copyto`. ``"same_value"`` allows all
        of them and looks at every value: one that the cast would change is an error.
    order : {"C", "F", "K", "channels_last"} or torch.memory_format, optional
        The order of the elements in the memory of the result: a view where ``x`` has it, else a
        copy. None, or ``"K"``: any; of what is cast, C.

    Returns
    -------
    array
        The native array of ``to``, with the shape, values and, without ``dtype``, dtype of ``x``.

    Raises
    ------
    ConversionError
        A BufferError and a ValueError: the conversion would be wrong or hide a cost, or
        ``copy=False`` is impossible. The message says what to do; ``explain`` says so in advance.
    ImportError
        If ``to`` is not installed.
    TypeError
        If ``x`` is not an array.
    ValueError
        For an unknown library, device, data type, casting or order, or a ``copy`` that is not a
        boolean.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> x = np.arange(6.0).reshape(2, 3)
    >>> t = ab.convert(x, "torch")                          # a view
    >>> t.data_ptr() == x.ctypes.data
    True
    >>> ab.convert(x[::-1], "torch")                        # negative strides: a copy
    tensor([[3., 4., 5.],
            [0., 1., 2.]], dtype=torch.float64)
    >>> ab.convert(x[::-1], "torch", copy=False)
    Traceback (most recent call last):
        ...
    arraybridge.ConversionError: copy=False, but torch takes no negative strides; the layout
        is negative: copy=None lets arraybridge copy
    >>> ab.convert(x, "jax", dtype="float32", copy=True)    # cast as it is copied
    Array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float32)
    """
    ways: tuple[Way, ...]
    if _ is not _KEYWORDS:
        raise TypeError(f"convert() takes what follows `to` by keyword alone, got {_!r}")
    if dtype is not None or order is not None:
        return _formed(x, to, device, copy, alias_readonly, dtype, casting, order)
    try:
        if device is None and alias_readonly is False:
            ways = KNOWN[type(x)].ways[to][copy]
        else:
            ways = KNOWN[type(x)].ways_with[to, device, copy, alias_readonly]
            if device.__class__ not in _DEVICES:
                ways = ()
        if copy is not None and copy is not True and copy is not False:
            ways = ()  # equal to one of these, and maybe an error
    except (KeyError, TypeError):
        ways = _ways(type(x), to, device, copy, alias_readonly)
    for way in ways:
        try:
            result = way(x)
        except Exception:  # the planned route says what is wrong
            continue
        if result is not None:
            return result
    target = library_named(to)
    if device is not None:
        device = place_named(device)
    lazy = RECORDS[type(x)].lazy or (target if target.lazy else None)  # `deferring`, without a call
    if lazy is not None:
        return lazy.deferred(x, target, device=device, copy=copy, alias_readonly=alias_readonly)
    return _planned(x, target, device, copy, alias_readonly)


def deferring(x: Any, target: Library) -> Library | None:
    """Return the library that converts later, if a graph is among the two."""
    return RECORDS[type(x)].lazy or (target if target.lazy else None)


def _signed(function: Any) -> None:
    """Have ``inspect`` show the parameters behind the marker as keywords, which they are."""
    shown = signature(function)
    first, to, _, *rest = shown.parameters.values()
    keywords = [p.replace(kind=p.KEYWORD_ONLY) for p in rest]
    function.__signature__ = shown.replace(parameters=[first, to, *keywords])


_signed(convert)


def _formed(
    x: Any,
    to: object,
    device: object,
    copy: bool | None,
    alias_readonly: bool,
    dtype: object,
    casting: object,
    order: object,
) -> Any:
    """Convert to a data type or a layout that was asked for."""
    plain = device is None and copy is None and not alias_readonly
    if plain and (order is None or type(order) is str) and not isinstance(dtype, Mapping):
        key = to, type(dtype), dtype, casting, order  # by type, as some dtypes warn of equality
        try:
            way = KNOWN[type(x)].casts[key]
        except KeyError:
            way = _cast_way(type(x), key)
        except TypeError:  # unhashable, and maybe an error
            way = None
        if way is not None:
            try:
                result = way(x)
            except Exception:  # the planned route says what is wrong
                result = None
            if result is not None:
                return result
    from .dispatch.form import form_of

    form = form_of(dtype, casting, order)
    return converted(x, to, form, device=device, copy=copy, alias_readonly=alias_readonly)


def _cast_way(kind: type, key: tuple[Any, ...]) -> Way | None:
    """Return what `convert` tries before the plan of a cast or a layout."""
    from .dispatch.cast_ways import forming_way
    from .dispatch.form import form_of

    to, _, dtype, casting, order = key
    form, target, record = form_of(dtype, casting, order), library_named(to), RECORDS[kind]
    known, source, way = record.casts, record.library, None
    if key not in known:
        if form is not None and source is not None and source.has_doors(kind):
            way = forming_way(source, target, form, partial(convert, to=to))
        if len(known) >= _MOST_WAYS:
            known.clear()
        known[key] = way
    return known.get(key)


def converted(
    x: Any,
    to: object,
    form: Form | None,
    *,
    device: object = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
) -> Any:
    """Convert as `convert` does, with what it makes of the keywords for the form of the result."""
    if form is None:
        return convert(x, to, device=device, copy=copy, alias_readonly=alias_readonly)
    place, target = None if device is None else place_named(device), library_named(to)
    lazy = deferring(x, target)
    if lazy is not None:
        options = {"device": place, "copy": copy, "alias_readonly": alias_readonly}
        return lazy.deferred(x, target, form=form, **options)
    return _planned(x, target, place, copy, alias_readonly, form=form)


def _ways(
    kind: type, to: object, device: object, copy: bool | None, alias_readonly: bool
) -> tuple[Way, ...]:
    """Return what `convert` tries before the plan; it looks at what is known by itself."""
    target, record = library_named(to), RECORDS[kind]
    if not any(copy is known for known in _COPIES) or type(device) not in _DEVICES:
        return ()
    known = record.ways_with
    key = to, device, copy, bool(alias_readonly)
    made = known.get(key)  # another thread may clear it meanwhile
    if made is None:
        if len(known) >= _MOST_WAYS:
            known.clear()
        place = None if device is None else place_named(device)
        made = ()
        source = record.library
        if hasattr(kind, "__arraybridge__"):
            made = (_carried(to, device, copy, key[3]),)
        elif source is not None and (source is target or source.has_doors(kind)):
            made = ways_between(source, target, _first(kind, to), place, copy, key[3])
        known[key] = made
        if device is None and not key[3]:
            record.ways.setdefault(to, {})[copy] = made
    return made


def _carried(to: object, device: object, copy: bool | None, alias_readonly: bool) -> Way:
    """Return the way of Arrays: those of what they carry."""
    key = to, device, copy, alias_readonly

    def way(x: Any) -> Any:
        native, library = x.__arraybridge__()
        record = RECORDS[type(native)]
        if record.library is library and library is not None:
            ways = record.ways_with.get(key)
            native = library.held(native)  # another thread may give the array other memory
            for way in _ways(type(native), *key) if ways is None else ways:
                with suppress(Exception):  # the planned route says what is wrong
                    result = way(native)
                    if result is not None:
                        return result
        return None

    return way


def _planned(
    given: Any,
    target: Library,
    device: Device | None = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
    share: bool = False,
    form: Form | None = None,
) -> Any:
    """Plan and execute a route, with the options of `route_to`."""
    x: Any
    x, source = as_source(given, to=target.name)
    held = source.held(x)
    if form is None:  # as `route_to` has it, without a call between
        route, info = route_between(
            held, source, target, device=device, copy=copy, alias_readonly=alias_readonly,
            share=share,
        )  # fmt: skip
    else:
        from .dispatch.form import route_to

        if source.in_pieces:
            x = held = x.cast(form)
        route, info = route_to(
            held, source, target, form=form, device=device, copy=copy,
            alias_readonly=alias_readonly, share=share,
        )  # fmt: skip
    if route.kind == "refuse":
        route = refusal(given, route)
    result = execute(held, source, target, route, info)
    return x if result is held else result


def refusal(given: object, route: Route) -> Route:
    """Make the error for a refused route, with advice about the Array if one was passed."""
    if not hasattr(type(given), "__arraybridge__"):
        return route
    return route._replace(why=of_native(route.why))


def _first(kind: type, to: object) -> Callable[[Any], Any] | None:
    """Find the door of a type of which no door is known to be quick; None if there is none."""
    target, record = library_named(to), RECORDS[kind]
    if to in record.doors:
        return record.doors[to]
    source, door = record.library, None
    if source is not None and source.has_doors(kind):
        door = target.doors.get(source.name)
    record.doors[to] = door
    return door


def view_door(kind: type, to: object) -> Callable[[Any], Any] | None:
    """Return the door from arrays of a type to a library; None if it copies or is missing."""
    door: Callable[[Any], Any] | None
    try:
        door = RECORDS[kind].doors[to]
    except (KeyError, TypeError):
        door = _first(kind, to)
    return None if getattr(door, "copies", False) else door


def imported(x: Any, to: object, device: object = None, copy: bool | None = None) -> Any:
    """Convert as the standard's ``from_dlpack`` does: share memory wherever possible.

    With libraries whose arrays never change too, although the memory may still be written.
    """
    target = library_named(to)
    if not target.accepts.immutable:
        return convert(x, to, device=device, copy=copy)
    place = None if device is None else place_named(device)
    return _planned(x, target, device=place, copy=copy, share=True)


def inspect(x: Any) -> TensorInfo:
    """Describe ``x`` without touching its data or needing its device's runtime.

    Parameters
    ----------
    x : array, capsule, int or ctypes.c_void_p
        Anything :func:`convert` takes; a capsule stays unconsumed; a number is the address of a raw
        ``DLTensor``, which is read: a wrong address may end the process.

    Returns
    -------
    TensorInfo
        Strides in elements. A notebook shows it as a picture of the memory.

    Raises
    ------
    MalformedTensorError
        A BufferError: for a number that can be no address, and fields that contradict ``dlpack.h``.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> info = ab.inspect(np.zeros((4, 6), np.float32)[:, ::2])
    >>> info.shape, info.strides, info.layout, info.nbytes
    ((4, 3), (6, 2), 'strided', 48)
    >>> metal = ab.from_pointer(0x1000, (4,), "float16", device="metal:0")    # no runtime is needed
    >>> ab.inspect(metal).device
    Device('metal:0')
    """
    if type(x) is int or type(x) is c_void_p:
        return TensorInfo.of_tensor(Tensor(x))
    if is_capsule(x):
        return TensorInfo.of_tensor(peek(x))
    x, library = as_source(x, True)
    return library.describe(x)
