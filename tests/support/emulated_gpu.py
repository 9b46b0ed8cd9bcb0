"""A GPU in host memory: the stub driver, device memory, and libraries whose arrays lie there.

Kernels run: their own source is interpreted (tests/simt) on the bytes of the device. What this
cannot show is time, and order on a device; which calls were made on which streams the stub records.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

import arraybridge as ab
from arraybridge.core.library import Devices
from arraybridge.dlpack import Device, ManagedTensor
from arraybridge.kernels.cuda.family import FAMILY
from arraybridge.layout import c_strides, in_elements
from arraybridge.ndarrays import dlpack_dtype, numpy_dtype

from .stub_driver import Stub

__all__ = ["Array", "Emulated", "library"]

BYTES = 1 << 20


class Emulated(Stub):
    """A stub whose devices have memory, `arenas`, a multiple of 256 the first address of each."""

    def __init__(self, *capabilities: tuple[int, int]) -> None:
        super().__init__(*capabilities)
        self.arenas = []
        for device in range(len(self.capabilities)):
            block = np.zeros(BYTES + 256, np.uint8)
            start = -block.ctypes.data % 256
            arena = block[start : start + BYTES]
            self.arenas.append(arena)
            self.pointers[range(arena.ctypes.data, arena.ctypes.data + BYTES)] = device
        self._next = [256] * len(self.arenas)

    def allocate(self, nbytes: int, device: int) -> int:
        """Return the address of memory that nobody else gets; filled with 0xEE."""
        arena, start = self.arenas[device], self._next[device]
        if start + nbytes > BYTES:
            raise MemoryError(f"no {nbytes} bytes left on the emulated device {device}")
        self._next[device] = start + -(-nbytes // 256) * 256 + 256
        arena[start : start + nbytes] = 0xEE
        return int(arena.ctypes.data + start)

    def cuMemcpyDtoDAsync(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        self.cuMemcpyHtoDAsync(dst, src, nbytes, stream)

    def cuLaunchKernel(self, function: int, *rest: Any) -> None:
        super().cuLaunchKernel(function, *rest)
        from tests.simt.launch import launch

        plan, dst, src = self.launched(function, *rest)
        context, _ = self.functions[function]
        memory: Any = Arena(self.arenas[context // 0x1000 - 1])
        launch(plan, FAMILY[plan.kernel].factory, dst, src, memory)


class Arena:
    """The memory of a device, for the interpreter: no byte is written twice, none outside."""

    def __init__(self, block: np.ndarray) -> None:
        self.base, self.block = block.ctypes.data, block
        self.pending = np.ones(block.size, bool)

    def load(self, width: int, addresses: np.ndarray, where: str) -> np.ndarray:
        words = self.block.view(_WORDS[width])[self._places(width, addresses, where)]
        return words.view(np.uint32).reshape(-1, width // 4) if width > 4 else words

    def store(self, width: int, addresses: np.ndarray, words: np.ndarray, where: str) -> None:
        at = self._places(width, addresses, where)
        pending = self.pending.reshape(-1, width)
        assert pending[at].all(), f"written twice at {where}"
        assert np.unique(at).size == at.size, f"written by two threads at {where}"
        pending[at] = False
        target = self.block.view(np.uint8).reshape(-1, width)
        target[at] = np.ascontiguousarray(words).view(np.uint8).reshape(at.size, -1)[:, :width]

    def _places(self, width: int, addresses: np.ndarray, where: str) -> np.ndarray:
        offsets = addresses - self.base
        inside = (offsets >= 0) & (offsets + width <= self.block.size)
        assert inside.all(), f"outside of the device's memory at {where}"
        return offsets // width


_WORDS = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


class Number(int):
    """The number of a device; as CuPy's ``cupy.cuda.Device`` (14.2) it is not hashable."""

    __hash__ = None  # type: ignore[assignment]


class Array:
    """Memory of an emulated device; strides in **bytes**."""

    def __init__(
        self,
        pointer: int,
        shape: Any,
        strides: Any,
        dtype: Any,
        device: int,
        readonly: bool = False,
    ) -> None:
        self.pointer, self.shape, self.strides = pointer, tuple(shape), tuple(strides)
        self.dtype, self.device, self.readonly = np.dtype(dtype), Number(device), readonly


@contextmanager
def library(
    gpu: Emulated, name: str, *, stream: int | None = 1, allocates: bool = True
) -> Iterator[Any]:
    """Register a library whose arrays lie on a GPU, for a ``with`` block.

    What it yields has ``put(array, device=0)`` and ``get(array)``, between NumPy and the device;
    ``Array``, its type; ``stream``, its current one, to be set, and ``streams`` for other devices;
    ``library``; ``ordered``, what exports were asked for; ``made``, how many arrays it allocated.
    """
    kind = type(f"{name}Array", (Array,), {"__module__": name})
    its = SimpleNamespace(Array=kind, stream=stream, streams={}, ordered=[], made=0)

    def put(array: np.ndarray, device: int = 0) -> Any:
        """Put an array on a device with the strides that it has, and what lies between."""
        from arraybridge.layout import span

        low, high = span(array.shape, array.strides, array.itemsize)
        pointer = gpu.allocate(high - low, device) - low
        x = kind(pointer, array.shape, array.strides, array.dtype, device)
        if array.size:
            _on_host(gpu, x)[...] = array
        return x

    class GPUs(Devices):
        """Emulated devices."""

        def current_stream(self, device: Device) -> int | None:
            return its.streams.get(device.id, its.stream)

        def native_device(self, device: Device) -> object:
            if device.id >= len(gpu.arenas):
                raise ab.ConversionError(f"there is no {device}")
            return device

    class GPU(ab.Library):
        """Arrays on an emulated device."""

        devices = GPUs()

        accepts = ab.Accepts(
            library=name,
            tested="1",
            dtypes=frozenset(
                "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
                "complex64 complex128".split()
            ),
            devices=frozenset({ab.DeviceType.CUDA}),
            readonly=True,
        )

        def owns(self, array_type: type) -> bool:
            return issubclass(array_type, kind)

        def describe(self, x: Any) -> ab.TensorInfo:
            dtype = dlpack_dtype(x.dtype)
            assert dtype is not None
            steps, _ = in_elements(x.shape, x.strides, x.dtype.itemsize)
            place = Device(2, int(x.device))
            return ab.TensorInfo(
                name, x.pointer, 0, x.shape, steps, dtype, place, readonly=x.readonly
            )

        def export(self, x: Any, stream: int | None = None) -> ManagedTensor:
            its.ordered.append(stream)
            own = self.devices.current_stream(Device(2, int(x.device)))
            if own is not None and stream not in (None, -1, own):
                from arraybridge.kernels.cuda import context

                context.order(int(x.device), waiting=stream, after=own)
            info = self.describe(x)
            return ManagedTensor.adopt(
                info.data, info.shape, info.dtype, owner=x, strides=info.strides,
                device=info.device, readonly=x.readonly,
            )  # fmt: skip

        def wrap(self, tensor: ManagedTensor) -> Any:
            item = tensor.dtype.itemsize
            strides = [step * item for step in tensor.strides]
            kept = numpy_dtype(tensor.dtype)
            x = kind(tensor.pointer, tensor.shape, strides, kept, tensor.device.id, tensor.readonly)
            x.owner = tensor.owner
            return x

    def empty(self: Any, info: ab.TensorInfo, like: Any = None) -> Any:
        its.made += 1
        dtype = numpy_dtype(info.dtype)
        strides = c_strides(info.shape, dtype.itemsize)
        pointer = gpu.allocate(info.nbytes, info.device.id)
        return kind(pointer, info.shape, strides, dtype, info.device.id)

    if allocates:
        GPUs.empty = empty  # type: ignore[method-assign]
    GPU.name = name
    its.put, its.get, its.library = put, lambda x: _on_host(gpu, x).copy(), GPU()
    ab.register_library(its.library)
    try:
        yield its
    finally:
        ab.unregister_library(name)


def _on_host(gpu: Emulated, x: Array) -> np.ndarray:
    arena = gpu.arenas[x.device]
    return np.ndarray(x.shape, x.dtype, arena, x.pointer - arena.ctypes.data, x.strides)
