"""cuda.core's StridedMemoryView: a description of host memory, as a source and a target."""

from __future__ import annotations

import pytest

from tests.support.processes import python

from .contract import LibraryContract

pytest.importorskip("cuda.core")
pytestmark = pytest.mark.heavy


class TestCudaCore(LibraryContract):
    name = "cuda_core"


def test_what_else_is_in_its_namespace_is_no_array_also_without_it():
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
