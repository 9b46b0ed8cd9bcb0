"""The ``fft`` extension of the array API standard 2025.12: discrete Fourier transforms.

The precision does not change. If a transform is longer than the axis, the elements are padded with
zeros; if it is shorter, they are trimmed. ``norm`` selects the scaled transforms: the inverse ones
by 1/n (``"backward"``), both by 1/sqrt(n) (``"ortho"``), or the forward ones by 1/n
(``"forward"``), with n the product of the transformed extents. ``M`` is the extent of the axis.
``n`` is the length of the transform, by default the extent of the axis; ``s`` the lengths along
``axes``, which are then required. No ``axes`` are all. Repeated axes are up to the library.
"""
# pyright: reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...array import Array
    from .data_types import Device, DType, Norm, Sizes

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft",
    "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Compute the discrete Fourier transform of complex numbers along one axis."""


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType = None, device: Device = None) -> Array:
    """Return the frequencies of an :func:`fft` of length ``n``, in cycles per unit of ``d``.

    Frequencies from 0 up are followed by the negative ones. For an even ``n``, the middle one is
    negative.
    """


def fftn(x: Array, /, *, s: Sizes = None, axes: Sizes = None, norm: Norm = "backward") -> Array:
    """Compute the discrete Fourier transform of complex numbers along several axes."""


def fftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 to the middle of axes, from index 0 to ``n//2``; None: all axes."""


def hfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Compute the real transform of a Hermitian signal from its first half.

    ``n`` is the extent of the **result**, by default ``2*(M - 1)``; ``n//2 + 1`` elements are read.
    """


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Compute the inverse of :func:`fft`."""


def ifftn(x: Array, /, *, s: Sizes = None, axes: Sizes = None, norm: Norm = "backward") -> Array:
    """Compute the inverse of :func:`fftn`."""


def ifftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Undo :func:`fftshift`; the two differ if the number of elements is odd."""


def ihfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Compute the inverse of :func:`hfft`: the first half of a Hermitian signal.

    ``n`` elements are read; the result has ``n//2 + 1``.
    """


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Compute the inverse of :func:`rfft`, which is real.

    ``n`` is the extent of the **result**, by default ``2*(M - 1)``; ``n//2 + 1`` elements are read.
    """


def irfftn(x: Array, /, *, s: Sizes = None, axes: Sizes = None, norm: Norm = "backward") -> Array:
    """Compute the inverse of :func:`rfftn`, which is real.

    ``s`` are the extents of the **result**, by default those of ``x``, but ``2*(M - 1)`` last.
    """


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Compute the discrete Fourier transform of real numbers along one axis, from frequency 0 up.

    The result has ``n//2 + 1`` elements.
    """


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType = None, device: Device = None) -> Array:
    """Return the ``n//2 + 1`` frequencies of an :func:`rfft`, in cycles per unit of ``d``."""


def rfftn(x: Array, /, *, s: Sizes = None, axes: Sizes = None, norm: Norm = "backward") -> Array:
    """Compute the discrete Fourier transform of real numbers along several axes.

    In ``s``, -1 is the extent of the axis. The last axis of the result has ``s[-1]//2 + 1``
    elements.
    """
