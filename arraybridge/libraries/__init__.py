"""The array libraries that arraybridge supports: one file and one line in this table for each.

The file has the library's ``LIBRARY``: how its arrays are described, exported and made. A library
with a namespace has a folder instead: ``exchange`` is that file, and ``namespace`` has its
functions, which conversions do not need. docs/extending.md walks through one.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.registry import Entry, provide, provide_frames, provide_later

if TYPE_CHECKING:
    from ..core.library import Library

_CUPY = {"cuda": "CuPy (cupy-cuda12x)", "rocm": "a ROCm build of CuPy"}
_TORCH = {"cuda": "a CUDA build of PyTorch", "rocm": "a ROCm build of PyTorch"}

LIBRARIES = (
    Entry("numpy", "numpy", ("ml_dtypes",), synonyms=("array_api_compat",), nicknames=("np",)),
    Entry("cupy", "cupy-cuda12x", nicknames=("cp",), computes=_CUPY),
    Entry("torch", "torch", computes=_TORCH),
    Entry("jax", "jax", ("jaxlib",), nicknames=("jnp",)),
    Entry("numba", "numba-cuda"),
    Entry("dpnp", "dpnp", ("dpctl",), computes={"oneapi": "dpnp"}),
    Entry("pyarrow", "pyarrow", synonyms=("arrow",), nicknames=("pa",)),
    Entry("pyarrow.Array", "pyarrow"),
    Entry("tvm_ffi", "apache-tvm-ffi"),
    Entry("tensorflow", "tensorflow", nicknames=("tf",)),
    Entry("paddle", "paddlepaddle"),
    Entry("warp", "warp-lang"),
    Entry("mlx", "mlx[cpu]"),
    Entry("cuda_core", "cuda-core", ("cuda",)),
    Entry("onnxruntime", "onnxruntime", nicknames=("ort", "onnx")),
    Entry("pillow", "pillow", ("PIL",), nicknames=("pil",)),
    Entry("openvino", "openvino", nicknames=("ov",)),
    Entry("array_api_strict", "array-api-strict"),
    Entry("dask", "dask[array]", nicknames=("da",)),
)


def _load(name: str) -> Library:
    home, _, form = name.partition(".")  # "pyarrow.Array" is another class of its arrays
    module: Any = import_module(f"{__name__}.{home}")
    if hasattr(module, "__path__"):
        module = import_module(f"{module.__name__}.exchange")
    return getattr(module, f"{form.upper()}_LIBRARY" if form else "LIBRARY")


def _load_frames(package: str) -> Callable[[Any], Any]:
    opened: Callable[[Any], Any] = import_module(f"{__name__}.{package}").opened
    return opened


def _declared() -> list[str]:
    from ..core.entry_points import provide_declared  # imports importlib.metadata: milliseconds

    return provide_declared()


provide(LIBRARIES, _load)
provide_later(_declared)
provide_frames(("pandas", "polars", "pyarrow"), _load_frames)
