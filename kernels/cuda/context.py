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

from arraybridge.kernels.cuda import driver
from arraybridge.kernels.cuda.driver import CUDAError

__all__ = [
    "LEGACY",
    "PER_THREAD",
    "Device",
    "capturing",
    "current",
    "device",
    "device_of",
    "handle",
    "order",
    "relaxed",
]

LEGACY, PER_THREAD = 1, 2

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_EVENTS = 16  # that a device keeps


class Device(NamedTuple):
    """A device that is ready to be used.

    Attributes
    ----------
    ordinal : int
        Its number, as the array libraries count.
    context : int
        Its primary context, retained until the process ends.
    capability : tuple of int
        Such as ``(9, 0)``.
    events : deque of int
        Events that are free.
    """

    ordinal: int
    context: int
    capability: tuple[int, int]
    events: deque[int]


_devices: dict[int, Device] = {}
_lock = threading.Lock()


def device(ordinal: int) -> Device:
    """Return a device, its primary context retained on the first call.

    Raises
    ------
    CUDAError
        Where there is no such device, no driver, or no memory for a context.
    """
    return _devices.get(ordinal) or _retained(ordinal)


def _retained(ordinal: int) -> Device:
    cuda = driver.installed()
    cuda.start()
    number, value, context = c_int(), c_int(), c_void_p()
    try:
        cuda.cuDeviceGet(number, ordinal)
    except CUDAError as error:
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


@driver.forgetting
def _forget() -> None:
    global _lock
    _lock = threading.Lock()  # a thread of the parent may have had it
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
    """Return the driver's handle of a stream that work can be put on.

    Parameters
    ----------
    stream : int or None
        By the standard's numbering.

    Raises
    ------
    ValueError
        For 0, which the standard forbids as ambiguous; for -1, which asks for no order and is no
        stream; for any other negative number.
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


def order(
    device: Device, waiting: int | None, after: int | None, *, of: Device | None = None
) -> None:
    """Let what is put on a stream from now on wait for what is on another one now.

    The host waits for nothing. While one of the streams captures a CUDA graph this is an edge of
    it.

    Parameters
    ----------
    device : Device
        Of the stream that waits.
    waiting, after : int or None
        Streams by the standard's numbering; an `after` of -1 asks for no order.
    of : Device, optional
        Of the other stream, where that is not `device`.

    Raises
    ------
    CUDAError
        Where a stream is another device's, or does not exist.
    """
    of = of or device
    if after == -1:
        return
    first, then = handle(after), handle(waiting)
    if first == then and of is device:
        return
    cuda = driver.installed()
    with current(of):
        event = _event(of)
        try:
            cuda.cuEventRecord(event, first)
            if of is device:
                cuda.cuStreamWaitEvent(then, event, 0)
            else:
                with current(device):
                    cuda.cuStreamWaitEvent(then, event, 0)
        except BaseException:
            with suppress(CUDAError):
                cuda.cuEventDestroy(event)
            raise
        # What waits for it waits for what was recorded: it can be recorded again at once.
        if len(of.events) < _EVENTS:
            of.events.append(event)
        else:
            cuda.cuEventDestroy(event)


def _event(device: Device) -> int:
    """Take a free event, or make one; the device's context is current."""
    try:
        return device.events.pop()
    except IndexError:
        event = c_void_p()
        driver.installed().cuEventCreate(event, _DISABLE_TIMING)
        return event.value or 0


def device_of(address: int) -> int:
    """Return the number of the device whose memory an address lies in.

    Raises
    ------
    CUDAError
        Where CUDA knows no such memory.
    """
    cuda = driver.installed()
    cuda.start()
    ordinal = c_int()
    cuda.cuPointerGetAttribute(addressof(ordinal), _DEVICE_ORDINAL, address)
    return ordinal.value
