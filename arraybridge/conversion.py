"""``convert`` and ``inspect``."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_void_p
from functools import partial
from typing import TYPE_CHECKING, Any

from . import dlpack
from .core.library import Library
from .core.records import ConversionError, Route, TensorInfo, amended
from .core.registry import KNOWN, RECORDS, library_named
from .core.request import Request, request_of
from .core.table import MOST, Entry, entry_of, front, nothing
from .dlpack import Device

if TYPE_CHECKING:
    from .core.cast_rules import Casting

#: Types of keywords' values that are equal only if they mean the same.
_PLAIN = frozenset({type(None), bool, str, Device})


@front(KNOWN, None, lambda *key, **keywords: entry_of_call(*key, **keywords), _PLAIN)
def convert(
    x: Any,
    /,
    to: object,
    *,
    device: object = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
    dtype: object = None,
    casting: Casting = "same_kind",
    order: object = None,
) -> Any:
    """Convert an array to library ``to``.

    The result is a view if that is safe, else a copy. It has the shape and values of ``x``, and its
    dtype unless you pass ``dtype``.

    Parameters
    ----------
    x : array
        A native array of any library, an :class:`arraybridge.Array`, an object that supports DLPack
        or an array interface, a buffer, or a DLPack capsule, which is consumed.
    to : str or module
        The target library, such as ``"torch"`` or ``torch``.
    device : Device, (int, int), str or a library's own device, optional
        The device of the result. By default, the device of ``x``.
    copy : bool, optional
        None: a view if that is safe, else a copy. False: a view or an error. True: a fresh copy.
        Sharing writable memory is safe with libraries whose arrays can change, but not with JAX and
        TensorFlow.
    alias_readonly : bool, default False
        Return a view of read-only memory even if the target cannot mark it as read-only.
    dtype : data type, optional
        The dtype of the result: a name such as ``"float32"``, a dtype of any library, or ``float``,
        ``int``, ``bool`` or ``complex``. A mapping, ``{"float64": "float32"}``, casts only arrays
        of its keys. By default, the dtype of ``x``.
    casting : {"no", "equiv", "safe", "same_kind", "unsafe", "same_value"}, default "same_kind"
        Which casts ``dtype`` may make, as in :func:`numpy.copyto`. ``"same_value"`` allows every
        cast, but raises an error if a value would change.
    order : {"C", "F", "K", "channels_last"} or torch.memory_format, optional
        The order of the elements in memory: a view if ``x`` has it, else a copy. None and ``"K"``
        accept any order. A cast returns C order by default.

    Returns
    -------
    array
        A native array of library ``to``.

    Raises
    ------
    ConversionError
        If the conversion would be wrong or hide a cost, or ``copy=False`` is impossible. This is a
        BufferError and a ValueError; the message names the remedy.
    ImportError
        If ``to`` is not installed.
    TypeError
        If ``x`` is not an array.
    ValueError
        If a library, device, dtype, casting or order is unknown, or ``copy`` is not a boolean.

    See Also
    --------
    explain

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
    return entry_of_call(type(x), to, device, copy, alias_readonly, dtype, casting, order).run(x)


def entry_of_call(
    kind: type,
    to: object,
    device: object = None,
    copy: object = None,
    alias_readonly: object = False,
    dtype: object = None,
    casting: object = "same_kind",
    order: object = None,
) -> Entry | Deferred | Unwrapped:
    """Return a type's entry for the keywords of `convert`, remembered under them as spelled."""
    record = RECORDS[kind]
    key = to, device, copy, alias_readonly, dtype.__class__, dtype, casting, order
    remembered = device.__class__ in _PLAIN and copy.__class__ in _PLAIN
    if remembered:
        try:
            found: Entry | Deferred | Unwrapped | None = record.table.get(key)
        except TypeError:  # a dtype that is a mapping, a `to` that is no name
            remembered, found = False, None
        if found is not None:
            return found
    request = request_of(device, copy, alias_readonly, dtype, casting, order)
    entry = entry_for(kind, library_named(to), request)
    if remembered and not isinstance(dtype, Mapping):
        if len(record.table) >= MOST:
            record.table.clear()
            record.clear()
        record.table[key] = entry
        if request == Request():
            record[to] = entry.run
    return entry


def entry_for(kind: type, target: Library, request: Request) -> Entry | Deferred | Unwrapped:
    """Return what converts the arrays of a type."""
    record = RECORDS[kind]
    if target.computing.map_blocks is not None:
        raise ConversionError(
            f"{target.name} makes its arrays in blocks, so it cannot be a target: "
            + target.accepts.remedies[""]
        )
    if record.lazy is not None:
        return Deferred(record.lazy, target, request)
    if record.library is None:
        return Unwrapped(kind, target, request)
    return entry_of(kind, record.library, target, request)


def explain(
    x: Any,
    /,
    to: object,
    *,
    device: object = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
    dtype: object = None,
    casting: Casting = "same_kind",
    order: object = None,
) -> Route:
    """Return the route that :func:`convert` would take with the same arguments.

    A capsule is not consumed.

    Returns
    -------
    Route
        Its ``kind`` (view, copy, transfer or refuse), its ``why``, and ``nbytes``, the number of
        bytes that would be copied.

    Raises
    ------
    TypeError
        If ``x`` is not an array in memory. A Dask array has a route for each of its blocks.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> x = np.zeros((2, 3))
    >>> ab.explain(x, "torch").kind
    'view'
    >>> print(ab.explain(x[::-1], "torch"))
    numpy -> torch on cpu: copied by numpy's own copy, 48 bytes (torch takes no negative
        strides; the layout is negative)
    >>> weights = torch.ones(3, requires_grad=True)
    >>> print(ab.explain(weights, "numpy"))
    torch -> numpy on cpu: refused (gradients are tracked and would be cut silently: pass
        x.detach())
    """
    return explained(
        x, entry_of_call(type(x), to, device, copy, alias_readonly, dtype, casting, order)
    )


def explained(x: Any, entry: Entry | Deferred | Unwrapped) -> Route:
    """Return an array's route by an entry."""
    if isinstance(entry, Deferred):
        block = f"x.blocks[{', '.join('0' * x.ndim)}]" if x.ndim else "x"
        raise TypeError(
            f"the blocks of a {entry.lazy.name} array are converted when they are computed, each "
            f"by its own route: call explain on one, {block}.compute(), or count the "
            "copies of all with arraybridge.audit()"
        )
    refused: list[str] = []
    array, inner = opened(x, entry, refused)
    route = inner.plan(array)
    if array is not x and inner.source is inner.target and route.kind == "view":
        route = amended(route, why=f"it is inside the {type(x).__name__}")
    if route.kind == "refuse" and isinstance(entry, Unwrapped):
        route = amended(route, why=entry.restated(route.why, x, array))
    elif refused:
        route = amended(route, why=f"{route.why}; its {' and '.join(refused)} refused")
    return route


class Unwrapped:
    """Conversions of objects that stand for arrays: an Array, a protocol's object, a frame."""

    view = staticmethod(nothing)

    def __init__(self, kind: type, target: Library, request: Request) -> None:
        from .protocols.frames import Frame
        from .protocols.from_object import as_source, restated

        self._frame = Frame
        self.target, self.request, self._as_source = target, request, as_source
        self.restated = restated

    def opened(self, given: Any, refused: list[str] | None = None) -> tuple[Any, Entry]:
        """Return the array to convert and the entry of its type; see `as_source`."""
        x: Any
        shared = self.request.copy is False
        x, source = self._as_source(given, refused, self.target.name, shared=shared)
        if type(x) is self._frame and self.request.cast is not None:
            x = x.cast(self.request.cast)
        return x, entry_of(type(x), source, self.target, self.request)

    def run(self, given: Any) -> Any:
        """Convert the array inside an object."""
        x, entry = self.opened(given)
        try:
            return entry.run(x)
        except ConversionError as error:
            if error.route is None or error.route.kind != "refuse":
                raise
            why = self.restated(error.route.why, given, x)
            raise ConversionError(why, error.route._replace(why=why)) from None


def opened(x: Any, entry: Entry | Unwrapped, refused: list[str]) -> tuple[Any, Entry]:
    """Return the array inside an object and the entry of its type; consume nothing."""
    if not isinstance(entry, Unwrapped):
        return x, entry
    if dlpack.is_capsule(x):
        from .protocols.from_object import LIBRARY

        return inspect(x), entry_of(TensorInfo, LIBRARY, entry.target, entry.request)
    return entry.opened(x, refused)


class Deferred:
    """Conversions of a lazy library's arrays: of each block, when it is computed."""

    view = staticmethod(nothing)

    def __init__(self, lazy: Library, target: Library, request: Request) -> None:
        self.lazy = lazy
        self._convert_block = partial(convert_block, target.name, request)

    def run(self, x: Any) -> Any:
        """Return the lazy array of the converted blocks."""
        return self.lazy.computing.map_blocks(self._convert_block, x)


def convert_block(to: str, request: Request, block: Any) -> Any:
    """Convert a block of a lazy array."""
    return entry_for(type(block), library_named(to), request).run(block)


def numpy_view(x: Any) -> Any:
    """Return a NumPy view of an array, or None; C calls the function that it remembers."""
    record = RECORDS[type(x)]
    if record.view is None:
        record.view = entry_of_call(type(x), "numpy", None, False).run
    try:
        return record.view(x)
    except (BufferError, ValueError, TypeError):
        return None


def imported(x: Any, to: object, device: object = None, copy: bool | None = None) -> Any:
    """Convert as the standard's ``from_dlpack``: share also memory that may still be written."""
    request = request_of(device, copy, share=True)
    return entry_for(type(x), library_named(to), request).run(x)


def inspect(x: Any) -> TensorInfo:
    """Describe an array without reading its elements or using its device.

    Parameters
    ----------
    x : array, capsule, int or ctypes.c_void_p
        Any argument of :func:`convert`; a capsule is not consumed. A number is the address of a raw
        ``DLTensor``. This struct is read, so a wrong address may crash the process.

    Returns
    -------
    TensorInfo
        Shape, strides in elements, dtype, device and layout.

    Raises
    ------
    MalformedTensorError
        If a number cannot be an address, or a field contradicts ``dlpack.h``. This is a
        BufferError.

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
    library = RECORDS[type(x)].library
    if library is not None:
        return library.describe(x)
    from .protocols.from_object import as_source

    if type(x) is int or type(x) is c_void_p:
        return TensorInfo.of_tensor(dlpack.Tensor(x))
    if dlpack.is_capsule(x):
        return TensorInfo.of_tensor(dlpack.peek(x))
    x, library = as_source(x, [])
    return library.describe(x)
