"""Launches: a plan on a device, ready to be put on streams.

A kernel is loaded once for all devices of its compute capability (``cuLibraryLoadData``), and a
launch described once by a record that the machine code of ``machine_code.launcher`` reads: later
launches cost a call of a builtin. Where that code cannot be had, ctypes does the same, more slowly.
"""

from __future__ import annotations

import ctypes
import threading
from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress
from ctypes import c_uint64, c_void_p
from typing import Any, NamedTuple

from arraybridge.kernels.cuda import build, cache, driver
from arraybridge.kernels.cuda.context import Device, current, relaxed
from arraybridge.kernels.cuda.driver import CUDAError, failed
from arraybridge.kernels.cuda.record import THREADS, Plan
from arraybridge.machine_code import launcher
from arraybridge.machine_code.launcher import CALLS, MOST, Record

__all__ = ["Launch", "enqueuer", "error", "is_loaded", "load", "prepare"]

Enqueue = Callable[[int, int, int, int], int]


class Launch(NamedTuple):
    """A plan on a device.

    Attributes
    ----------
    address : int
        Of the record.
    kept : tuple
        The record, and what it refers to.
    """

    address: int
    kept: tuple[Any, ...]


#: What the driver says of code that is of no use: it is compiled again. Image, binary, PTX,
#: toolchain, source; no such kernel in it.
_USELESS = (200, 209, 218, 222, 300, 500)

_Kernel = tuple[str, tuple[object, ...]]
_kernels: dict[tuple[tuple[int, int], _Kernel], int] = {}  # the driver's, for every device
_functions: dict[tuple[int, _Kernel], int] = {}  # the driver's, for one
_loading = threading.RLock()
_enqueue: Enqueue | None = None


@driver.forgetting
def _forget() -> None:
    global _loading, _enqueue
    _loading = threading.RLock()  # a thread of the parent may have had it
    _enqueue = None
    _kernels.clear()
    _functions.clear()


def prepare(plan: Plan, device: Device) -> Launch:
    """Load what a plan needs, and describe its launch.

    Raises
    ------
    ImportError
        Where the kernel is not on disk and there is no Numba for CUDA.
    CUDAError
        Where the driver cannot link or load it.
    OverflowError
        Where a number of the plan does not fit 64 bits.
    """
    record = Record(
        context=device.context,
        dst_offset=plan.dst_offset,
        src_offset=plan.src_offset,
        grid=plan.grid,
        threads=THREADS,
    )
    address = ctypes.addressof(record)
    if plan.kernel == "memcpy":
        (record.nbytes,) = plan.steps
        return Launch(address, (record,))
    # One word each: on a machine with little ends an int32 is its first half.
    words = array("q", (0, 0, *plan.extents, *plan.divisions, *plan.steps))
    if len(words) > MOST:
        raise ValueError(f"a kernel of {len(words)} arguments: a launch has at most {MOST}")
    first, width = words.buffer_info()[0], words.itemsize
    pointers = (c_void_p * len(words))(*[first + i * width for i in range(len(words))])
    record.function = load(plan, device)
    record.count = len(words)
    record.arguments = ctypes.addressof(pointers)
    return Launch(address, (record, words, pointers))


def load(plan: Plan, device: Device) -> int:
    """Return the driver's handle of a plan's kernel on a device: loaded, or compiled, once.

    Raises
    ------
    ImportError, CUDAError
        As `prepare`.
    """
    kernel = plan.kernel, plan.constants
    found = _functions.get((device.ordinal, kernel))
    if found:
        return found
    cuda = driver.installed()
    function = c_void_p()
    with _loading:
        found = _functions.get((device.ordinal, kernel))
        if found:  # another thread was quicker
            return found
        common = _kernels.get((device.capability, kernel)) or _loaded(plan, device)
        _kernels[device.capability, kernel] = common
        with current(device), relaxed():
            cuda.cuKernelGetFunction(function, common)
        _functions[device.ordinal, kernel] = function.value or 0
        return _functions[device.ordinal, kernel]


def is_loaded(plan: Plan, device: Device) -> bool:
    """Tell whether this process has a plan's kernel ready to run on a device."""
    return (device.ordinal, (plan.kernel, plan.constants)) in _functions


def _loaded(plan: Plan, device: Device) -> int:
    """Load a kernel from the disk, or compile it where the disk has none that is of use."""
    code = cache.found(plan, device)
    if code is not None:
        try:
            return _library(plan, device, code)
        except CUDAError as error:
            if error.code not in _USELESS:
                raise
    return _library(plan, device, cache.compiled(plan, device))


def _library(plan: Plan, device: Device, code: bytes) -> int:
    cuda = driver.installed()
    library, kernel = c_void_p(), c_void_p()
    with current(device), relaxed():
        cuda.cuLibraryLoadData(library, code, None, None, 0, None, None, 0)
        try:
            cuda.cuLibraryGetKernel(kernel, library, build.entry(plan.kernel).encode())
        except BaseException:
            with suppress(CUDAError):
                cuda.cuLibraryUnload(library)
            raise
    return kernel.value or 0


def enqueuer() -> Enqueue:
    """Return ``enqueue(record, dst, src, stream)``, made on the first call.

    It takes the address of a record, two addresses and the driver's handle of a stream, and
    returns 0, or what `error` makes an exception of. Threads may call it at the same time.
    """
    global _enqueue
    if _enqueue is None:
        cuda = driver.installed()
        functions = {name: cuda.address(name) for name in CALLS}
        try:
            _enqueue = launcher.launcher(functions)
        except Exception:  # no stored code for this machine, and no llvmlite that works
            _enqueue = _by_ctypes(functions)
    return _enqueue


def _by_ctypes(functions: Mapping[str, int]) -> Enqueue:
    """What the machine code does, by ctypes."""
    calls = {
        name: ctypes.CFUNCTYPE(ctypes.c_int, *driver.FUNCTIONS[name][1])(address)
        for name, address in functions.items()
    }

    def call(name: str, *arguments: object) -> int:
        code = calls[name](*arguments)
        return code | CALLS.index(name) << 32 if code else 0

    def run(record: Record, dst: int, src: int, stream: int) -> int:
        dst, src = dst + record.dst_offset, src + record.src_offset
        if not record.function:
            its = c_void_p(record.context)
            code = call("cuStreamGetCtx", stream, its) if stream > 2 else 0
            if not code and its.value != record.context:
                code = 400 | CALLS.index("cuStreamGetCtx") << 32  # CUDA_ERROR_INVALID_HANDLE
            return code or call("cuMemcpyDtoDAsync", dst, src, record.nbytes, stream)
        pointers = (c_void_p * record.count).from_buffer_copy(
            (c_void_p * record.count).from_address(record.arguments)
        )
        words = (c_uint64 * 2)(dst, src)
        pointers[0] = ctypes.addressof(words)
        pointers[1] = ctypes.addressof(words) + 8
        sizes = (record.grid, 1, 1, record.threads, 1, 1, 0)
        return call("cuLaunchKernel", record.function, *sizes, stream, pointers, None)

    def enqueue(address: int, dst: int, src: int, stream: int) -> int:
        record = Record.from_address(address)
        now = c_void_p()
        code = call("cuCtxGetCurrent", now)
        if code or now.value == record.context:
            return code or run(record, dst, src, stream)
        code = call("cuCtxPushCurrent", record.context)
        if code:
            return code
        code = run(record, dst, src, stream)
        popped = call("cuCtxPopCurrent", now)
        return code or popped

    return enqueue


def error(said: int) -> CUDAError:
    """Make the exception for what ``enqueue`` returned."""
    return failed(driver.installed(), CALLS[said >> 32], said & 0xFFFFFFFF)
