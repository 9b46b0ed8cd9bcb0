"""Devices, their primary contexts, and streams.

Only primary contexts are used, which are those of PyTorch, CuPy, JAX and CUDA's runtime: retained
once a process, and made current for as long as a call takes where another one is. Nothing here
makes a context or waits for a device.

Streams are numbered as in the array API standard's ``__dlpack__``: None and 1 are the legacy
default stream, 2 the default stream of this thread, and any larger number the handle of a stream.
The driver's own handles of the two are 1 and 2 as well.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import addressof, c_int, c_void_p
from typing import NamedTuple

import arraybridge.kernels.cuda.driver as driver
from arraybridge.kernels.cuda.driver import CUDAError

LEGACY, PER_THREAD = 1, 2

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_MEMORY_TYPE, _IS_MANAGED, _DEVICE_ORDINAL = 2, 8, 9  # CU_POINTER_ATTRIBUTE_*
_DEVICE = 2  # CU_MEMORYTYPE_DEVICE
_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_INVALID_VALUE, _NO_DEVICE, _INVALID_DEVICE = 1, 100, 101  # CUDA_ERROR_*
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_EVENTS = 16  # that a device keeps


class Device(NamedTuple):
    """A device that is ready to be used."""

    ordinal: int  # its number, as the array libraries count
    context: int  # its primary context, retained until the process ends
    capability: tuple[int, int]  # such as ``(9, 0)``
    events: deque[int]  # events that are free


_devices: dict[int, Device] = {}
_lock = threading.Lock()
# event -> (device, stream, what is kept until it has happened), the oldest first
_held: dict[int, tuple[int, int, object]] = {}
_holding = threading.RLock()
_lost: list[object] = []


def device(ordinal: int) -> Device:
    """Return a device, its primary context retained on the first call."""
    return _devices.get(ordinal) or _retained(ordinal)


def _retained(ordinal: int) -> Device:
    cuda = driver.installed()
    cuda.start()
    number, value, context = c_int(), c_int(), c_void_p()
    try:
        cuda.cuDeviceGet(number, ordinal)
    except CUDAError as error:
        if error.code != _INVALID_DEVICE:
            raise
        count = c_int()
        with suppress(CUDAError):
            cuda.cuDeviceGetCount(count)
        text = f"there is no CUDA device {ordinal}, devices here: {count.value}. {error}"
        raise CUDAError(text, error.call, error.code) from None
    capability = []
    for attribute in (_MAJOR, _MINOR):
        cuda.cuDeviceGetAttribute(value, attribute, number)
        capability.append(value.value)
    with _lock:
        if ordinal not in _devices:  # no other thread was quicker
            cuda.cuDevicePrimaryCtxRetain(context, number)
            known = (capability[0], capability[1])
            _devices[ordinal] = Device(ordinal, context.value or 0, known, deque())
    return _devices[ordinal]


def count() -> int:
    """Return how many devices there are; 0 where the driver finds none, CUDAError without one."""
    cuda = driver.installed()
    number = c_int()
    try:
        cuda.start()
        cuda.cuDeviceGetCount(number)
    except CUDAError as error:
        if error.code != _NO_DEVICE:
            raise
    return number.value


@driver.forgetting
def _forget() -> None:
    global _lock, _holding
    _lock, _holding = threading.Lock(), threading.RLock()  # a thread of the parent may have them
    _lost.append(dict(_held))  # in a child nothing is released, as the parent's device is at work
    _held.clear()
    _devices.clear()


@contextmanager
def current(device: Device) -> Iterator[None]:
    """Make a device's primary context this thread's current one, for a ``with`` block."""
    cuda = driver.installed()
    now = c_void_p()
    cuda.cuCtxGetCurrent(now)
    if now.value == device.context:
        yield
        return
    cuda.cuCtxPushCurrent(device.context)
    try:
        yield
    except BaseException:
        with suppress(CUDAError):  # the first error says more
            cuda.cuCtxPopCurrent(now)
        raise
    cuda.cuCtxPopCurrent(now)


def handle(stream: int | None) -> int:
    """Return the driver's handle of a stream for work, from the standard's numbering.

    ValueError for 0, which the standard forbids as ambiguous; for -1, which asks for no order and
    is no stream; for any other negative number.
    """
    if stream is None:
        return LEGACY
    if stream > 0:
        return int(stream)
    if stream == 0:
        raise ValueError(
            "stream=0 is ambiguous: pass 1 for the legacy default stream, 2 for the default "
            "stream of this thread"
        )
    what = "asks for no order, and is no stream" if stream == -1 else "is no stream"
    raise ValueError(f"stream={stream} {what}: pass None, 1, 2 or the handle of a stream")


def capturing(device: Device, stream: int | None) -> bool:
    """Tell whether what is put on a stream becomes part of a CUDA graph."""
    status = c_int()
    with current(device):
        driver.installed().cuStreamIsCapturing(handle(stream), status)
    return status.value != 0


@contextmanager
def relaxed() -> Iterator[None]:
    """Let this thread load code and allocate, for a ``with`` block, while a graph is captured.

    Source: pytorch#174724; CUDA driver API, ``cuThreadExchangeStreamCaptureMode``.
    """
    cuda = driver.installed()
    mode = c_int(_RELAXED)
    cuda.cuThreadExchangeStreamCaptureMode(mode)
    try:
        yield
    finally:
        cuda.cuThreadExchangeStreamCaptureMode(mode)


def order(device: int, waiting: int | None, after: int | None, *, of: int | None = None) -> None:
    """Let what is put on a stream from now on wait for what is on another one now.

    The host waits for nothing. While one of the streams captures a CUDA graph this is an edge of
    it. Streams are by the standard's numbering; an `after` of -1 asks for no order. `device` is the
    one whose stream waits, and `of` that of the other stream, where it is another one. CUDAError
    where a stream is another device's, or does not exist.
    """
    if after == -1:
        return
    first, then = handle(after), handle(waiting)
    here = _known(device)
    there = here if of is None else _known(of)
    if first == then and there is here:
        return
    cuda = driver.installed()
    with current(there):
        event = _recorded(there, first)
        try:
            if there is here:
                cuda.cuStreamWaitEvent(then, event, 0)
            else:
                with current(here):
                    cuda.cuStreamWaitEvent(then, event, 0)
        finally:
            # What waits for it waits for what was recorded: it can be recorded again at once.
            _give_back(there, event)


def wait(device: int, stream: int | None) -> None:
    """Wait on the host until a stream of a device has done what is on it now."""
    queue, where = handle(stream), _known(device)
    with current(where), relaxed():
        event = _recorded(where, queue)
        driver.installed().cuEventSynchronize(event)
        _give_back(where, event)


def _recorded(device: Device, stream: int) -> int:
    """Record an event on a stream; the device's context is current."""
    cuda = driver.installed()
    try:
        event = device.events.pop()
    except IndexError:
        made = c_void_p()
        cuda.cuEventCreate(made, _DISABLE_TIMING)
        event = made.value or 0
    try:
        cuda.cuEventRecord(event, stream)
    except BaseException:
        with suppress(CUDAError):
            cuda.cuEventDestroy(event)
        raise
    return event


def _give_back(device: Device, event: int) -> None:
    if len(device.events) < _EVENTS:
        device.events.append(event)
    else:
        driver.installed().cuEventDestroy(event)


def hold(device: int, stream: int | None, owner: object) -> None:
    """Keep an object alive until a stream of a device has done what is on it now.

    For memory that a stream reads and whose owner cannot be told: it is released by a later call,
    here or of `order`, once the stream has come so far; nothing waits. A stream that captures a
    CUDA graph does nothing yet, and whoever replays the graph keeps its memory: this then does
    nothing. Where the driver fails (CUDAError) the object is kept for good.
    """
    queue = handle(stream)
    try:
        _hold(_known(device), queue, owner)
    except CUDAError:
        _lost.append(owner)
        raise


def _hold(where: Device, queue: int, owner: object) -> None:
    if capturing(where, queue):
        return
    with current(where), _holding:
        _held[_recorded(where, queue)] = where.ordinal, queue, owner


def _known(ordinal: int) -> Device:
    """Return a device, and let go of what its streams have done with."""
    found = device(ordinal)
    if _held:
        kept = list(_held.items())  # released on return, outside the lock: that may run anything
        busy = set()
        with current(found), relaxed(), _holding:
            for event, entry in kept:
                if entry[0] != ordinal or entry[1] in busy:
                    continue
                # A stream's events happen in order. Where its handle is another stream's by now,
                # or it is a thread's default one, something is kept for longer than it must be.
                if not _happened(event):
                    busy.add(entry[1])
                elif _held.get(event) is entry:  # no garbage collection came here meanwhile
                    del _held[event]
                    _give_back(found, event)
    return found


def _happened(event: int) -> bool:
    try:
        driver.installed().cuEventQuery(event)
    except CUDAError:  # not yet; or the device does not work any more, as the next call will say
        return False
    return True


class Memory(NamedTuple):
    """What CUDA knows of an address."""

    ordinal: int  # the number of its device
    managed: bool  # whether the host and the devices have it in turn
    own: bool  # whether it is the device's alone: neither managed nor the host's


def memory_of(address: int) -> Memory | None:
    """Return what CUDA knows of the memory that an address lies in; None where it knows none."""
    cuda = driver.installed()
    cuda.start()
    value, found = c_int(), []
    try:
        for which in (_DEVICE_ORDINAL, _IS_MANAGED, _MEMORY_TYPE):
            cuda.cuPointerGetAttribute(addressof(value), which, address)
            found.append(value.value)
    except CUDAError as error:
        if error.code != _INVALID_VALUE:
            raise
        return None
    ordinal, managed, kind = found
    return Memory(ordinal, bool(managed), kind == _DEVICE and not managed)
