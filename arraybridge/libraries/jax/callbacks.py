"""Functions of other libraries as operations of the programs that XLA compiles.

XLA calls them on its own buffers through its foreign function interface
(``jax.experimental.buffer_callback``): on CUDA with the stream, so nothing passes through the host
and nothing waits. ``jax.pure_callback`` copies arguments and results, on a GPU to the host and
back. On the CPU the threads that run callbacks make these copies, and wait for ever once all of
them are inside a callback (jax#24255). It serves functions without buffers: on a TPU, and NumPy's
on a GPU.

XLA reuses its buffers as soon as the function has returned. So the function gets copies;
``alias_readonly=True`` requests views, which it must not keep.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from ctypes import c_void_p
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.buffer_callback import buffer_callback

from ...adapting.autograd import FlatFunction, Outcome
from ...conversion import convert, converted
from ...copies import copyto
from ...core.copiers import stream_of
from ...core.kernel import NoKernel, copy_into, kernel_for
from ...core.library import Library
from ...core.records import ConversionError
from ...core.registry import library_named
from ...dlpack import CPU, Device, DeviceType, ManagedTensor
from ...layout import c_strides
from ...native.pyapi import capsule_pointer
from ...ndarrays import dlpack_dtype, numpy_dtype

Structs = Sequence[jax.ShapeDtypeStruct]


class Callback:
    """The function of JAX arrays that calls ``flat``, whose results are like ``structs``.

    ``method`` is the ``vmap_method``. The function may be traced, and returns a tuple.
    """

    def __init__(self, flat: FlatFunction, structs: Structs, method: str | None) -> None:
        self.flat, self.structs, self.method = flat, structs, method
        self.views = bool(flat.options.conversion.get("alias_readonly"))
        self.taken: set[Any] = set()  # data types and numbers of axes of arguments on a device

    def __call__(self, *arrays: Any) -> Any:
        # Of concrete arrays each callback would be compiled, and cached, at every call.
        if not any(isinstance(x, jax.core.Tracer) for x in arrays):
            values = [jnp.asarray(x) for x in arrays]  # numbers too
            places = {device for x in values for device in x.devices()}
            if len(places) == 1 and next(iter(places)).platform == "cpu":
                place = next((x.sharding for x in values if x.committed), None)
                found = self.on_host(*values)
                for x, struct in zip(found, self.structs, strict=True):
                    self._check(x.dtype, x.shape, struct)
                return tuple([jnp.array(x, device=place) for x in found])
        if device_of_calls(self.flat) is None:
            return jax.pure_callback(self.on_host, self.structs, *arrays, vmap_method=self.method)
        return buffer_callback(self.fill, self.structs, vmap_method=self.method)(*arrays)

    def on_host(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        """Call the function on arrays in host memory; return NumPy arrays."""
        flat = self.flat
        with flat.differentiation.untracked():
            results = self._results([flat.argument(x) for x in arrays])
        return tuple([flat.result(x, "numpy") for x in results])

    def fill(self, context: Any, out: Sequence[Any], *buffers: Any) -> None:
        """Call the function on XLA's buffers, and write its results to its output buffers."""
        memory = _Memory() if self.views else None
        kept = (lambda: None) if memory is None else weakref.ref(memory)
        place = (*buffers, *out)[0].__dlpack_device__()
        if place[0] == DeviceType.CPU:
            self._fill_on_host(out, buffers, memory)
        else:
            self._fill_on_device(Device(*place), context.stream, out, buffers, memory)
        del memory
        if kept() is not None and (gc.collect(), kept())[1] is not None:
            raise ConversionError(
                f"{self.flat.options.function} kept a view of an argument, whose memory XLA "
                "reuses: keep a copy instead, or omit alias_readonly=True"
            )

    def _fill_on_host(
        self, out: Sequence[Any], buffers: Sequence[Any], memory: _Memory | None
    ) -> None:
        if memory is not None:
            arrays: Any = [library_named("numpy").wrap(_tensor(x, memory)) for x in buffers]
        else:
            arrays = [np.asarray(x).copy() for x in buffers]
            for x in arrays:
                x.flags.writeable = self.flat.options.library != "numpy"
        for buffer, x in zip(out, self.on_host(*arrays), strict=True):
            self._check(x.dtype, x.shape, buffer)
            np.asarray(buffer)[...] = x

    def _fill_on_device(
        self, where: Device, stream: int, out: Sequence[Any], buffers: Sequence[Any],
        memory: _Memory | None,
    ) -> None:  # fmt: skip
        """Call the function on a device's buffers, in order with XLA's stream."""
        name = self.flat.options.library
        library = library_named(name)
        with library.on_stream(where, stream), self.flat.differentiation.untracked():
            seen = [self._device_array(_tensor(x, memory), library) for x in buffers]
            for buffer, x in zip(out, self._results(seen), strict=True):
                if isinstance(x, np.ndarray):  # a number
                    x = convert(x, name, device=where)
                info = library.describe(x)
                self._check(numpy_dtype(info.dtype), info.shape, buffer)
                written = _tensor(buffer, None, readonly=False)
                try:
                    if info.pending or info.device != where or kernel_for(where) is None:
                        raise NoKernel
                    read = library.export_borrowed(x, info)
                    copy_into(written, read, stream_of(library, where))
                except NoKernel:
                    copyto(library.wrap(written), x)

    def _device_array(self, tensor: ManagedTensor, library: Library) -> Any:
        """Return a buffer on a device as an array of the library; a copy without ``views``."""
        kind = tensor.dtype, len(tensor.shape)
        if kind in self.taken:
            x = library.wrap(tensor)
        else:  # raises if the library does not take it
            x = converted(tensor, library.name, None, alias_readonly=True)
            self.taken.add(kind)
        return x if self.views else converted(x, library.name, None, copy=True)

    def _results(self, seen: Sequence[Any]) -> list[Any]:
        """Call the function, and return the arrays in its result."""
        flat = self.flat
        versions = [getattr(x, "_version", None) for x in seen]
        outcome: Outcome = flat(seen)
        results = [*outcome.floats, *outcome.others]
        for x, version in zip(seen, versions, strict=True):
            if getattr(x, "_version", None) == version:
                continue
            if self.views or not any(y is x for y in results):
                what = "a view" if self.views else "the copy"
                raise ConversionError(
                    f"{flat.options.function} wrote to {what} of an argument that cannot be "
                    "written (jax, read-only): take what it returns"
                )
        if len(results) != len(self.structs):
            raise ConversionError(
                f"{flat.options.function} returned {len(results)} arrays; "
                f"expected {len(self.structs)}"
            )
        return results

    def _check(self, dtype: Any, shape: tuple[int, ...], wanted: Any) -> None:
        if dtype != wanted.dtype or shape != wanted.shape:
            raise ConversionError(
                f"{self.flat.options.function} returned {dtype} {shape}; expected "
                f"{wanted.dtype} {wanted.shape}"
            )


class _Memory:
    """The owner of views of XLA's buffers, alive as long as one of them."""

    __slots__ = ("__weakref__",)


def _tensor(buffer: Any, memory: _Memory | None, readonly: bool = True) -> ManagedTensor:
    """Return one of XLA's buffers as a tensor, owned by ``memory``.

    It takes a third of the time of `dlpack.acquire` and its checks: a buffer is dense, and only the
    address is needed, which is first in DLPack's legacy struct.
    """
    kind, shape = dlpack_dtype(buffer.dtype), buffer.shape
    if kind is None:
        raise ConversionError(f"{buffer.dtype} has no DLPack type: cast it before the call")
    capsule = buffer.__dlpack__()
    data = c_void_p.from_address(capsule_pointer(capsule, b"dltensor")).value or 0
    place = Device(*buffer.__dlpack_device__())
    strides = c_strides(shape)
    return ManagedTensor.trusted(data, shape, strides, kind, place, readonly, False, memory)


def device_of_calls(flat: FlatFunction) -> Device | None:
    """Return the device whose buffers XLA passes to a function: the CPU, or a kind's first device.

    None if the function cannot take buffers; it is then called on the host.
    """
    platforms = {device.platform for device in jax.devices()}
    if platforms == {"cpu"}:
        return CPU
    library = library_named(flat.options.library)
    cuda = DeviceType.CUDA in library.accepts.devices & library_named("jax").accepts.devices
    # Work of a library with an unknown stream (TensorFlow) cannot be ordered with XLA's.
    cuda = cuda and type(library).current_stream is not Library.current_stream
    if platforms == {"gpu"} and cuda and "device" not in flat.options.conversion:
        return Device(DeviceType.CUDA, 0)
    return None
