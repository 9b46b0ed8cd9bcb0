"""The inference runtimes of :mod:`tests.matrix.libraries`: tensors in C order, on the host."""

import contextlib

import numpy as np

from arraybridge.layout import c_strides

from .libraries import InexpressibleError, OverNumPy, numpy_dtype, raw


class OnnxRuntime(OverNumPy):
    """ONNX Runtime's values, read by a model that gives back what it is given."""

    name = "onnxruntime"
    spelled = "OrtValue.from_dlpack(x)"
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

    def load(self):
        super().load()
        self._models = {}
        return self

    def of(self, array):
        code = self._codes.get(array.dtype.name)
        if code is None:
            return self.xp.OrtValue.ortvalue_from_numpy(array)
        return self.xp.OrtValue.ortvalue_from_numpy_with_onnx_type(array, code)

    def values(self, x):
        if x.tensor_size_in_bytes():
            x = self._identity(x)
        shape = self.shape(x)
        return raw(x.data_ptr(), shape, c_strides(shape), self.dtype(x))

    def _identity(self, x):
        """What a model makes of it, if there is a kernel for the type."""
        from ..support.onnx import model

        code = x.element_type()
        with contextlib.suppress(Exception):
            if code not in self._models:
                told = model([("Identity", "x", "y")], {"x": code}, {"y": code})
                self._models[code] = self.xp.InferenceSession(told)
            return self._models[code].run_with_ort_values(None, {"x": x})[0]
        return x

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
    spelled = "openvino.Tensor(np.from_dlpack(x), shared_memory=True)"
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
