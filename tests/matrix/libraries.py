"""How the matrix builds, reads and writes arrays with each library's own functions.

What the bridge gives is judged by what is written here, so nothing here converts by arraybridge; an
array's values are read by operations of its own library, which a wrong view would not survive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np

from ..support.probe import aligned
from .cases import Case


class InexpressibleError(Exception):
    """The library has no such array: the cell is n/a."""


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype of a name, ml_dtypes' where NumPy has none."""
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(getattr(import_module("ml_dtypes"), name))


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Small distinct values that a narrower type, or another element's place, would not show."""
    kind = numpy_dtype(dtype)
    count = np.arange(prod(shape)).reshape(shape)
    if kind.kind == "b":
        return count % 3 == 0
    if kind.kind in "iu":
        high = 2 ** (8 * kind.itemsize - 2) if kind.itemsize == 8 else 0
        return (count % 100 + 1).astype(kind) + kind.type(high)
    if kind.itemsize == 1:  # float8: small positive numbers, by their bits
        return (count % 64 + 8).astype(np.uint8).view(kind)
    if kind.kind == "c":
        return (count + 1.1 - 1j * (count / 3 + 0.5)).astype(kind)
    return (count + 1.1).astype(kind)  # not a float32: shows what was narrowed and widened


def as_strided(x: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """NumPy's, with strides in elements."""
    return np.lib.stride_tricks.as_strided(x, shape, [s * x.itemsize for s in strides])


def reference(case: Case) -> np.ndarray:
    """The values that an array of the case has, contiguous, made with NumPy alone."""
    steps = {
        "permute": np.transpose,
        "index": lambda x, index: x[index],
        "broadcast": np.broadcast_to,
        "strided": as_strided,
        "conj": np.conj,
        "neg": np.negative,
    }
    x = numbers(case.dtype, case.base)
    for step, *args in case.steps:
        x = steps[step](x, *args) if step in steps else x
    return np.array(x, order="C")


def raw(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> np.ndarray:
    """A copy of host memory by address, element by element; strides in elements."""
    kind = numpy_dtype(dtype)
    result = np.empty(shape, kind)
    flat, size = result.reshape(-1).view(np.uint8), kind.itemsize
    for i, index in enumerate(np.ndindex(*shape)):
        at = pointer + size * sum(a * b for a, b in zip(index, strides, strict=True))
        flat[i * size : (i + 1) * size] = np.frombuffer(ctypes.string_at(at, size), np.uint8)
    return result


class Native:
    """One library, by its own constructors, operations and importer."""

    name = ""  # arraybridge's
    module = ""  # the import name, where it is another
    device = "cpu"  # where its arrays lie here, as ``convert`` spells it
    immutable = False  # whether its arrays can never be written
    xp: Any = None

    def load(self) -> Native:
        """Import the library."""
        self.xp = import_module(self.module or self.name)
        return self

    def build(self, case: Case) -> Any:
        """The array of a case; InexpressibleError if the library has no such array."""
        values = numbers(case.dtype, case.base)
        steps = list(case.steps)
        try:
            return self._build(case, values, steps)
        except InexpressibleError:
            raise
        except Exception as error:  # whatever it says to a dtype, rank or layout that it lacks
            raise InexpressibleError(f"{type(error).__name__}: {error}") from error

    def _build(self, case: Case, values: np.ndarray, steps: list[tuple]) -> Any:
        if steps and steps[0][0] == "offset":
            x = self.at_offset(values, steps.pop(0)[1])
        elif steps and hasattr(self, f"make_{steps[0][0]}"):
            x = getattr(self, f"make_{steps.pop(0)[0]}")(values)
        else:
            x = self.make(values)
        if self.dtype(x) != case.dtype and case.legal:
            raise InexpressibleError(f"{self.name} makes {self.dtype(x)} of {case.dtype}")
        for step, *args in steps:
            apply = getattr(self, f"step_{step}", None)
            if apply is None:
                raise InexpressibleError(f"{self.name} has no {step} arrays")
            x = apply(x, *args)
        return x

    def holds(self, values: np.ndarray) -> bool:
        """Whether the library can hold such an array at all: its dtype, its rank, every bit."""
        try:
            x = self.make(values)
            if self.dtype(x) != values.dtype.name or self.shape(x) != values.shape:
                return False
            return self.values(x).tobytes() == values.tobytes()
        except Exception:
            return False

    def make(self, values: np.ndarray) -> Any:
        """A contiguous array in memory of its own."""
        raise NotImplementedError

    def at_offset(self, values: np.ndarray, offset: int) -> Any:
        """A contiguous array that starts ``offset`` bytes after a multiple of 64."""
        raise InexpressibleError(f"{self.name} makes no arrays at any byte")

    def values(self, x: Any) -> np.ndarray:
        """A copy of what is in an array, read by its own library."""
        raise NotImplementedError

    def dtype(self, x: Any) -> str:
        """The name of an array's dtype."""
        return getattr(x.dtype, "name", str(x.dtype)).rpartition(".")[2]

    def shape(self, x: Any) -> tuple[int, ...]:
        """An array's shape."""
        return tuple(x.shape)

    def pointer(self, x: Any) -> int | None:
        """The address of the first element; None if the library does not expose it."""
        raise NotImplementedError

    def readonly(self, x: Any) -> bool:
        """Whether the library keeps its users from writing to an array."""
        return self.immutable

    def write(self, x: Any, place: int) -> bool:
        """Write the last element over the one at a flat place; False where that cannot be done."""
        if self.readonly(x):
            return False
        try:
            array, shape = self.memory(x), self.shape(x)
            last = array[(-1,) * len(shape)]
            array[tuple(int(i) for i in np.unravel_index(place, shape))] = last
        except Exception:
            return False
        return True

    def memory(self, x: Any) -> Any:
        """What users index to write to an array."""
        return x

    def own_function(self, x: Any) -> Any:
        """What the library's own importer makes of another library's array."""
        return self.xp.from_dlpack(x)


class Views:
    """Views by the usual spelling, for libraries whose indexing gives views."""

    xp: Any

    def step_index(self, x, index):
        return x[index]

    def step_permute(self, x, axes):
        return self.xp.permute_dims(x, axes)

    def step_broadcast(self, x, shape):
        return self.xp.broadcast_to(x, shape)


class OverNumPy(Native):
    """What makes its arrays of NumPy's, over their memory."""

    def of(self, x: np.ndarray) -> Any:
        return x

    def make(self, values):
        return self.of(aligned(values))

    def at_offset(self, values, offset):
        return self.of(aligned(values, offset))


class Ndarrays(Views, OverNumPy):
    """What is a NumPy array underneath."""

    def step_index(self, x, index):
        return x[(*index, ...)]  # a 0-d array, not a scalar

    def values(self, x):
        return np.array(x, order="C", subok=False)

    def pointer(self, x):
        return x.ctypes.data

    def readonly(self, x):
        return not x.flags.writeable

    def step_strided(self, x, shape, strides):
        return as_strided(x, shape, strides)

    def step_readonly(self, x):
        x = x.view()
        x.flags.writeable = False
        return x


class NumPy(Ndarrays):
    """All that NumPy has, other byte orders and dtypes without a DLPack type included."""

    name = "numpy"

    def dtype(self, x):
        return x.dtype.name if x.dtype.isnative else f"big-endian {x.dtype.name}"

    def step_byteorder(self, x):
        return x.astype(x.dtype.newbyteorder(">"))

    def make_structured(self, values):
        return np.zeros(values.shape, [("a", "f4"), ("b", "i4")])

    def make_object(self, values):
        return values.astype(object)

    def make_datetime(self, values):
        return values.astype("int64").view("datetime64[s]")

    def make_masked(self, values):
        return np.ma.masked_array(values, values > 3)


class Strict(Ndarrays):
    """array-api-strict; ``_array`` is the NumPy array inside."""

    name = "array_api_strict"

    def of(self, x):
        return self.xp.asarray(x, copy=False)

    def values(self, x):
        return np.array(x._array, order="C")

    def dtype(self, x):
        return x._array.dtype.name

    def pointer(self, x):
        return x._array.ctypes.data

    def readonly(self, x):
        return not x._array.flags.writeable

    def memory(self, x):
        return x._array

    def step_index(self, x, index):
        return self.of(x._array[(*index, ...)])

    def step_strided(self, x, shape, strides):
        return self.of(as_strided(x._array, shape, strides))

    def step_readonly(self, x):
        return self.of(super().step_readonly(x._array))


NATIVES = {  # name -> (module, class)
    "numpy": (".libraries", "NumPy"),
    "array_api_strict": (".libraries", "Strict"),
    "torch": (".light", "Torch"),
    "jax": (".light", "Jax"),
    "pyarrow": (".light", "Arrow"),
    "tvm_ffi": (".light", "TvmFfi"),
    "tensorflow": (".heavy", "TensorFlow"),
    "paddle": (".heavy", "Paddle"),
    "warp": (".heavy", "Warp"),
    "mlx": (".heavy", "Mlx"),
    "onnxruntime": (".heavy", "OnnxRuntime"),
    "openvino": (".heavy", "OpenVINO"),
    "pillow": (".light", "Pillow"),
    "cuda_core": (".light", "CudaCore"),
    "dpnp": (".heavy", "Dpnp"),
}


PACKAGES = {"pillow": "PIL", "cuda_core": "cuda.core"}


def package(name: str) -> str:
    """Return the package that a library is imported from."""
    return PACKAGES.get(name, name)


def installed(names: Iterable[str]) -> list[str]:
    """Return the libraries that are installed."""
    return [name for name in names if _found(package(name))]


def _found(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent is not there
        return False


def native(name: str) -> Native:
    """Return the library of a name, loaded."""
    module, kind = NATIVES[name]
    return getattr(import_module(module, __package__), kind)().load()
