"""Copies between host memory and CUDA devices, through a ring of pinned blocks.

The CPU's kernels write a slice directly into a pinned block while the previous slice is
transferred, so that the time is the larger of the two rather than their sum. For pageable memory
the driver does both in turn (measured by others: 13 to 18 GB/s, pinned 24, cuda-oxide#976).
``cuMemcpy2D`` is not used: strided copies with it can be a thousand times slower (pytorch#153176).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import c_void_p
from itertools import product
from math import prod
from typing import NamedTuple

from arraybridge.kernels import cpu
from arraybridge.kernels.cuda import context, driver
from arraybridge.kernels.cuda.driver import CUDAError
from arraybridge.layout import Ints, c_strides

#: Bytes of a pinned block, and the number of blocks.
BLOCK_BYTES, BLOCKS = 8 << 20, 3

_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned for every device


class _Block(NamedTuple):
    """A pinned block, and the event of its last copy: an address and a handle."""

    address: int
    event: int


_rings: dict[int, list[list[_Block]]] = {}  # the free rings of each device
# One transfer at a time, as they share the bus. A transfer that begins within another, in a user's
# kernel or when an object is released, gets another ring.
_lock = threading.RLock()


@driver.forgetting
def _forget() -> None:
    global _lock
    _lock = threading.RLock()  # a thread of the parent may have held it
    _rings.clear()


def upload(
    dst: int,
    src: int,
    shape: Ints,
    src_strides: Ints,
    itemsize: int,
    stream: int | None,
    device: int,
    kernel: Callable[..., None] = cpu.copy,
) -> None:
    """Copy a strided array in host memory to C-contiguous memory of a device.

    On return the host memory has been read; the device's is written in stream order (`stream` is by
    the standard's numbering). `src` is the address of the item with all indices 0; strides and item
    size are in **bytes**. `kernel` copies each slice on the host, as
    ``arraybridge.kernels.cpu.copy`` does. CUDAError if the driver fails, or while a CUDA graph is
    captured.
    """
    cuda = driver.installed()
    lane = context.handle(stream)

    def work(ring: list[_Block]) -> None:
        for turn, (offset, start, part) in enumerate(slices(shape, src_strides, itemsize)):
            block = ring[turn % BLOCKS]
            cuda.cuEventSynchronize(block.event)
            dense = c_strides(part, itemsize)
            kernel(block.address, src + start, part, dense, src_strides, itemsize, None)
            nbytes = prod(part) * itemsize
            cuda.cuMemcpyHtoDAsync(dst + offset, block.address, nbytes, lane)
            cuda.cuEventRecord(block.event, lane)

    _with_ring(device, lane, work)


def fetch(dst: int, src: int, nbytes: int, stream: int | None, device: int) -> None:
    """Copy contiguous memory of a device to the host, and wait for it.

    It follows the present work on the stream. CUDAError also while a CUDA graph is captured.
    """
    cuda = driver.installed()
    lane = context.handle(stream)

    def work(ring: list[_Block]) -> None:
        parts = [(at, min(BLOCK_BYTES, nbytes - at)) for at in range(0, nbytes, BLOCK_BYTES)]
        count = len(parts)
        for turn in range(count + BLOCKS):
            block = ring[turn % BLOCKS]
            if turn >= BLOCKS:  # the block of one round ago
                at, size = parts[turn - BLOCKS]
                cuda.cuEventSynchronize(block.event)
                cpu.copy_run(dst + at, block.address, size)
            if turn < count:
                at, size = parts[turn]
                if turn < BLOCKS:  # an upload from it, on another stream, may be in progress
                    cuda.cuStreamWaitEvent(lane, block.event, 0)
                cuda.cuMemcpyDtoHAsync(block.address, src + at, size, lane)
                cuda.cuEventRecord(block.event, lane)

    _with_ring(device, lane, work)


def slices(shape: Ints, strides: Ints, itemsize: int) -> Iterator[tuple[int, int, Ints]]:
    """Cut an array into slices of at most `BLOCK_BYTES` bytes that follow each other in C order.

    Yields the bytes from the start of the C-contiguous result, the bytes from the first item of the
    strided array, and the slice's extents, with as many axes as the array.
    """
    if 0 in shape:
        return
    axis, inner = len(shape), itemsize  # axes from `axis` on are whole in every slice
    while axis and inner * shape[axis - 1] <= BLOCK_BYTES:
        axis -= 1
        inner *= shape[axis]
    if not axis:
        yield 0, 0, shape
        return
    cut = axis - 1
    most = max(BLOCK_BYTES // inner, 1)
    offset = 0
    for index in product(*map(range, shape[:cut])):
        outer = sum(map(int.__mul__, index, strides))
        for first in range(0, shape[cut], most):
            count = min(most, shape[cut] - first)
            part = (1,) * cut + (count, *shape[axis:])
            yield offset, outer + first * strides[cut], part
            offset += count * inner


def _with_ring(device: int, lane: int, work: Callable[[list[_Block]], None]) -> None:
    """Use a ring of a device, with its context current, for copies on a stream, `lane`."""
    place = context.device(device)
    if context.capturing(place, lane):
        raise CUDAError(
            "host memory cannot be part of a CUDA graph, which would copy its later contents: copy "
            "it before the capture begins",
            "cuStreamIsCapturing",
            900,
        )
    # Relaxed, as a graph may be captured on an unrelated stream.
    with _lock, context.current(place), context.relaxed():
        free = _rings.setdefault(device, [])
        ring = free.pop() if free else _pinned()
        try:
            work(ring)
        except BaseException:
            # A copy may be on the stream without its event, so record it for the next user of the
            # block to wait. If that fails, the ring is not used again.
            with suppress(CUDAError):
                for block in ring:
                    driver.installed().cuEventRecord(block.event, lane)
                free.append(ring)
            raise
        free.append(ring)


def _pinned() -> list[_Block]:
    """Allocate the blocks of a ring; they stay until the process ends."""
    events = [context.new_event() for _ in range(BLOCKS)]
    start = c_void_p()
    driver.installed().cuMemHostAlloc(start, BLOCKS * BLOCK_BYTES, _PORTABLE)
    at = start.value or 0
    return [_Block(at + i * BLOCK_BYTES, event) for i, event in enumerate(events)]
