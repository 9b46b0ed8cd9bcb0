"""The libraries of :mod:`tests.matrix.libraries` whose arrays lie on another device."""

import numpy as np

from .libraries import InexpressibleError, Native, Views


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


class CuPy(Views, Native):
    """CuPy on the current device."""

    name = "cupy"
    device = "cuda"

    def make(self, values):
        try:
            return self.xp.asarray(values)
        except (TypeError, ValueError) as error:
            raise InexpressibleError(str(error)) from error

    def values(self, x):
        return np.array(self.xp.asnumpy(x), order="C")

    def pointer(self, x):
        return x.data.ptr

    def step_permute(self, x, axes):
        return x.transpose(axes)

    def step_strided(self, x, shape, strides):
        as_strided = self.xp.lib.stride_tricks.as_strided
        return as_strided(x, shape, [s * x.itemsize for s in strides])


class NumbaCuda(Native):
    """Numba's device arrays, which convert through the CUDA array interface."""

    name = "numba"
    module = "numba.cuda"
    spelled = "numba.cuda.as_cuda_array(x)"
    device = "cuda"

    def make(self, values):
        return self.xp.to_device(np.ascontiguousarray(values))

    def values(self, x):
        return np.array(x.copy_to_host(), order="C")

    def pointer(self, x):
        return x.device_ctypes_pointer.value

    def step_index(self, x, index):
        return x[index]

    def step_permute(self, x, axes):
        return x.transpose(axes)

    def own_function(self, x):
        return self.xp.as_cuda_array(x)
