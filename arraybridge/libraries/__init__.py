"""The array libraries that arraybridge supports: one file and one line in this table for each.

The file has the library's ``LIBRARY``: how its arrays are described, exported and made. A library
with a namespace has a folder instead: ``exchange`` is that file, and ``namespace`` has its
functions, which conversions do not need. docs/extending.md walks through one.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.registry import Entry, provide

if TYPE_CHECKING:
    from ..core.library import Library

_CUPY = {"cuda": "CuPy (cupy-cuda12x)", "rocm": "a ROCm build of CuPy"}
_TORCH = {"cuda": "a CUDA build of PyTorch", "rocm": "a ROCm build of PyTorch"}

LIBRARIES = (
    Entry("numpy", "numpy", ("ml_dtypes",)),
    Entry("cupy", "cupy-cuda12x", computes=_CUPY),
    Entry("torch", "torch", computes=_TORCH),
    Entry("jax", "jax", ("jaxlib",)),
    Entry("numba", "numba-cuda"),
    Entry("dpnp", "dpnp", ("dpctl",), computes={"oneapi": "dpnp"}),
    Entry("pyarrow", "pyarrow"),
    Entry("pyarrow.Array", "pyarrow"),
    Entry("tvm_ffi", "apache-tvm-ffi"),
    Entry("tensorflow", "tensorflow"),
    Entry("paddle", "paddlepaddle"),
    Entry("warp", "warp-lang"),
    Entry("mlx", "mlx[cpu]"),
    Entry("cuda_core", "cuda-core", ("cuda",)),
    Entry("onnxruntime", "onnxruntime"),
    Entry("pillow", "pillow", ("PIL",)),
    Entry("openvino", "openvino"),
    Entry("array_api_strict", "array-api-strict"),
    Entry("dask", "dask[array]"),
)


def _load(entry: Entry) -> Library:
    if entry.declared:
        from ..core.entry_points import load

        return load(entry.name)
    home, _, form = entry.name.partition(".")  # "pyarrow.Array" is another class of its arrays
    module: Any = import_module(f"{__name__}.{home}")
    if hasattr(module, "__path__"):
        module = import_module(f"{module.__name__}.exchange")
    return getattr(module, f"{form.upper()}_LIBRARY" if form else "LIBRARY")


def _declared() -> list[Entry]:
    from ..core.entry_points import declared  # imports importlib.metadata: milliseconds

    return declared()


def _load_frames(package: str) -> Callable[[Any], Any]:
    opened: Callable[[Any], Any] = import_module(f"{__name__}.{package}").opened
    return opened


provide(LIBRARIES, _load, _declared, ("pandas", "polars", "pyarrow"), _load_frames)
