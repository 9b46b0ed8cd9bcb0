"""cuda.core's StridedMemoryView: a description of host memory, as a source and a target."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

core = pytest.importorskip("cuda.core")

from cuda.core.utils import StridedMemoryView  # noqa: E402

import arraybridge as ab  # noqa: E402
from arraybridge.libraries.cuda_core import LIBRARY  # noqa: E402
from tests.support.arrays import littered  # noqa: E402
from tests.support.optional import optional  # noqa: E402
from tests.support.processes import python  # noqa: E402

torch = optional("torch")
pytestmark = pytest.mark.heavy


def viewed(x) -> StridedMemoryView:
    return StridedMemoryView.from_dlpack(x, stream_ptr=-1)


def test_the_record_is_of_the_installed_version():
    assert LIBRARY.accepts.tested == core.__version__


@pytest.mark.parametrize("to", ["numpy", "torch", "dlpack"])
def test_a_view_holds_the_memory(to):
    for _ in range(3):
        x = np.arange(1000.0)
        held, view = weakref.ref(x), viewed(x)
        result = ab.from_dlpack(view) if to == "dlpack" else ab.convert(view, to)
        del x, view
        littered(8000)
        assert held() is not None
        assert ab.convert(result, "numpy").tolist() == list(range(1000))
        del result
        gc.collect()
        assert held() is None


def test_as_a_target_it_holds_the_memory():
    for make in (lambda: np.arange(1000.0), lambda: torch.arange(1000.0, dtype=torch.float64)):
        x = make()
        held, view = weakref.ref(x), ab.convert(x, "cuda_core")
        del x
        littered(8000)
        assert ab.convert(view, "numpy").tolist() == list(range(1000))
        del view
        gc.collect()
        assert held() is None


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


def test_gradients_are_not_cut():
    with pytest.raises(ab.ConversionError, match=r"x\.detach\(\)"):
        ab.convert(torch.ones(3, requires_grad=True), "cuda_core")
