"""The ``fft`` extension of the array API standard 2025.12: discrete Fourier transforms.

Precision stays; of ``M`` elements along an axis, ``n`` that are more pad with zeros and fewer trim.
``norm`` says which transforms are scaled: the inverse ones by 1/n (``"backward"``), both by
1/sqrt(n) (``"ortho"``), or the forward ones by 1/n (``"forward"``); ``n`` is the product of the
transformed extents. Repeated axes are the library's choice.
"""
# pyright: reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...array import Array
    from .data_types import Device, DType, Norm

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft",
    "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Discrete Fourier transform along one axis, of complex numbers.

    Parameters
    ----------
    n
        The length of the transform. None: the extent of the axis.
    """


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Device | None = None
) -> Array:
    """Frequencies, in cycles per unit of ``d``, of the elements of an :func:`fft` of length ``n``.

    From 0 up, then the negative ones up to 0; of an even ``n`` the middle one is negative.

    Parameters
    ----------
    d
        The distance between samples.
    dtype
        A real floating-point data type. None: the default.
    """


def fftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Discrete Fourier transform along several axes, of complex numbers.

    Parameters
    ----------
    s
        The lengths of the transforms, one for each of ``axes``, which must be given then; -1 is the
        extent of the axis. None: the extents.
    axes
        None: all.
    """


def fftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 to the middle: element 0 to ``n//2``, along axes; None: along all."""


def hfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Transform of a Hermitian signal, given as its first half: real-valued.

    Parameters
    ----------
    n
        The extent of the **result**; ``n//2 + 1`` elements are read. None: ``2*(M - 1)``, which is
        even.
    """


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Inverse of :func:`fft`.

    Parameters
    ----------
    n
        The length of the transform. None: the extent of the axis.
    """


def ifftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Inverse of :func:`fftn`.

    Parameters
    ----------
    s
        The lengths of the transforms, one for each of ``axes``, which must be given then; -1 is the
        extent of the axis. None: the extents.
    axes
        None: all.
    """


def ifftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Undo :func:`fftshift`, which is something else for an odd number of elements."""


def ihfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Inverse of :func:`hfft`: real numbers to the first half of a Hermitian signal.

    Parameters
    ----------
    n
        How many elements are read; ``n//2 + 1`` result. None: the extent of the axis.
    """


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Inverse of :func:`rfft`: real-valued.

    Parameters
    ----------
    n
        The extent of the **result**; ``n//2 + 1`` elements are read. None: ``2*(M - 1)``, which is
        even.
    """


def irfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Inverse of :func:`rfftn`: real-valued.

    Parameters
    ----------
    s
        The extents of the **result** along ``axes``, which must be given then. None: those of
        ``x``, save for the last, which is ``2*(M - 1)`` and so even.
    axes
        None: all.
    """


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Discrete Fourier transform along one axis, of real numbers: the frequencies from 0 up.

    Parameters
    ----------
    n
        The length of the transform; ``n//2 + 1`` elements result. None: the extent of the axis.
    """


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Device | None = None
) -> Array:
    """Frequencies, in cycles per unit of ``d``, of the ``n//2 + 1`` elements of an :func:`rfft`.

    Parameters
    ----------
    n
        The length of the transform.
    d
        The distance between samples.
    dtype
        A real floating-point data type. None: the default.
    """


def rfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Discrete Fourier transform along several axes, of real numbers.

    Parameters
    ----------
    s
        The lengths of the transforms, one for each of ``axes``, which must be given then; -1 is the
        extent of the axis. None: the extents. The last axis of the
        result has ``s[-1]//2 + 1`` elements.
    axes
        None: all.
    """
