"""``contiguous`` and ``copyto``: copies within one device, to new or existing memory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .core.copiers import copier_for, no_copy, stream_of
from .core.kernel import NoKernel, compact_copy, copy_into, kernel_for, no_kernel, own_copies_serve
from .core.library import Library
from .core.records import ConversionError, TensorInfo, of_native
from .core.registry import KNOWN, RECORDS, library_of_type
from .core.request import Request
from .core.table import OBSERVERS, entry_of, front, notify_copy
from .dlpack import Tensor
from .layout import in_bytes, may_overlap_itself, span
from .protocols.from_object import LIBRARY as PROTOCOL
from .protocols.from_object import as_source

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
        if you passed it. A copy made by a kernel starts at a multiple of 64 bytes, so that JAX and
        TensorFlow can share it with ``copy=False``; small arrays are allocated by their own
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
        entry = KNOWN[type(x)].table[_CONTIGUOUS]
    except KeyError:
        entry = _entered(type(x))
    return entry.run(x)


def _entered(kind: type) -> Any:
    """Find what makes arrays of a type contiguous, and remember it."""
    record = RECORDS[kind]
    entry: Any = None
    if record.library is not None:
        entry = entry_of(kind, record.library, record.library, Request(contiguous=True))
    elif record.lazy is not None:
        entry = _Blocks(record.lazy)
    elif hasattr(kind, "__arraybridge__"):
        entry = _Arrays
    record.table[_CONTIGUOUS] = entry or _Others
    return record.table[_CONTIGUOUS]


class _Blocks:
    """Makes the blocks of a lazy array contiguous, when they are computed."""

    def __init__(self, lazy: Library) -> None:
        self.lazy = lazy

    def run(self, x: Any) -> Any:
        return self.lazy.map_blocks(_contiguous_block, x)


def _contiguous_block(block: Any) -> Any:
    return contiguous(block)


class _Others:
    """Makes objects contiguous that only support a protocol."""

    @staticmethod
    def run(given: Any) -> Any:
        x: Any
        x, library = as_source(given)
        if library.in_pieces:
            from .protocols.frames import whole

            return _of_bare_memory(whole(x))
        if x is given and library is not PROTOCOL:  # a protocol's object of an unregistered type
            x, library = library.export(x), PROTOCOL
        return _of_bare_memory(x) if library is PROTOCOL else contiguous(x)


class _Arrays:
    """Makes Arrays contiguous."""

    @staticmethod
    def run(x: Any) -> Any:
        """Return ``x`` itself, or another Array of the same library."""
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
            return Array(compact_copy(native), library)
        return _of_bare_memory(native)


def _of_bare_memory(tensor: Any) -> Any:
    """Return bare memory as a contiguous Array of the library that computes on its device."""
    from .array import Array
    from .array.device_namespace import in_fallback_library

    return _Arrays.run(in_fallback_library(Array(tensor, PROTOCOL)))


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
    same = library is out_library and own_copies_serve() and not OBSERVERS
    if same and library.assign(destination, x):
        return
    into, x = out_library.alias(destination), library.alias(x)
    wanted, info = out_library.describe(into), library.describe(x)
    if wanted.refused or info.refused:
        wanted, info = _told_of(out, wanted), _told_of(given, info)
    _check_fit(wanted, info, name)
    if OBSERVERS:
        call = "copyto" if name == "dst" else "contiguous(out=)"
        notify_copy(f"{call} writes into existing memory", info, out_library.name, call=call)
    if info.pending:
        x, library = as_source(library.resolve(x))
        info = library.describe(x)
    if not info.device.host:
        _write_off_host(destination, x, out_library, library, info)
        return
    written = out_library.export_borrowed(into, wanted)
    read = library.export_borrowed(x, info)
    if _overlap(written, read):
        read = compact_copy(read)
    copy_into(written, read)
    out_library.mark_modified(destination)


def _write_off_host(
    out: Any, x: Any, out_library: Library, library: Library, info: TensorInfo
) -> None:
    """Copy on a device, on the destination's stream."""
    if kernel_for(info.device) is None:
        if library is out_library and library.overwrite(out, x):
            return
        why = no_kernel(info.device) or "add one with arraybridge.register_kernel"
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
        copy_into(written, read, stream)
    except NoKernel:  # there is no compiler; the next call knows
        if library is out_library and library.overwrite(out, x):
            return
        raise
    if library is not out_library:
        library.read_on(x, info.device, stream)
    out_library.mark_modified(out)


def _destination(out: Any, name: str) -> tuple[Any, Library]:
    """Return the destination and its library; refuse one whose writes nobody would see."""
    found: Any
    try:
        found, library = as_source(out)
    except TypeError as error:
        raise _no_destination(error, name) from None
    kind = type(out)
    if isinstance(out, np.generic):
        why, remedy = "a NumPy scalar is immutable", f"numpy.asarray({name})"
    elif library is PROTOCOL and found is not out and not hasattr(kind, "__arraybridge__"):
        if not library.describe(found).copied:
            return found, library
        why, remedy = f"{kind.__qualname__} exports a copy", f"arraybridge.from_dlpack({name})"
    else:
        return found, library
    raise ConversionError(
        f"{name} cannot be written: {why}; make it an array first, {name} = {remedy}"
    )


def _no_destination(error: TypeError, name: str) -> TypeError:
    """Return the error for a destination that is not an array in memory or exports a copy."""
    why, _, code = str(error).partition(": pass ")
    if not code:
        return error
    source = "src" if name == "dst" else "x"
    made = re.sub(r"\bx\b", name, code)
    remedy = f"make it an array first, {name} = {made}"
    if code.endswith("[...]"):  # a file
        remedy = f"assign through its library, {name}[...] = arraybridge.convert({source}, 'numpy')"
    return TypeError(f"{name} cannot be written: {why}; {remedy}")


def _told_of(given: Any, info: TensorInfo) -> TensorInfo:
    """Restate a refusal of a native array for the Array that was passed, if one was."""
    if info.refused is None or not hasattr(type(given), "__arraybridge__"):
        return info
    return info._replace(refused=of_native(info.refused))


_FIT = {
    "shape": "the shapes must match, so reshape it first",
    "dtype": "the dtypes must match, so cast it first",
    "device": "the devices must match, so copy it first, arraybridge.convert(..., device=...)",
}


def _check_fit(wanted: TensorInfo, info: TensorInfo, name: str) -> None:
    source = "src" if name == "dst" else "x"
    if info.refused:
        raise ConversionError(info.refused)
    for what, rule in _FIT.items():
        ours, theirs = getattr(wanted, what), getattr(info, what)
        if ours != theirs and not (what == "device" and ours.host and theirs.host):
            raise ConversionError(f"{name} has {what} {ours}, but {source} has {theirs}: {rule}")
    if wanted.readonly or wanted.pending or wanted.refused:
        raise ConversionError(f"{name} cannot be written: {_why_not(wanted, name, source)}")
    if may_overlap_itself(wanted.shape, wanted.strides):
        raise ConversionError(
            f"{name} cannot be written: several of its elements share memory (strides "
            f"{wanted.strides}); {_instead(wanted, source)}"
        )


_LAZY = {  # pending transformations that the library's own assignment respects
    "byteorder": "its byte order is not native ({}.dtype.byteorder)",
    "conj": "its conjugate bit is set",
    "neg": "its negative bit is set",
    "fraction": "its strides are not multiples of its item size",
}


def _why_not(wanted: TensorInfo, name: str, source: str) -> str:
    """Return why an array cannot be written, and what to do."""
    if wanted.refused:
        why, _, remedy = wanted.refused.partition(": ")
        if remedy.endswith(".detach()"):
            why = why.partition(" and would")[0].replace("would be lost silently", "are tracked")
            past = name + remedy.partition("x")[2]
            return f"{why}, and autograd would miss the write: pass {past} to write anyway"
        return f"{why}; {_instead(wanted, source)}"
    lazy = [_LAZY[what].format(name) for what in wanted.pending if what in _LAZY]
    if lazy and not wanted.readonly:
        value = f"arraybridge.convert({source}, '{wanted.library}')"
        return f"{' and '.join(lazy)}: assign through its library, {name}[...] = {value}"
    return f"it is read-only; {_instead(wanted, source)}"


def _instead(wanted: TensorInfo, source: str) -> str:
    unmade = wanted.library == PROTOCOL.name or "bitpacked" in wanted.pending
    library = "numpy" if unmade else wanted.library
    return f"make a new array instead, arraybridge.convert({source}, '{library}', copy=True)"


def _overlap(a: Tensor, b: Tensor) -> bool:
    """Whether the byte ranges of two arrays overlap."""
    if 0 in a.shape:
        return False
    (a_low, a_high), (b_low, b_high) = (
        span(t.shape, in_bytes(t.strides, t.dtype.itemsize), t.dtype.itemsize) for t in (a, b)
    )
    return a.pointer + a_low < b.pointer + b_high and b.pointer + b_low < a.pointer + a_high
