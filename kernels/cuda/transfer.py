"""Copies between host memory and CUDA devices, by way of a ring of pinned blocks.

The CPU's kernels write a slice straight into a pinned block while the slice before is on its way,
so that the time is the larger of the two and not their sum. The driver copies pageable memory one
after the other with the host's part (measured by others: 13 to 18 GB/s, pinned 24, cuda-oxide#976).
``cuMemcpy2D`` is not used: strided copies with it can be a thousand times slower (pytorch#153176).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ctypes import c_void_p
from itertools import product
from math import prod
from typing import NamedTuple

from arraybridge.kernels import cpu
from arraybridge.kernels.cuda import context, driver
from arraybridge.kernels.cuda.driver import CUDAError
from arraybridge.layout import c_strides

#: Bytes of a pinned block, and how many there are.
BLOCK, BLOCKS = 8 << 20, 3

_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned for every device
_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING


class _Block(NamedTuple):
    """A pinned block, and the event of what was last copied from or to it; addresses, handles."""

    address: int
    event: int


_rings: dict[int, list[list[_Block]]] = {}  # of each device, those that no transfer has
# One transfer at a time: they share the bus. One that begins within another one, in a kernel of the
# user's or where an object is released, has a ring of its own.
_lock = threading.RLock()


@driver.forgetting
def _forget() -> None:
    global _lock
    _lock = threading.RLock()  # a thread of the parent may have had it
    _rings.clear()


def upload(
    dst: int,
    src: int,
    shape: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
    stream: int | None,
    device: int,
    kernel: Callable[..., None] = cpu.copy,
) -> None:
    """Copy a strided array in host memory to C-contiguous memory of a device.

    When it returns the host memory has been read; the device's is written in the order of the
    stream, by the standard's numbering. `src` is the address of the item whose indices are all 0;
    strides and item size in **bytes**. `kernel` copies each slice, on the host, as
    ``arraybridge.kernels.cpu.copy`` does. CUDAError where the driver fails; while a CUDA graph is
    captured.
    """
    cuda = driver.installed()
    lane = context.handle(stream)
    with _ring(device, lane) as ring:
        for turn, (offset, start, part) in enumerate(slices(shape, src_strides, itemsize)):
            block = ring[turn % len(ring)]
            cuda.cuEventSynchronize(block.event)
            dense = c_strides(part, itemsize)
            kernel(block.address, src + start, part, dense, src_strides, itemsize, None)
            nbytes = prod(part) * itemsize
            cuda.cuMemcpyHtoDAsync(dst + offset, block.address, nbytes, lane)
            cuda.cuEventRecord(block.event, lane)


def fetch(dst: int, src: int, nbytes: int, stream: int | None, device: int) -> None:
    """Copy contiguous memory of a device to the host; it is there when this returns.

    What is on the stream (by the standard's numbering) now is waited for. CUDAError where the
    driver fails; while a CUDA graph is captured.
    """
    cuda = driver.installed()
    lane = context.handle(stream)
    with _ring(device, lane) as ring:
        starts = range(0, nbytes, BLOCK)
        for turn in range(len(starts) + len(ring)):
            block = ring[turn % len(ring)]
            if turn >= len(ring):  # what was sent a round ago
                at = BLOCK * (turn - len(ring))
                if at < nbytes:
                    cuda.cuEventSynchronize(block.event)
                    cpu.copy_run(dst + at, block.address, min(BLOCK, nbytes - at))
            if turn < len(starts):
                at = starts[turn]
                if turn < len(
                    ring
                ):  # an upload's copy from it, on another stream, may be under way
                    cuda.cuStreamWaitEvent(lane, block.event, 0)
                cuda.cuMemcpyDtoHAsync(block.address, src + at, min(BLOCK, nbytes - at), lane)
                cuda.cuEventRecord(block.event, lane)


def move(
    dst: int,
    src: int,
    nbytes: int,
    streams: tuple[int | None, int | None],
    devices: tuple[int, int],
) -> None:
    """Copy contiguous memory of one device to another one's, in the order of both streams.

    Of each pair the destination's comes first, on whose stream the copy is.
    """
    cuda = driver.installed()
    to, of = (context.device(ordinal) for ordinal in devices)
    context.order(devices[0], streams[0], streams[1], of=devices[1])
    with context.current(to):
        cuda.cuMemcpyPeerAsync(dst, to.context, src, of.context, nbytes, context.handle(streams[0]))
    # The source's memory may be reused after that.
    context.order(devices[1], streams[1], streams[0], of=devices[0])


def slices(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Cut an array into slices of at most `BLOCK` bytes that follow each other in C order.

    Yields the bytes from the start of the C-contiguous result, the bytes from the first item of the
    strided array, and the slice's extents, with as many axes as the array.
    """
    if 0 in shape:
        return
    axis, inner = len(shape), itemsize  # axes from `axis` on are whole in every slice
    while axis and inner * shape[axis - 1] <= BLOCK:
        axis -= 1
        inner *= shape[axis]
    if not axis:
        yield 0, 0, shape
        return
    cut = axis - 1
    most = max(BLOCK // inner, 1)
    offset = 0
    for index in product(*map(range, shape[:cut])):
        outer = sum(map(int.__mul__, index, strides))
        for first in range(0, shape[cut], most):
            count = min(most, shape[cut] - first)
            part = (1,) * cut + (count, *shape[axis:])
            yield offset, outer + first * strides[cut], part
            offset += count * inner


@contextmanager
def _ring(device: int, lane: int) -> Iterator[list[_Block]]:
    """Have a ring of a device, whose context is current, for the copies on a stream, `lane`."""
    place = context.device(device)
    if context.capturing(place, lane):
        raise CUDAError(
            "host memory cannot be part of a CUDA graph, which would copy what it holds by then: "
            "copy it before the capture begins",
            "cuStreamIsCapturing",
            900,
        )
    # Relaxed: a graph may be captured on another stream, which none of this has to do with.
    with _lock, context.current(place), context.relaxed():
        free = _rings.setdefault(device, [])
        ring = free.pop() if free else _pinned()
        try:
            yield ring
        except BaseException:
            # A copy may be on the stream whose event is not: the next to have the block must wait.
            # Where that cannot be said, nobody has it again.
            with suppress(CUDAError):
                for block in ring:
                    driver.installed().cuEventRecord(block.event, lane)
                free.append(ring)
            raise
        free.append(ring)


def _pinned() -> list[_Block]:
    """Allocate the blocks, one after another so that a failure leaves nothing behind."""
    cuda = driver.installed()
    ring: list[_Block] = []
    try:
        for _ in range(BLOCKS):
            address, event = c_void_p(), c_void_p()
            cuda.cuMemHostAlloc(address, BLOCK, _PORTABLE)
            try:
                cuda.cuEventCreate(event, _DISABLE_TIMING)
            except BaseException:
                cuda.cuMemFreeHost(address)
                raise
            ring.append(_Block(address.value or 0, event.value or 0))
    except BaseException:
        for block in ring:
            cuda.cuEventDestroy(block.event)
            cuda.cuMemFreeHost(block.address)
        raise
    return ring
