"""Devices, their primary contexts, and streams.

Only primary contexts are used, as by PyTorch, CuPy, JAX and CUDA's runtime: each is retained once
per process, and made current during a call if another one is. Nothing here makes a context or waits
for a device.

Streams are numbered as in the array API standard's ``__dlpack__``: None and 1 are the legacy
default stream, 2 the default stream of this thread, and any larger number the handle of a stream.
The driver uses 1 and 2 for the two as well.
"""

import threading
from collections import deque
from ctypes import addressof, c_int, c_void_p
from typing import NamedTuple

import arraybridge.kernels.cuda.driver as driver
from arraybridge.kernels.cuda.driver import CUDAError

LEGACY, PER_THREAD = 1, 2

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_IS_MANAGED, _DEVICE_ORDINAL = 8, 9  # CU_POINTER_ATTRIBUTE_*
_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_INVALID_VALUE, _NO_DEVICE = 1, 100  # CUDA_ERROR_*
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class Device(NamedTuple):
    """A device that is ready for use."""

    ordinal: int  # its number in the array libraries
    context: int  # its primary context, retained until the process ends
    capability: tuple[int, int]  # such as ``(9, 0)``
    events: deque[int]  # events that are free


_devices: dict[int, Device] = {}
_lock = threading.Lock()
# event -> (device, stream, object to keep alive until it has happened), the oldest first
_held: dict[int, tuple[int, int, object]] = {}
_holding = threading.RLock()
_lost: list[object] = []


def device(ordinal: int) -> Device:
    """Return a device; the first call retains its primary context."""
    return _devices.get(ordinal) or _retained(ordinal)


def _retained(ordinal: int) -> Device:
    cuda = driver.installed()
    cuda.start()
    number, value, context = c_int(), c_int(), c_void_p()
    cuda.cuDeviceGet(number, ordinal)
    capability = []
    for attribute in (_MAJOR, _MINOR):
        cuda.cuDeviceGetAttribute(value, attribute, number)
        capability.append(value.value)
    with _lock:
        if ordinal not in _devices:  # another thread may have added it
            cuda.cuDevicePrimaryCtxRetain(context, number)
            known = (capability[0], capability[1])
            _devices[ordinal] = Device(ordinal, context.value or 0, known, deque())
    return _devices[ordinal]


def count() -> int:
    """Return the number of devices; CUDAError without a driver."""
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
    _lock, _holding = threading.Lock(), threading.RLock()  # a parent's thread may have held them
    _lost.append(dict(_held))  # a child releases nothing, as the parent's device may be working
    _held.clear()
    _devices.clear()


def is_current(device: Device) -> bool:
    """Whether a device's primary context is current in this thread."""
    now = c_void_p()
    driver.installed().cuCtxGetCurrent(now)
    return now.value == device.context


class current:
    """Make a device's primary context current in this thread, for a ``with`` block."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __enter__(self) -> None:
        self.pushed = not is_current(self.device)
        if self.pushed:
            driver.installed().cuCtxPushCurrent(self.device.context)

    def __exit__(self, kind: object, *error: object) -> None:
        if self.pushed:
            try:
                driver.installed().cuCtxPopCurrent(c_void_p())
            except CUDAError:
                if kind is None:  # else the first error is more useful
                    raise


def handle(stream: int | None) -> int:
    """Return the driver's handle of a stream; ValueError for 0, ambiguous, and negative ones."""
    if stream is None:
        return LEGACY
    if stream > 0:
        return int(stream)
    raise ValueError(
        f"stream={stream} is not a stream: pass 1 (or None) for the legacy default stream, 2 for "
        "the default stream of this thread, or the handle of a stream"
    )


def capturing(device: Device, stream: int | None) -> bool:
    """Whether work on a stream becomes part of a CUDA graph."""
    status = c_int()
    with current(device):
        driver.installed().cuStreamIsCapturing(handle(stream), status)
    return status.value != 0


class relaxed:
    """Allow this thread to load code and allocate while a graph is captured, for a ``with`` block.

    Source: pytorch#174724; CUDA driver API, ``cuThreadExchangeStreamCaptureMode``.
    """

    def __enter__(self) -> None:
        self.mode = c_int(_RELAXED)
        driver.installed().cuThreadExchangeStreamCaptureMode(self.mode)

    def __exit__(self, *error: object) -> None:
        driver.installed().cuThreadExchangeStreamCaptureMode(self.mode)


def order(device: int, waiting: int | None, after: int | None) -> None:
    """Let future work on one stream of a device wait for the present work on another.

    The host does not wait. During the capture of a CUDA graph this becomes an edge of it. Streams
    are by the standard's numbering; an `after` of -1 means no synchronization. CUDAError if a
    stream belongs to another device, or does not exist.
    """
    if after == -1:
        return
    first, then = handle(after), handle(waiting)
    here = _known(device)
    if first == then:
        return
    with current(here):
        event = _recorded(here, first)
        try:
            driver.installed().cuStreamWaitEvent(then, event, 0)
        finally:
            # The wait is for what was recorded: the event can be recorded again at once.
            here.events.append(event)


def wait(device: int, stream: int | None) -> None:
    """Wait on the host for the present work on a stream of a device."""
    queue, where = handle(stream), _known(device)
    with current(where), relaxed():
        event = _recorded(where, queue)
        driver.installed().cuEventSynchronize(event)
        where.events.append(event)


def new_event() -> int:
    """Make an event; its device's context must be current."""
    event = c_void_p()
    driver.installed().cuEventCreate(event, _DISABLE_TIMING)
    return event.value or 0


def _recorded(device: Device, stream: int) -> int:
    """Record an event on a stream; the device's context must be current."""
    try:
        event = device.events.pop()
    except IndexError:
        event = new_event()
    try:
        driver.installed().cuEventRecord(event, stream)
    except BaseException:
        device.events.append(event)
        raise
    return event


def hold(device: int, stream: int | None, owner: object) -> None:
    """Keep an object alive until the present work on a stream of a device is done.

    For memory that a stream reads and whose owner cannot be notified. A later call of `hold` or
    `order` releases it once the work is done; nothing waits. Does nothing while a CUDA graph is
    captured: the user of the graph must keep its memory. If the driver fails (CUDAError) the object
    is kept for good.
    """
    queue = handle(stream)
    try:
        where = _known(device)
        if not capturing(where, queue):
            with current(where), _holding:
                _held[_recorded(where, queue)] = where.ordinal, queue, owner
    except CUDAError:
        _lost.append(owner)
        raise


def _known(ordinal: int) -> Device:
    """Return a device, and release objects whose work on its streams is done."""
    found = device(ordinal)
    if _held:
        kept = list(_held.items())  # released on return, outside the lock: deleters run then
        busy = set()
        with current(found), relaxed(), _holding:
            for event, entry in kept:
                if entry[0] != ordinal or entry[1] in busy:
                    continue
                # A stream's events happen in order. If its handle now belongs to another stream, or
                # is that of a thread's default stream, objects are only kept longer.
                if not _happened(event):
                    busy.add(entry[1])
                elif _held.get(event) is entry:  # a garbage collection may have run this as well
                    del _held[event]
                    found.events.append(event)
    return found


def _happened(event: int) -> bool:
    try:
        driver.installed().cuEventQuery(event)
    except CUDAError:  # not yet; or the device has failed, for which the next call raises
        return False
    return True


def memory_of(address: int) -> tuple[int, bool] | None:
    """Return the device of an address, and whether it is managed memory; None if unknown."""
    cuda = driver.installed()
    cuda.start()
    ordinal, managed = c_int(), c_int()
    try:
        cuda.cuPointerGetAttribute(addressof(ordinal), _DEVICE_ORDINAL, address)
        cuda.cuPointerGetAttribute(addressof(managed), _IS_MANAGED, address)
    except CUDAError as error:
        if error.code != _INVALID_VALUE:
            raise
        return None
    return ordinal.value, bool(managed.value)
