"""Errors of the core. The standard names BufferError for data that cannot be exchanged."""

from __future__ import annotations

_HOME = "arraybridge.dlpack"  # as tracebacks print it, and as users import it


class DLPackError(BufferError):
    """Base of the errors of :mod:`arraybridge.dlpack`."""

    __module__ = _HOME


class MalformedTensorError(DLPackError):
    """A struct whose fields contradict ``dlpack.h``; it was released without reading its data."""

    __module__ = _HOME


class UnsupportedVersionError(DLPackError):
    """A struct of a major version whose layout is unknown; it was released unread."""

    __module__ = _HOME


class ConsumedCapsuleError(DLPackError):
    """A capsule that was already consumed."""

    __module__ = _HOME
