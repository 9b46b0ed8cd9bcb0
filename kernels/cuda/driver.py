"""NVIDIA's driver by its C interface: the functions that are called here, and their errors.

The library (``libcuda.so.1``, ``nvcuda.dll``) is loaded by the first call that needs it, and
started (``cuInit``) by the first that needs a device. Every call that fails raises a `CUDAError`
that names the call, the driver's error, and what can be done about those that users meet.
Source: CUDA driver API reference, 13.0; all but `cuFuncLoad` (12.4) is in 12.0 too.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

#: The oldest driver, as ``cuDriverGetVersion`` counts: CUDA 12.0, the first with libraries
#: (``cuLibraryLoadData``), which serve every device.
LEAST = 12000

_NAMES: dict[str, tuple[str, ...]] = {"win32": ("nvcuda.dll",)}
_LINUX = ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")

_int, _pointer = POINTER(c_int), POINTER(c_void_p)

#: Name -> (its symbol in the library, the types of its arguments); all return an error code.
#: Device memory is a 64-bit number, a handle is a pointer, a stream one of `context`'s numbers.
FUNCTIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    name.partition("_v")[0]: (name, types)
    for name, types in {
        "cuInit": (c_uint,),
        "cuDriverGetVersion": (_int,),
        "cuGetErrorName": (c_int, POINTER(c_char_p)),
        "cuGetErrorString": (c_int, POINTER(c_char_p)),
        "cuDeviceGet": (_int, c_int),
        "cuDeviceGetCount": (_int,),
        "cuDeviceGetAttribute": (_int, c_int, c_int),
        "cuDevicePrimaryCtxRetain": (_pointer, c_int),
        "cuCtxGetCurrent": (_pointer,),
        "cuCtxPushCurrent_v2": (c_void_p,),
        "cuCtxPopCurrent_v2": (_pointer,),
        "cuStreamGetCtx": (c_void_p, _pointer),
        "cuStreamIsCapturing": (c_void_p, _int),
        "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
        "cuThreadExchangeStreamCaptureMode": (_int,),
        "cuEventCreate": (_pointer, c_uint),
        "cuEventRecord": (c_void_p, c_void_p),
        "cuEventQuery": (c_void_p,),
        "cuEventSynchronize": (c_void_p,),
        "cuEventDestroy_v2": (c_void_p,),
        "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
        "cuMemHostAlloc": (_pointer, c_size_t, c_uint),
        "cuMemFreeHost": (c_void_p,),
        "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
        "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
        "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
        "cuMemcpyPeerAsync": (c_uint64, c_void_p, c_uint64, c_void_p, c_size_t, c_void_p),
        "cuLinkCreate_v2": (c_uint, _int, _pointer, _pointer),
        "cuLinkAddData_v2": (
            *(c_void_p, c_int, c_char_p, c_size_t, c_char_p, c_uint, _int, _pointer),
        ),
        "cuLinkComplete": (c_void_p, _pointer, POINTER(c_size_t)),
        "cuLinkDestroy": (c_void_p,),
        "cuLibraryLoadData": (
            *(_pointer, c_char_p, _int, _pointer, c_uint, _int, _pointer, c_uint),
        ),
        "cuLibraryGetKernel": (_pointer, c_void_p, c_char_p),
        "cuLibraryUnload": (c_void_p,),
        "cuKernelGetFunction": (_pointer, c_void_p),
        "cuFuncLoad": (c_void_p,),
        "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, _pointer, _pointer),
    }.items()
}

_UPGRADE = "install NVIDIA's driver of CUDA 12.0 (525) or later"
_BROKEN = (
    "an earlier piece of work on this device failed, and no more is possible in this process: "
    "run it with compute-sanitizer to find which"
)
_OTHER = (
    "is the stream one of this device, and not destroyed? A stream, an event and the memory they "
    "work on belong to one device"
)
_CAPTURE = (
    "a CUDA graph is being captured: pass the stream that captures, not the legacy default stream "
    "(1, or None)"
)

#: What can be done about an error, by its number.
ADVICE = {
    2: "free memory of the device: delete arrays, and empty the caches of the array libraries",
    3: "CUDA cannot be used in a forked child of a process that used it: start processes by "
    "multiprocessing's 'spawn' or 'forkserver'",
    4: "the process is ending",
    34: "libcuda.so.1 is the stub of a CUDA toolkit: put the driver's own before it on the "
    "library path",
    35: _UPGRADE,
    46: "another process has the device for itself",
    100: "nvidia-smi lists the devices; CUDA_VISIBLE_DEVICES may hide them",
    101: "CUDA_VISIBLE_DEVICES may hide devices and number them anew",
    201: _OTHER,
    209: "arraybridge's kernels are for compute capability 7.5 and later",
    222: _UPGRADE,
    400: _OTHER,
    **dict.fromkeys((700, 710, 714, 715, 716, 717, 718, 719), _BROKEN),
    709: "the device's primary context was reset: start a new process",
    803: "the driver's library and its kernel module differ in version: restart the machine",
    804: "the CUDA compatibility package does not serve this device: take it off the library path",
    900: _CAPTURE,
    901: "an earlier call spoilt the capture of a CUDA graph: begin it anew",
    905: "the stream that captures would wait for work outside of the graph: capture that too, or "
    "wait for it before the capture begins",
    906: _CAPTURE,
    907: "the event belongs to the capture of another CUDA graph",
    908: "the capture was begun by another thread",
}


class CUDAError(RuntimeError):
    """A call of NVIDIA's driver failed: `code` is its number; None where there is no driver."""

    def __init__(self, message: str, call: str, code: int | None) -> None:
        super().__init__(message)
        self.call = call
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.call, self.code)


class CUDAMemoryError(CUDAError, MemoryError):
    """The device, or memory that it can reach, is full."""


class Driver:
    """The functions of one driver library: ``driver.cuCtxPushCurrent(context)``.

    A function is looked up by its first call: ``lookup(name)`` gives its address, or 0. It takes
    what its entry in `FUNCTIONS` says, runs without the GIL, and raises `CUDAError` where it fails.
    """

    def __init__(self, lookup: Callable[[str], int]) -> None:
        self._lookup = lookup
        self.started = False

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        function: Callable[..., int] = self.unchecked(name)

        def check(code: Any, _function: object, _arguments: object) -> Any:
            if code:
                raise failed(self, name, code)
            return code

        function.errcheck = check  # type: ignore[attr-defined]
        setattr(self, name, function)
        return function

    def unchecked(self, name: str) -> Any:
        """Return a function that returns its code: one whose failure is an answer."""
        return ctypes.CFUNCTYPE(c_int, *FUNCTIONS[name][1])(self.address(name))

    def has(self, name: str) -> bool:
        """Tell whether the driver has a function, which newer ones do."""
        return bool(self._lookup(FUNCTIONS[name][0]))

    def address(self, name: str) -> int:
        """Return the address of a function, or raise `CUDAError`."""
        address = self._lookup(FUNCTIONS[name][0])
        if not address:
            raise CUDAError(
                f"{name}: NVIDIA's driver has no such function, it is too old: {_UPGRADE}", name, 35
            )
        return address

    @property
    def version(self) -> int:
        """What ``cuDriverGetVersion`` says: 12040 is CUDA 12.4."""
        version = c_int()
        self.cuDriverGetVersion(version)
        return version.value

    def start(self) -> None:
        """Call ``cuInit``, on the first call; check that the driver works, and is not too old."""
        if self.started:
            return
        old = _too_old(self.version)
        if old:
            raise CUDAError(f"cuDriverGetVersion: {old}", "cuDriverGetVersion", 35)
        self.cuInit(0)
        self.started = True


def failed(driver: Driver, call: str, code: int) -> CUDAError:
    """Make the error for a call that returned a code, with the driver's name and meaning for it."""
    name = _said(driver, "cuGetErrorName", code)
    words = f"{name} ({code})" if name else f"error {code}"
    meaning = _said(driver, "cuGetErrorString", code)
    text = f"{call}: {words}{f', {meaning}' if meaning else ''}"
    if code in ADVICE:
        text += f". {ADVICE[code][:1].upper()}{ADVICE[code][1:]}"
    return (CUDAMemoryError if code == 2 else CUDAError)(text, call, code)


def _said(driver: Driver, function: str, code: int) -> str:
    """Return what the driver calls an error; "" where it does not know it."""
    said = c_char_p()
    try:
        unknown = driver.unchecked(function)(code, said)
    except CUDAError:  # there is no such function
        return ""
    return "" if unknown else (said.value or b"").decode(errors="replace")


def installed() -> Driver:
    """Return this process's driver, loaded on the first call.

    CUDAError where there is none, or this process was forked from one that used it.
    """
    return _driver or _load()


_driver: Driver | None = None
_forked = False  # whether the parent used the driver
_forget: list[Callable[[], None]] = []


def _load() -> Driver:
    global _driver
    if _forked:
        raise CUDAError(f"cuInit: {ADVICE[3]}", "cuInit", 3)
    names = _NAMES.get(sys.platform, _LINUX)
    errors = []
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            errors.append(str(error))
        else:
            _driver = _driver or Driver(_symbols(library))
            return _driver
    raise CUDAError(f"there is no NVIDIA driver ({errors[0]}): {_UPGRADE}", names[0], None)


def _symbols(library: ctypes.CDLL) -> Callable[[str], int]:
    def lookup(symbol: str) -> int:
        try:
            return ctypes.cast(library[symbol], c_void_p).value or 0
        except AttributeError:
            return 0

    return lookup


def _too_old(version: int) -> str | None:
    if version >= LEAST:
        return None
    return (
        f"NVIDIA's driver is too old: it has CUDA {version // 1000}.{version % 1000 // 10}: "
        f"{_UPGRADE}"
    )


def problem() -> str | None:
    """Say why there is no driver to use, without starting it; None where there seems to be one."""
    try:
        return _too_old(installed().version)
    except CUDAError as error:
        return str(error)


def install(driver: Driver | None) -> None:
    """Use another driver from now on (a test's), or the system's again; forget all handles."""
    global _driver, _forked
    _driver, _forked = driver, False
    for forget in _forget:
        forget()


def forgetting(forget: Callable[[], None]) -> Callable[[], None]:
    """Decorate a function that drops what was had of the driver: the next one knows none of it."""
    _forget.append(forget)
    return forget


def _after_fork_in_child() -> None:
    """Drop every handle of a driver that was started: it does not work in a child."""
    global _forked
    if _driver is not None and _driver.started:
        install(None)
        _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
