"""The planner's records: ``TensorInfo``, ``Accepts``, ``Edge`` and ``Route``.

They are small and immutable, and touch neither memory nor a device runtime.

Annotations are evaluated here: ``NamedTuple`` would compile each that is postponed, 0.3 ms in all.
"""

import re
from collections.abc import Callable, Iterable
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..dlpack import CPU, DataType, DataTypeCode, Device, DeviceType
from ..dlpack.types import BY_NAME
from ..layout import (
    MAX_NDIM,
    c_strides,
    classify,
    dense_strides,
    is_broadcast,
    is_c_contiguous,
    is_compact,
    is_f_contiguous,
    is_non_negative,
)

if TYPE_CHECKING:
    from ..dlpack import Tensor

_PENDING = {
    "conj": "its conjugate bit is set",
    "neg": "its negative bit is set",
    "byteorder": "its bytes are in the other order",
    "bitpacked": "its booleans are packed eight to a byte",
    "packed": "its elements are packed, several to a byte",
    "fraction": "its strides are not multiples of its item size",
    "truth": "its booleans are not stored as 0 and 1",
    "booleans": "some of its booleans are stored as bytes other than 0 and 1",
    "chunks": "its elements are in several chunks",
    "columns": "its columns are stored separately",
    "kinds": "its columns have several data types",
    "anew": "its memory is made anew each time that it is asked for",
}


def pending_reason(pending: Iterable[str]) -> str:
    """Return `TensorInfo.pending` in words."""
    return " and ".join(_PENDING[what] for what in pending)


def no_copy_allowed(why: str, remedy: str = "copy=None lets arraybridge copy") -> str:
    """Return the message for an impossible ``copy=False``: why, and what to do."""
    return f"copy=False, but {why}: {remedy}"


#: The dtype of an array whose own has no DLPack type; `refused` is set too.
NO_DTYPE = DataType(DataTypeCode.OPAQUE_HANDLE, 8)


class TensorInfo(NamedTuple):
    """A description of an array, read without its elements.

    Attributes
    ----------
    library : str
        The library of the array; ``"dlpack"`` for an object that only supports DLPack.
    data : int
        The pointer: an address, or an opaque handle on some devices.
    byte_offset : int
        The number of bytes from ``data`` to the first element.
    shape, strides : tuple of int
        Extents, and strides in elements. An extent that a tracer does not know yet is -1.
    dtype : DataType
        The data type of the elements.
    device : Device
        The device of the memory; ``ext_dev:0`` of a tracer that may run on several devices.
    readonly : bool
        Whether the array must not be written: it has a read-only flag, or is immutable (JAX, Arrow,
        TensorFlow).
    copied : bool
        Whether the producer has made a copy for this export.
    version : tuple of int or None
        The DLPack version of the struct that was read; None if there was none.
    padded : bool
        Whether each element of a sub-byte dtype takes one byte.
    pending : tuple of str
        Operations that the library has not applied to the memory yet, or that DLPack cannot
        express: ``"conj"``, ``"neg"``, ``"byteorder"``, ``"bitpacked"``, ``"fraction"`` (strides
        that are not a multiple of the item size), ``"chunks"`` (elements in several blocks),
        ``"truth"`` (booleans stored as 0 and 255), ``"booleans"`` (as any bytes; only for targets
        that compute with them), ``"packed"`` (several elements per byte), ``"anew"`` (an object
        makes its memory at each look). The library must make a copy.
    refused : str or None
        Why the array cannot be passed to any other library, and the remedy.
    legacy : bool
        Whether the array counts as read-only, but may still be written by others, because a legacy
        DLPack struct has no read-only flag.
    tracked : bool
        Whether ``refused`` is due to a gradient or a transformation. Copies and casts by the
        array's own library remain possible.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> info = ab.inspect(np.zeros((4, 6), np.float32).T)
    >>> info.library, info.shape, info.strides, info.layout
    ('numpy', (6, 4), (1, 6), 'fortran')
    >>> info.ndim, info.size, info.itemsize, info.nbytes, info.dtype_name
    (2, 24, 4, 96, 'float32')
    >>> info.c_contiguous, info.f_contiguous, info.alignment >= 4, info.pointer % 4
    (False, True, True, 0)
    >>> info.compact, info.empty, info.negative, info.repeated, info.aligned_to(4)
    (True, False, False, False, True)
    >>> tensor = ab.dlpack.acquire(np.zeros(3))
    >>> ab.TensorInfo.of_tensor(tensor).library
    'dlpack'
    """

    library: str
    data: int
    byte_offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DataType
    device: Device
    readonly: bool = False
    copied: bool = False
    version: tuple[int, int] | None = None
    padded: bool = False
    pending: tuple[str, ...] = ()
    refused: str | None = None
    legacy: bool = False
    tracked: bool = False

    @classmethod
    def of_tensor(cls, tensor: "Tensor", library: str = "dlpack") -> "TensorInfo":
        """Describe a :class:`arraybridge.dlpack.Tensor`."""
        legacy = getattr(tensor, "legacy", False)
        return tuple.__new__(cls, (library, *_of_tensor(tensor), (), None, legacy, False))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The number of bytes of a single element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The number of bytes of the elements in a compact layout."""
        return self.dtype.nbytes(prod(self.shape), self.padded)

    @property
    def pointer(self) -> int:
        """The address of the first element, if the device uses addresses."""
        return self.data + self.byte_offset

    @property
    def empty(self) -> bool:
        """Whether there are no elements."""
        return 0 in self.shape

    @property
    def compact(self) -> bool:
        """Whether the elements form one dense block of memory, in any order of the axes."""
        return is_compact(self.shape, self.strides)

    @property
    def negative(self) -> bool:
        """Whether a stride is negative along an axis of more than one element."""
        return not is_non_negative(self.shape, self.strides)

    @property
    def repeated(self) -> bool:
        """Whether several elements share one memory location, through a zero stride."""
        return is_broadcast(self.shape, self.strides)

    def aligned_to(self, nbytes: int) -> bool:
        """Return whether the address of the first element is a multiple of this number of bytes."""
        return not (self.data + self.byte_offset) % nbytes

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements are compact and row-major."""
        return is_c_contiguous(self.shape, self.strides)

    @property
    def f_contiguous(self) -> bool:
        """Whether the elements are compact and column-major."""
        return is_f_contiguous(self.shape, self.strides)

    @property
    def layout(self) -> str:
        """The layout in one word, such as ``"c"``, ``"fortran"`` or ``"strided"``."""
        return classify(self.shape, self.strides)

    @property
    def alignment(self) -> int:
        """The largest power of two, up to 4096 bytes, that divides the address; 0 if empty."""
        pointer = self.data + self.byte_offset
        return min(pointer & -pointer, 4096)

    @property
    def dtype_name(self) -> str:
        """The name of the data type, with ``(packed)`` if sub-byte elements are packed."""
        dtype = self.dtype
        packed = dtype.bits * dtype.lanes % 8 and not self.padded
        return f"{dtype.name} (packed)" if packed else dtype.name

    def _repr_html_(self) -> str:
        from ..notebook import table

        return table(self._asdict())


_of_tensor = attrgetter(*TensorInfo._fields[1:11])  # from `data` to `padded`
UNKNOWN = Device(DeviceType.EXT_DEV)  # where a traced array will be


def without_memory(
    library: str, shape: Iterable[Any], dtype: DataType | None, device: Device, why: str
) -> TensorInfo:
    """Describe an array that only its library can take: traced, or of no numbers (`dtype` None)."""
    shape = tuple([extent if type(extent) is int else -1 for extent in shape])
    kind = dtype or NO_DTYPE
    return TensorInfo(
        library, 0, 0, shape, c_strides(shape), kind, device, readonly=True, padded=kind.subbyte,
        refused=why, tracked=dtype is not None,
    )  # fmt: skip


#: The alignment in bytes that every allocator guarantees.
USUAL_ALIGNMENT = 16

#: The address of an array that does not exist yet, with any alignment.
ADDRESS = 1 << 12


def described_key(info: TensorInfo, most: int = 64) -> tuple[Any, ...]:
    """Return all that may decide; of the address its alignment, up to `most` bytes."""
    pointer = info.data + info.byte_offset
    return min(pointer & -pointer, most), info[3:]


def dense_like(
    info: TensorInfo, dtype: DataType | None = None, axes: tuple[int, ...] | None = None
) -> TensorInfo:
    """Describe a new dense array of another's shape: C order, or `axes` outermost first."""
    dtype, here = dtype or info.dtype, info.device
    return info._replace(
        data=ADDRESS,
        byte_offset=0,
        strides=c_strides(info.shape) if axes is None else dense_strides(info.shape, axes),
        dtype=dtype,
        readonly=False,
        version=None,
        device=CPU if here.host and here.type != CPU.type else here,
        padded=info.padded if dtype == info.dtype else dtype.subbyte,
        pending=(),
        refused=None,
        legacy=False,
        tracked=False,
    )


class _Accepts(NamedTuple):
    library: str
    tested: str
    dtypes: frozenset[str]
    devices: frozenset[DeviceType] = frozenset({DeviceType.CPU})
    strides: str = "any"
    alignment: int = 1
    aligned: frozenset[str] = frozenset()
    readonly: bool = False
    immutable: bool = False
    ndim: tuple[int, int] = (0, 64)
    largest: int = 2**63 - 1
    cpus: int = 1
    copies: bool = False
    copied: frozenset[str] = frozenset()
    canonical_booleans: bool = False
    remedies: dict[str, str] = {}  # noqa: RUF012 - never written
    per_array: Callable[[TensorInfo], Any] | None = None  # an `Accepts`
    one_layout: bool = False
    results: tuple[type, ...] = ()


class Accepts(_Accepts):
    """The arrays that a library accepts as views.

    Attributes
    ----------
    library : str
        The library's name.
    tested : str
        The version of the library for which the record was measured.
    dtypes : frozenset of str
        Names of dtypes. ``"float4_e2m1fn (packed)"`` is another entry than the padded form.
    devices : frozenset of DeviceType
        The kinds of device.
    strides : {"any", "non-negative", "compact", "c"}
        The layouts. ``"compact"`` is a dense block with its axes in any order.
    alignment : int
        The alignment that the address must have, in bytes.
    aligned : frozenset of str
        The ``dtypes`` that must be aligned to the size of an element. On other devices than the
        CPU, this applies to all dtypes.
    readonly : bool
        Whether arrays can be read-only: they have such a flag, or are immutable.
    immutable : bool
        Whether arrays never change, and may be read later by computations that are queued. Writable
        memory is copied for such a library unless you ask for a view.
    ndim : tuple of int
        The smallest and the largest number of axes.
    largest : int
        The largest extent, and the largest stride in bytes.
    cpus : int
        The number of CPU devices that the library distinguishes: ``cpu:0`` and up.
    copies : bool
        Whether the library's own import always copies. It gets the layouts of ``strides``.
    copied : frozenset of str
        The ``dtypes`` that the library's zero-copy import refuses and its constructor copies.
        ``wrap`` accepts them in any layout.
    canonical_booleans : bool
        Whether booleans must be stored as 0 and 1, because the library computes with their bytes.
        Arrays with others, such as views of integers, are copied.
    remedies : dict
        What to do about a missing dtype, by name; the key ``""`` is for all others.
    per_array : callable, optional
        Returns the record for a described array, if it depends on more than the above, such as the
        dtype by the shape.
    one_layout : bool
        Whether all arrays of the library have the same layout, so that none is made contiguous.
    results : tuple of type
        The classes that ``wrap`` makes, if another library owns them.

    Raises
    ------
    TypeError, ValueError
        If a value is unknown, such as a misspelled layout or dtype.

    Examples
    --------
    >>> import arraybridge as ab
    >>> record = ab.Accepts(
    ...     library="table", tested="1.0", dtypes=frozenset({"float64"}), strides="c", ndim=(2, 2)
    ... )
    >>> record.readonly, record.alignment       # defaults
    (False, 1)
    >>> ab.Accepts(library="table", tested="1.0", dtypes=frozenset({"flaot64"}))
    Traceback (most recent call last):
        ...
    ValueError: dtypes has 'flaot64': did you mean 'float64'? expected int1, ...
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> "Accepts":
        accepts = super().__new__(cls, *args, **kwargs)
        accepts._check()
        return accepts

    def of(self, info: TensorInfo) -> "Accepts":
        """Return the record for a described array."""
        return self if self.per_array is None else self.per_array(info)

    def _replace(self, **kwargs: Any) -> "Accepts":  # a named tuple's own does not validate
        return type(self)(**self._asdict() | kwargs)

    def _check(self) -> None:
        def unknown(field: str, name: str, known: Iterable[str]) -> ValueError:
            from ..suggest import did_you_mean

            return ValueError(f"{field} {name!r}{did_you_mean(name, known)}")

        for field in ("dtypes", "aligned", "copied", "remedies"):
            for name in frozenset(getattr(self, field)) - {""}:  # "" is for any other dtype
                try:
                    DataType.named(name.removesuffix(" (packed)"))
                except ValueError:
                    raise unknown(f"{field} has", name, BY_NAME) from None
                if field in ("aligned", "copied") and name not in self.dtypes:
                    raise ValueError(f"{field} has {name!r}, which dtypes lacks: add it to dtypes")
        if self.strides not in STRIDES:
            raise unknown("strides is", self.strides, STRIDES)
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise ValueError(f"alignment is {self.alignment!r}; expected a power of two, in bytes")
        least, most = self.ndim
        if not 0 <= least <= most <= MAX_NDIM:
            raise ValueError(f"ndim is {self.ndim!r}; expected two ranks from 0 to {MAX_NDIM}")


STRIDES = ("any", "non-negative", "compact", "c")
#: The remedies of libraries without complex numbers.
IN_PARTS = dict.fromkeys(
    ("complex32", "complex64", "complex128"),
    "pass its real and imaginary parts, a view with a last axis of 2",
)


def layout_objection(s: TensorInfo, accepts: Accepts) -> str | None:
    """Return why ``accepts`` does not allow the layout as it is, or None."""
    rule = accepts.strides
    if rule == "any" or s.c_contiguous:
        return None
    if rule == "c":
        return "takes C order only"
    if rule == "compact":
        return None if s.compact else "takes compact strides only"
    return "takes no negative strides" if s.negative else None


def always(_: Any) -> bool:
    """Return True."""
    return True


class Edge(NamedTuple):
    """A library's own conversion of arrays in host memory to another library, or its own copy.

    Attributes
    ----------
    source, target : str
        The names of the two libraries.
    function : callable
        Takes an array and returns one of the other library, with the memory, strides and flags that
        a conversion through DLPack would give. It must be correct for every array that ``serves``
        accepts, even if another thread changes the array during the call, and may raise an error.
    serves : callable
        Takes a description with the attributes of a :class:`TensorInfo`, and returns whether the
        edge may convert such an array.
    copies : bool
        Whether the function copies, from the library to itself, on the device of the array: to a
        new C-contiguous array with all that is pending applied.
    most : int
        For one that copies, the largest number of elements: for more it returns None.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> edge = ab.Edge("numpy", "torch", torch.from_numpy, lambda s: s.dtype_name == "float32")
    >>> edge.serves(ab.inspect(np.ones(3, np.float32)))
    True
    """

    source: str
    target: str
    function: Callable[[Any], Any]
    serves: Callable[[TensorInfo], bool] = always
    copies: bool = False
    most: int = 2**63 - 1


def of_native(why: str, native: str = "x.native") -> str:
    """Restate a remedy for a native array ``x`` for the Array or object ``x`` that it is in."""
    return re.sub(r"\bx(?=[.,)\[])", native, why)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, to quote it in a sentence."""
    return str(error).strip().splitlines()[0].rstrip(".")


Kind = Literal["view", "copy", "transfer", "refuse"]
#: The words printed for kinds, if not their names.
PRINTED = {"copy": "copied", "refuse": "refused"}


def outcome(route: Any) -> str:
    """Describe what a route or its record does: how, by what, and how many bytes."""
    by = f" by {route.kernel}" if route.kernel else ""
    moved = f", {route.nbytes:,} bytes" if route.nbytes else ""
    return f"{PRINTED.get(route.kind, route.kind)}{by}{moved}"


class _Route(NamedTuple):
    kind: Kind
    why: str
    nbytes: int
    source: str
    target: str
    device: Device
    kernel: str | None = None


class Route(_Route):
    """How ``convert`` gets from a source to a target.

    No elements are read to decide it, except booleans for a library that computes with their bytes.

    Attributes
    ----------
    kind : {"view", "copy", "transfer", "refuse"}
        A view, a copy on one device, a copy between devices, or an error.
    why : str
        The reason, in words; for an error, also the remedy.
    nbytes : int
        The number of bytes that are copied; 0 for a view.
    source, target : str
        The names of the libraries.
    device : Device
        The device of the result.
    kernel : str or None
        The name of what makes the copy.
    info : TensorInfo or None
        The source array, for a route that ``explain`` returns. It is ignored by ``==``.
    made : TensorInfo or None
        The copy, without its address. None if the libraries decide. It is ignored by ``==``.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> route = ab.explain(np.zeros((2, 3))[::-1], "torch")
    >>> route.kind, route.nbytes, route.kernel
    ('copy', 48, "numpy's own copy")
    >>> route.source, route.target, str(route.device)
    ('numpy', 'torch', 'cpu')
    >>> route.why
    'torch takes no negative strides; the layout is negative'
    >>> route.info.layout, route.made.layout
    ('negative', 'c')
    """

    info: TensorInfo | None = None
    #: The data type and the order of axes of a copy; None if the libraries decide.
    laid: tuple[DataType, tuple[int, ...]] | None = None
    #: What copies; None for a view or an error.
    copier: Any = None
    #: The library's own function that is the whole conversion, if one serves.
    edge: Callable[[Any], Any] | None = None
    #: The conversion, a function of the array.
    run: Callable[[Any], Any] | None = None

    @property
    def made(self) -> TensorInfo | None:
        if self.laid is None or self.info is None:
            return None
        made = dense_like(self.info, *self.laid)
        return made._replace(library=self.target, device=self.device)

    def about(self, info: TensorInfo) -> "Route":
        """Return the same route of another array."""
        made: Route = tuple.__new__(Route, self)
        made.__dict__.update(self.__dict__, info=info)
        return made

    def __reduce__(self) -> tuple[Any, ...]:  # without what only this process can run
        return Route, tuple(self)

    def __str__(self) -> str:
        return f"{self.source} -> {self.target} on {self.device}: {outcome(self)} ({self.why})"

    def _repr_html_(self) -> str:
        from ..notebook import table

        return table(self._asdict())


def amended(route: Route, **fields: Any) -> Route:
    """Return a route with other fields or attributes."""
    made = Route(
        *[fields.pop(name, value) for name, value in zip(Route._fields, route, strict=True)]
    )
    made.__dict__.update(route.__dict__, **fields)
    return made


class ConversionError(BufferError, ValueError):
    """A conversion that would be wrong or hide a cost; the message names the remedy.

    It is both a BufferError and a ValueError, because the array API standard requires BufferError
    of ``from_dlpack`` and ``__dlpack__``, and ValueError of ``asarray`` and ``reshape``.

    Attributes
    ----------
    route : Route or None
        The route that was refused.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import torch
    >>> try:
    ...     ab.convert(torch.ones(3, requires_grad=True), "numpy")
    ... except ab.ConversionError as error:
    ...     print(error)
    ...     print(error.route.kind)
    gradients are tracked and would be cut silently: pass x.detach()
    refuse
    """

    __module__ = "arraybridge"  # as tracebacks print it, and as users import it

    def __init__(self, message: str, route: Route | None = None) -> None:
        super().__init__(message)
        self.route = route
