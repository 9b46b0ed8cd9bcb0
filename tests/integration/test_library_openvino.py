"""OpenVINO: tensors as views of other libraries' memory, and views of its own."""

from __future__ import annotations

import numpy as np
import pytest

ov = pytest.importorskip("openvino")

import openvino.opset13 as operators  # noqa: E402

import arraybridge as ab  # noqa: E402
from arraybridge.libraries.openvino import _TYPES  # noqa: E402
from tests.support.optional import optional  # noqa: E402

from .contract import LibraryContract  # noqa: E402

torch = optional("torch")
pytestmark = pytest.mark.heavy


class TestOpenVINO(LibraryContract):
    name = "openvino"


@pytest.fixture(scope="module")
def double():
    """A model that adds its input to itself, of any length."""
    x = operators.parameter([-1], np.float32, name="x")
    return ov.compile_model(ov.Model([operators.add(x, x)], [x], "double"), "CPU")


@pytest.mark.parametrize("name", _TYPES)
def test_each_element_type(name):
    x = ov.Tensor(_TYPES[name], [2, 3])
    values = np.arange(x.byte_size, dtype="u1").reshape(2, -1)
    x.data.view(np.uint8)[...] = values % 2 if name == "bool" else values
    for _ in range(2):
        info = ab.inspect(x)
        assert (info.dtype.name, info.shape, info.strides) == (name, (2, 3), (3, 1))
        assert (info.pointer, info.nbytes) == (x.data.ctypes.data, x.byte_size)
        view = ab.convert(x, "numpy")
        assert (view.dtype.name, view.ctypes.data) == (name, info.pointer)
        again = ab.convert(view, "openvino")
        assert again.element_type == x.element_type
        assert again.data.ctypes.data == info.pointer
        assert again.data.tobytes() == x.data.tobytes()


def test_a_view_both_ways(double):
    x = torch.arange(4.0)
    given = ab.convert(x, "openvino")
    assert given.data.ctypes.data == x.data_ptr()
    x[0] = 10
    request = double.create_infer_request()
    request.set_input_tensor(given)
    request.infer()
    result = request.get_output_tensor()
    for to in ("numpy", "torch", "onnxruntime", "tvm_ffi"):
        try:
            view = ab.convert(result, to)
        except ImportError:
            continue
        assert ab.inspect(view).pointer == result.data.ctypes.data
        assert ab.convert(view, "numpy").tolist() == [20, 2, 4, 6]
    ab.convert(result, "torch")[1] = -1
    assert result.data.tolist() == [20, -1, 4, 6]


def test_a_region_is_a_strided_view():
    x = ov.Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    region = ov.Tensor(x, [1, 1], [3, 3])
    for to in ("numpy", "torch"):
        for _ in range(2):
            view = ab.convert(region, to)
            assert ab.inspect(view).strides == (4, 1)
            assert view.tolist() == [[5, 6], [9, 10]]
            assert ab.inspect(view).pointer == x.data.ctypes.data + 20
    other = ab.convert(region, "openvino", copy=True)
    assert other.is_continuous()
    assert other.data.tolist() == [[5, 6], [9, 10]]


@pytest.mark.parametrize("kind", ["u1", "u2", "u3", "u4", "u6", "i4", "nf4", "f4e2m1"])
def test_packed_elements_are_refused_with_the_remedy(kind):
    x = ov.Tensor(getattr(ov.Type, kind), [16])
    x.data[...] = np.arange(x.data.size)
    with pytest.raises(ab.ConversionError, match=f"{kind} has no DLPack type") as caught:
        ab.convert(x, "numpy")
    assert "pass its bytes, x.data" in str(caught.value)
    assert ab.convert(x.data, "torch").tolist() == list(range(x.data.size))
