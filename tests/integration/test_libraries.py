"""What holds for many libraries alike: their records' versions, and who holds shared memory.

What of a view is left when its source loses its memory, and that of every pair of libraries, data
types and layouts, are `tests/properties/test_lifetimes.py` and `tests/matrix`.
"""

from __future__ import annotations

import gc
import weakref
from importlib import import_module

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.core.registry import library_named
from tests.matrix.libraries import package
from tests.matrix.run import versions
from tests.support.arrays import littered
from tests.support.optional import needs

LIGHT = ("pillow", "pyarrow", "tvm_ffi")
HEAVY = ("tensorflow", "paddle", "cuda_core", "onnxruntime", "openvino", "warp")


def each(*names: str) -> list[object]:
    heavy = pytest.mark.heavy
    return [
        pytest.param(name, marks=[needs(package(name)), *[heavy] * (name in HEAVY)])
        for name in names
    ]


@pytest.mark.parametrize("library", each(*LIGHT, *HEAVY))
def test_the_record_is_of_the_installed_version(library):
    installed = versions([library])[library].partition(".post")[0]
    assert library_named(library).accepts.tested == installed


#: What makes a library's array over the memory of NumPy's.
OVER = {
    "pyarrow": lambda x: import_module("pyarrow").Tensor.from_numpy(x),
    "tvm_ffi": lambda x: import_module("tvm_ffi").from_dlpack(x),
    "cuda_core": lambda x: import_module("cuda.core.utils").StridedMemoryView.from_dlpack(
        x, stream_ptr=-1
    ),
    "onnxruntime": lambda x: import_module("onnxruntime").OrtValue.ortvalue_from_numpy(x),
    "openvino": lambda x: import_module("openvino").Tensor(x, shared_memory=True),
}


def check_held(view_of, x):
    """Check that a view holds an array's memory, as long as there is the view, and no longer."""
    given, held, expected = [x], weakref.ref(x), x.tolist()
    del x
    view = view_of(given.pop())
    littered(1000)
    assert held() is not None
    assert ab.convert(view, "numpy").tolist() == expected
    del view
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("to", ["numpy", "torch", "dlpack"])
@pytest.mark.parametrize("library", each(*OVER))
def test_a_view_of_its_array_holds_the_memory(library, to):
    def view_of(x):
        array = OVER[library](x)
        return ab.from_dlpack(array) if to == "dlpack" else ab.convert(array, to)

    for _ in range(3):  # planned, then by the fast paths
        check_held(view_of, np.arange(1000.0))


@pytest.mark.parametrize("library", each(*OVER, "pillow", "paddle", "warp"))
def test_its_view_of_an_array_holds_the_memory(library):
    for _ in range(3):
        check_held(
            lambda x: ab.convert(x, library, copy=False),
            np.arange(1000, dtype="u1").reshape(20, 50),
        )
