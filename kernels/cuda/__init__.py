"""Copies in the memory of CUDA devices.

A copy is planned (`plan`) and loaded (`launch`) once for a layout and its addresses modulo 16, and
cached; the same copy again costs a look-up and the driver's launch. Nothing here waits for a
device, allocates its memory, or makes a context, so copies can be captured in CUDA graphs. The
import and `plans` work without a device, a driver or Numba.
"""

from __future__ import annotations

import os
import threading
from math import prod
from typing import Any

from arraybridge.kernels.cuda import context, driver
from arraybridge.kernels.cuda.driver import CUDAError, CUDAMemoryError
from arraybridge.kernels.cuda.plan_types import Plan
from arraybridge.layout import c_strides, canonical, in_bytes

__all__ = ["CUDAError", "CUDAMemoryError", "compact", "copy", "plans", "unavailable"]

#: Layouts whose launches are cached.
MAX_CACHED_LAUNCHES = 4096

#: Most bytes of a copy: the plan has one launch per 2 GB, and must stay finite.
MAX_COPY_BYTES = 1 << 44

#: Pieces of memory, of 2 MB each, whose device is cached.
MAX_CACHED_PAGES = 1 << 16

_Strides = tuple[int, ...]
_Key = tuple[tuple[int, ...], _Strides, _Strides, int, int, int, int]
_Prepared = tuple[Any, ...]  # of `launch.Launch`, which needs a driver

_prepared: dict[_Key, _Prepared] = {}
_placed: dict[int, int] = {}  # number of a piece -> the device that it was last used on
_compact: dict[tuple[Any, ...], _Prepared] = {}  # launches by the key of `compact`
_preparing = threading.Lock()
_UNKNOWN = "unknown"
_unavailable: str | None = _UNKNOWN


def copy(
    dst: int,
    src: int,
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
    stream: int | None = None,
    device: int = 0,
) -> None:
    """Copy one strided block of a device's memory to another, on a stream.

    Parameters
    ----------
    dst, src : int
        Addresses of the item with all indices 0, of any alignment.
    shape : tuple of int
        Extents of any number of axes, including 0 and 1.
    dst_strides, src_strides : tuple of int
        In **bytes**, of any sign, including 0.
    itemsize : int
        Bytes per item, any positive number.
    stream : int or None
        By the array API standard's numbering: None and 1 the legacy default stream, 2 the default
        stream of this thread, else a handle. The copy is asynchronous.
    device : int
        The number of the device of the memory and the stream.

    Raises
    ------
    ValueError
        If the tuples differ in length, an extent is negative, `itemsize` is not positive, an
        address is NULL or in the memory of another device, or `stream` is not a stream.
    OverflowError
        If an extent or a stride does not fit in 64 bits.
    CUDAError
        If the driver fails; `CUDAMemoryError`, also a MemoryError, if the device's memory is full.
    ImportError
        If the kernel is not on disk and Numba cannot compile for CUDA, which `unavailable` reports
        from then on. Nothing is on the stream then.

    Notes
    -----
    As for host memory (``arraybridge.kernels.cpu.copy``), the addresses cannot be checked, and
    source and destination must not overlap. The device of the memory is checked once for every
    2 MB, the least that the driver maps, and again once another device has used it: PyTorch's
    expandable segments and memory of other processes (CUDA IPC) can be remapped.
    """
    key = (shape, dst_strides, src_strides, itemsize, dst & 15, src & 15, device)
    launches = _prepared.get(key)
    if launches is None:
        launches = _prepare(key)
    if stream is None or stream <= 0:
        stream = context.handle(stream)
    if _placed.get(dst >> 21) != device or _placed.get(src >> 21) != device:
        _place(launches, device, dst, src)
    _enqueue(launches, dst, src, stream)


def _place(launches: _Prepared, device: int, *addresses: int) -> None:
    """Check the device of the memory at addresses, if there is anything to launch."""
    if not launches:
        return
    if 0 in addresses:
        raise ValueError("cannot copy to or from address 0 (NULL)")
    with context.current(context.device(device)), context.relaxed():
        for address in addresses:
            found = context.memory_of(address)
            if found and found.own and found.ordinal != device:
                raise ValueError(
                    f"the memory at {address:#x} is on CUDA device {found.ordinal}, but the copy "
                    f"is on device {device}: copy it to that device first"
                )
            if len(_placed) >= MAX_CACHED_PAGES:
                _placed.clear()
            _placed[address >> 21] = device


def compact(
    dst: int,
    src: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    itemsize: int,
    stream: int | None = None,
    device: int = 0,
) -> None:
    """Copy to C-contiguous memory on a stream, as `copy` does, with fewer look-ups.

    `shape` and `strides` are the source's; strides in **elements**, as in DLPack and PyTorch. The
    device is not checked: the caller has allocated the destination and describes the source.
    """
    key = (shape, strides, itemsize, dst & 15, src & 15, device)
    launches = _compact.get(key)
    if launches is None:
        dense = c_strides(shape, itemsize)
        whole = (tuple(shape), dense, in_bytes(strides, itemsize), itemsize)
        launches = _prepare((*whole, dst & 15, src & 15, device))
        _keep(_compact, (tuple(shape), *key[1:]), launches)
    if stream is None or stream <= 0:
        stream = context.handle(stream)
    _enqueue(launches, dst, src, stream)


def _enqueue(launches: _Prepared, dst: int, src: int, stream: int) -> None:
    for before, launch in enumerate(launches):
        try:
            launch(dst, src, stream)
        except CUDAError as error:
            if before:
                error.add_note(
                    f"{before} of the {len(launches)} parts of the copy are already on the stream: "
                    "the destination is partly written"
                )
            raise


def _prepare(key: _Key) -> _Prepared:
    """Plan a copy, load its kernels, and cache its launches."""
    global _unavailable
    shape, dst_strides, src_strides, itemsize, dst, src, device = key
    where = None if 0 in shape else context.device(device)  # without elements no driver is needed
    planned = plans(shape, dst_strides, src_strides, itemsize, dst, src)
    if not where:
        return ()
    from arraybridge.kernels.cuda import launch

    try:
        made: _Prepared = tuple([launch.prepare(each, where) for each in planned])
    except ImportError as error:
        _unavailable = str(error)
        raise
    return _keep(_prepared, key, made)


def _keep(kept: dict[Any, _Prepared], key: Any, launches: _Prepared) -> _Prepared:
    with _preparing:
        if len(kept) >= MAX_CACHED_LAUNCHES:  # a thread that uses them has a reference
            del kept[next(iter(kept))]
        return kept.setdefault(key, launches)


def plans(
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
    dst: int = 0,
    src: int = 0,
) -> tuple[Plan, ...]:
    """Return the launches of `copy` for a layout, with offsets to its addresses.

    ValueError as of `copy` for the layout, and for more bytes than any device has.
    """
    from arraybridge.kernels.cuda.plan import plan

    if itemsize < 1 or any(extent < 0 for extent in shape):
        raise ValueError(
            f"cannot copy {shape} items of {itemsize} bytes: extents must be at least 0, and items "
            "at least one byte"
        )
    nbytes = prod(shape) * itemsize
    if nbytes > MAX_COPY_BYTES:
        raise ValueError(f"cannot copy {nbytes:,} bytes: no device has as much memory")
    form = canonical(shape, dst_strides, src_strides, itemsize)
    to, start = form.dst_offset, form.src_offset
    return tuple(
        each._replace(dst_offset=each.dst_offset + to, src_offset=each.src_offset + start)
        for each in plan(form, (dst + to) % 16, (src + start) % 16)
    )


def unavailable() -> str | None:
    """Return why this process has no CUDA kernels; None if they seem available.

    Nothing is started or compiled: the first `copy` raises errors of the device or the compiler.
    """
    global _unavailable
    if _unavailable is _UNKNOWN:
        _unavailable = _missing()
    return _unavailable


def _missing() -> str | None:
    if os.environ.get("ARRAYBRIDGE_NO_KERNELS", "0") not in ("", "0"):
        return "ARRAYBRIDGE_NO_KERNELS is set"
    from importlib.util import find_spec

    no_numba = "numba-cuda is not installed: pip install numba-cuda"
    return driver.problem() or (None if find_spec("numba_cuda") else no_numba)


@driver.forgetting
def _forget() -> None:
    global _preparing, _unavailable
    _preparing = threading.Lock()  # a thread of the parent may have held it
    _unavailable = _UNKNOWN
    _prepared.clear()
    _placed.clear()
    _compact.clear()
