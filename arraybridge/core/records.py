"""The records that planning works on: ``TensorInfo``, ``Accepts``, ``Edge`` and ``Route``.

All are small and immutable; none touches memory or a device runtime.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..dlpack import DataType, DataTypeCode, Device, DeviceType
from ..dlpack.dtypes import BY_NAME
from ..layout import (
    MAX_NDIM,
    classify,
    is_broadcast,
    is_c_contiguous,
    is_compact,
    is_f_contiguous,
    is_non_negative,
)
from ..meant import meant

if TYPE_CHECKING:
    from ..dlpack import Tensor

_PENDING = {
    "conj": "its conjugate bit is set",
    "neg": "its negative bit is set",
    "byteorder": "its bytes are in the other order",
    "bitpacked": "its booleans are packed eight to a byte",
    "packed": "its elements are packed, several to a byte",
    "fraction": "its strides are not whole elements",
    "truth": "its booleans are not stored as 0 and 1",
    "chunks": "its elements lie in several chunks",
    "columns": "its columns lie apart",
    "kinds": "its columns have several data types",
}


def pending_reason(pending: Iterable[str]) -> str:
    """Say in words what `TensorInfo.pending` lists."""
    return " and ".join(_PENDING[what] for what in pending)


def no_copy_allowed(why: str, remedy: str = "copy=None lets arraybridge copy") -> str:
    """Say that ``copy=False`` cannot be kept, why, and what to do."""
    return f"copy=False, but {why}: {remedy}"


#: The dtype in the description of an array whose own has no DLPack type; `refused` says so.
NO_DTYPE = DataType(DataTypeCode.OPAQUE_HANDLE, 8)


class TensorInfo(NamedTuple):
    """A description of an array, read without touching its data.

    Attributes
    ----------
    library : str
        The library whose array it is; ``"dlpack"`` for anything that only speaks the protocol.
    data : int
        The pointer (an address, or an opaque handle on some devices).
    byte_offset : int
        Bytes from ``data`` to the first element.
    shape, strides : tuple of int
        Strides in elements.
    dtype : DataType
    device : Device
    readonly : bool
        Writing is not allowed: flagged so, or an immutable array (JAX, Arrow, TensorFlow).
    copied : bool
        The producer says that this is a copy made for us.
    version : tuple of int or None
        DLPack version of the struct that it was read from; None where there was none.
    padded : bool
        A sub-byte type that takes a whole byte an element.
    pending : tuple of str
        What the memory does not show, or DLPack cannot say: ``"conj"``, ``"neg"``, ``"byteorder"``,
        ``"bitpacked"``, ``"fraction"`` (strides that are no whole elements), ``"chunks"`` (elements
        in several blocks of memory), ``"truth"`` (booleans that are not 0 and 1), ``"packed"``
        (elements of less than a byte, several to a byte). Only the library itself can apply it, by
        a copy.
    refused : str or None
        Why this array can never be handed to another library, and what to do.
    legacy : bool
        Read-only, but somebody may still write: a legacy struct cannot say otherwise, and of other
        memory a route to a library whose arrays never change finds it out.
    tracked : bool
        Refused because a gradient or a transformation follows it: its own library's copies and
        casts, which are followed as well, are not refused.

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
    def of_tensor(cls, tensor: Tensor, library: str = "dlpack") -> TensorInfo:
        """Return the info of a core tensor."""
        return cls(
            library,
            tensor.data,
            tensor.byte_offset,
            tensor.shape,
            tensor.strides,
            tensor.dtype,
            tensor.device,
            tensor.readonly,
            tensor.copied,
            tensor.version,
            tensor.padded,
            legacy=getattr(tensor, "legacy", False),
        )

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
        """Bytes of the elements, were they compact."""
        return self.dtype.nbytes(prod(self.shape), self.padded)

    @property
    def pointer(self) -> int:
        """Address of the first element, where the device is addressable."""
        return self.data + self.byte_offset

    @property
    def _exact(self) -> bool:
        """Whether every field is known; of a `Signature` some are not."""
        return True

    @property
    def empty(self) -> bool:
        """Whether there are no elements."""
        return 0 in self.shape

    @property
    def compact(self) -> bool:
        """Whether the elements are one dense block of memory, in any order of the axes."""
        return is_compact(self.shape, self.strides)

    @property
    def negative(self) -> bool:
        """Whether a stride that matters is negative."""
        return not is_non_negative(self.shape, self.strides)

    @property
    def repeated(self) -> bool:
        """Whether several elements are one cell of memory by a stride of zero."""
        return is_broadcast(self.shape, self.strides)

    def aligned_to(self, nbytes: int) -> bool:
        """Whether the first element is at a multiple of so many bytes."""
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
        """One word for the layout, as :func:`arraybridge.layout.classify` says it."""
        return classify(self.shape, self.strides)

    @property
    def alignment(self) -> int:
        """The largest power of two, up to 4096 bytes, that divides the address; 0 for no data."""
        pointer = self.data + self.byte_offset
        return min(pointer & -pointer, 4096)

    @property
    def dtype_name(self) -> str:
        """The name of the data type, marked where sub-byte elements are packed."""
        if self.dtype.subbyte and not self.padded:
            return f"{self.dtype.name} (packed)"
        return self.dtype.name

    def _repr_html_(self) -> str:
        from ..drawing import info_html

        return info_html(self)


class _Accepts(NamedTuple):
    library: str
    tested: str
    dtypes: frozenset[str]
    devices: frozenset[DeviceType] = frozenset({DeviceType.CPU})
    strides: str = "any"
    broadcast: bool = True
    alignment: int = 1
    aligned: frozenset[str] = frozenset()
    readonly: bool = False
    immutable: bool = False
    ndim: tuple[int, int] = (0, 64)
    largest: int = 2**63 - 1
    cpus: int = 1
    copies: bool = False
    copied: frozenset[str] = frozenset()
    remedies: dict[str, str] = {}  # noqa: RUF012 - never written


class Accepts(_Accepts):
    """What a library accepts as a view; a test compares each record with the installed version.

    Attributes
    ----------
    library : str
    tested : str
        The version that the record was measured on.
    dtypes : frozenset of str
        Names of data types; ``"float4_e2m1fn (packed)"`` is apart from the padded form.
    devices : frozenset of DeviceType
    strides : {"any", "non-negative", "compact", "c"}
        ``compact``: a dense block with permuted axes.
    broadcast : bool
        Whether zero strides are taken.
    alignment : int
        Bytes that the address must be a multiple of.
    aligned : frozenset of str
        Those of ``dtypes`` whose address must be a multiple of the size of an element. Off the host
        that is so of all.
    readonly : bool
        Whether its arrays cannot be written: they carry the flag, or are immutable.
    immutable : bool
        Its arrays never change, and what is computed from them may be computed later. Memory that
        is writable is copied for it, unless a view is requested.
    ndim : tuple of int
        The least and the largest rank.
    largest : int
        The largest extent, and the largest stride in bytes.
    cpus : int
        How many CPU devices it tells apart: ``cpu:0`` and on.
    copies : bool
        Its own import always copies.
    copied : frozenset of str
        Those of ``dtypes`` that its zero-copy import refuses and its constructor copies; ``wrap``
        takes them in any layout.
    remedies : dict
        What to do about a data type that is missing; the key ``""`` is for any other.

    Raises
    ------
    TypeError, ValueError
        For what no plan would understand: a misspelled rule or data type, say.

    Examples
    --------
    >>> import arraybridge as ab
    >>> record = ab.Accepts(
    ...     library="table", tested="1.0", dtypes=frozenset({"float64"}), strides="c", ndim=(2, 2)
    ... )
    >>> record.readonly, record.alignment       # what is left out is taken to be usual
    (False, 1)
    >>> ab.Accepts(library="table", tested="1.0", dtypes=frozenset({"flaot64"}))
    Traceback (most recent call last):
        ...
    ValueError: dtypes has 'flaot64': did you mean 'float64'? expected int1, ...
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Accepts:
        accepts = super().__new__(cls, *args, **kwargs)
        accepts._check()
        return accepts

    def _replace(self, **kwargs: Any) -> Accepts:  # a tuple's own checks nothing
        return type(self)(**self._asdict() | kwargs)

    def _check(self) -> None:
        for field in ("dtypes", "aligned", "copied", "remedies"):
            names = getattr(self, field)
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise TypeError(f"{field} is a set of names of data types, got {names!r}")
            for name in names:
                _check_dtype_name(name, field)
        for field in ("aligned", "copied"):
            for name in frozenset(getattr(self, field)).difference(self.dtypes):
                raise ValueError(f"{field} has {name!r}, which dtypes lacks: name it in both")
        if self.strides not in STRIDES:
            raise ValueError(f"strides is {self.strides!r}{meant(self.strides, STRIDES)}")
        if not isinstance(self.devices, Iterable):
            raise TypeError(f"devices is a set of members of DeviceType, got {self.devices!r}")
        for code in self.devices:
            if not isinstance(code, int) or not 0 < code < 2**31:
                raise ValueError(f"devices has {code!r}; expected members of DeviceType")
        for field in _FLAGS:
            if not isinstance(getattr(self, field), bool):
                raise TypeError(f"{field} is True or False, got {getattr(self, field)!r}")
        if not isinstance(self.largest, int) or self.largest < 1:
            raise ValueError(f"largest is {self.largest!r}; expected a number of bytes")
        power = self.alignment
        if not isinstance(power, int) or power < 1 or power & (power - 1):
            raise ValueError(f"alignment is {power!r}; expected a power of two, in bytes")
        if type(self.cpus) is not int or self.cpus < 1:
            raise ValueError(
                f"cpus is {self.cpus!r}; expected the number of CPU devices, 1 or more"
            )
        match self.ndim:
            case (int(least), int(most)) if 0 <= least <= most <= MAX_NDIM:
                return
        raise ValueError(
            f"ndim is {self.ndim!r}; expected the least and the largest rank, of 0 to {MAX_NDIM}"
        )


_FLAGS = tuple(name for name, x in _Accepts._field_defaults.items() if isinstance(x, bool))
STRIDES = ("any", "non-negative", "compact", "c")


def _check_dtype_name(name: object, field: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{field} has {name!r}: expected names of data types, such as 'float32'")
    if field == "remedies" and not name:  # for any other
        return
    try:
        DataType.named(name.removesuffix(" (packed)"))
    except ValueError:
        raise ValueError(f"{field} has {name!r}{meant(name, BY_NAME)}") from None


def _always(s: TensorInfo) -> bool:
    return True


class Edge(NamedTuple):
    """A library's own conversion of arrays in host memory to another library's.

    Attributes
    ----------
    source, target : str
    function : callable
        Takes an array and returns the other library's: the same memory, strides and flags as the
        general way through DLPack, only sooner. It is right for every array of the signatures that
        it serves, and checks after its call what another thread may have changed; it may raise.
    serves : callable
        Whether it is right for a signature: of an array that the target takes as a view, or copies
        where the edge does.
    copies : bool
        Whether it copies, by the target's own import.
    of_new : callable or None
        The same for an array that nobody else has yet, where that takes less.

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
    serves: Callable[[TensorInfo], bool] = _always
    copies: bool = False
    of_new: Callable[[Any], Any] | None = None


def of_native(why: str) -> str:
    """Restate a remedy for a library's array ``x`` for an Array ``x`` over it."""
    return re.sub(r"\bx(?=[.,)\[])", "x.native", why)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, for use within another sentence."""
    return str(error).strip().splitlines()[0].rstrip(".")


Kind = Literal["view", "kernel", "transfer", "refuse"]
#: What is printed for a kind, where that is not its name.
PRINTED = {"kernel": "copied", "refuse": "refused"}


def outcome(route: Any) -> str:
    """Say what a route, or the record of one, does: how, by what, how many bytes."""
    by = f" by {route.kernel}" if route.kernel else ""
    moved = f", {route.nbytes:,} bytes" if route.nbytes else ""
    return f"{PRINTED.get(route.kind, route.kind)}{by}{moved}"


def route_text(route: Any) -> str:
    """Say in a line from where to where a route leads, what it does, and why."""
    return f"{route.source} -> {route.target} on {route.device}: {outcome(route)} ({route.why})"


class _Route(NamedTuple):
    kind: Kind
    why: str
    nbytes: int
    source: str
    target: str
    device: Device
    copier: Any = None


class Route(_Route):
    """How ``convert`` gets from source to target, decided from metadata alone.

    Attributes
    ----------
    kind : {"view", "kernel", "transfer", "refuse"}
    why : str
        For a person: what decided it; for a refusal also what to do.
    nbytes : int
        Bytes that are copied: 0 for a view.
    source, target : str
        Libraries.
    device : Device
        Where the result lies.
    copier : object or None
        What makes the copy; its text is `kernel`.
    kernel : str or None
        The name of what makes the copy.
    info : TensorInfo or None
        What is converted, of a route that ``explain`` returns; it takes no part in equality.
    made : TensorInfo or None
        Likewise what a copy will be, at an address not known yet; None where the libraries decide.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> route = ab.explain(np.zeros((2, 3))[::-1], "torch")
    >>> route.kind, route.nbytes, route.kernel
    ('kernel', 48, "numpy's own copy")
    >>> route.source, route.target, str(route.device)
    ('numpy', 'torch', 'cpu')
    >>> route.why
    'torch takes no negative strides; the layout is negative'
    >>> route.info.layout, route.made.layout
    ('negative', 'c')
    """

    __slots__ = ()

    @property
    def info(self) -> TensorInfo | None:
        return None

    @property
    def made(self) -> TensorInfo | None:
        return None

    @property
    def kernel(self) -> str | None:
        return None if self.copier is None else str(self.copier)

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(_PRINTED_FIELDS, (*self[:-1], self.kernel), strict=True))

    def __reduce__(self) -> tuple[Any, ...]:  # in another process its text is enough
        return Route, (*self[:-1], self.kernel)

    def __repr__(self) -> str:
        return f"Route({', '.join(f'{name}={x!r}' for name, x in self._asdict().items())})"

    def __str__(self) -> str:
        return route_text(self)

    def _repr_html_(self) -> str:
        from ..drawing import route_html

        return route_html(self)


_PRINTED_FIELDS = (*_Route._fields[:-1], "kernel")


class ConversionError(BufferError, ValueError):
    """A conversion that would be wrong or hide a cost; the message says what to do.

    The standard names BufferError where ``from_dlpack`` and ``__dlpack__`` cannot keep
    ``copy=False``, and ValueError where ``asarray`` and ``reshape`` cannot: it is both.

    Attributes
    ----------
    route : Route or None
        The refused route.

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
