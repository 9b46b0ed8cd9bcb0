"""The contract of the libraries that have little else of their own to show."""

from __future__ import annotations

import pytest

from tests.matrix.libraries import installed
from tests.support.optional import needs
from tests.support.processes import python

from .contract import LibraryContract


class TestNumPy(LibraryContract):
    name = "numpy"


@needs("torch")
class TestTorch(LibraryContract):
    name = "torch"


@needs("jax")
@pytest.mark.usefixtures("x64")
class TestJax(LibraryContract):
    name = "jax"


@needs("array_api_strict")
class TestStrict(LibraryContract):
    name = "array_api_strict"


@needs("PIL")
class TestPillow(LibraryContract):
    name = "pillow"


@needs("onnxruntime")
@pytest.mark.heavy
class TestOnnxRuntime(LibraryContract):
    name = "onnxruntime"


@pytest.mark.skipif(not installed(["cuda_core"]), reason="cuda.core is not installed")
@pytest.mark.heavy
class TestCudaCore(LibraryContract):
    name = "cuda_core"


@pytest.mark.heavy
def test_what_else_is_in_the_namespace_of_cuda_core_is_no_array_also_without_it():
    script = (
        "import sys; sys.modules['cuda.core'] = None\n"
        "import arraybridge as ab, numpy as np\n"
        "class Stream: pass\n"
        "Stream.__module__ = 'cuda.bindings.driver'\n"
        "x = Stream()\n"
        "assert ab.adapt('numpy')(lambda y: y)(x) is x\n"
        "try: ab.convert(x, 'numpy')\n"
        "except TypeError as error: print(error)"
    )
    assert python(script).startswith("cuda.Stream is not an array: expected")
