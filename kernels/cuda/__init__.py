"""Copies in the memory of CUDA devices.

A copy is planned (`plan`) and loaded (`launch`) once for a layout and its addresses modulo 16, and
cached; the same copy again costs a look-up and the driver's launch. Nothing here waits for a
device, allocates its memory, or makes a context, so copies can be captured in CUDA graphs. The
import and `plans` work without a device, a driver or Numba.
"""

import os
from functools import lru_cache
from typing import Any

from arraybridge.kernels.cuda import context, driver
from arraybridge.kernels.cuda.driver import CUDAError, CUDAMemoryError
from arraybridge.kernels.cuda.plan_types import Plan
from arraybridge.layout import Ints, canonical

__all__ = ["CUDAError", "CUDAMemoryError", "copy", "plans", "unavailable"]

_UNKNOWN = "unknown"
_unavailable: str | None = _UNKNOWN


def copy(
    dst: int,
    src: int,
    shape: Ints,
    dst_strides: Ints,
    src_strides: Ints,
    itemsize: int,
    stream: int | None = None,
    device: int = 0,
) -> None:
    """Copy one strided block of a device's memory to another, on a stream.

    The layouts are those of ``arraybridge.kernels.cpu.copy``: addresses of the item with all
    indices 0, any number of axes, strides in **bytes** of any sign, bytes per item. As there, the
    addresses cannot be checked, and source and destination must not overlap. `stream` is by the
    array API standard's numbering: None and 1 the legacy default stream, 2 the default stream of
    this thread, else a handle. The copy is asynchronous.

    ValueError if the tuples differ in length, or `stream` is not a stream; OverflowError if an
    extent or a stride does not fit in 64 bits; CUDAError if the driver fails (`CUDAMemoryError`,
    also a MemoryError, if the device's memory is full); ImportError if the kernel is not on disk
    and Numba cannot compile for CUDA: `unavailable` says so from then on, and nothing is on the
    stream.
    """
    launches = _launches(shape, dst_strides, src_strides, itemsize, dst & 15, src & 15, device)
    if stream is None or stream <= 0:
        stream = context.handle(stream)
    for launch in launches:
        launch(dst, src, stream)


@lru_cache(4096)
def _launches(
    shape: Ints,
    dst_strides: Ints,
    src_strides: Ints,
    itemsize: int,
    dst: int,
    src: int,
    device: int,
) -> tuple[Any, ...]:
    """Plan a copy, and load its kernels; `dst` and `src` are addresses modulo 16."""
    global _unavailable
    planned = plans(shape, dst_strides, src_strides, itemsize, dst, src)
    if not planned:  # without elements no driver is needed
        return ()
    from arraybridge.kernels.cuda import launch

    where = context.device(device)
    try:
        return tuple([launch.prepare(each, where) for each in planned])
    except ImportError as error:
        _unavailable = str(error)
        raise


def plans(
    shape: Ints, dst_strides: Ints, src_strides: Ints, itemsize: int, dst: int = 0, src: int = 0
) -> tuple[Plan, ...]:
    """Return the launches of `copy` for a layout, with offsets to its addresses."""
    from arraybridge.kernels.cuda.plan import plan

    form = canonical(shape, dst_strides, src_strides, itemsize)
    to, start = form.dst_offset, form.src_offset
    return tuple(
        each._replace(dst_offset=each.dst_offset + to, src_offset=each.src_offset + start)
        for each in plan(form, (dst + to) % 16, (src + start) % 16)
    )


def unavailable() -> str | None:
    """Return why there are no CUDA kernels, or None; without starting or compiling anything."""
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
    global _unavailable
    _unavailable = _UNKNOWN
    _launches.cache_clear()
