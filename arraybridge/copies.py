"""``contiguous`` and ``copyto``: copies within one device, to new or existing memory."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .core import kernel
from .core.copiers import copier_for, no_copy, resolved, stream_of
from .core.library import Computing, Library, described_with_booleans, exported
from .core.records import ConversionError, TensorInfo, pending_reason
from .core.registry import KNOWN, RECORDS, is_library, library_of_type
from .core.request import Request
from .core.table import OBSERVERS, entry_of, front, notify_copy
from .dlpack import Tensor
from .layout import canonical, in_bytes, may_overlap_itself, span
from .ndarrays import CHARS, address_of
from .protocols.frames import Frame, whole
from .protocols.from_object import LIBRARY as PROTOCOL
from .protocols.from_object import as_source, restated

_CONTIGUOUS = object()  # the key of its entries


@front(KNOWN, _CONTIGUOUS)
def contiguous(x: Any, /, *, out: Any = None) -> Any:
    """Return a C-contiguous array with the elements of ``x``, in the library of ``x``.

    Parameters
    ----------
    x : array
        Any argument of :func:`arraybridge.convert`.
    out : array, optional
        The array to write to: of any library and layout, writable, with the shape, dtype and device
        of ``x``.

    Returns
    -------
    array
        ``x`` itself if it is contiguous, in any byte order; else a copy of the same dtype; ``out``
        if you passed it. A copy of 64 KB or more starts at a multiple of 64 bytes, so that JAX and
        TensorFlow can share it with ``copy=False``; smaller ones are allocated by their own
        library. An Array gives an Array. An object that only supports DLPack (or a capsule, which
        is consumed) gives an array of the library that computes on its device: NumPy on the CPU.

    Raises
    ------
    ConversionError
        If ``out`` does not fit or cannot be written.
    BufferError, ImportError
        If ``x`` only supports DLPack, and no installed library computes on its device.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> x = np.arange(6).reshape(2, 3)
    >>> ab.contiguous(x) is x
    True
    >>> ab.contiguous(x.T).strides          # a copy, in C order; in bytes
    (16, 8)
    >>> out = np.empty((3, 2), int)
    >>> ab.contiguous(x.T, out=out) is out
    True
    """
    if out is not None:
        _write(out, x, "out")
        return out
    try:
        run = KNOWN[type(x)][_CONTIGUOUS]
    except KeyError:
        run = _entered(type(x))
    return run(x)


def _entered(kind: type) -> Callable[[Any], Any]:
    """Find what makes arrays of a type contiguous, and remember it."""
    record = RECORDS[kind]
    if record.library is not None:
        run = entry_of(kind, record.library, record.library, Request(contiguous=True)).run
    elif record.lazy is not None:
        run = partial(record.lazy.computing.map_blocks, _contiguous_block)
    else:
        run = _of_array if hasattr(kind, "__arraybridge__") else _of_other
    record[_CONTIGUOUS] = run
    return run


def _contiguous_block(block: Any) -> Any:
    return contiguous(block)  # a plain function, which Dask can pickle


def _of_other(given: Any) -> Any:
    """Make an object contiguous that only supports a protocol."""
    x: Any
    x, library = as_source(given)
    if isinstance(x, Frame):
        return _of_bare_memory(whole(x))
    if getattr(x, "anew", False):
        x = library.resolve(x)
    if x is given and library is not PROTOCOL:  # a protocol's object of an unregistered type
        x, library = library.export(x), PROTOCOL
    return _of_bare_memory(x) if library is PROTOCOL else contiguous(x)


def _of_array(x: Any) -> Any:
    """Return an Array itself, or another Array of the same library."""
    from .array import Array, from_dlpack  # native arrays do not need it

    native, library = x.__arraybridge__()
    if library is not PROTOCOL:
        compact = contiguous(native)
        return x if compact is native else from_dlpack(compact)
    info = library.describe(native)
    if info.c_contiguous:
        return x
    if info.device.host:
        if OBSERVERS:
            notify_copy(f"the layout is {info.layout}", info)
        return Array(kernel.compact_copy(native), library)
    return _of_bare_memory(native)


def _of_bare_memory(tensor: Any) -> Any:
    """Return bare memory as a contiguous Array of the library that computes on its device."""
    from .array import Array
    from .array.device_namespace import in_fallback_library

    return _of_array(in_fallback_library(Array(tensor, PROTOCOL)))


def copyto(dst: Any, src: Any, /) -> None:
    """Copy the elements of ``src`` to ``dst``, in any layout.

    Parameters
    ----------
    dst : array
        A writable array of any library, on the host or on a device that has a copy kernel.
    src : array
        An array of any library, with the shape, dtype and device of ``dst``. The two may overlap.

    Raises
    ------
    ConversionError
        If shape, dtype or device differ, or ``dst`` cannot be written: it is read-only or
        immutable, a scalar, tracks gradients, or several of its elements share one memory location.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> batch = torch.zeros(2, 3)
    >>> ab.copyto(batch[0], np.arange(3, dtype=np.float32)[::-1])
    >>> batch
    tensor([[2., 1., 0.],
            [0., 0., 0.]])
    >>> ab.copyto(batch[1], np.arange(3))
    Traceback (most recent call last):
        ...
    arraybridge.ConversionError: dst has dtype float32, but src has int64: the dtypes must
        match, so cast it first
    """
    _write(dst, src, "dst")


def _write(out: Any, x: Any, name: str) -> None:
    """Copy ``x`` into ``out``, the argument called `name`."""
    destination, out_library = _destination(out, name)
    given, (x, library) = x, as_source(x)
    same = library is out_library and kernel.own_copies_serve() and not OBSERVERS
    if same and type(destination) is type(x) is np.ndarray and _assigned(destination, x):
        return
    into, x = out_library.alias(destination), library.alias(x)
    wanted = out_library.describe(into)
    canonical = out_library.accepts.canonical_booleans
    info = described_with_booleans(library, x) if canonical else library.describe(x)
    if info.refused:
        raise ConversionError(restated(info.refused, given, x))
    if wanted.refused:
        raise _unwritable(name, restated(wanted.refused, out, into))
    _check_fit(wanted, info, name)
    if OBSERVERS:
        call = "copyto" if name == "dst" else "contiguous(out=)"
        notify_copy(f"{call} writes into existing memory", info, out_library.name)
    if info.pending:
        x, library = as_source(resolved(x, library, info))
        info = library.describe(x)
    if not info.device.host:
        _write_off_host(destination, x, out_library, library, info)
        return
    written = exported(out_library, into, wanted, briefly=True)
    read = exported(library, x, info, briefly=True)
    if _overlap(written, read):
        read = kernel.compact_copy(read)
    kernel.copy_into(written, read)
    out_library.computing.mark_modified(destination)


def _assigned(dst: np.ndarray, src: np.ndarray) -> bool:
    """Copy one NumPy array to another, unless there is anything unusual about them."""
    dtype = src.dtype
    if (
        dst.dtype is not dtype
        or dtype.char not in CHARS
        or dst.shape != src.shape
        or not dst.flags.writeable
        or (not dst.flags.forc and may_overlap_itself(dst.shape, dst.strides, dtype.itemsize))
        # By their bounds. NumPy would check the overlap, but not with one axis.
        or np.may_share_memory(dst, src)
    ):
        return False
    if src.nbytes >= kernel.LITTLE:
        from .kernels.cpu.copying import copied

        form = canonical(src.shape, dst.strides, src.strides, dtype.itemsize)
        if copied(address_of(dst), address_of(src), form):
            return True
    np.copyto(dst, src)
    return True


def _write_off_host(
    out: Any, x: Any, out_library: Library, library: Library, info: TensorInfo
) -> None:
    """Copy on a device, on the destination's stream."""
    itself = library is out_library and type(library.computing).assign is not Computing.assign
    if kernel.kernel_for(info.device) is None:
        if itself:
            library.computing.assign(out, x)
            return
        why = kernel.no_kernel(info.device) or "add one with arraybridge.register_kernel"
        raise ConversionError(f"no kernel for {info.device}: {why}")
    stream = stream_of(out_library, info.device)
    written = out_library.export(out, stream)
    read = library.export(x, stream)
    if _overlap(written, read):
        copier = copier_for(info, library, out_library)
        if copier is None:
            raise ConversionError(no_copy(info, library))
        x = copier.copy(x, info)
        library = library_of_type(type(x)) or library
        read = library.export(x, stream)
    try:
        kernel.copy_into(written, read, stream)
    except kernel.NoKernel:  # there is no compiler; the next call knows
        if not itself:
            raise
        library.computing.assign(out, x)
        return
    if library is not out_library:
        library.devices.read_on(x, info.device, stream)
    out_library.computing.mark_modified(out)


def _destination(out: Any, name: str) -> tuple[Any, Library]:
    """Return the destination and its library; refuse one whose writes nobody would see."""
    found: Any
    kind = type(out)
    try:
        found, library = as_source(out, shared=True)
    except TypeError as error:
        remedy = "make it an array first"
        if hasattr(kind, "trainable"):  # a variable of Keras
            remedy = f"pass the array to its own {name}.assign(...)"
        elif hasattr(kind, "shape") and hasattr(kind, "__setitem__"):  # a file, a reference of JAX
            remedy = f"assign through its library, {name}[...] = ..."
        why = str(error).partition(": pass ")[0]
        raise TypeError(f"{name} cannot be written: {why}; {remedy}") from None
    if isinstance(out, np.generic):
        why = "a NumPy scalar is immutable"
    elif getattr(found, "copied", False) and not (found is out or hasattr(kind, "__arraybridge__")):
        why = f"{kind.__qualname__} exports a copy"
    else:
        return found, library
    raise _unwritable(name, f"{why}; make it an array first")


def _unwritable(name: str, why: str) -> ConversionError:
    return ConversionError(f"{name} cannot be written: {why}".replace("pass x.", f"pass {name}."))


_FIT = {
    "shape": "the shapes must match, so reshape it first",
    "dtype": "the dtypes must match, so cast it first",
    "device": "the devices must match, so copy it first, arraybridge.convert(..., device=...)",
}


def _check_fit(wanted: TensorInfo, info: TensorInfo, name: str) -> None:
    source = "src" if name == "dst" else "x"
    same = (wanted.shape, wanted.dtype, wanted.device) == (info.shape, info.dtype, info.device)
    for what, rule in () if same else _FIT.items():
        ours, theirs = getattr(wanted, what), getattr(info, what)
        if ours != theirs and not (what == "device" and ours.host and theirs.host):
            raise ConversionError(f"{name} has {what} {ours}, but {source} has {theirs}: {rule}")
    why = None
    if wanted.readonly:
        why = "it is read-only;"
    elif wanted.pending:
        why = f"{pending_reason(wanted.pending)}; assign through its library, {name}[...] = ..., or"
    elif may_overlap_itself(wanted.shape, wanted.strides):
        why = f"several of its elements share memory (strides {wanted.strides});"
    if why:
        library = wanted.library if is_library(wanted.library) else "numpy"
        new = f"arraybridge.convert({source}, {library!r}, copy=True)"
        raise _unwritable(name, f"{why} make a new array, {new}")


def _overlap(a: Tensor, b: Tensor) -> bool:
    """Whether the byte ranges of two arrays of one shape and dtype overlap."""
    if 0 in a.shape:
        return False
    shape, item, at, other = a.shape, a.dtype.itemsize, a.pointer, b.pointer
    a_low, a_high = span(shape, in_bytes(a.strides, item), item)
    b_low, b_high = span(shape, in_bytes(b.strides, item), item)
    return at + a_low < other + b_high and other + b_low < at + a_high
