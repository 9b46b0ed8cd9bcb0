"""Arrays of every library on a CUDA device, for the tests marked gpu.

Importing this skips the file that does so without a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import arraybridge as ab
from benchmarks.layouts import Layout

from .small_layouts import small_layouts

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

CUDA = ab.Device.parse("cuda:0")
LAYOUTS = {layout.name: layout for layout in small_layouts()}
SLOW = 20_000_000  # cycles for which a stream is busy: 10 ms or so

needs_two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs a second device")


def image() -> np.ndarray:
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def place(library: str, x: np.ndarray) -> Any:
    """A contiguous array of a library on device 0, with the numbers of one in host memory."""
    if library == "torch":
        return torch.from_numpy(x).cuda()
    if library == "cupy":
        return pytest.importorskip("cupy").asarray(x)
    if library == "numba":
        return pytest.importorskip("numba.cuda").to_device(x)
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no CUDA device here")
    return jax.device_put(x)


LIBRARIES = ("torch", "cupy", "numba", "jax")


def on_host(x: Any) -> np.ndarray:
    return ab.convert(x, "numpy", device="cpu")


def placed(library: str, layout: Layout) -> tuple[Any, np.ndarray]:
    """The view of an array on the device, and the same view in host memory."""
    base = layout.base()
    expected = layout.view(base)
    there = place(library, base)
    if library == "cupy" and 0 in expected.strides:  # the layout's own function asks for NumPy's
        return pytest.importorskip("cupy").broadcast_to(there, expected.shape), expected
    return layout.view(there), expected


def cases() -> Iterator[Any]:
    """Parameters: a library with strided arrays, and a layout that it has."""
    for name, layout in LAYOUTS.items():
        for library in ("torch", "cupy"):
            if library == "cupy" or layout.torch is None:  # torch has no negative strides
                yield pytest.param(library, layout, id=f"{library}, {name}")


def first_wrong(found: np.ndarray, expected: np.ndarray) -> str:
    """Where two arrays differ in a bit; "" where they do not."""
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return f"{found.dtype}{found.shape} in place of {expected.dtype}{expected.shape}"
    bits = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (found, expected)]
    wrong = np.flatnonzero(bits[0] != bits[1])
    return f"{wrong.size} of {bits[0].size} bytes differ, first {wrong[0]}" if wrong.size else ""
