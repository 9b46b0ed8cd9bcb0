"""View buffers of a C library as arrays, and pass arrays to a C function, without a copy.

    python examples/c_library_buffers.py

The library is the system's C library, called by ctypes: nothing is compiled. Needs torch and jax.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import jax
import numpy as np
import torch

import arraybridge as ab
from arraybridge import dlpack

libc = ctypes.CDLL(None, use_errno=True)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def decoded(height: int, width: int) -> ab.Array:
    """Return an image that C allocated and fills, and that C frees after its last view."""
    pointer = libc.aligned_alloc(64, 4 * height * width)  # JAX views need 64

    def release(pointer: int) -> None:
        print("the last view is gone: C frees the image")
        libc.free(pointer)

    image = ab.from_pointer(pointer, (height, width), "float32", device="cpu", deleter=release)
    np.from_dlpack(image)[:] = np.arange(height * width).reshape(height, width)  # what C would do
    return image


class Piece(ctypes.Structure):
    """``struct iovec``: what ``writev`` writes next."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def write_rows(file: int, x: Any) -> int:
    """Write the rows of a matrix of any library by one call of C, up to 1024 of them."""
    tensor = dlpack.acquire(x)  # holds the memory until the end of this function
    rows, columns = tensor.shape
    step, unit = tensor.strides
    if tensor.device.type != ab.DeviceType.CPU or unit != 1:
        raise ValueError(f"a row must be contiguous and on the CPU, got strides {tensor.strides}")
    size = tensor.dtype.itemsize
    pieces = (Piece * rows)(
        *(Piece(tensor.pointer + size * step * row, size * columns) for row in range(rows))
    )
    return int(libc.writev(file, pieces, rows))


def main() -> None:
    """Share a buffer of C with three libraries, and give C a part of a tensor."""
    image = decoded(4, 6)
    tensor = ab.convert(image, "torch")
    array = ab.convert(image, "numpy")
    frozen: jax.Array = ab.convert(image, "jax", copy=False)  # nobody writes to it now
    places = {ab.inspect(x).pointer for x in (image, tensor, array, frozen)}
    print(f"a C image in three libraries, at {len(places)} address; its sum is {frozen.sum():.0f}")

    crop: torch.Tensor = tensor[1:3, 2:5]
    reader, writer = os.pipe()
    print(f"C wrote {write_rows(writer, crop)} bytes of a crop with strides {crop.stride()}:")
    print(np.frombuffer(os.read(reader, 100), np.float32).reshape(2, 3))
    try:
        write_rows(writer, crop.T)
    except ValueError as error:
        print("refused:", error)

    del image, tensor, array, frozen
    print("four of five views are gone")
    del crop


if __name__ == "__main__":
    main()
