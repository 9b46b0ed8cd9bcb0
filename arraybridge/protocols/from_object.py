"""Arrays of unknown libraries, as owning tensors.

Objects that support DLPack, an array interface or the buffer protocol, and bare capsules.
"""

from contextlib import suppress
from operator import index
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.library import Library, on_memory, relabelled
from ..core.records import Accepts, ConversionError, TensorInfo, of_native
from ..core.registry import RECORDS, library_named
from ..dlpack import DeviceType, ManagedTensor, acquire, device_of, exchange_api, is_capsule
from ..layout import span
from ..ndarrays import address_of
from .frames import opened_frame
from .rejections import METHODS, check_whole, handed_on, has_no_memory, lost, no_array, own


class Protocol(Library):
    """The library of core tensors: everything without an array type."""

    name = "dlpack"
    accepts = Accepts(library="dlpack", tested="1.3", dtypes=frozenset())

    def owns(self, array_type: type) -> bool:
        return array_type is ManagedTensor

    def describe(self, x: ManagedTensor | TensorInfo) -> TensorInfo:
        # A capsule that is only described is represented by its info.
        if isinstance(x, TensorInfo):
            return x
        info = TensorInfo.of_tensor(x)
        return info._replace(pending=("anew",)) if getattr(x, "anew", False) else info

    def may_change(self, x: ManagedTensor) -> bool:
        return not getattr(x, "immutable", False)

    def resolve(self, x: ManagedTensor) -> ManagedTensor:
        """Return memory that was made anew, which nobody else has."""
        if x.readonly and x.device.host:
            from ..core.kernel import compact_copy

            return compact_copy(x)
        made = relabelled(x, x.device)
        if hasattr(x, "ordered"):
            made.ordered = True
        return made

    def export(self, x: ManagedTensor | TensorInfo, stream: int | None = None) -> ManagedTensor:
        if isinstance(x, TensorInfo):  # whose capsule the caller keeps
            return on_memory(x._replace(data=x.pointer, byte_offset=0), x)
        if hasattr(x, "ordered"):
            # While the legacy default stream is captured in a graph it cannot wait.
            from .cuda_array_interface import captures, order

            order(None if captures(stream, x.device) else 1, stream, x.device)
        return x


LIBRARY = Protocol()
_ON_CUDA = frozenset({DeviceType.CUDA, DeviceType.CUDA_MANAGED})
#: Errors by which an object refuses a protocol, so that the next one is asked.
_REFUSALS = (AttributeError, BufferError, NotImplementedError, RuntimeError, TypeError, ValueError)
#: Modules whose buffers stay where they are.
_STABLE = frozenset({"array", "builtins", "ctypes", "mmap"})


def as_source(
    x: Any,
    looking: list[str] | None = None,
    to: str = "",
    *,
    shared: bool = False,
    computed: bool = False,
) -> tuple[object, Library]:
    """Return the array or tensor that ``x`` converts as, and its library; consume a capsule.

    This is the one place that decides which protocol an object of no library is asked for. If it
    is only described, reading that would consume or compute it is refused, and `looking` gets the
    protocols that refused. `to` is the target, if any, for errors; see `_asked` for more. TypeError
    if ``x`` is not an array in memory by any protocol; ConversionError if it is more than its
    memory: it has a mask or a unit, or forwards the protocol of an array that it wraps.
    """
    record = RECORDS[type(x)]
    library = record.library
    if library is not None:
        return x, library
    if record.frame is not None:
        frame: tuple[object, Library] | None = record.frame(x, looking is not None)
        if frame is not None:
            return frame
    if hasattr(type(x), "__arraybridge__"):
        carried: tuple[object, Library] = x.__arraybridge__()
        return carried
    if type(x) is ManagedTensor:
        return x, LIBRARY
    if is_capsule(x):
        return _ordered(acquire(x)), LIBRARY
    if isinstance(x, type):
        raise no_array(x)
    return _asked(x, looking, to, shared, computed)


def _asked(
    x: Any, looking: list[str] | None, to: str, shared: bool, computed: bool
) -> tuple[object, Library]:
    """Ask an object for its memory by one protocol after the other; raise the first refusal.

    In order: DLPack; the CUDA array interface; and of memory on the host NumPy's array interface,
    Arrow's for frames and columns, the buffer protocol, and ``__array__``. The last may compute: it
    is called if another one refused, or the caller wants it (`computed`). Memory that is made anew
    at each look is a copy: DLPack has a flag for that, and others are looked at twice, also DLPack
    and a plain ``__array__`` if the caller relies on shared memory (`shared`).
    """
    refusal: Exception | None = None
    told = [] if looking is None else looking
    if isinstance(x, np.generic):  # a number, of which each look makes an array
        number = np.asarray(x)
        return _made_anew(number) if shared or to else (number, library_named("numpy"))
    if own(x, "__dlpack__"):
        _guard(x)
        try:
            return _of_dlpack(x, shared), LIBRARY
        except _REFUSALS as error:
            refusal = error
            told.append("__dlpack__")
    if own(x, "__cuda_array_interface__"):
        check_whole(x)
        try:
            interface = x.__cuda_array_interface__
        except _REFUSALS:  # of an array on the host
            interface = None
        if interface is not None:
            from .cuda_array_interface import LIBRARY as CUDA_ARRAY_INTERFACE

            again = x.__cuda_array_interface__
            if isinstance(again, dict) and again.get("data") != interface.get("data"):
                why = "has other memory at each look: pass an array that keeps it"
                raise ConversionError(f"{type(x).__name__} {why}")
            return x, CUDA_ARRAY_INTERFACE
    if refusal is not None and not _on_host(x):
        raise refusal
    if own(x, "__array_interface__"):
        check_whole(x)
        try:
            interface = x.__array_interface__
        except _REFUSALS as error:
            if not isinstance(error, AttributeError):
                refusal = refusal or error
                told.append("__array_interface__")
        else:
            if interface is not None:
                first = _of_interface(x, interface)
                return _settled(first, _of_interface(x, x.__array_interface__))
    objection = handed_on(x)
    if objection is not None:
        raise ConversionError(objection)
    opened = opened_frame(x, looking is not None)
    if opened is not None:
        if not any(own(x, method) for method in METHODS):  # nothing is asked before
            RECORDS[type(x)].frame = opened_frame
        return opened
    found = _of_buffer(x)
    if found is not None:
        moves = type(x).__module__ not in _STABLE
        return _settled(found, _of_buffer(x) if moves else found)
    if (computed or refusal is not None) and getattr(type(x), "__array__", None) is not None:
        if has_no_memory(type(x)):
            raise no_array(x, to)
        check_whole(x)
        try:
            found = _of_array(x)
            return _settled(found, _of_array(x) if shared or refusal is not None else found)
        except _REFUSALS as error:
            if refusal is None or isinstance(error, ConversionError):
                raise
    raise refusal or no_array(x, to)


def restated(why: str, given: Any, array: Any) -> str:
    """Restate remedies for an array ``x`` for the object ``x`` that it was found in."""
    if hasattr(type(given), "__arraybridge__"):
        return of_native(why)
    inside = array is not given and type(array) is np.ndarray
    return of_native(why, "numpy.asarray(x)") if inside else why


def _on_host(x: Any) -> bool:
    """Whether a producer that refused to export its memory has it on the host."""
    try:
        return device_of(x).host
    except _REFUSALS:  # it does not say
        return True


def _of_dlpack(x: Any, shared: bool) -> ManagedTensor:
    api = exchange_api(type(x))
    tensor = None if api is None else api.acquire(x)
    if tensor is None or tensor.device.type in _ON_CUDA:  # the C function orders none
        tensor = _ordered(acquire(x))
    if shared and not tensor.copied and 0 not in tensor.shape:
        with suppress(*_REFUSALS):  # it may give only one
            tensor.copied = acquire(x).pointer != tensor.pointer
    tensor.anew = tensor.copied
    return tensor


def _of_buffer(x: Any) -> Any:
    try:
        buffer = memoryview(x)
    except (TypeError, BufferError):
        return None
    check_whole(x)
    try:
        return np.asarray(buffer)  # so that bytes are numbers, not text
    except ValueError as error:  # such as pointers of ctypes
        bare = "its bytes, numpy.frombuffer(x, 'uint8')"
        remedy = "x.contents" if hasattr(x, "contents") else bare
        raise ConversionError(
            f"the buffer of {type(x).__name__} has the format {buffer.format!r}, for which NumPy "
            f"has no dtype: pass {remedy}"
        ) from error


def _of_array(x: Any) -> np.ndarray:
    made = x.__array__()
    objection = lost(made) if isinstance(made, np.ndarray) else None
    if objection is not None:
        raise ConversionError(of_native(objection, "x.__array__()"))
    return np.asarray(made)


def _of_interface(x: Any, interface: Any) -> np.ndarray:
    if isinstance(interface, dict):  # else NumPy's error is better
        _check_interface(x, interface)
        if interface.get("data") is None:
            interface = interface | {"data": x}
    return np.asarray(SimpleNamespace(__array_interface__=interface, owner=x))


def _settled(first: np.ndarray, second: np.ndarray) -> tuple[object, Library]:
    """Return the array of the second of two looks at an object, as a copy if its memory moved."""
    numpy: Any = library_named("numpy")
    if not second.size or address_of(first) == address_of(second):
        return second, numpy
    return _made_anew(numpy.resolve(second))  # a copy: what a look gave may go with the next


def _made_anew(made: np.ndarray) -> tuple[object, Library]:
    numpy: Any = library_named("numpy")
    if numpy.describe(made).refused:
        return made, numpy
    tensor = numpy.export(made)
    tensor.copied = tensor.anew = True
    return tensor, LIBRARY


def _ordered(tensor: ManagedTensor) -> ManagedTensor:
    """Note that the producer was given no stream, so that the legacy default one waits for it."""
    if tensor.device.type in _ON_CUDA:
        tensor.ordered = True
    return tensor


def _check_interface(x: Any, interface: dict[str, Any]) -> None:
    """Check what NumPy ignores: a mask, and the end of a buffer."""
    if interface.get("mask") is not None:
        raise ConversionError(
            f"{type(x).__name__} has a mask in its __array_interface__, which would be lost: fill "
            "it, and pass an array of the result"
        )
    data, offset = interface.get("data"), interface.get("offset", 0)
    if isinstance(data, tuple) or not {"shape", "typestr"} <= interface.keys():
        return
    try:
        with memoryview(x if data is None else data) as view:
            there = view.nbytes
        shape, strides = tuple(map(index, interface["shape"])), interface.get("strides")
        strides = None if strides is None else tuple(map(index, strides))
        low, high = span(shape, strides, np.dtype(interface["typestr"]).itemsize)
        begin, end = low + index(offset), high + index(offset)
    except (TypeError, ValueError, BufferError):
        return  # NumPy's error is better
    if begin < 0 or end > there:
        raise ConversionError(
            f"the elements of {type(x).__name__} are bytes {begin} to {end} of its buffer, which "
            f"has {there}: correct the shape, strides or offset in its __array_interface__"
        )


def _guard(x: object) -> None:
    """Raise for what DLPack cannot express and the C exchange API does not check."""
    check_whole(x)
    for flag, remedy in (
        ("requires_grad", "detach it first"),
        ("is_conj", "resolve its conjugate bit first"),
        ("is_neg", "resolve its negative bit first"),
    ):
        state = getattr(x, flag, False)
        if (state() if callable(state) else state) is True:
            raise ConversionError(f"{type(x).__name__} has {flag}: {remedy}")
