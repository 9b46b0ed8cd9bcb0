"""The libraries of :mod:`tests.matrix.libraries` that take a gigabyte, or seconds to load."""

import contextlib
import ctypes

import numpy as np

from arraybridge.dlpack import peek

from .libraries import InexpressibleError, Native, Views, numpy_dtype, raw


class TensorFlow(Native):
    """TensorFlow's eager tensors; like JAX it has one layout."""

    name = "tensorflow"
    spelled = "tf.experimental.dlpack.from_dlpack(x.__dlpack__())"
    immutable = True
    ends_process = ("*",)

    def make(self, values):
        return self.xp.constant(values)

    def values(self, x):
        if self.dtype(x).startswith(("float", "int", "uint", "complex")):
            errors = self.xp.errors
            with contextlib.suppress(errors.NotFoundError, errors.InvalidArgumentError, TypeError):
                self.xp.add(x, x)  # here, not on import, it aborts where the data is not aligned
        return np.array(self.xp.identity(x).numpy(), order="C")

    def pointer(self, x):
        try:
            return np.asarray(memoryview(x)).ctypes.data
        except ValueError:  # bfloat16 and float8 have no buffer
            try:
                return peek(self.xp.experimental.dlpack.to_dlpack(x)).pointer
            except Exception:
                return None

    def own_function(self, x):
        return self.xp.experimental.dlpack.from_dlpack(x.__dlpack__())


class Paddle(Native):
    """Paddle; read by address, as it lacks operations for many of its dtypes."""

    name = "paddle"
    spelled = "paddle.utils.dlpack.from_dlpack(x)"

    def load(self):
        super().load()
        from paddle.utils import dlpack

        self._dlpack = dlpack
        return self

    def make(self, values):
        paddle = self.xp
        dtype = getattr(paddle, values.dtype.name, None)
        if dtype is None:
            raise InexpressibleError(f"paddle has no {values.dtype}")
        data = np.array(values, order="C")
        if data.dtype.name in ("uint16", "uint32", "uint64"):  # tensors, but hardly an operation
            signed = paddle.to_tensor(data.view(data.dtype.name[1:]))
            return signed.view(dtype)
        if values.ndim == 0 or not values.size:
            if values.dtype.name not in np.sctypeDict:
                raise InexpressibleError(f"paddle builds no 0-d or empty {values.dtype} from bytes")
            return paddle.to_tensor(data)
        flat = data.reshape(-1).view(np.uint8)
        return paddle.to_tensor(flat).view(dtype).reshape(values.shape)

    def values(self, x):
        if self.dtype(x) in ("float32", "float64", "int32", "int64", "bool"):
            x.detach().numpy()  # here, not on import, it fails over memory that runs backwards
        return raw(x.data_ptr(), self.shape(x), tuple(x.strides), self.dtype(x))

    def dtype(self, x):
        return x.dtype.name.lower()  # str() of uint16 says bfloat16

    def pointer(self, x):
        return x.data_ptr()

    def step_index(self, x, index):
        return x[index]

    def step_permute(self, x, axes):
        return x.transpose(list(axes))

    def step_broadcast(self, x, shape):
        strides = [0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True)]
        return self.xp.as_strided(x, list(shape), strides)

    def step_strided(self, x, shape, strides):
        return self.xp.as_strided(x, list(shape), list(strides))

    def step_requires_grad(self, x):
        x.stop_gradient = False
        return x

    def own_function(self, x):
        return self._dlpack.from_dlpack(x)


class Warp(Native):
    """Warp on the CPU, with views built by address and strides: its slices take positive steps."""

    name = "warp"

    def load(self):
        super().load()
        self.xp.config.quiet = True
        self.xp.init()
        self._dtypes = {
            name: getattr(self.xp, name)
            for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 "
            "float32 float64".split()
            if hasattr(self.xp, name)
        }
        return self

    def _at(self, pointer, shape, strides, dtype, owner):
        if not shape:
            raise InexpressibleError("warp has no 0-d arrays")
        x = self.xp.array(ptr=pointer, shape=shape, strides=strides, dtype=dtype, device="cpu")
        x._owner = owner
        return x

    def make(self, values):
        dtype = self._dtypes.get(values.dtype.name)
        if dtype is None or not 1 <= values.ndim <= 4:
            raise InexpressibleError(f"warp has no {values.ndim}-d {values.dtype}")
        x = self.xp.zeros(values.shape, dtype=dtype, device="cpu")
        if values.size:
            self._memory(x)[...] = values
        return x

    def _memory(self, x):
        kind = numpy_dtype(self.dtype(x))
        block = (ctypes.c_char * (x.size * kind.itemsize)).from_address(x.ptr)
        return np.frombuffer(block, kind).reshape(x.shape)

    def at_offset(self, values, offset):
        block = self.xp.zeros(values.nbytes + 128, dtype=self.xp.uint8, device="cpu")
        start = -block.ptr % 64 + offset
        np.frombuffer(self._memory(block), np.uint8)[start : start + values.nbytes] = np.frombuffer(
            values.tobytes(), np.uint8
        )
        strides = tuple(values.strides)
        dtype = self._dtypes[values.dtype.name]
        return self._at(block.ptr + start, values.shape, strides, dtype, block)

    def values(self, x):
        copy = self.xp.clone(x) if x.size else x
        kind = numpy_dtype(self.dtype(x))
        return np.array(copy.numpy(), order="C").view(kind).reshape(tuple(x.shape))

    def dtype(self, x):
        return x.dtype.__name__

    def pointer(self, x):
        return x.ptr

    def _view(self, x, shape, strides, offset=0):
        return self._at((x.ptr or 0) + offset, shape, strides, x.dtype, x)

    def step_index(self, x, index):
        shape, strides, offset = [], [], 0
        index = index if isinstance(index, tuple) else (index,)
        for extent, stride, item in zip(
            x.shape, x.strides, (*index, *[slice(None)] * (x.ndim - len(index))), strict=True
        ):
            if isinstance(item, int):
                offset += item * stride
                continue
            picked = range(*item.indices(extent))
            shape.append(len(picked))
            strides.append(stride * picked.step)
            offset += picked.start * stride
        return self._view(x, tuple(shape), tuple(strides), offset)

    def step_permute(self, x, axes):
        return x.transpose(axes)

    def step_broadcast(self, x, shape):
        strides = tuple(0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True))
        return self._view(x, shape, strides)

    def step_strided(self, x, shape, strides):
        size = numpy_dtype(self.dtype(x)).itemsize
        return self._view(x, shape, tuple(s * size for s in strides))

    def write(self, x, place):
        kind = numpy_dtype(self.dtype(x))
        values = self.values(x)
        index = np.unravel_index(place, values.shape)
        at = x.ptr + sum(int(i) * s for i, s in zip(index, x.strides, strict=True))
        ctypes.memmove(at, values[(-1,) * values.ndim].tobytes(), kind.itemsize)
        return True


class Mlx(Views, Native):
    """MLX; lazy, so whatever is built is evaluated."""

    name = "mlx"
    module = "mlx.core"
    spelled = "mx.from_dlpack(x)"
    immutable = True  # x[i] = v gives x another block; who shares the old one does not see it

    def make(self, values):
        mx = self.xp
        dtype = getattr(mx, {"bool": "bool_"}.get(values.dtype.name, values.dtype.name), None)
        if dtype is None:
            raise InexpressibleError(f"mlx has no {values.dtype}")
        if values.dtype.name == "bfloat16":
            return mx.array(values.view(np.uint16)).view(dtype)
        return mx.array(values, dtype=dtype)

    def values(self, x):
        mx, kind = self.xp, numpy_dtype(self.dtype(x))
        x = mx.contiguous(x)
        if kind.name == "bfloat16":
            x = x.view(mx.uint16)
        return np.array(x, order="C").view(kind)

    def dtype(self, x):
        return super().dtype(x).rstrip("_")

    def pointer(self, x):
        self.xp.eval(x)
        try:
            return np.asarray(memoryview(x)).ctypes.data
        except (ValueError, TypeError, BufferError):
            return peek(x.__dlpack__()).pointer

    def step_permute(self, x, axes):
        return self.xp.transpose(x, axes)

    def step_strided(self, x, shape, strides):
        return self.xp.as_strided(x, shape, strides)

    def build(self, case):
        x = super().build(case)
        self.xp.eval(x)
        return x
