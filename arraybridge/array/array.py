"""``Array``: an array of any library, or bare memory, with every library's exchange protocols."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy

from ..conversion import convert, numpy_view
from ..core.copiers import copier_for, no_copy
from ..core.kernel import compact_copy
from ..core.library import Library, exported, place_named, relabelled
from ..core.records import ConversionError, TensorInfo, no_copy_allowed
from ..core.registry import KNOWN, RECORDS, library_named
from ..core.request import Request, checked_copy
from ..core.table import OBSERVERS, notify, notify_copy, notify_view, plan_for, run_plan
from ..core.transfer import fetched
from ..dlpack import CPU, Device, DeviceType, check_stream, reads_versioned, to_capsule
from ..native.pyapi import CapsuleType
from ..protocols.frames import Frame, whole
from ..protocols.from_object import LIBRARY as PROTOCOL
from ..protocols.from_object import as_source
from .dlpack_export import export_route
from .operators import OPERATORS, ArrayObject

if TYPE_CHECKING:
    from ..typing import To

NUMPY: Any = numpy.ndarray, numpy.generic
#: NumPy's function of a binary operator -> the right operand's method.
REFLECTED = {getattr(numpy, op.function): op.reflected for op in OPERATORS if op.forms != "unary"}


class Array(ArrayObject):
    """An array of any library, or raw memory, with the array API standard's interface.

    Make one with :func:`from_dlpack`, :func:`from_pointer` or ``asarray`` of a namespace. It
    supports ``__dlpack__`` on every device, and ``__array__`` and ``__bytes__`` in host memory.
    Creating, describing and exporting it does not read memory or need the device's runtime.

    Notes
    -----
    Array API standard 2025.12, "Array object": operators, indexing, ``T``, ``mT``, ``to_device``
    and ``__array_namespace__``. All other operations are functions of ``arraybridge.namespace(x)``.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> t = torch.arange(6.0).reshape(2, 3)
    >>> x = ab.from_dlpack(t)                       # the same memory
    >>> x.native is t
    True
    >>> x.library, x.shape, x.strides, x.dtype, x.device
    ('torch', (2, 3), (3, 1), torch.float32, Device('cpu'))
    >>> x.ndim, x.size, x.nbytes, x.readonly, x.info.layout
    (2, 6, 24, False, 'c')
    >>> x[:, ::-1]                                  # a torch.Tensor refuses this
    Array([[2., 1., 0.],
           [5., 4., 3.]], torch: float32 (2, 3) on cpu)
    >>> np.from_dlpack(x).ctypes.data == t.data_ptr()      # every library takes it
    True
    >>> x.T.shape, x.mT.shape, x.to_device("cpu").native is t
    ((3, 2), (3, 2), True)
    """

    __slots__ = ("__weakref__", "_library")

    _library: Library

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, native: Any = None, library: Library | None = None) -> None:
        if not isinstance(library, Library):
            raise TypeError(
                "Array() cannot be called: use arraybridge.from_dlpack(x) for an array, or "
                "asarray of a namespace for numbers, such as arraybridge.xp.numpy.asarray(x)"
            )
        self._native = native
        self._library = library

    @property
    def native(self) -> Any:
        """The library's own array; None for bare memory (a capsule, a pointer)."""
        return None if self._library is PROTOCOL else self._native

    @property
    def info(self) -> TensorInfo:
        """A description of the array, with strides in elements."""
        return self._library.describe(self._native)

    @property
    def library(self) -> str:
        """The name of the array's library; ``"dlpack"`` for bare memory."""
        return self._library.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis."""
        return self.info.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The stride of each axis, in elements."""
        return self.info.strides

    @property
    def dtype(self) -> Any:
        """The data type: the library's own; a :class:`DataType` if it has no namespace."""
        return self.info.dtype

    @property
    def device(self) -> Device:
        """The device of the memory."""
        return self.info.device

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.info.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.info.size

    @property
    def nbytes(self) -> int:
        """The number of bytes of the elements in a compact layout."""
        return self.info.nbytes

    @property
    def readonly(self) -> bool:
        """Whether the memory must not be written."""
        return self.info.readonly

    if TYPE_CHECKING:

        @property
        def to(self) -> To: ...

    else:

        def to(
            self,
            library: object = None,
            /,
            *,
            device: object = None,
            copy: bool | None = None,
            alias_readonly: bool = False,
        ) -> Any:
            """Convert to the native array of a library, as :func:`arraybridge.convert` does.

            Without a ``library``, such as ``"torch"``, the result is an Array of the same one.

            Examples
            --------
            >>> import arraybridge as ab
            >>> import numpy as np
            >>> x = ab.from_dlpack(np.arange(3.0))
            >>> x.to("torch")
            tensor([0., 1., 2.], dtype=torch.float64)
            >>> x.to(copy=True).native is x.native
            False
            """
            if library is not None:
                return convert(
                    self, library, device=device, copy=copy, alias_readonly=alias_readonly
                )
            return from_dlpack(self, device=device, copy=copy)

    def __arraybridge__(self) -> tuple[Any, Library]:
        """Return the underlying array or tensor and its library, for the rest of arraybridge."""
        return self._native, self._library

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.info.device
        return int(device.type), device.id

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """A DLPack capsule: array API standard 2025.12, ``array.__dlpack__``.

        Without a ``max_version``, or below 1.0, it is the legacy one, which cannot express
        read-only: read-only memory is copied for it, unless ``copy=False``. ``dl_device`` is the
        device of the array, or the CPU, ``(1, 0)``. ``copy``: None shares, or copies where that
        cannot be; False shares or fails; True copies. ``stream`` is the consumer's, by the
        standard's numbering, for devices that have streams.

        BufferError if the data cannot be exported as asked; TypeError for a ``stream`` that is no
        integer, or a ``max_version`` or ``dl_device`` that is no pair; ValueError for a stream that
        the device does not have.
        """
        if copy is not None:
            copy = checked_copy(copy)
        library = self._library
        x = library.alias(self._native)
        info = library.describe(x)
        check_stream(stream, info.device)
        if info.device == CPU:
            stream = None  # producers on the CPU get no stream
        versioned = reads_versioned(max_version)
        route = export_route(info, max_version, dl_device, copy)
        if route.kind == "transfer":
            x, library = as_source(fetched(x, library, info))
            info, stream = library.describe(x), None
            route = export_route(info, max_version)
        if route.kind == "refuse":
            raise ConversionError(route.why, route)
        if OBSERVERS:
            notify(route, info)
        if info.pending:
            x, library = as_source(library.resolve(x))
        if info.pending or route.kind == "view":
            tensor = library.export(x, stream)
            if tensor.device != route.device:
                tensor = relabelled(tensor, route.device)
            return to_capsule(tensor, versioned=versioned)
        if info.device.host:
            block = compact_copy(exported(library, x, library.describe(x), briefly=True))
            return to_capsule(block, versioned=versioned)
        copier = copier_for(info, library, library)
        if copier is None:
            raise ConversionError(no_copy(info, library))
        own = copier.copy(x, info)
        return to_capsule(library.export(own, stream), versioned=versioned)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return Arrow's type and array as capsules, by the Arrow PyCapsule interface.

        They are those of ``convert(x, "pyarrow.Array")``: rows, and fixed-size lists for other
        axes. Memory in C order is shared; other layouts, and booleans, which Arrow packs eight to a
        byte, are copied. BufferError for a data type that Arrow lacks, an array without axes, or
        memory off the host.
        """
        capsules: tuple[object, object] = convert(self, "pyarrow.Array").__arrow_c_array__(
            requested_schema
        )
        return capsules

    def _gathered(self) -> Any:
        """Return a NumPy array of elements that are in several blocks on the host, or None."""
        return None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return a NumPy array on the same memory; see ``numpy.asarray``."""
        result: Any = None if copy else numpy_view(self._native)
        if result is not None and dtype is None:
            return result
        try:
            if result is None:
                result = convert(self, "numpy", copy=copy)
        except ConversionError:
            result = None if copy is False else self._gathered()
            if result is None:
                raise
            if OBSERVERS:
                notify_copy("its elements are in several chunks", self.info, "numpy")
        if dtype is None or result.dtype == dtype:
            return result
        if copy is False:
            raise ConversionError(no_copy_allowed(f"{result.dtype} to {dtype} is a copy"))
        if OBSERVERS:
            info = library_named("numpy").describe(result)
            notify_copy(f"{result.dtype} becomes {numpy.dtype(dtype)}", info)
        return result.astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute a ufunc of NumPy on ``numpy.asarray`` of the Arrays, as its other functions do.

        An operator of NumPy's own arrays and scalars, as in ``ndarray + x``, is that of the Array.
        """
        if method == "__call__" and not kwargs and ufunc in REFLECTED:
            x, y = inputs
            if isinstance(x, NUMPY) and isinstance(y, Array):
                # NumPy's scalars come to comparisons as arrays without axes.
                return getattr(y, REFLECTED[ufunc])(x if x.ndim else x[()])
        written = (*kwargs.get("out", ()), *(inputs[:1] if method == "at" else ()))
        if any(isinstance(x, Array) for x in written):
            raise TypeError(
                f"numpy.{ufunc.__name__} cannot write to an Array: write to numpy.asarray(x), if "
                "that is a view, or assign the result, x[...] = result"
            )
        where = kwargs.get("where")
        if isinstance(where, Array):
            kwargs["where"] = where.__array__()
        converted = (x.__array__() if isinstance(x, Array) else x for x in inputs)
        return getattr(ufunc, method)(*converted, **kwargs)

    def __bytes__(self) -> bytes:
        """Return the elements' bytes in C order, whatever the layout."""
        if OBSERVERS:
            notify_copy("bytes() copies the elements", self.info, "bytes")
        elements: bytes = self.__array__().tobytes()
        return elements

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """CUDA array interface, version 3; only on CUDA."""
        try:
            info = self.info
        except ConversionError as error:  # consumers probe attributes
            raise AttributeError(f"no __cuda_array_interface__: {error}") from error
        if info.refused or info.device.type not in (DeviceType.CUDA, DeviceType.CUDA_MANAGED):
            why = f": {info.refused}" if info.refused else f" for an array on {info.device}"
            raise AttributeError(f"no __cuda_array_interface__{why}")
        from ..protocols.cuda_array_interface import interface_of

        # Stream 1, the legacy default: the export has made it wait for the data.
        return interface_of(self._library.export(self._native), stream=1)

    def __format__(self, spec: str) -> str:
        """Format the elements as the library does; without a specification, as ``str``."""
        return format(self._native, spec) if spec else str(self)

    def __repr__(self) -> str:
        info = self.info
        readonly = ", readonly" if info.readonly else ""
        return (
            f"<arraybridge.Array {info.library}: {info.dtype_name} {info.shape} "
            f"on {info.device}{readonly}>"
        )

    def _printed(self) -> str:
        return repr(self._native)

    def _repr_html_(self) -> str:
        from ..notebook import html_of

        return html_of(self)


def from_dlpack(x: Any, /, *, device: object = None, copy: bool | None = None) -> Array:
    """Make an :class:`Array` over an array of any library, or an object that supports DLPack.

    Parameters
    ----------
    x : array, object or capsule
        A library's array, an object with ``__dlpack__``, or a capsule, which is consumed.
    device : Device, (int, int), str or a library's own device, optional
        The device of the result. By default, the device of ``x``.
    copy : bool, optional
        None: share memory unless ``device`` requires a copy. False: share memory or raise an error.
        True: copy.

    Returns
    -------
    Array
        It shares the memory of ``x`` unless a copy was made. Only metadata is read.

    Raises
    ------
    TypeError
        If ``x`` does not support DLPack.
    ConversionError
        If the dtype has no DLPack equivalent, or ``copy=False`` is impossible. This is a
        BufferError.

    Notes
    -----
    Array API standard 2025.12, ``from_dlpack``.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import torch
    >>> t = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> x = ab.from_dlpack(t)
    >>> (x * x).native                              # the gradient is tracked
    tensor([1., 4.], grad_fn=<MulBackward0>)
    >>> x.to("numpy")
    Traceback (most recent call last):
        ...
    arraybridge.ConversionError: gradients are tracked and would be cut silently: pass
        x.native.detach()
    """
    if device is None and copy is None:
        try:
            known = KNOWN[type(x)].wrap
        except KeyError:
            known = RECORDS[type(x)].wrap
        if known is not None and known[1](x):
            array: Array = known[0](x)
            return array
    copy = checked_copy(copy)
    if device is not None:
        device = place_named(device)
    native: Any
    native, library = as_source(x, shared=copy is False)
    if isinstance(native, Frame):
        native, library = whole(native, copy is False), PROTOCOL
    info = library.describe(native)
    anew = "anew" in info.pending
    make, supports = _constructor(library, type(native))
    if info.refused and not supports(native):
        raise ConversionError(info.refused)
    if copy or (anew and copy is False) or (device is not None and device != info.device):
        target = library
        if type(library).wrap is Library.wrap:  # it cannot make arrays
            from .device_namespace import fallback_library

            target = library_named(fallback_library(device or info.device))
        alias = library.alias(native)
        result = run_plan(alias, plan_for(alias, library, target, Request(device, copy)))
        return _constructor(target, type(result))[0](result)
    if anew:  # the Array keeps what this look gave
        native = library.resolve(native)
    if OBSERVERS:
        notify_view("an Array refers to it", info)
    elif native is x:
        RECORDS[type(x)].wrap = make, supports
    return make(native)


def _constructor(
    library: Library, kind: type
) -> tuple[Callable[[Any], Array], Callable[[Any], bool]]:
    """Return what makes Arrays of one array type, with operators if possible, and when it may."""
    cls: Any = library.computing.array_class()
    if cls is None:
        return partial(Array, library=library), lambda x: library.describe(x).refused is None
    subclass = issubclass(kind, numpy.ndarray) and kind is not numpy.ndarray
    return cls._taken if subclass else cls._of, cls._supports
