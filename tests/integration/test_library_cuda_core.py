"""cuda.core's StridedMemoryView: a description of host memory, as a source and a target."""

from __future__ import annotations

import pytest

core = pytest.importorskip("cuda.core")

from cuda.core.utils import StridedMemoryView  # noqa: E402

from tests.support.optional import optional  # noqa: E402
from tests.support.processes import python  # noqa: E402

torch = optional("torch")
pytestmark = pytest.mark.heavy


def viewed(x) -> StridedMemoryView:
    return StridedMemoryView.from_dlpack(x, stream_ptr=-1)


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
