"""``Library``: the interface between arraybridge and an array library."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from .. import dlpack
from ..dlpack import DataType, DataTypeCode, Device, DeviceType
from ..dlpack.types import BY_NAME
from ..layout import SMALL, in_bytes, span
from .records import Accepts, ConversionError, Edge, TensorInfo, described_key
from .registry import imported_libraries, library_named, library_of_package

if TYPE_CHECKING:
    from ..dlpack import ManagedTensor


class Arrays:
    """The part of a library that every other part uses: its arrays and their export."""

    name: str = ""
    exports_description: bool = False
    forms: tuple[type, ...] = ()

    @property
    def accepts(self) -> Accepts:
        """The arrays that the library accepts as views now; JAX's x64 mode may change it."""
        raise NotImplementedError

    def accepts_of(self, info: TensorInfo) -> Accepts:
        """Return `accepts`, restricted to arrays of the described dtype and shape."""
        return self.accepts

    def owns(self, array_type: type) -> bool:
        """Return whether instances of a type are arrays of this library."""
        raise NotImplementedError

    def describe(self, x: Any) -> TensorInfo:
        """Describe ``x``; by default through its export.

        Raises
        ------
        TypeError, BufferError
            If ``x`` cannot be described, because it has no memory yet or no DLPack dtype. The
            message names the remedy.
        """
        return TensorInfo.of_tensor(self.export(x), self.name)

    def export(self, x: Any, stream: int | None = None) -> ManagedTensor:
        """Return an owning tensor on ``x``; by default through DLPack.

        It is called after :meth:`describe` found neither ``pending`` nor ``refused``.
        """
        if self.exports_description and stream is None:
            return self.export_described(x, self.describe(x))
        api = dlpack.exchange_api(type(x))
        if api is not None and stream is None:
            return api.acquire(x)
        return dlpack.acquire(x, stream=stream)

    def export_described(
        self, x: Any, info: TensorInfo, stream: int | None = None
    ) -> ManagedTensor:
        """Export ``x`` as :meth:`export` does, given its ``info`` from :meth:`describe`."""
        on_stream = stream is not None and info.device.type != DeviceType.CPU
        if not self.exports_description or on_stream:
            return self.export(x, stream)
        return _on_memory(info, self.memory_owner(x, info))

    def memory_owner(self, x: Any, info: TensorInfo) -> object:
        """Return an object that keeps the memory of ``x`` alive.

        By default, ``x`` itself. If arrays can be freed or given other memory, return the object
        that holds their memory.

        Raises
        ------
        ConversionError
            If the memory has changed since ``info`` was made, because another thread replaced it.
        """
        return x

    def wrap(self, tensor: ManagedTensor) -> object:
        """Wrap ``tensor``, which `accepts` allows, as an array of this library.

        A library without this method cannot be a target.
        """
        raise ConversionError(self.no_wrap)

    @property
    def no_wrap(self) -> str:
        """Make the error for a target without a ``wrap``."""
        return f"library {self.name!r} has no wrap(): it cannot be a target"


class Routes(Arrays):
    """What decides the routes of arrays: signatures, and the library's own conversions."""

    edges: tuple[Edge, ...] = ()
    #: Return what else the acceptance of arrays depends on, as a hashable value: JAX's x64 mode.
    state: Callable[[], Hashable] | None = None
    #: Return the modes of the process that intercept the library's own functions, as a hashable
    #: value. If it is true, no edge to the library is used.
    modes: Callable[[], Hashable] | None = None
    #: Return the address of the first element of a plain array, quickly, for targets that need an
    #: alignment.
    pointer: Callable[[Any], int] | None = None
    #: Return the shape and strides of an array, quickly, for requests that depend on them.
    layout: Callable[[Any], Hashable] | None = None
    #: Whether a signature shows if the array is aligned to its item size.
    signs_alignment: bool = False
    #: Whether a signature shows the strides; otherwise all arrays are dense, in any order of axes.
    signs_layout: bool = True

    def signature(self, x: Any) -> Hashable:
        """Return all properties of an array that may decide its route, as a small hashable value.

        Two arrays with equal signatures take the same route to any target, whatever their
        addresses. Define it if that is faster than the default, the whole description. The shape of
        a contiguous array may be left out, but not its number of axes and whether it is empty.
        """
        return described_key(self.describe(x))

    def plain(self, x: Any) -> bool:
        """Return whether :attr:`edges` may convert an array of this library.

        They do not serve subclasses, whose arrays may have another meaning.
        """
        return True


class Memory(Arrays):
    """Memory that may change, be freed or be replaced while the array exists."""

    def alias(self, x: Any) -> Any:
        """Return ``x``, or an object that holds its memory if another thread may replace it."""
        return x

    def export_borrowed(self, x: Any, info: TensorInfo) -> ManagedTensor:
        """Export ``x`` for a copy on the host.

        The tensor is used only during the call that requested it.
        """
        if not self.exports_description:
            return self.export_described(x, info)
        return _on_memory(info, x)

    def may_change(self, x: Any) -> bool:
        """Return whether other code may still write to the memory of a read-only array.

        If so, the memory is not shared with libraries whose arrays never change.
        """
        return False

    def extent(self, x: Any) -> tuple[int, int]:
        """Return the start and end addresses of the elements of an array, quickly.

        Both are equal if the array has no elements, is in several pieces, or never changes.
        """
        return extent_of(self.describe(x))

    def mark_modified(self, x: Any) -> None:
        """Notify the library that the memory of ``x`` was written through its address."""


class Copies(Arrays):
    """Copies by the library, and what a kernel needs to copy instead."""

    in_pieces: bool = False
    #: Whether all arrays have the same, contiguous layout.
    one_layout: bool = False
    #: Copy a small array on the CPU to a new C-contiguous one, with all that is pending applied;
    #: return None if it is not small. It is called for :meth:`~Library.plain` arrays.
    copy_small: Callable[[Any], Any] | None = None
    #: The largest number of elements that :attr:`copy_small` copies.
    most_small: int = SMALL
    #: Copy an array off the host to a C-contiguous one on its device; return None to leave it to
    #: :meth:`empty` and the kernel. It is called for :meth:`~Library.plain` arrays.
    copy_on_device: Callable[[Any], Any] | None = None

    def resolve(self, x: Any) -> object:
        """Return a copy of ``x`` with everything ``pending`` applied."""
        return x

    def copy(self, x: Any) -> object | None:
        """Copy ``x`` to a new C-contiguous array, or return None to leave the copy to a kernel.

        It is called if no kernel serves the device, or gradients are tracked.
        """
        return None

    def copies(self, info: TensorInfo) -> bool:
        """Return whether :meth:`copy` can copy the described array outside the host."""
        return type(self).copy is not Library.copy

    def empty(self, info: TensorInfo) -> object:
        """Allocate a C-contiguous array of the described shape and dtype off the host.

        A kernel writes to it on the stream of :meth:`current_stream`. A library without this method
        and :meth:`empty_like` copies its arrays itself.
        """
        raise NotImplementedError

    def empty_like(self, x: Any) -> object:
        """Allocate an array as :meth:`empty` does, for the elements of ``x``."""
        return self.empty(self.describe(x))

    def assign(self, dst: Any, src: Any) -> bool:
        """Copy one array of this library to another, or return False to leave it to arraybridge.

        It is called before all other ways. The arrays may overlap.
        """
        return False

    def overwrite(self, dst: Any, src: Any) -> bool:
        """Copy one array of this library to another off the host, or return False.

        It is called if no kernel serves their device. The arrays may overlap.
        """
        return False

    def gathered(self, x: Any) -> object | None:
        """Return a NumPy array of the elements of ``x`` if they are in several blocks on the host.

        Otherwise, return None.
        """
        return None


class Casts(Arrays):
    """Other data types and orders of axes."""

    def can_cast(self, info: TensorInfo, dtype: DataType, axes: tuple[int, ...]) -> bool:
        """Return whether :meth:`astype` can cast the described array to a dtype."""
        return type(self).astype is not Library.astype and dtype.name in self.accepts.dtypes

    def astype(self, x: Any, dtype: DataType, axes: tuple[int, ...]) -> object:
        """Copy ``x`` to another dtype, whatever its values become.

        Parameters
        ----------
        dtype : DataType
            The dtype of the copy; may be that of ``x``.
        axes : tuple of int
            The order of the axes in the memory of the copy, outermost first. The copy is dense.
        """
        raise NotImplementedError

    def casts_faster(self, given: DataType, wanted: DataType) -> bool:
        """Return whether the library casts on the CPU faster than NumPy, to the same values."""
        return False

    def assign_cast(self, dst: Any, src: Any) -> None:
        """Copy one array on the CPU to one of another dtype, for which `casts_faster` is true."""
        raise NotImplementedError


class Devices(Arrays):
    """Devices, streams, and copies from one device to another."""

    def place(self, device: object) -> Device | None:
        """Return the Device of the library's own device object; None for other objects.

        It is also called with strings that are not the name of a Device.
        """
        return None

    def native_device(self, device: Device) -> object:
        """Return the library's own device object for ``device=``.

        It is called when a route ends off the CPU, and checks that the device can be used.

        Raises
        ------
        ConversionError
            If the device does not exist or has no driver.
        """
        return str(device)

    def to_host(self, x: Any) -> object:
        """Copy ``x``, in any layout, to the CPU, as an array of any known library."""
        raise ConversionError(f"{self.name} arrays on {self.describe(x).device} cannot be fetched")

    def to_device(self, x: Any, device: Device) -> object:
        """Copy a NumPy array, or an array of this library, to a device of this library."""
        raise ConversionError(f"arraybridge cannot put {self.name} arrays on {device}")

    def current_stream(self, device: Device) -> int | None:
        """Return the stream on which the library would read, by the standard's numbering."""
        return None

    def read_on(self, x: Any, device: Device, stream: int | None) -> None:
        """Notify the library that a copy of ``x`` was queued on a stream of another library.

        The memory must not be reused before the copy is done. By default, later work on the
        library's own stream waits for the copy. If that stream is unknown, the array is kept alive
        until the copy is done.
        """
        if device.type not in (DeviceType.CUDA, DeviceType.CUDA_MANAGED) or stream is None:
            return
        own = self.current_stream(device)
        if own != stream:
            from ..kernels.cuda import context

            if own is None:
                context.hold(device.id, stream, x)
            else:
                context.order(device.id, waiting=own, after=stream)


class Computing(Arrays):
    """What asarray, namespaces, Arrays and gradients need."""

    def data_type(self, dtype: Any) -> DataType | None:
        """Return the DataType of the library's own dtype object; None for other objects.

        By default, the last part of its text is the name, as in ``torch.float32``.
        """
        for name in (str(dtype), getattr(dtype, "__name__", None), getattr(dtype, "name", None)):
            found = BY_NAME.get(name.rpartition(".")[2]) if isinstance(name, str) else None
            if found is not None:
                return found
        return None

    def native_dtype(self, dtype: DataType) -> object | None:
        """Return the library's own dtype object for a data type; None if it has none."""
        return getattr(self.native_namespace(), dtype.name, None)

    def from_python(self, obj: Any) -> object | None:
        """Make an array from Python numbers, for a library without an array API namespace."""
        return None

    def native_namespace(self) -> Any:
        """Return the array API namespace of native arrays, or None.

        ``arraybridge.xp.build`` makes one.
        """
        return None

    def array_class(self) -> Any:
        """Return the subclass of ``LibraryArray`` for its arrays, or None.

        With None, Arrays are described and converted, and computed by the library that serves their
        device.
        """
        return None

    def tracks(self, x: Any) -> bool:
        """Return whether the library tracks an array, so that a conversion would lose something."""
        return False

    def operation(self, adapted: Any, args: Any, kwargs: Any) -> Any:
        """Call an adapted function of another library as an operation on tracked arrays."""
        raise NotImplementedError

    def supports(self, x: Any) -> bool:
        """Return whether an Array may wrap ``x``, quickly: every ``from_dlpack`` calls it.

        An array that cannot be exported may be supported, for example because its gradient is
        tracked.
        """
        return self.describe(x).refused is None

    def check_supported(self, x: Any, *, read: bool = False) -> None:
        """Raise ConversionError if the namespace of Arrays cannot take ``x``.

        Unlike :meth:`supports`, this accepts arrays without memory, such as the tracers of a
        compiler, unless ``read`` is True.
        """


class Lazy(Arrays):
    """Arrays in blocks that are computed later."""

    lazy: bool = False

    def map_blocks(self, function: Callable[[Any], Any], x: Any) -> Any:
        """Return the array whose blocks are the results of ``function`` for those of ``x``."""
        raise NotImplementedError


class Library(Routes, Memory, Copies, Casts, Devices, Computing, Lazy):
    """An array library: how to describe, export and wrap its arrays.

    Subclass it, define ``name``, ``accepts`` and ``owns``, and pass an instance to
    :func:`arraybridge.register_library`. All other methods have defaults.

    Attributes
    ----------
    name : str
        The library's name in ``convert(x, name)``.
    exports_description : bool
        Whether :meth:`describe`, with :meth:`memory_owner` as the owner, is enough to export an
        array on the CPU.
    edges : tuple of Edge
        The library's own conversions from or to another library, such as ``torch.from_numpy``,
        which are preferred to :meth:`export` and :meth:`wrap`.
    in_pieces : bool
        Whether arrays describe elements in several blocks of memory.
    forms : tuple of type
        Classes of conversion results that another library owns.
    lazy : bool
        Whether arrays are in blocks that are computed later; see :meth:`map_blocks`.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> class Signal:
    ...     def __init__(self, samples):
    ...         self.samples = samples
    >>> class SignalLibrary(ab.Library):
    ...     name = "signal"
    ...     accepts = ab.Accepts(
    ...         library="signal", tested="1.0", dtypes=frozenset({"float64"}), ndim=(1, 1)
    ...     )
    ...     def owns(self, array_type):
    ...         return array_type is Signal
    ...     def export(self, x, stream=None):
    ...         return ab.dlpack.acquire(x.samples)
    ...     def wrap(self, tensor):
    ...         return Signal(np.from_dlpack(tensor))
    >>> ab.register_library(SignalLibrary())
    >>> signal = ab.convert(torch.tensor([1.0, 2.0], dtype=torch.float64), "signal")
    >>> ab.convert(signal, "jax", dtype="float32")
    Array([1., 2.], dtype=float32)
    >>> print(ab.explain(torch.ones(2), "signal"))
    torch -> signal on cpu: refused (signal has no float32: pass another data type by dtype=)
    >>> ab.unregister_library("signal")
    """


def _on_memory(info: TensorInfo, owner: object) -> ManagedTensor:
    return dlpack.ManagedTensor.trusted(
        info.data, info.shape, info.strides, info.dtype, info.device, info.readonly, info.padded,
        owner,
    )  # fmt: skip


def extent_of(info: TensorInfo) -> tuple[int, int]:
    """Return the lowest and highest address of a described array's elements."""
    if not info.data:
        return 0, 0
    item, pointer = info.itemsize, info.pointer
    low, high = span(info.shape, in_bytes(info.strides, item), item)
    return pointer + low, pointer + high


def edge_between(
    source: Library, target: Library, info: TensorInfo, copies: bool = False
) -> Callable[[Any], Any] | None:
    """Return the edge's function for an array, through NumPy if there is no direct one."""
    own = _edge(source, target, info, copies)
    if own is not None or copies or "numpy" in (source.name, target.name) or source is target:
        return own
    numpy = library_named("numpy")
    first, second = _edge(source, numpy, info), _edge(numpy, target, info)
    return None if first is None or second is None else then(first, second)


def _edge(
    source: Library, target: Library, info: TensorInfo, copies: bool = False
) -> Callable[[Any], Any] | None:
    if info.pending:
        return None
    names = source.name, target.name
    for edge in (*target.edges, *source.edges):
        if edge[:2] == names and edge.copies is copies and edge.serves(info):
            return edge.function
    return None


def described_with_booleans(library: Library, x: Any) -> TensorInfo:
    """Describe an array, with ``"booleans"`` pending if some are stored as other than 0 and 1."""
    info = library.describe(x)
    if info.dtype.code != DataTypeCode.BOOL or not info.data or not info.device.host:
        return info
    numpy: Any = library_named("numpy")
    if info.pending or info.refused or info.empty or info.ndim > numpy.accepts.ndim[1]:
        return info
    odd = numpy.wrap(library.export_borrowed(x, info)).view("uint8").max() > 1
    return info._replace(pending=("booleans",)) if odd else info


def itself(x: Any) -> Any:
    """Return an array unchanged."""
    return x


def then(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the composition of two functions, unless the first returns None."""

    def both(x: Any) -> Any:
        made = first(x)
        return None if made is None else second(made)

    return both


def place_named(device: object) -> Device:
    """Parse ``device=``: as `Device.parse` does, or a library's own device object."""
    try:
        return Device.parse(device)
    except (TypeError, ValueError):  # TensorFlow's are strings, or other pairs
        library = library_of_package(type(device))
        if library is not None:
            place = library.place(device)
        elif isinstance(device, str):
            named = (library.place(device) for library in imported_libraries())
            place = next((place for place in named if place is not None), None)
        else:
            place = None
        if place is None:
            raise
        return place
