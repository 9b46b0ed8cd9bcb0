"""Calling ``__dlpack__`` and ``__dlpack_device__`` of producers of any version.

Producers support different keywords. All are passed first; fewer are passed if the producer's
*signature* refused them, but not if a TypeError came from inside it.
Source: data-apis array API standard 2025.12, ``array.__dlpack__``.
"""

import re
from collections.abc import Callable
from weakref import WeakKeyDictionary

from ..native.deleters import release
from .capsule import from_capsule, is_capsule
from .errors import MalformedTensorError
from .header import VERSION
from .managed import ManagedTensor
from .types import KNOWN_DEVICES, Device, DeviceType

# Messages of C functions, pybind11 and nanobind about unknown keywords.
_SIGNATURE_COMPLAINT = (
    r"unexpected keyword|keyword argument|takes no arguments|takes exactly|takes at most"
    r"|positional argument|incompatible function arguments|invalid keyword"
)

# Keywords dropped one group at a time for C functions, whose signatures cannot be read.
_NEWEST_FIRST = (("copy", "dl_device"), ("max_version",), ("stream",))

# Keywords that the producers of each type have refused.
_unknown_keywords: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


def device_of(x: object) -> Device:
    """Return the device that ``x.__dlpack_device__()`` names.

    TypeError if ``x`` has no such method, or it does not return a pair of integers.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> import numpy as np
    >>> dlpack.device_of(np.ones(3))
    Device('cpu')
    >>> dlpack.device_of([1, 2])
    Traceback (most recent call last):
        ...
    TypeError: list has no __dlpack_device__: it does not support DLPack
        (arraybridge.from_pointer wraps raw memory)
    """
    method = getattr(x, "__dlpack_device__", None)
    if method is None:
        raise TypeError(
            f"{type(x).__name__} has no __dlpack_device__: it does not support DLPack "
            "(arraybridge.from_pointer wraps raw memory)"
        )
    pair = method()
    try:
        found = tuple(pair)
        return KNOWN_DEVICES.get(found) or Device.parse(found)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{type(x).__name__}.__dlpack_device__() returned {pair!r}, expected a pair of integers"
        ) from error


def _unknown_to(
    method: Callable[..., object], keywords: dict[str, object], error: TypeError
) -> frozenset[str]:
    """Return the ``keywords`` that a signature lacks; if none, ``error`` came from inside."""
    import inspect

    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):  # a C function without a signature: only its message helps
        if re.search(_SIGNATURE_COMPLAINT, str(error)):
            for names in _NEWEST_FIRST:
                if not keywords.keys().isdisjoint(names):
                    return frozenset(names)
        return frozenset()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return frozenset()  # usually passed on: the error came from inside
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return frozenset(keywords.keys() - named)


def call_dlpack(x: object, **keywords: object) -> object:
    """Call ``x.__dlpack__(**keywords)`` without the keywords that the producer does not support.

    The keywords are those of the array API standard, ``stream``, ``max_version``, ``dl_device`` and
    ``copy``. The caller must then check that the result, a capsule if the producer follows the
    standard, has the requested device or copy. Errors are the producer's own.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> import numpy as np
    >>> class Old:                                  # has only the keyword of 2021
    ...     def __dlpack__(self, stream=None):
    ...         return np.ones(3).__dlpack__()
    >>> dlpack.call_dlpack(Old(), max_version=(1, 3), copy=None)
    <capsule object "dltensor" at ...>
    """
    method = x.__dlpack__  # type: ignore[attr-defined]
    unknown = _unknown_keywords.get(type(x))
    dropped = unknown or frozenset()
    while True:
        if dropped:
            keywords = {key: value for key, value in keywords.items() if key not in dropped}
        try:
            capsule = method(**keywords)
        except TypeError as error:
            refused = _unknown_to(method, keywords, error)
            if not refused:
                raise
            dropped |= refused
        else:
            break
    if dropped and unknown != dropped and hasattr(type(x), "__dlpack__"):
        _unknown_keywords[type(x)] = dropped
    return capsule


def acquire(
    x: object,
    *,
    stream: int | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> ManagedTensor:
    """Return an owning tensor on an object with ``__dlpack__``, or on a capsule, which is consumed.

    It is read-only if the producer flags it so, or returns a legacy capsule, which has no such
    flag. ``stream`` is the consumer's, by the numbering of the array API standard (CUDA: 1 legacy,
    2 per-thread default, -1 no synchronization, else a handle; ROCm: 0 default); None selects the
    producer's default. It is not passed to producers on the CPU, because several refuse any value
    (cuda-python#473). ``dl_device`` and ``copy`` are passed to producers that support them; the
    result is not checked.

    TypeError if ``x`` does not support DLPack, or does not return a capsule; BufferError if the
    tensor cannot be exchanged, see :func:`from_capsule`.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> import torch
    >>> x = torch.arange(6).reshape(2, 3)
    >>> tensor = dlpack.acquire(x)
    >>> tensor
    <ManagedTensor int64 (2, 3) on cpu>
    >>> tensor.pointer == x.data_ptr()
    True
    """
    if is_capsule(x):
        return from_capsule(x)
    if not hasattr(x, "__dlpack__"):
        raise TypeError(
            f"{type(x).__name__} has no __dlpack__: expected an array, an object that supports "
            "DLPack, or a DLPack capsule (arraybridge.from_pointer wraps raw memory)"
        )
    device = device_of(x)
    keywords: dict[str, object] = {"max_version": VERSION}
    if stream is not None and device.type != DeviceType.CPU:
        keywords["stream"] = stream
    if dl_device is not None:
        keywords["dl_device"] = dl_device
    if copy is not None:
        keywords["copy"] = copy
    capsule = call_dlpack(x, **keywords)
    if not is_capsule(capsule):
        raise TypeError(
            f"{type(x).__name__}.__dlpack__() returned a {type(capsule).__name__}, expected a "
            "PyCapsule"
        )
    tensor = from_capsule(capsule)
    if dl_device is None and not _agree(device, tensor.device):
        release(tensor.owner, not hasattr(tensor, "legacy"))  # now, not when the traceback is freed
        raise MalformedTensorError(
            f"{type(x).__name__}.__dlpack_device__() returned {device}, but its capsule has "
            f"{tensor.device}: one of them is wrong, so the memory was not read"
        )
    return tensor


def _agree(said: Device, came: Device) -> bool:
    """Whether two devices name the same memory: host and CUDA memory have several names."""
    if said == came or (said.host and came.host):
        return True
    on_cuda = {said.type, came.type} == {DeviceType.CUDA, DeviceType.CUDA_MANAGED}
    return said.id == came.id and on_cuda
