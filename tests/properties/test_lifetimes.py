"""Whatever becomes of an array, the views of its memory stay as they are.

The net is `support/lifetimes`: every way in which memory is freed, moved or rebound, against every
target, for native arrays and Arrays, the first time and later.
"""

import json

import pytest

from tests.matrix.libraries import package
from tests.support.processes import python

TARGETS = "numpy torch jax pyarrow tvm_ffi array_api_strict"
SOURCES = {  # those that are quick share a process
    "torch": "numpy jax tvm_ffi pyarrow",
    "jax": "numpy pyarrow array_api_strict torch",
    "numpy+array_api_strict+tvm_ffi": TARGETS,
}
HEAVY = {
    "torch": ("torch array_api_strict", "paddle warp", "tensorflow"),
    "jax": ("jax tvm_ffi", "warp", "tensorflow"),
    "paddle": ("numpy torch jax tvm_ffi array_api_strict pyarrow", "paddle warp"),
    "tensorflow": (TARGETS, "tensorflow"),
    "mlx": (TARGETS, "warp"),
    "warp": (TARGETS, "warp"),
    "numpy": ("paddle warp", "tensorflow"),
    "numpy+torch+tvm_ffi": ("onnxruntime openvino cuda_core pillow",),
    "pillow": (f"{TARGETS} onnxruntime openvino cuda_core",),
}
CASES = [pytest.param(source, targets, id=source) for source, targets in SOURCES.items()] + [
    pytest.param(source, targets, id=f"{source} to {targets}", marks=pytest.mark.heavy)
    for source, several in HEAVY.items()
    for targets in several
]


@pytest.mark.parametrize(("source", "targets"), CASES)
def test_views_hold_the_memory(source, targets):
    for name in (*source.split("+"), *targets.split()):
        pytest.importorskip({"mlx": "mlx.core", "cuda_core": "cuda.core"}.get(name, package(name)))
    script = "import sys; from tests.support.lifetimes import main; main(*sys.argv[1:])"
    said = python(script, source, *targets.split(), flags=("-W", "ignore"))
    report = json.loads(said.splitlines()[-1])
    assert report["wrong"] == []
    if source in SOURCES:
        assert min(report["views"].values()) >= len(targets.split()) - 2  # JAX takes few of them
