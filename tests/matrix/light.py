"""The libraries that install in a minute."""

from __future__ import annotations

import numpy as np

from arraybridge.layout import c_strides
from arraybridge.ndarrays import NATIVE

from .libraries import (
    InexpressibleError,
    Native,
    NumPy,
    OverNumPy,
    Views,
    aligned,
    as_strided,
    native,
    numpy_dtype,
    raw,
)


class Torch(Views, Native):
    """PyTorch; built from bytes, as NumPy cannot give it every dtype."""

    name = "torch"

    def make(self, values):
        dtype = getattr(self.xp, values.dtype.name, None)
        if dtype is None:
            raise InexpressibleError(f"torch has no {values.dtype}")
        data = self.xp.tensor(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
        return data.view(dtype).reshape(values.shape)

    def at_offset(self, values, offset):
        block = aligned(np.zeros(values.nbytes + 64, np.uint8))
        block[offset : offset + values.nbytes] = values.reshape(-1).view(np.uint8)
        dtype = getattr(self.xp, values.dtype.name)
        return self.xp.frombuffer(block, dtype=dtype, count=values.size, offset=offset).reshape(
            values.shape
        )

    def values(self, x):
        torch = self.xp
        x = x.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
        kind = numpy_dtype(self.dtype(x))
        return x.reshape(-1).view(torch.uint8).numpy().copy().view(kind).reshape(tuple(x.shape))

    def pointer(self, x):
        return x.data_ptr()

    def step_permute(self, x, axes):
        return x.permute(axes)

    def step_index(self, x, index):
        try:
            return x[index]
        except ValueError as error:  # negative steps
            raise InexpressibleError(str(error)) from error

    def step_strided(self, x, shape, strides):
        return self.xp.as_strided(x, shape, strides)

    def step_requires_grad(self, x):
        return x.requires_grad_()

    def step_conj(self, x):
        return x.conj()

    def step_neg(self, x):
        return self.xp._neg_view(x)


class Jax(Native):
    """JAX; its slices are copies, so of layouts it has one."""

    name = "jax"
    immutable = True

    def load(self):
        super().load()
        self.xp.config.update("jax_enable_x64", True)
        return self

    def make(self, values):
        return self.xp.device_put(values, may_alias=False)

    def values(self, x):
        # Not np.array(x) itself: an array hands out again what it has read once.
        again = self.xp.make_array_from_single_device_arrays(x.shape, x.sharding, [x])
        return np.array(again, order="C")

    def pointer(self, x):
        return x.unsafe_buffer_pointer()

    def own_function(self, x):
        return self.xp.dlpack.from_dlpack(x)


class Arrow(OverNumPy):
    """Arrow tensors, and arrays for the cases that ask for them."""

    name = "pyarrow"
    _names = {"halffloat": "float16", "float": "float32", "double": "float64"}  # noqa: RUF012

    def of(self, x):
        if x.dtype == bool:  # it would become uint8
            raise InexpressibleError("Arrow tensors have no bool")
        return self.xp.Tensor.from_numpy(x)

    def values(self, x):
        if isinstance(x, self.xp.Tensor):
            return np.array(x.to_numpy(), order="C")
        return np.array(x.to_numpy(zero_copy_only=False))

    def dtype(self, x):
        return self._names.get(str(x.type), str(x.type))

    def shape(self, x):
        return tuple(x.shape) if isinstance(x, self.xp.Tensor) else (len(x),)

    def pointer(self, x):
        if isinstance(x, self.xp.Tensor):
            return x.to_numpy().ctypes.data
        if self.dtype(x) == "bool":
            return None
        return x.buffers()[1].address + x.offset * x.type.bit_width // 8

    def readonly(self, x):
        return not (isinstance(x, self.xp.Tensor) and x.is_mutable)

    def memory(self, x):
        return x.to_numpy()

    def step_index(self, x, index):
        if not isinstance(x, self.xp.Tensor):
            return x.slice(index[0].start, index[0].stop - index[0].start)
        return self.of(x.to_numpy()[(*index, ...)])

    def step_permute(self, x, axes):
        return self.of(x.to_numpy().transpose(axes))

    def step_broadcast(self, x, shape):
        return self.of(np.broadcast_to(x.to_numpy(), shape))

    def step_strided(self, x, shape, strides):
        return self.of(as_strided(x.to_numpy(), shape, strides))

    def step_readonly(self, x):
        view = x.to_numpy().view()
        view.flags.writeable = False
        return self.of(view)

    def make_arrow(self, values):
        return self.xp.array(values)

    def make_arrow_nulls(self, values):
        return self.xp.array(values, mask=values % 4 == 0)

    def own_function(self, x):
        tensor = self.xp.Tensor
        return tensor.from_dlpack(x) if hasattr(tensor, "from_dlpack") else tensor.from_numpy(x)


class OverOthers(Native):
    """Views of the memory of NumPy's arrays, or of PyTorch's for what NumPy lacks."""

    lacks: tuple[str, ...] = ("byteorder",)

    def build(self, case):
        last = case.steps[-1][0] if case.steps else ""
        if not case.legal or last in self.lacks:
            raise InexpressibleError(f"{self.name} has no {last} arrays")
        return self._take(self._other(case.dtype, last).build(case))

    def make(self, values):
        return self._take(self._other(values.dtype.name).make(values))

    def _other(self, dtype: str, last: str = "") -> Native:
        # NumPy's broadcast would be read-only.
        if dtype in NATIVE and (last != "broadcast" or "readonly" not in self.lacks):
            return NumPy().load()
        try:
            return Torch().load()
        except ImportError as error:
            raise InexpressibleError(f"{self.name} makes none without PyTorch") from error

    def _take(self, x):
        try:
            result = self.own_function(x)
            self.dtype(result)  # TVM-FFI takes complex numbers, and cannot name them
        except Exception as error:
            raise InexpressibleError(str(error)) from error
        return result

    def write(self, x, place):
        return False  # it has no way to


class TvmFfi(OverOthers):
    """TVM-FFI makes no memory itself."""

    name = "tvm_ffi"
    lacks = ("byteorder", "readonly")

    def values(self, x):
        if x.device.type != "cpu":  # dpnp's memory; OpenCL's CPU device has it on the host
            native("dpnp").xp.empty(1).sycl_queue.wait()
        return raw(x.data_ptr(), self.shape(x), tuple(x.strides), self.dtype(x))

    def dtype(self, x):
        return str(x.dtype)

    def pointer(self, x):
        return x.data_ptr()


class Pillow(Native):
    """Pillow's images, by its own decoder and encoder."""

    name = "pillow"
    module = "PIL.Image"
    _modes = {"uint8": "L", "uint16": "I;16", "int32": "I", "float32": "F", "bool": "1"}  # noqa: RUF012
    _channels = {2: "LA", 3: "RGB", 4: "RGBA"}  # noqa: RUF012

    def make(self, values):
        mode = self._modes.get(values.dtype.name)
        if values.ndim == 3 and mode == "L":
            mode = self._channels.get(values.shape[2])
        elif values.ndim != 2:
            mode = None
        if mode is None:
            raise InexpressibleError(f"pillow has no {values.ndim}-d {values.dtype}")
        size = (values.shape[1], values.shape[0])
        if mode == "1":
            return self.xp.frombytes("L", size, values.astype("u1") * 255).convert("1")
        return self.xp.frombytes(mode, size, values.tobytes())

    def values(self, x):
        found = np.array(x)
        return found.view("u1") != 0 if found.dtype == bool else found  # of bytes of 255

    def dtype(self, x):
        return next((name for name, mode in self._modes.items() if mode == x.mode), "uint8")

    def shape(self, x):
        return (x.height, x.width, *(() if len(x.getbands()) == 1 else (len(x.getbands()),)))

    def pointer(self, x):
        return None  # it does not expose one

    def readonly(self, x):
        return bool(x.readonly)

    def write(self, x, place):
        if self.readonly(x):
            return False  # Pillow would copy the image first
        row, column = divmod(place, x.width * len(x.getbands()))
        if len(x.getbands()) > 1:
            return False
        x.putpixel((column, row), x.getpixel((x.width - 1, x.height - 1)))
        return True

    def own_function(self, x):
        return self.xp.fromarray(x)


class CudaCore(OverOthers):
    """cuda.core's views of memory."""

    name = "cuda_core"
    module = "cuda.core.utils"

    def values(self, x):
        return raw(x.ptr, self.shape(x), x.strides or c_strides(x.shape), self.dtype(x))

    def pointer(self, x):
        return x.ptr

    def readonly(self, x):
        return bool(x.readonly)

    def own_function(self, x):
        return self.xp.StridedMemoryView.from_dlpack(x, stream_ptr=-1)
