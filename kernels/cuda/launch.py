"""Launches: a plan on a device, ready to be put on streams.

A kernel is loaded once for a device (``cuLibraryLoadData``), and a launch's arguments are prepared
once: each launch only sets the two addresses and the stream.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable
from contextlib import suppress
from ctypes import c_void_p
from typing import NamedTuple

from arraybridge.kernels.cuda import build, driver
from arraybridge.kernels.cuda.context import Device, current, is_current, relaxed
from arraybridge.kernels.cuda.driver import CUDAError, failed
from arraybridge.kernels.cuda.plan_types import THREADS, Plan
from arraybridge.native import C


class Launch(NamedTuple):
    """A plan on a device."""

    device: Device
    plan: Plan
    #: Put the kernel on a stream, and return the driver's error code; -1 if the device's context is
    #: not current in this thread. None: a copy by the driver.
    put: Callable[[int, int, int], int] | None = None

    def __call__(self, dst: int, src: int, stream: int) -> None:
        """Put the copy on a stream (a driver's handle); several threads may call at once."""
        dst, src, put = dst + self.plan.dst_offset, src + self.plan.src_offset, self.put
        if put is None:
            with current(self.device):
                driver.installed().cuMemcpyDtoDAsync(dst, src, *self.plan.steps, stream)
            return
        code = put(dst, src, stream)
        if code < 0:
            with current(self.device):
                code = put(dst, src, stream)
        if code:
            raise failed(driver.installed(), "cuLaunchKernel", code)


def _putting(device: Device, function: int, plan: Plan) -> Callable[[int, int, int], int]:
    """Return the `put` of a kernel, by the driver's handle of it."""
    cuda, numbers = driver.installed(), (*plan.extents, *plan.divisions, *plan.steps)
    if C is not None:
        addresses = cuda.address("cuLaunchKernel"), cuda.address("cuCtxGetCurrent"), device.context
        prepared = array("q", (*addresses, function, plan.grid, THREADS, 0, 0, *numbers))
        in_c: Callable[[int, int, int], int] = C.cuda_launcher(prepared.tobytes())
        return in_c
    enqueue, sizes = cuda.unchecked("cuLaunchKernel"), (plan.grid, 1, 1, THREADS, 1, 1, 0)

    def put(dst: int, src: int, stream: int) -> int:
        if not is_current(device):
            return -1
        # One 8-byte word each: on a little-endian machine an int32 is its first half.
        words = array("q", (dst, src, *numbers))
        first, size = words.buffer_info()
        pointers = (c_void_p * size)(*range(first, first + 8 * size, 8))
        code: int = enqueue(function, *sizes, stream, pointers, None)
        return code

    return put


#: The driver's errors for unusable code, which is compiled again: image, binary, PTX, toolchain,
#: source; kernel not found.
_USELESS = (200, 209, 218, 222, 300, 500)

_functions: dict[tuple[int, str, tuple[object, ...]], int] = {}  # handles by device and kernel
_loading = threading.RLock()


@driver.forgetting
def _forget() -> None:
    global _loading
    _loading = threading.RLock()  # a thread of the parent may have held it
    _functions.clear()


def prepare(plan: Plan, device: Device) -> Launch:
    """Load the kernel of a plan, and prepare its launch.

    ImportError if the kernel is not on disk and Numba cannot compile for CUDA; CUDAError if the
    driver cannot link or load it; OverflowError if a number of the plan does not fit in 64 bits.
    """
    if plan.kernel == "memcpy":
        return Launch(device, plan)
    return Launch(device, plan, _putting(device, load(plan, device), plan))


def load(plan: Plan, device: Device) -> int:
    """Return the driver's handle of a plan's kernel on a device, loaded or compiled once."""
    key = device.ordinal, plan.kernel, plan.constants
    if key not in _functions:
        with _loading:
            if key not in _functions:  # another thread may have loaded it
                _functions[key] = _loaded(plan, device)
    return _functions[key]


def _loaded(plan: Plan, device: Device) -> int:
    """Load a kernel from disk, or compile it if the disk has no usable one."""
    code = build.stored(plan, device.capability)
    if code is not None:
        try:
            return _function(plan, device, code)
        except CUDAError as error:
            if error.code not in _USELESS:
                raise
    return _function(plan, device, build.compiled(plan, device))


def _function(plan: Plan, device: Device, code: bytes) -> int:
    cuda = driver.installed()
    library, kernel, function = c_void_p(), c_void_p(), c_void_p()
    with current(device), relaxed():
        cuda.cuLibraryLoadData(library, code, None, None, 0, None, None, 0)
        try:
            cuda.cuLibraryGetKernel(kernel, library, build.entry(plan.kernel).encode())
            cuda.cuKernelGetFunction(function, kernel)
            if cuda.has("cuFuncLoad"):  # else the first launch loads it, not allowed in captures
                cuda.cuFuncLoad(function)
        except BaseException:
            with suppress(CUDAError):
                cuda.cuLibraryUnload(library)
            raise
    return function.value or 0
