"""Device memory from the driver, one block per allocation, so that compute-sanitizer sees every byte outside it."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np

POISON = 0xA5


class Bare:
    """Device 0, its primary context current in this thread."""

    def __init__(self) -> None:
        from arraybridge.kernels.cuda import context

        self._cuda = ctypes.CDLL("libcuda.so.1")
        device = context.device(0)
        self._call("cuCtxPushCurrent_v2", c_void_p(device.context))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} gave {code}")

    def block(self, contents: np.ndarray) -> int:
        """The address of memory with exactly these bytes."""
        address = c_uint64()
        self._call("cuMemAlloc_v2", byref(address), c_size_t(contents.nbytes))
        self._call(
            "cuMemcpyHtoD_v2", address, c_void_p(contents.ctypes.data), c_size_t(contents.nbytes)
        )
        return address.value

    def read(self, address: int, into: np.ndarray) -> None:
        self._call(
            "cuMemcpyDtoH_v2", c_void_p(into.ctypes.data), c_uint64(address), c_size_t(into.nbytes)
        )

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", c_uint64(address))

    def wait(self) -> None:
        self._call("cuCtxSynchronize")


def extents(nest: Any) -> list[tuple[int, int]]:
    """Of the destination and the source: bytes to the item whose indices are all 0, and bytes in all.

    ``nest`` has shape, dst and src strides in bytes, itemsize, and to and of: bytes from a multiple of
    256 to the lowest byte of either side.
    """
    from arraybridge.layout import span

    sides = []
    for strides, start in ((nest.dst, nest.to), (nest.src, nest.of)):
        low, high = span(nest.shape, strides, nest.itemsize)
        sides.append((start - low, start + high - low))
    # Kernels read whole vectors of 16 bytes that hold a byte of the source: allocators round up to more.
    sides[1] = (sides[1][0], -(-sides[1][1] // 16) * 16)
    return sides


def copy(memory: Bare, nest: Any, found: np.ndarray, source: np.ndarray) -> None:
    """Copy a nest on the device: of the bytes in ``source`` to those in ``found``, which are replaced."""
    from arraybridge.kernels import cuda

    (to, _), (of, _) = extents(nest)
    addresses = memory.block(found), memory.block(source)
    try:
        cuda.copy(
            addresses[0] + to, addresses[1] + of, nest.shape, nest.dst, nest.src, nest.itemsize, 1, 0
        )  # fmt: skip
        memory.wait()
        memory.read(addresses[0], found)
    finally:
        for address in addresses:
            memory.free(address)


def copied(memory: Bare, nest: Any) -> str:
    """Copy a nest on the device: "right", or what is wrong with the result."""
    (to, size), (of, length) = extents(nest)
    source = np.random.default_rng(1).integers(0, 255, length, np.uint8)
    found = np.full(size, POISON, np.uint8)
    wanted, kind = found.copy(), f"V{nest.itemsize}"
    np.ndarray(nest.shape, kind, wanted, to, nest.dst)[...] = np.ndarray(
        nest.shape, kind, source, of, nest.src
    )
    copy(memory, nest, found, source)
    wrong = np.flatnonzero(found != wanted)
    return (
        f"{wrong.size} of {found.size} bytes are wrong, the first at {wrong[0]}"
        if wrong.size
        else "right"
    )
