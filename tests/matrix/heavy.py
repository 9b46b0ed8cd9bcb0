"""The libraries that take a gigabyte, seconds to load, or a device; and the inference runtimes."""

import contextlib
import ctypes

import numpy as np

from arraybridge.dlpack import peek
from arraybridge.layout import c_strides

from .libraries import InexpressibleError, Native, OverNumPy, Views, numpy_dtype, raw


class TensorFlow(Native):
    """TensorFlow's eager tensors; like JAX it has one layout."""

    name = "tensorflow"
    immutable = True

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
    """Warp on the CPU; its slices take positive steps."""

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

    def values(self, x):
        copy = self.xp.clone(x) if x.size else x
        kind = numpy_dtype(self.dtype(x))
        return np.array(copy.numpy(), order="C").view(kind).reshape(tuple(x.shape))

    def dtype(self, x):
        return x.dtype.__name__

    def pointer(self, x):
        return x.ptr

    def memory(self, x):
        return x.numpy()

    def step_index(self, x, index):
        return x[index]

    def step_permute(self, x, axes):
        return x.transpose(axes)


class Mlx(Views, Native):
    """MLX; lazy, so whatever is built is evaluated."""

    name = "mlx"
    module = "mlx.core"
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


class OnnxRuntime(OverNumPy):
    """ONNX Runtime's values, read by address."""

    name = "onnxruntime"
    _names = {  # noqa: RUF012 - as ONNX calls them
        "float": "float32",
        "double": "float64",
        "float8e8m0": "float8_e8m0fnu",
        **{f"float8{kind}": f"float8_{kind}" for kind in ("e4m3fn", "e4m3fnuz", "e5m2")},
        "float8e5m2fnuz": "float8_e5m2fnuz",
    }
    _codes = {  # noqa: RUF012
        "bfloat16": 16,
        "float8_e4m3fn": 17,
        "float8_e4m3fnuz": 18,
        "float8_e5m2": 19,
        "float8_e5m2fnuz": 20,
        "float8_e8m0fnu": 24,
    }

    def of(self, array):
        code = self._codes.get(array.dtype.name)
        if code is None:
            return self.xp.OrtValue.ortvalue_from_numpy(array)
        return self.xp.OrtValue.ortvalue_from_numpy_with_onnx_type(array, code)

    def values(self, x):
        shape = self.shape(x)
        return raw(x.data_ptr(), shape, c_strides(shape), self.dtype(x))

    def dtype(self, x):
        name = x.data_type().removeprefix("tensor(").rstrip(")")
        return self._names.get(name, name)

    def shape(self, x):
        return tuple(x.shape())

    def pointer(self, x):
        return x.data_ptr()

    def memory(self, x):
        return x.numpy()

    def own_function(self, x):
        return self.xp.OrtValue.from_dlpack(x)


class OpenVINO(OverNumPy):
    """OpenVINO's tensors, and regions of them."""

    name = "openvino"
    _names = {  # noqa: RUF012
        "boolean": "bool",
        "f16": "float16",
        "f32": "float32",
        "f64": "float64",
        **{f"{s[0]}{n}": f"{s}{n}" for s in ("int", "uint") for n in (8, 16, 32, 64)},
        "bf16": "bfloat16",
        "f8e4m3": "float8_e4m3fn",
        "f8e5m2": "float8_e5m2",
        "f8e8m0": "float8_e8m0fnu",
    }

    def of(self, array):
        name = array.dtype.name
        if array.dtype.isbuiltin == 1:
            return self.xp.Tensor(array, shared_memory=True)
        kinds = [kind for kind, told in self._names.items() if told == name]
        if not kinds:
            raise InexpressibleError(f"openvino has no {name}")
        return self.xp.Tensor(array.view(np.uint8), array.shape, getattr(self.xp.Type, kinds[0]))

    def values(self, x):
        copy = self.xp.Tensor(x.element_type, x.shape)
        x.copy_to(copy)  # as a plug-in reads it
        bits = copy.data.reshape(-1).view(np.uint8) if copy.size else b""
        return np.frombuffer(bytes(bits), numpy_dtype(self.dtype(x))).reshape(self.shape(x))

    def dtype(self, x):
        name = x.element_type.to_string()
        return self._names.get(name, name)

    def pointer(self, x):
        return x.data.ctypes.data

    def memory(self, x):
        return x.data

    def step_index(self, x, index):
        if not all(isinstance(i, slice) and i.step in (None, 1) for i in index):
            raise InexpressibleError("openvino has regions alone")
        spans = [s.indices(n) for s, n in zip(index, x.shape, strict=False)]
        rest = list(x.shape)[len(spans) :]
        begin = [s[0] for s in spans] + [0] * len(rest)
        region = self.xp.Tensor(x, begin, [s[1] for s in spans] + rest)
        self.__dict__.setdefault("_whole", []).append(x)  # the region does not keep it
        return region

    def own_function(self, x):
        return self.xp.Tensor(np.from_dlpack(x), shared_memory=True)


class Dpnp(Views, Native):
    """dpnp on its default device."""

    name = "dpnp"
    device = "oneapi"

    def make(self, values):
        return self.xp.array(values)

    def values(self, x):
        return np.array(self.xp.asnumpy(x), order="C")

    def pointer(self, x):
        return x.get_array()._pointer

    def own_function(self, x):
        result = self.xp.from_dlpack(x)
        if not isinstance(result, self.xp.ndarray):
            raise TypeError(f"it gives a {type(result).__module__}.{type(result).__name__}")
        return result

    def readonly(self, x):
        return not x.flags.writable

    def step_readonly(self, x):
        x.flags.writable = False
        return x
