"""``Library``: the interface between arraybridge and an array library."""

from collections.abc import Callable, Hashable, Sequence
from importlib import import_module
from typing import Any

from .. import dlpack
from ..dlpack import DataType, DataTypeCode, Device, DeviceType
from ..native import C
from .records import Accepts, ConversionError, Edge, TensorInfo, always, described_key
from .registry import imported_libraries, library_named, library_of_package


class Routing:
    """What decides about conversions besides the signatures of arrays, quickly.

    Attributes
    ----------
    plain : callable
        Returns whether an edge may convert an array of the library. None serves subclasses, whose
        arrays may have another meaning.
    pointer : callable, optional
        Returns the address of an array's first element.
    exact : callable, optional
        Returns a signature that always shows shape and strides, for requests that depend on them.
    aligned : int
        Up to which number of bytes a signature shows the alignment.
    strided : bool
        Whether a signature shows the strides; otherwise all arrays are dense, in any order of axes.
    state : callable, optional
        Returns what else decides about arrays that the library is to take, as a hashable value:
        JAX's x64 mode, PyTorch's modes.
    """

    def __init__(
        self,
        plain: Callable[[Any], bool] = always,
        pointer: Callable[[Any], int] | None = None,
        exact: Callable[[Any], Hashable] | None = None,
        *,
        aligned: int = 1,
        strided: bool = True,
        state: Callable[[], Hashable] | None = None,
    ) -> None:
        self.plain, self.pointer, self.exact = plain, pointer, exact
        self.aligned, self.strided, self.state = aligned, strided, state


class Devices:
    """The devices of a library, their memory and streams, and copies from one to another."""

    def place(self, device: object) -> Device | None:
        """Return the Device of the library's own device object or name; None for others."""
        return None

    def native_device(self, device: Device) -> object:
        """Return the library's own device object for ``device=``, of a route that ends off the CPU.

        ConversionError if the device does not exist, or has no driver.
        """
        return str(device)

    def empty(self, info: TensorInfo, like: Any = None) -> object:
        """Allocate a C-contiguous array of the described shape and dtype off the host.

        A kernel writes to it on the stream of :meth:`current_stream`. A library without this method
        copies its arrays itself. If ``like`` is given, it is an array of the library, of which the
        new one will be a copy.
        """
        raise NotImplementedError

    def to_device(self, x: Any, device: Device) -> object:
        """Copy a NumPy array, or an array of the library in any layout, to another device.

        To the CPU, the result may be an array of any known library.
        """
        raise NotImplementedError

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


class Computing:
    """What a library computes: casts, its namespace, gradients, blocks of lazy arrays."""

    def can_cast(self, info: TensorInfo, dtype: DataType, axes: tuple[int, ...]) -> bool:
        """Return whether :meth:`astype` can cast the described array to a dtype of the library."""
        return True

    def astype(self, x: Any, dtype: DataType, axes: tuple[int, ...]) -> object:
        """Copy ``x`` to another dtype, or its own, whatever its values become.

        The copy is dense; ``axes`` is their order in its memory, outermost first.
        """
        raise NotImplementedError

    def casts_faster(self, given: DataType, wanted: DataType) -> bool:
        """Return whether the library casts on the CPU faster than NumPy, to the same values."""
        return False

    def assign(self, dst: Any, src: Any) -> None:
        """Copy the elements of one array to another, on one device and of any dtypes.

        The arrays may overlap. It is called if no kernel serves the device, or ``casts_faster``.
        """
        raise NotImplementedError

    def mark_modified(self, x: Any) -> None:
        """Notify the library that the memory of ``x`` was written through its address."""

    def from_python(self, obj: Any) -> object | None:
        """Make an array from Python numbers, for a library without an array API namespace."""
        return None

    def native_namespace(self) -> Any:
        """Return the array API namespace of native arrays (`arraybridge.xp.build`), or None."""
        return None

    def array_class(self) -> Any:
        """Return the subclass of ``LibraryArray`` for its arrays, or None.

        With None, the library that serves their device computes with its Arrays.
        """
        return None

    def tracks(self, x: Any) -> bool:
        """Return whether the library tracks an array, so that a conversion would lose something."""
        return False

    def operation(self, adapted: Any, args: Any, kwargs: Any) -> Any:
        """Call an adapted function of another library as an operation on tracked arrays."""
        raise NotImplementedError

    #: Return the array whose blocks are the results of a function for those of an array. With it,
    #: the library's arrays are in blocks that are computed later, and it cannot be a target.
    map_blocks: Any = None


class Library:
    """An array library: how to describe, export and wrap its arrays.

    Subclass it, define ``name``, ``accepts`` and ``owns``, and pass an instance to
    :func:`arraybridge.register_library`. All else has defaults.

    Attributes
    ----------
    name : str
        The library's name in ``convert(x, name)``.
    edges : tuple of Edge
        The library's own conversions from or to another library, such as ``torch.from_numpy``,
        which are preferred to :meth:`export` and :meth:`wrap`, and its own copies.
    routing : Routing
        What decides about conversions besides :meth:`signature`.
    devices : Devices
        Other devices than the host: their names, memory, streams and transfers.
    computing : Computing
        Casts, the array API namespace, gradients.

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

    name: str = ""
    edges: tuple[Edge, ...] = ()
    routing: Routing = Routing()
    devices: Devices = Devices()
    computing: Computing = Computing()

    @property
    def accepts(self) -> Accepts:
        """The arrays that the library accepts as views now; JAX's x64 mode may change it."""
        raise NotImplementedError

    def owns(self, array_type: type) -> bool:
        """Return whether instances of a type are arrays of this library."""
        raise NotImplementedError

    def describe(self, x: Any) -> TensorInfo:
        """Describe ``x``; by default through its export.

        TypeError or BufferError, with a remedy, if it has no memory yet, or no DLPack dtype.
        """
        return TensorInfo.of_tensor(self.export(x), self.name)

    def export(self, x: Any, stream: int | None = None) -> "dlpack.ManagedTensor":
        """Return an owning tensor on ``x``; by default through DLPack.

        It is called after :meth:`describe` found neither ``pending`` nor ``refused``.
        """
        if stream is None and type(self).memory_owner is not Library.memory_owner:
            info = self.describe(x)
            owner = self.memory_owner(x, info)
            if owner is not None:
                return on_memory(info, owner)
        api = dlpack.exchange_api(type(x))
        if api is not None and stream is None:
            return api.acquire(x)
        return dlpack.acquire(x, stream=stream)

    def memory_owner(self, x: Any, info: TensorInfo, briefly: bool = False) -> object | None:
        """Return an object that keeps the memory of ``x`` alive, or None.

        With an owner, ``info``, from :meth:`describe`, is enough to export the array on the CPU,
        and :meth:`export` is not needed there. It is ``x`` itself unless arrays can be freed or
        given other memory. Of an export that is only used `briefly`, during a call, it may be too.
        ConversionError if another thread has replaced the memory since ``info`` was made.
        """
        return None

    def wrap(self, tensor: "dlpack.ManagedTensor") -> object:
        """Wrap ``tensor``, which `accepts` allows, as an array of this library.

        A library without this method cannot be a target.
        """
        raise ConversionError(f"library {self.name!r} has no wrap(): it cannot be a target")

    def alias(self, x: Any) -> Any:
        """Return ``x``, or an object that holds its memory if another thread may replace it."""
        return x

    def may_change(self, x: Any) -> bool:
        """Return whether other code may still write to the memory of a read-only array.

        If so, the memory is not shared with libraries whose arrays never change.
        """
        return False

    def signature(self, x: Any) -> Hashable:
        """Return all properties of an array that may decide its route, as a small hashable value.

        Two arrays with equal signatures take the same route to any target, whatever their
        addresses. Define it if that is faster than the default, the whole description. The shape of
        a contiguous array may be left out, but not its number of axes and whether it is empty.
        """
        return described_key(self.describe(x))

    def resolve(self, x: Any) -> object:
        """Return a copy of ``x`` with everything ``pending`` applied."""
        return x

    def copy(self, x: Any) -> object | None:
        """Copy ``x`` to a new C-contiguous array, or return None to leave the copy to a kernel.

        It is called if no kernel serves the device, or gradients are tracked.
        """
        return None


def array_itself(self: Library, x: Any, info: TensorInfo, briefly: bool = False) -> object:
    """Return ``x``: the `memory_owner` of arrays that keep their memory as long as they exist."""
    return x


def deferred(package: str, module: str, name: str) -> Any:
    """Return a method that imports an object of a module of a package, and returns it."""
    return staticmethod(lambda: getattr(import_module(f"{package}.{module}"), name))


def on_memory(info: TensorInfo, owner: object) -> "dlpack.ManagedTensor":
    """Return a tensor on the described memory."""
    return dlpack.ManagedTensor.trusted(
        info.data, info.shape, info.strides, info.dtype, info.device, info.readonly, info.padded,
        owner,
    )  # fmt: skip


def relabelled(
    tensor: "dlpack.ManagedTensor", device: Device, axes: Sequence[int] | None = None
) -> "dlpack.ManagedTensor":
    """Return a view of a tensor, labelled as on a device, with its axes in another order."""
    axes = range(len(tensor.shape)) if axes is None else axes
    shape, strides = (tuple([of[axis] for axis in axes]) for of in (tensor.shape, tensor.strides))
    made = dlpack.ManagedTensor.trusted(
        tensor.pointer, shape, strides, tensor.dtype, device, tensor.readonly, tensor.padded,
        tensor.owner,
    )  # fmt: skip
    made.copied = tensor.copied
    return made


def exported(
    library: Library, x: Any, info: TensorInfo, stream: int | None = None, briefly: bool = False
) -> "dlpack.ManagedTensor":
    """Export a described array; `briefly`: for use during the call only."""
    if stream is None or info.device.type == DeviceType.CPU:
        owner = library.memory_owner(x, info, briefly)
        if owner is not None:
            return on_memory(info, owner)
    return library.export(x, stream)


def transfers(library: Library) -> bool:
    """Return whether a library copies its own arrays to other devices."""
    return type(library.devices).to_device is not Devices.to_device


def edge_between(source: Library, target: Library, info: TensorInfo) -> Callable[[Any], Any] | None:
    """Return the edge's function for an array, through NumPy if there is no direct one."""
    own = _edge(source, target, info)
    if own is not None or "numpy" in (source.name, target.name) or source is target:
        return own
    numpy = library_named("numpy")
    first, second = _edge(source, numpy, info), _edge(numpy, target, info)
    return None if first is None or second is None else then(first, second)


def _edge(source: Library, target: Library, info: TensorInfo) -> Callable[[Any], Any] | None:
    if info.pending:
        return None
    names = source.name, target.name
    for edge in (*target.edges, *source.edges):
        if edge[:2] == names and not edge.copies and edge.serves(info):
            return edge.function
    return None


def own_copy(library: Library, info: TensorInfo, target: str | None = None) -> Edge | None:
    """Return the edge by which a library copies a described array, to another one or itself."""
    for edge in library.edges:  # quickly: every plan of a copy passes here
        if edge.copies and edge.target == (target or library.name) and edge.serves(info):
            return edge
    return None


def described_with_booleans(library: Library, x: Any) -> TensorInfo:
    """Describe an array, with ``"booleans"`` pending if some are stored as other than 0 and 1."""
    info = library.describe(x)
    if info.dtype.code != DataTypeCode.BOOL or not info.data or not info.device.host:
        return info
    numpy: Any = library_named("numpy")
    if info.pending or info.refused or info.empty or info.ndim > numpy.accepts.ndim[1]:
        return info
    odd = numpy.wrap(exported(library, x, info, briefly=True)).view("uint8").max() > 1
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


def or_else(
    first: Callable[[Any], Any], second: Callable[[Any], Any], *errors: type[Exception]
) -> Callable[[Any], Any]:
    """Return `first`, with `second` for arrays for which it returns None or raises `errors`."""

    def either(x: Any) -> Any:
        try:
            made = first(x)
        except errors:
            made = None
        return second(x) if made is None else made

    return either


if C is not None:
    then, or_else = C.then, lambda first, second, *errors: C.or_else(first, second, errors)


def place_named(device: object) -> Device:
    """Parse ``device=``: as `Device.parse` does, or a library's own device object."""
    try:
        return Device.parse(device)
    except (TypeError, ValueError):  # TensorFlow's are strings, or other pairs
        library = library_of_package(type(device))
        if library is not None:
            place = library.devices.place(device)
        elif isinstance(device, str):
            named = (library.devices.place(device) for library in imported_libraries())
            place = next((place for place in named if place is not None), None)
        else:
            place = None
        if place is None:
            raise
        return place
