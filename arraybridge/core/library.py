"""``Library``: the interface between arraybridge and an array library."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import dlpack
from ..dlpack import DataType, Device, DeviceType
from ..dlpack.dtypes import BY_NAME
from ..layout import SMALL, in_bytes, span
from ..native.lookup import then
from .records import Accepts, ConversionError, Edge, TensorInfo
from .registry import imported_libraries, library_named, library_of_package

if TYPE_CHECKING:
    from ..dlpack import ManagedTensor
    from .signature import Signature


class Arrays:
    """What every library says of its arrays."""

    name: str = ""
    exports_description: bool = False
    forms: tuple[type, ...] = ()
    watched: tuple[str, ...] = ()

    @property
    def accepts(self) -> Accepts:
        """What the library takes as a view, now (JAX's x64 state may change it)."""
        raise NotImplementedError

    def accepts_of(self, info: TensorInfo) -> Accepts:
        """Return `accepts`, or what of it is true of arrays with a dtype and shape."""
        return self.accepts

    def owns(self, array_type: type) -> bool:
        """Whether instances of a type are arrays of this library."""
        raise NotImplementedError

    def describe(self, x: Any) -> TensorInfo:
        """Describe ``x``; by default from its export, which is not kept.

        Raises
        ------
        TypeError, BufferError
            For what cannot be described (no memory yet, no DLPack dtype), with the remedy.
        """
        return TensorInfo.of_tensor(self.export(x), self.name)

    def export(self, x: Any, stream: int | None = None) -> ManagedTensor:
        """Return an owning tensor on ``x``; by default through DLPack.

        Called after :meth:`describe` has found neither ``pending`` nor ``refused``.
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
        """Return an object that keeps the memory of ``x`` alive, whatever happens to ``x``.

        By default ``x`` itself, which serves for arrays that have the same memory as long as they
        live. Of those that can be freed, or given other memory, it is what holds the memory.

        Raises
        ------
        ConversionError
            If the memory is not that of ``info`` any more: another thread was quicker.
        """
        return x

    def wrap(self, tensor: ManagedTensor, *, move: bool = False) -> object:
        """Wrap ``tensor``, whose fields ``accepts`` allows, as an array of this library.

        With ``move`` the tensor is a fresh block that may be handed over whole. A library that is
        a source only has none.
        """
        raise ConversionError(self.no_wrap)

    @property
    def no_wrap(self) -> str:
        """Make the error for a target without a ``wrap``."""
        return f"library {self.name!r} has no wrap(): it cannot be a target"


class Edges:
    """Conversions that a library makes by itself, and the coarse signature that picks them."""

    edges: tuple[Edge, ...] = ()
    #: What of the process changes the library's own functions (modes, transformations), as a
    #: hashable value that is true where something does: no edge to it is taken then.
    modes: Callable[[], Hashable] | None = None
    #: The coarse signature of an array, a tuple that :meth:`decode` understands; None for an array
    #: that is not usual: its description then tells. Without it all arrays are described.
    signature: Callable[[Any], Hashable | None] | None = None
    #: The address of the first element of an array that has a coarse signature, quick: with it the
    #: signature says as well whether a target's alignment is kept.
    pointer: Callable[[Any], int] | None = None

    def has_edges(self, array_type: type) -> bool:
        """Whether :attr:`edges` serve arrays of a type that it owns.

        They do not serve subclasses, which may mean something else.
        """
        return True

    def decode(self, key: Any) -> Signature:
        """Return what a coarse signature says."""
        raise NotImplementedError


class Memory(Arrays):
    """Memory that may change, be freed or be replaced, whatever becomes of the array."""

    def alias(self, x: Any) -> Any:
        """Return ``x``, or a holder of its current memory, which another thread may replace."""
        return x

    def export_borrowed(self, x: Any, info: TensorInfo) -> ManagedTensor:
        """Export ``x`` for a copy on the host, pinning no more than that needs.

        The tensor must not outlive the call that requested it.
        """
        if not self.exports_description:
            return self.export_described(x, info)
        return _on_memory(info, x)

    def may_change(self, x: Any) -> bool:
        """Whether somebody may still write to the memory of a read-only array.

        Then it is not shared with libraries whose arrays never change. By default nobody does.
        """
        return False

    def address(self, x: Any) -> int:
        """Return the address of the first element of an array; quick.

        Of libraries whose arrays may be given other memory (``x.data =``): `arraybridge.adapt` asks
        whether a function has done so. By default nobody asks.
        """
        raise NotImplementedError

    def extent(self, x: Any) -> tuple[int, int]:
        """Return the addresses between which all elements of an array lie; quick.

        The same one twice for an array without elements, in several pieces, or that never changes.
        """
        return extent_of(self.describe(x))

    def mark_modified(self, x: Any) -> None:
        """Notify the library that the memory of ``x`` was written through its address."""

    def read_only(self, x: Any) -> Any:
        """Return a view of a read-only NumPy array that refuses to be written, or None.

        For libraries that cannot mark memory as read-only (``accepts.readonly``) and yet have an
        array by which none is written. None: it is copied.
        """
        return None

    def only_memory(self, x: Any) -> bool:
        """Whether ``x`` is no more than the memory that :meth:`describe` tells of.

        Then it is pickled as that memory.
        """
        return True

    def serve_processes(self) -> list[Callable[[], object]]:
        """Enter in tables of other packages what they need to send arrays, and return the undoing.

        Called by :func:`arraybridge.pickling.register`.
        """
        return []


class Copies(Arrays):
    """Copies by the library, and what a kernel needs to copy in its place."""

    in_pieces: bool = False
    #: Whether an array of its has the one layout that it can have, and is contiguous so.
    one_layout: bool = False
    #: Copies a small array on the CPU to a new C-contiguous one, with all that is pending applied;
    #: None for an array that is not small. Called of arrays that have a coarse signature.
    copy_small: Callable[[Any], Any] | None = None
    #: The most elements of an array that :attr:`copy_small` copies.
    most_small: int = SMALL
    #: Copies an array off the host to a new C-contiguous one on its device, as soon as can be; None
    #: where :meth:`empty` and the kernel must do. Called of arrays that have a coarse signature.
    copy_on_device: Callable[[Any], Any] | None = None

    def resolve(self, x: Any) -> object:
        """Copy ``x`` with everything ``pending`` applied."""
        return x

    def copy(self, x: Any) -> object | None:
        """Copy ``x`` to a new C-contiguous array by the library; None to leave it to the kernel.

        Asked where the kernels have nothing for the device, or gradients are tracked.
        """
        return None

    def copies(self, info: TensorInfo) -> bool:
        """Whether :meth:`copy` can copy the described array outside the host."""
        return type(self).copy is not Library.copy

    def empty(self, info: TensorInfo) -> object:
        """Allocate a C-contiguous array of the described shape, dtype and device, off the host.

        By the library's own allocator, on the stream that :meth:`current_stream` names: a kernel
        writes to it there. A library that has neither this nor :meth:`empty_like` copies by itself.
        """
        raise NotImplementedError

    def empty_like(self, x: Any) -> object:
        """Allocate as :meth:`empty` does, for the elements of ``x``."""
        return self.empty(self.describe(x))

    def assign(self, dst: Any, src: Any) -> bool:
        """Copy one array of this library to another directly; False to take the general way.

        Asked first, every time. Both may overlap.
        """
        return False

    def overwrite(self, dst: Any, src: Any) -> bool:
        """Copy one array of this library to another by the library, off the host.

        Asked where no kernel copies on their device; False if it cannot. Both may overlap.
        """
        return False

    def gathered(self, x: Any) -> object | None:
        """A NumPy array of the elements of ``x`` in several pieces of host memory; else None."""
        return None


class Casts(Arrays):
    """Other data types and orders of axes."""

    def can_cast(self, info: TensorInfo, dtype: DataType, axes: tuple[int, ...]) -> bool:
        """Whether :meth:`astype` can make an array of a data type from the described one."""
        return type(self).astype is not Library.astype and dtype.name in self.accepts.dtypes

    def astype(self, x: Any, dtype: DataType, axes: tuple[int, ...]) -> object:
        """Copy ``x`` to another data type by the library, whatever its values become.

        Parameters
        ----------
        dtype : DataType
            May be that of ``x``.
        axes : tuple of int
            The order of the axes in the memory of the copy, which is dense; the outermost first.
        """
        raise NotImplementedError

    def assign_cast(self, dst: Any, src: Any) -> bool:
        """Copy one array on the CPU to another of another data type; False to leave it to NumPy.

        Asked of large arrays that the library has views of: True where it was quicker than NumPy
        and gave the same values.
        """
        return False


class Devices(Arrays):
    """Devices, streams, and copies from one device to another."""

    def place(self, device: object) -> Device | None:
        """Return the Device of the library's own device object; None for other objects.

        Asked as well about strings that are no Device's name.
        """
        return None

    def native_device(self, device: Device) -> object:
        """Return the library's own device object for ``device=``.

        Asked by the plan of every route that ends off the CPU: what is usable here and now, where
        :attr:`accepts` names what the library is built for.

        Raises
        ------
        ConversionError
            For a device that is not there, or has no driver.
        """
        return str(device)

    def to_host(self, x: Any) -> object:
        """Copy ``x``, in any layout, to the CPU, as an array of any library that is known."""
        raise ConversionError(f"{self.name} arrays on {self.describe(x).device} cannot be fetched")

    def to_device(self, x: Any, device: Device) -> object:
        """Copy a NumPy array, or an array of this library, to a device of this library."""
        raise ConversionError(f"arraybridge cannot put {self.name} arrays on {device}")

    def current_stream(self, device: Device) -> int | None:
        """Return the stream on which the library would read, in the standard's numbering."""
        return None

    def shardings(self) -> Any:
        """Return the module of its sharded arrays (`arraybridge.sharding`); None if it has none."""
        return None

    @contextmanager
    def on_stream(self, device: Device, stream: int) -> Iterator[None]:
        """Return a context in which the library's work is in order with a stream of a CUDA device.

        By default its own stream waits for that one at the start, and that one for it at the end.
        """
        from ..kernels.cuda import context

        own = self.current_stream(device) or context.LEGACY
        context.order(device.id, waiting=own, after=stream)
        try:
            yield
        finally:  # what is queued uses the memory, whatever was raised
            context.order(device.id, waiting=stream, after=own)

    def read_on(self, x: Any, device: Device, stream: int | None) -> None:
        """Notify the library that a copy of ``x`` was queued on a stream of another library's.

        The memory must not be given to anybody else before that copy is done. By default what the
        library does next on its own stream waits for it, which holds for every allocator whose
        memory is reused in the order of a stream; an array of a library whose stream nobody knows
        is kept alive until then.
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
    """What arrays of Python numbers, namespaces, Arrays and gradients need."""

    def data_type(self, dtype: Any) -> DataType | None:
        """Return the DataType of the library's own object for one; None for other objects.

        By default by the last part of its text, which for PyTorch's and others' is the name.
        """
        for name in (str(dtype), getattr(dtype, "__name__", None), getattr(dtype, "name", None)):
            found = BY_NAME.get(name.rpartition(".")[2]) if isinstance(name, str) else None
            if found is not None:
                return found
        return None

    def native_dtype(self, dtype: DataType) -> object | None:
        """Return the library's own object for a data type; None if it has none."""
        return getattr(self.native_namespace(), dtype.name, None)

    def from_python(self, obj: Any) -> object | None:
        """Make an array of Python's numbers, for a library without an array-API namespace."""
        return None

    def native_namespace(self) -> Any:
        """Return the array API namespace of native arrays; None if there is none.

        See ``arraybridge.xp.native_namespace``, which makes one.
        """
        return None

    def array_class(self) -> Any:
        """Return the subclass of ``NativeArray`` for its arrays; None if there is none.

        Without one its arrays are carried, described and converted; their operators are those of
        the library that computes on their device.
        """
        return None

    def differentiation(self) -> Any:
        """Return its ``Differentiation`` (arraybridge.array); None if it has no gradients.

        Without one, ``adapt(..., differentiable=True)`` is refused for its functions.
        """
        return None

    def supports(self, x: Any) -> bool:
        """Whether an Array may wrap ``x``; quick, since every ``from_dlpack`` checks it.

        One that cannot be exported as it is may be supported (its gradient is tracked).
        """
        return self.describe(x).refused is None

    def check_supported(self, x: Any, *, read: bool = False) -> None:
        """Raise ConversionError for one of its arrays that the namespace of Arrays cannot take.

        Unlike in :meth:`supports`, what has no memory passes, such as a compiler's tracers; what is
        about to be read must be there.
        """

    def check_together(self, every: Sequence[Any]) -> None:
        """Check that the arrays of this library among some objects compute with each other.

        Raises
        ------
        ConversionError
            If some have elements, for one, and others a shape alone; the message says what to do.
        """


class Lazy(Arrays):
    """Arrays that are graphs, which are computed later."""

    lazy: bool = False

    def deferred(self, x: Any, target: Library, **options: Any) -> Any:
        """Convert an array of this lazy library later, or one in memory to this lazy library.

        The options are those of :func:`arraybridge.convert`.
        """
        raise ConversionError(f"{self.name} arrays are in memory: there is nothing to defer")

    def like(self, model: Any, x: Any, **options: Any) -> Any:
        """Convert an array to a graph as ``model``, an array of this lazy library, is one."""
        raise NotImplementedError

    def applied(self, function: Any, options: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """Call an adapted function later, on parts of arrays of this lazy library."""
        raise NotImplementedError


class Library(Edges, Memory, Copies, Casts, Devices, Computing, Lazy):
    """One array library: how to describe, export and wrap its arrays.

    Subclass it, fill in the attributes, and hand an instance to
    :func:`arraybridge.register_library`.

    Attributes
    ----------
    name : str
        What ``convert(x, name)`` calls it.
    exports_description : bool
        Whether what :meth:`describe` says of an array on the CPU, with :meth:`memory_owner` as the
        owner, is all that an export is.
    edges : tuple of Edge
        Its own functions for conversions from or to another library, such as
        ``torch.from_numpy``: sooner than the general way, and otherwise the same. Each says which
        arrays it serves.
    in_pieces : bool
        Whether its arrays are only a description of memory in pieces.
    forms : tuple of type
        Classes of what conversions give where another library owns them.
    lazy : bool
        Whether its arrays are graphs that are computed later: :meth:`deferred` converts them.
    watched : tuple of str
        Its own functions that copy arrays or take them in, from the package on
        (``"torch.Tensor.cpu"``): an audit watches them where it is to watch libraries. Those of the
        libraries that come with arraybridge are watched in any case.

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
    ...     def wrap(self, tensor, *, move=False):
    ...         return Signal(np.from_dlpack(tensor))
    >>> ab.register_library(SignalLibrary())
    >>> signal = ab.convert(torch.tensor([1.0, 2.0], dtype=torch.float64), "signal")
    >>> ab.convert(signal, "jax", dtype="float32")
    Array([1., 2.], dtype=float32)
    >>> print(ab.explain(torch.ones(2), "signal"))
    torch -> signal on cpu: refused (signal has no float32: ask for another data type, dtype=)
    >>> ab.unregister_library("signal")
    """


def _on_memory(info: TensorInfo, owner: object) -> ManagedTensor:
    return dlpack.ManagedTensor.trusted(
        info.data, info.shape, info.strides, info.dtype, info.device, info.readonly, info.padded,
        owner,
    )  # fmt: skip


def extent_of(info: TensorInfo) -> tuple[int, int]:
    """Return the addresses between which all elements of a described array lie."""
    if not info.data:
        return 0, 0
    item, pointer = info.itemsize, info.pointer
    low, high = span(info.shape, in_bytes(info.strides, item), item)
    return pointer + low, pointer + high


def edge_between(
    source: Library, target: Library, s: TensorInfo, copies: bool = False, new: bool = False
) -> Callable[[Any], Any] | None:
    """Return the function of an edge that serves a signature; by way of NumPy if there is none.

    `new`: of arrays that nobody else has yet.
    """
    own = _edge(source, target, s, copies, new)
    if own is not None or copies or "numpy" in (source.name, target.name) or source is target:
        return own
    numpy = library_named("numpy")
    first, second = _edge(source, numpy, s, new=new), _edge(numpy, target, s)
    return None if first is None or second is None else then(first, second)


def _edge(
    source: Library, target: Library, s: TensorInfo, copies: bool = False, new: bool = False
) -> Callable[[Any], Any] | None:
    if s.pending:
        return None
    names = source.name, target.name
    for edge in (*target.edges, *source.edges):
        if edge[:2] == names and edge.copies is copies and edge.serves(s):
            return edge.of_new if new and edge.of_new is not None else edge.function
    return None


def place_named(device: object) -> Device:
    """Parse a ``device=``: as `Device.parse`, or a library's own device object."""
    try:
        return Device.parse(device)
    except (TypeError, ValueError):  # TensorFlow's are pairs of something else, or strings
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
