"""Launches: a plan on a device, ready to be put on streams.

A kernel is loaded once for a device (``cuLibraryLoadData``), and a launch's arguments are prepared
once: each launch only sets the two addresses and the stream.
"""

from __future__ import annotations

import threading
from array import array
from collections import deque
from contextlib import suppress
from ctypes import CFUNCTYPE, c_int, c_uint, c_void_p
from typing import Any, NamedTuple

from arraybridge.kernels.cuda import build, driver
from arraybridge.kernels.cuda.context import Device, current, is_current, relaxed
from arraybridge.kernels.cuda.driver import CUDAError, failed
from arraybridge.kernels.cuda.plan_types import THREADS, Plan


class Arguments:
    """The arguments of ``cuLaunchKernel`` for one launch at a time, as objects of ctypes."""

    __slots__ = ("all", "stream", "words")

    def __init__(self, plan: Plan, function: int) -> None:
        # One 8-byte word each: on a little-endian machine an int32 is its first half.
        self.words = array("q", (0, 0, *plan.extents, *plan.divisions, *plan.steps))
        first, width = self.words.buffer_info()[0], self.words.itemsize
        pointers = [first + i * width for i in range(len(self.words))]
        self.stream = c_void_p()
        sizes = map(c_uint, (plan.grid, 1, 1, THREADS, 1, 1, 0))
        addresses = (c_void_p * len(pointers))(*pointers)
        self.all = (c_void_p(function), *sizes, self.stream, addresses, c_void_p())


class Launch(NamedTuple):
    """A plan on a device."""

    device: Device
    plan: Plan
    function: int = 0  # the driver's handle of the kernel; 0: a copy by the driver
    enqueue: Any = None  # ``cuLaunchKernel``, which returns its error code
    free: deque[Arguments] | None = None  # those that no thread uses now

    def __call__(self, dst: int, src: int, stream: int) -> None:
        """Put the copy on a stream (a driver's handle); several threads may call at once."""
        dst, src = dst + self.plan.dst_offset, src + self.plan.src_offset
        if is_current(self.device):
            self._put(dst, src, stream)
        else:
            with current(self.device):
                self._put(dst, src, stream)

    def _put(self, dst: int, src: int, stream: int) -> None:
        if self.free is None:
            driver.installed().cuMemcpyDtoDAsync(dst, src, *self.plan.steps, stream)
            return
        try:
            arguments = self.free.pop()
        except IndexError:
            arguments = Arguments(self.plan, self.function)
        arguments.words[0], arguments.words[1] = dst, src
        arguments.stream.value = stream
        code = self.enqueue(*arguments.all)
        self.free.append(arguments)  # the driver has copied them
        if code:
            raise failed(driver.installed(), "cuLaunchKernel", code)


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
    function = load(plan, device)
    # Without argument types, since the arguments are ctypes objects and need no conversion.
    enqueue = CFUNCTYPE(c_int)(driver.installed().address("cuLaunchKernel"))
    return Launch(device, plan, function, enqueue, deque([Arguments(plan, function)]))


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
