"""A CUDA driver without a device: what `kernels.cuda.driver` calls, in Python.

`Stub.lookup` goes where a library's symbols are looked up. The stub has devices, their primary
contexts, a stack of current contexts for each thread, streams, events and graph captures, with the
driver's rules about which belongs to which; it records each call (`Call`), and fails one with any
code on request. Kernels do not run: see `emulated_gpu`.
"""

from __future__ import annotations

import ctypes
import threading
from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from itertools import count
from typing import Any, NamedTuple

from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build, driver
from arraybridge.kernels.cuda.plan_types import THREADS, Plan

__all__ = ["Call", "Code", "Stub", "installed", "machine", "ptx"]

INVALID_VALUE, NO_MEMORY, NOT_INITIALIZED, INVALID_DEVICE = 1, 2, 3, 101
INVALID_IMAGE, INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND = 200, 201, 400, 500
CAPTURE_UNSUPPORTED, CAPTURE_ISOLATION, CAPTURE_IMPLICIT, UNKNOWN = 900, 905, 906, 999
NAMES = {
    NO_MEMORY: (b"CUDA_ERROR_OUT_OF_MEMORY", b"out of memory"),
    NOT_INITIALIZED: (b"CUDA_ERROR_NOT_INITIALIZED", b"initialization error"),
    INVALID_DEVICE: (b"CUDA_ERROR_INVALID_DEVICE", b"invalid device ordinal"),
    INVALID_HANDLE: (b"CUDA_ERROR_INVALID_HANDLE", b"invalid resource handle"),
    CAPTURE_ISOLATION: (b"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", b"dependency created on uncap"),
    CAPTURE_IMPLICIT: (b"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", b"would make the legacy stream dep"),
}
LEGACY, PER_THREAD = 1, 2
GLOBAL, RELAXED = 0, 2


class Call(NamedTuple):
    """One call: its name, and the arguments that are not results, as Python's values."""

    name: str
    arguments: tuple[Any, ...]


class Code(Exception):
    """Raised by a function of the stub: return this code."""


class Stub:
    """A driver: a device for each of the capabilities.

    `calls` has those of all threads, in order. A function whose name is in `fail` does nothing, and
    returns that code. `raised` is what went wrong inside calls, which returned an unknown error.
    """

    #: As `driver.FUNCTIONS`: name -> (symbol, types of the arguments).
    table = driver.FUNCTIONS

    def __init__(self, *capabilities: tuple[int, int]) -> None:
        self.capabilities = capabilities or ((9, 0),)
        self.calls: list[Call] = []
        self.fail: dict[str, int] = {}
        self.raised: list[Exception] = []
        self.started = False
        self.retained: dict[int, int] = {}  # device -> how often its primary context is
        self.streams: dict[int, int] = {}  # handle -> context
        self.destroyed: set[int] = set()  # handles of streams: to use one may end the process
        self.captures: dict[int, set[int]] = {}  # the stream that began -> those that have joined
        self.events: dict[int, int] = {}
        self.recorded: dict[int, int] = {}  # event -> the stream
        self.links: dict[int, bytes | None] = {}
        self.libraries: dict[int, bytes] = {}
        self.kernels: dict[int, tuple[Any, ...]] = {}
        self.functions: dict[int, tuple[int, int]] = {}  # handle -> (context, kernel)
        self.loaded: set[int] = set()  # those whose code is on the device
        self.pinned: dict[int, Any] = {}
        self.pointers: dict[range, int] = {}  # device memory: addresses -> the device
        self.managed: set[range] = set()
        self._threads = threading.local()
        self._handles = count(0x7000_0000, 0x100)
        self._callbacks: dict[str, Any] = {}
        self._lock = threading.RLock()

    # -- for tests

    def lookup(self, symbol: str) -> int:
        """The address of a function, as of a library's symbol."""
        name = symbol.partition("_v")[0]
        assert self.table[name][0] == symbol
        if name not in self._callbacks:
            types = [c_void_p if _is_pointer(t) else t for t in self.table[name][1]]
            self._callbacks[name] = ctypes.CFUNCTYPE(c_int, *types)(self._answer(name))
        return ctypes.cast(self._callbacks[name], c_void_p).value or 0

    def stream(self, device: int = 0, handle: int = 0) -> int:
        """Make a stream, as another library does; a handle that was destroyed may come again."""
        handle = handle or next(self._handles)
        self.destroyed.discard(handle)
        self.streams[handle] = self.context(device)
        return handle

    def destroy(self, stream: int) -> None:
        """Destroy a stream, as its owner does: what is on it goes on, its handle is none."""
        del self.streams[stream]
        self.destroyed.add(stream)

    @staticmethod
    def context(device: int) -> int:
        """The primary context of a device."""
        return 0x1000 * (device + 1)

    @property
    def stack(self) -> list[int]:
        """The contexts that are current in this thread, the last one above the others."""
        if not hasattr(self._threads, "stack"):
            self._threads.stack = []
        return self._threads.stack

    @contextmanager
    def capture(self, stream: int) -> Iterator[set[int]]:
        """Capture what is put on a stream; yields the streams that take part."""
        self.captures[stream] = {stream}
        try:
            yield self.captures[stream]
        finally:
            del self.captures[stream]

    def called(self, *names: str) -> list[Call]:
        """The calls of some functions, in order."""
        return [call for call in self.calls if call.name in names]

    # -- the machinery of a call

    def _answer(self, name: str) -> Callable[..., int]:
        def answer(*arguments: Any) -> int:
            with self._lock:
                given = tuple(arguments)
                self.calls.append(Call(name, given))
                if name in self.fail:
                    return self.fail[name]
                quiet = ("cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString")
                if not self.started and name not in quiet:
                    return NOT_INITIALIZED
                try:
                    getattr(self, name)(*arguments)
                except Code as code:
                    return int(code.args[0])
                except Exception as error:  # a fault of a kernel, or of the stub's own
                    self.raised.append(error)
                    return UNKNOWN
            return 0

        return answer

    def _context_of(self, stream: int | None) -> int:
        """The context of a stream; the one that is current for the default streams."""
        if not stream:
            raise Code(INVALID_HANDLE)  # never asked for here: no stream 0
        if stream in (LEGACY, PER_THREAD):
            return self._current()
        if stream in self.destroyed:
            raise AssertionError(f"the stream {stream:#x} was destroyed")
        if stream not in self.streams:
            raise Code(INVALID_HANDLE)
        return self.streams[stream]

    def _current(self) -> int:
        if not self.stack:
            raise Code(INVALID_CONTEXT)
        return self.stack[-1]

    def _capture_of(self, stream: int) -> set[int] | None:
        return next((joined for joined in self.captures.values() if stream in joined), None)

    def _put(self, stream: int | None, context: int) -> None:
        """Put work of a context on a stream."""
        if self._context_of(stream) != context:
            raise Code(INVALID_HANDLE)
        if stream == LEGACY and self.captures:
            for joined in self.captures.values():
                joined.clear()  # the capture is spoilt
            raise Code(CAPTURE_IMPLICIT)

    def _unsafe(self) -> None:
        """What a capture forbids a thread that is not relaxed."""
        if self.captures and self._mode() != RELAXED:
            raise Code(CAPTURE_UNSUPPORTED)

    def _mode(self) -> int:
        return getattr(self._threads, "mode", GLOBAL)

    # -- the functions

    def cuInit(self, flags: int) -> None:
        self.started = True

    def cuDriverGetVersion(self, version: int) -> None:
        _set(c_int, version, 13000)

    def cuGetErrorName(self, code: int, name: int) -> None:
        self._say(code, name, 0)

    def cuGetErrorString(self, code: int, text: int) -> None:
        self._say(code, text, 1)

    def _say(self, code: int, where: int, which: int) -> None:
        if code not in NAMES:
            raise Code(INVALID_VALUE)
        c_char_p.from_address(where).value = NAMES[code][which]

    def cuDeviceGet(self, device: int, ordinal: int) -> None:
        if not 0 <= ordinal < len(self.capabilities):
            raise Code(INVALID_DEVICE)
        _set(c_int, device, ordinal)

    def cuDeviceGetCount(self, number: int) -> None:
        _set(c_int, number, len(self.capabilities))

    def cuDeviceGetAttribute(self, value: int, attribute: int, device: int) -> None:
        _set(c_int, value, self.capabilities[device][{75: 0, 76: 1}[attribute]])

    def cuDevicePrimaryCtxRetain(self, context: int, device: int) -> None:
        self.retained[device] = self.retained.get(device, 0) + 1
        _set(c_void_p, context, self.context(device))

    def cuCtxGetCurrent(self, context: int) -> None:
        _set(c_void_p, context, self.stack[-1] if self.stack else None)

    def cuCtxPushCurrent(self, context: int) -> None:
        self.stack.append(context)

    def cuCtxPopCurrent(self, context: int) -> None:
        self._current()
        _set(c_void_p, context, self.stack.pop())

    def cuStreamIsCapturing(self, stream: int, status: int) -> None:
        self._context_of(stream)
        if stream == LEGACY and self.captures:
            raise Code(CAPTURE_IMPLICIT)
        _set(c_int, status, int(self._capture_of(stream) is not None))

    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> None:
        before = self._mode()
        self._threads.mode = c_int.from_address(mode).value
        _set(c_int, mode, before)

    def cuEventCreate(self, event: int, flags: int) -> None:
        handle = next(self._handles)
        self.events[handle] = self._current()
        _set(c_void_p, event, handle)

    def cuEventRecord(self, event: int, stream: int) -> None:
        self._put(stream, self.events[event])
        self.recorded[event] = stream

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        self._put(stream, self._context_of(stream))
        here, there = self._capture_of(stream), self._capture_of(self.recorded.get(event, 0))
        if here is not None and there is not here:
            raise Code(CAPTURE_ISOLATION)
        if there is not None:
            there.add(stream)

    def cuEventQuery(self, event: int) -> None:
        if event not in self.events:
            raise Code(INVALID_HANDLE)

    def cuEventSynchronize(self, event: int) -> None:
        self._unsafe()
        self.cuEventQuery(event)

    def cuPointerGetAttribute(self, value: int, attribute: int, address: int) -> None:
        for where, device in self.pointers.items():
            if address in where:
                known = {8: where in self.managed, 9: device}
                _set(c_int, value, known[attribute])
                return
        raise Code(INVALID_VALUE)

    def cuMemHostAlloc(self, pointer: int, nbytes: int, flags: int) -> None:
        self._unsafe()
        block = ctypes.create_string_buffer(nbytes)
        self.pinned[ctypes.addressof(block)] = block
        _set(c_void_p, pointer, ctypes.addressof(block))

    def cuMemcpyHtoDAsync(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        self._put(stream, self._current())
        ctypes.memmove(dst, src, nbytes)

    def cuMemcpyDtoHAsync(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        self.cuMemcpyHtoDAsync(dst, src, nbytes, stream)

    def cuMemcpyDtoDAsync(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        self._put(stream, self._current())

    def cuLinkCreate(self, number: int, options: int, values: int, state: int) -> None:
        self._current()
        self._unsafe()
        handle = next(self._handles)
        self.links[handle] = None
        _set(c_void_p, state, handle)

    def cuLinkAddData(
        self, state: int, kind: int, data: bytes, size: int, name: bytes, n: int, o: int, v: int
    ) -> None:
        assert (kind, size) == (1, len(data) + 1)
        self.links[state] = data

    def cuLinkComplete(self, state: int, code: int, size: int) -> None:
        text = self.links[state]
        assert text is not None
        data = b"cubin of sm_%d%d\n" % self.capabilities[self._current() // 0x1000 - 1] + text
        self.links[state] = data  # lives as long as the state
        address = ctypes.cast(c_char_p(data), c_void_p).value
        _set(c_void_p, code, address)
        _set(c_size_t, size, len(data))

    def cuLinkDestroy(self, state: int) -> None:
        del self.links[state]

    def cuLibraryLoadData(
        self, library: int, code: bytes, o: int, v: int, n: int, lo: int, lv: int, ln: int
    ) -> None:
        self._unsafe()
        if not code.startswith(b"cubin of sm_"):
            raise Code(INVALID_IMAGE)
        handle = next(self._handles)
        self.libraries[handle] = code
        _set(c_void_p, library, handle)

    def cuLibraryUnload(self, library: int) -> None:
        del self.libraries[library]

    def cuLibraryGetKernel(self, kernel: int, library: int, name: bytes) -> None:
        code = self.libraries[library].decode()
        if f".entry {name.decode()}" not in code:
            raise Code(NOT_FOUND)
        handle = next(self._handles)
        told = next(line for line in code.splitlines() if line.startswith("// ("))
        self.kernels[handle] = literal_eval(told[3:])
        _set(c_void_p, kernel, handle)

    def cuKernelGetFunction(self, function: int, kernel: int) -> None:
        self._unsafe()
        handle = next(self._handles)
        self.functions[handle] = (self._current(), kernel)
        _set(c_void_p, function, handle)

    def cuFuncLoad(self, function: int) -> None:
        if function not in self.loaded:
            self._unsafe()
            self.loaded.add(function)

    def cuLaunchKernel(self, function: int, *rest: Any) -> None:
        context, _ = self.functions[function]
        Stub.cuFuncLoad(self, function)
        self._put(rest[7], context)
        if self._current() != context:
            raise Code(INVALID_CONTEXT)

    def launched(self, function: int, *rest: Any) -> tuple[Plan, int, int]:
        """What a launch does: a plan and the two addresses, read as the driver reads them."""
        grid, *others, threads, _, _, shared, _, arguments, extra = rest
        assert (others, threads, shared, extra) == ([1, 1], THREADS, 0, None)
        _, kernel = self.functions[function]
        return _read(grid, arguments, *self.kernels[kernel])


def ptx(plan: Plan, capability: tuple[int, int] = build.OLDEST) -> str:
    """In the place of `build.ptx`: no code, but what the stub must know to interpret the kernel."""
    lengths = len(plan.extents), len(plan.divisions), len(plan.steps)
    told = (plan.kernel, plan.constants, *lengths)
    return f"// {told!r}\n.entry {build.entry(plan.kernel)}\n"


def _read(
    grid: int, arguments: int, name: str, constants: tuple[Any, ...], *lengths: int
) -> tuple[Plan, int, int]:
    """Read the arguments of a kernel as the driver does: the plan, and the two addresses."""
    kinds = [ctypes.c_int64] * 2
    for number, kind in zip(
        lengths, (ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64), strict=True
    ):
        kinds += [kind] * number
    pointers = (c_void_p * len(kinds)).from_address(arguments)
    values = [
        kind.from_address(pointer).value for kind, pointer in zip(kinds, pointers, strict=True)
    ]
    dst, src, *values = values
    parts, start = [], 0
    for number in lengths:
        parts.append(tuple(values[start : start + number]))
        start += number
    return Plan(name, constants, grid, *parts), dst, src


def _set(kind: Any, address: int, value: Any) -> None:
    kind.from_address(address).value = value


def _is_pointer(kind: Any) -> bool:
    return kind is not c_void_p and hasattr(kind, "contents")


@contextmanager
def installed(stub: Stub) -> Iterator[Stub]:
    """Use a stub as this process's driver, for a ``with`` block."""
    driver.install(driver.Driver(stub.lookup))
    try:
        yield stub
    finally:
        driver.install(None)
        if stub.raised:
            raise stub.raised[0]


@contextmanager
def machine(folder: object, stub: Any) -> Iterator[Any]:
    """Use a stub as the driver, a folder as the disk cache, and no compiler: for a fixture."""
    import pytest

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARRAYBRIDGE_CACHE_DIR", str(folder))
        patch.setattr(build, "ptx", ptx)
        patch.setattr(cuda, "_missing", lambda: None)
        with installed(stub):
            yield stub
