"""Strided copies by NumPy: for few bytes, and where the compiler is not to be had."""

from __future__ import annotations

import numpy as np

__all__ = ["MAX_NDIM", "copy"]

#: The most axes that NumPy 2 takes.
MAX_NDIM = 64


class _Block:
    """Memory at an address, as the array interface protocol states it (version 3)."""

    __slots__ = ("__array_interface__",)

    def __init__(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
    ) -> None:
        # |V<n> is n bytes of no meaning and no alignment: NumPy moves them as they are.
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{itemsize}",
        }


def copy(
    dst: int,
    src: int,
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
) -> None:
    """As ``arraybridge.kernels.cpu.copy``, with ``numpy.copyto``; at most `MAX_NDIM` axes."""
    if 0 in shape:
        return  # NumPy 2.1 takes an interface with a null pointer for no interface
    np.copyto(
        np.asarray(_Block(dst, shape, dst_strides, itemsize)),
        np.asarray(_Block(src, shape, src_strides, itemsize)),
    )
