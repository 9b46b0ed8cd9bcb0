"""The C interface of NVIDIA's driver: the functions that arraybridge calls, and their errors.

The first call that needs the library (``libcuda.so.1``) loads it, and the first
that needs a device starts it (``cuInit``). A call that fails raises a `CUDAError` with the call,
the driver's error, and for common errors a remedy. Source: CUDA driver API reference, 13.0; all but
`cuFuncLoad` (12.4) are in 12.0 as well.
"""

import ctypes
import os
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

#: The oldest driver, by ``cuDriverGetVersion``: CUDA 12.0, the first with libraries
#: (``cuLibraryLoadData``), which work for every device.
OLDEST_DRIVER = 12000

_NAMES = ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")

_int, _pointer = POINTER(c_int), POINTER(c_void_p)

#: Name -> (its symbol in the library, its argument types); all return an error code.
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
        "cuStreamIsCapturing": (c_void_p, _int),
        "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
        "cuThreadExchangeStreamCaptureMode": (_int,),
        "cuEventCreate": (_pointer, c_uint),
        "cuEventRecord": (c_void_p, c_void_p),
        "cuEventQuery": (c_void_p,),
        "cuEventSynchronize": (c_void_p,),
        "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
        "cuMemHostAlloc": (_pointer, c_size_t, c_uint),
        "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
        "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
        "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
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

#: Error numbers -> the remedy.
ADVICE = {
    (2,): "free memory of the device: delete arrays, and empty the caches of the array libraries",
    (3,): "CUDA cannot be used in a forked child of a process that used it: start processes with "
    "multiprocessing's 'spawn' or 'forkserver'",
    (35, 222): _UPGRADE,
    (100, 101): "nvidia-smi lists the devices; CUDA_VISIBLE_DEVICES may hide and renumber them",
    (201, 400): "the stream may be destroyed, or belong to another device: a stream, its events "
    "and its memory must be on one device",
    (700, 709, 710, *range(714, 720)): "earlier work on this device failed, and the process can no "
    "longer use it: run it with compute-sanitizer to find the failure",
    (900, 906): "a CUDA graph is being captured: pass the stream that captures, not the legacy "
    "default stream (1, or None)",
}


class CUDAError(RuntimeError):
    """A call of NVIDIA's driver failed: `code` is the error's number; None without a driver."""

    def __init__(self, message: str, call: str, code: int | None) -> None:
        super().__init__(message)
        self.call = call
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.call, self.code)


class CUDAMemoryError(CUDAError, MemoryError):
    """The memory of the device, or host memory for it, is full."""


class Driver:
    """The functions of one driver library: ``driver.cuCtxPushCurrent(context)``.

    The first call of a function looks it up: ``lookup(name)`` returns its address, or 0. It has the
    argument types in `FUNCTIONS`, runs without the GIL, and raises `CUDAError` if it fails.
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
        """Return a function that returns its error code instead of raising."""
        return ctypes.CFUNCTYPE(c_int, *FUNCTIONS[name][1])(self.address(name))

    def has(self, name: str) -> bool:
        """Whether the driver has a function, which older ones may lack."""
        return bool(self._lookup(FUNCTIONS[name][0]))

    def address(self, name: str) -> int:
        """Return the address of a function, or raise `CUDAError`."""
        address = self._lookup(FUNCTIONS[name][0])
        if not address:
            raise CUDAError(
                f"{name}: NVIDIA's driver is too old to have this function: {_UPGRADE}", name, 35
            )
        return address

    def problem(self) -> str | None:
        """Return why the driver is too old; None if it is not."""
        version = c_int()
        self.cuDriverGetVersion(version)
        if version.value >= OLDEST_DRIVER:
            return None
        major, minor = divmod(version.value, 1000)
        return f"NVIDIA's driver is too old: it has CUDA {major}.{minor // 10}: {_UPGRADE}"

    def start(self) -> None:
        """Call ``cuInit`` once."""
        if not self.started:
            self.cuInit(0)
            self.started = True


def failed(driver: Driver, call: str, code: int) -> CUDAError:
    """Make the error for a code that a call returned, with the driver's name and description."""
    name, meaning = (_text(driver, get, code) for get in ("cuGetErrorName", "cuGetErrorString"))
    text = f"{call}: {name or 'error'} ({code}){f', {meaning}' if meaning else ''}"
    advice = next((text for codes, text in ADVICE.items() if code in codes), "")
    text += advice and f". {advice[:1].upper()}{advice[1:]}"
    return (CUDAMemoryError if code == 2 else CUDAError)(text, call, code)


def _text(driver: Driver, function: str, code: int) -> str:
    """Return the driver's text for an error; "" if it does not know it."""
    text = c_char_p()
    unknown = driver.unchecked(function)(code, text)
    return "" if unknown else (text.value or b"").decode(errors="replace")


def installed() -> Driver:
    """Return this process's driver; CUDAError without one, or if a parent process used it."""
    return _driver or _load()


_driver: Driver | None = None
_forked = False  # whether the parent used the driver
_forget: list[Callable[[], None]] = []


def _load() -> Driver:
    global _driver
    if _forked:
        raise CUDAError(f"cuInit: {ADVICE[3,]}", "cuInit", 3)
    errors = []
    for name in _NAMES:
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            errors.append(str(error))
        else:
            _driver = _driver or Driver(_symbols(library))
            return _driver
    raise CUDAError(f"no NVIDIA driver was found ({errors[0]}): {_UPGRADE}", _NAMES[0], None)


def _symbols(library: ctypes.CDLL) -> Callable[[str], int]:
    def lookup(symbol: str) -> int:
        try:
            return ctypes.cast(library[symbol], c_void_p).value or 0
        except AttributeError:
            return 0

    return lookup


def problem() -> str | None:
    """Return why the driver cannot be used, without starting it; None if it seems usable."""
    try:
        return installed().problem()
    except CUDAError as error:
        return str(error)


def install(driver: Driver | None) -> None:
    """Use another driver (in tests), or with None the system's again; forget all handles."""
    global _driver, _forked
    _driver, _forked = driver, False
    for forget in _forget:
        forget()


def forgetting(forget: Callable[[], None]) -> Callable[[], None]:
    """Decorate a function that forgets handles of the driver, called when it is replaced."""
    _forget.append(forget)
    return forget


def _after_fork_in_child() -> None:
    """Drop every handle if the driver was started: it does not work in a forked child."""
    global _forked
    if _driver is not None and _driver.started:
        install(None)
        _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
