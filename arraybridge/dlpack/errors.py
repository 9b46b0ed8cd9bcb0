"""Errors of the core. The standard names BufferError for data that cannot be exchanged."""

from __future__ import annotations


class DLPackError(BufferError):
    """Base of the errors of :mod:`arraybridge.dlpack`."""


class MalformedTensorError(DLPackError):
    """A struct whose fields contradict ``dlpack.h``; it was released without reading its data."""


class UnsupportedVersionError(DLPackError):
    """A struct of a major version whose layout is unknown; it was released unread."""


class ConsumedCapsuleError(DLPackError):
    """A capsule that was already consumed."""
