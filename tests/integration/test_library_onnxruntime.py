"""ONNX Runtime: what sessions are given and give, as views, and who keeps the memory."""

from __future__ import annotations

import numpy as np
import pytest

ort = pytest.importorskip("onnxruntime")

import arraybridge as ab  # noqa: E402
from arraybridge.libraries.onnxruntime import _dlpack_dtypes  # noqa: E402
from tests.support.arrays import littered  # noqa: E402
from tests.support.onnx import model, sequence  # noqa: E402
from tests.support.optional import optional  # noqa: E402

torch = optional("torch")
pytestmark = pytest.mark.heavy
OrtValue = ort.OrtValue
DOUBLE = model([("Add", "x x", "y")], {"x": 1}, {"y": 1})


@pytest.fixture(scope="module")
def session():
    return ort.InferenceSession(DOUBLE, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("code", _dlpack_dtypes)
def test_each_element_type(code):
    x = OrtValue.ortvalue_from_shape_and_type([4], code)
    info = ab.inspect(x)
    assert (info.pointer, info.shape, info.nbytes) == (x.data_ptr(), (4,), x.tensor_size_in_bytes())
    capsule = ab.inspect(x.__dlpack__())  # as ONNX Runtime says it itself
    assert info.dtype == capsule.dtype
    assert not info.readonly
    view = ab.from_dlpack(x)
    again = ab.convert(view, "onnxruntime")
    assert (again.data_ptr(), again.element_type()) == (x.data_ptr(), code)


def test_a_view_both_ways(session):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = ab.convert(x, "onnxruntime")
    assert value.data_ptr() == x.ctypes.data
    x[0, 0] = 10
    given = session.run_with_ort_values(None, {"x": value})[0]
    view = ab.convert(given, "numpy")
    assert view.ctypes.data == given.data_ptr()
    np.testing.assert_array_equal(view, 2 * x)
    view[1, 2] = -1
    assert given.numpy()[1, 2] == -1
    tensor = ab.convert(given, "torch")
    assert tensor.data_ptr() == given.data_ptr()
    tensor[0, 0] = -2
    assert given.numpy()[0, 0] == -2


def test_a_session_may_go_and_a_binding_run_again(session):
    own = ort.InferenceSession(DOUBLE, providers=["CPUExecutionProvider"])
    binding = own.io_binding()
    binding.bind_ortvalue_input("x", ab.convert(np.ones(1000, np.float32), "onnxruntime"))
    littered(4000)  # the value is gone, the binding holds the array
    binding.bind_output("y")
    own.run_with_iobinding(binding)
    view = ab.convert(binding.get_outputs()[0], "torch")
    binding.clear_binding_outputs()
    del binding, own
    littered(4000)
    assert view.tolist() == [2.0] * 1000


def test_read_only_memory_that_a_value_was_made_of_stays_so():
    x = np.arange(3, dtype=np.float32)
    x.flags.writeable = False
    value = OrtValue.ortvalue_from_numpy(x)
    assert value.numpy().flags.writeable  # as ONNX Runtime has it
    for _ in range(2):
        view = ab.convert(value, "numpy")
        assert view.ctypes.data == x.ctypes.data
        assert not view.flags.writeable
        assert ab.convert(value, "torch").data_ptr() != x.ctypes.data
    copied = OrtValue.ortvalue_from_numpy(np.arange(6, dtype=np.float32)[::2])
    assert ab.convert(copied, "numpy").ctypes.data == copied.data_ptr()


def test_a_value_made_of_bits_has_its_own_dtype():
    bits = np.arange(4, dtype=np.uint16)
    value = OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    for _ in range(2):
        view = ab.convert(value, "numpy")
        assert view.dtype.name == "bfloat16"
        assert view.ctypes.data == bits.ctypes.data
        assert ab.convert(value, "torch").dtype is torch.bfloat16
    other = OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 10)
    for _ in range(2):
        assert ab.convert(other, "numpy").dtype == np.float16


def _sparse():
    cpu = ort.OrtDevice.make("cpu", 0)
    shape = np.array([3, 3], np.int64)
    return ort.SparseTensor.sparse_coo_from_numpy(shape, np.ones(2, "f4"), np.array([1, 2]), cpu)


def _made_of(value, operator, kind, **attributes):
    told = model([(operator, "x", "y")], {"x": value.element_type()}, {"y": kind}, **attributes)
    return ort.InferenceSession(told).run_with_ort_values(None, {"x": value})[0]


@pytest.mark.parametrize(
    ("make", "told", "remedy"),
    [
        (lambda x: _made_of(x, "Cast", 8, to=8), "string.* has no DLPack type", "x.numpy()"),
        (
            lambda x: _made_of(x, "SequenceConstruct", sequence(1)),
            r"of type seq\(tensor\(float\)\) is no dense tensor",
            "",
        ),
        (lambda _: _sparse(), "is no dense tensor", ""),
        (
            lambda _: OrtValue.ort_value_from_sparse_tensor(_sparse()),
            "is no dense tensor",
            "",
        ),
    ],
    ids=["strings", "sequence", "SparseTensor", "sparse value"],
)
def test_what_is_no_dense_tensor_is_refused_with_the_remedy(make, told, remedy):
    x = make(ab.convert(np.ones(2, np.float32), "onnxruntime"))
    for to in ("numpy", "torch", "openvino"):
        for _ in range(2):
            with pytest.raises(ab.ConversionError, match=told) as caught:
                ab.convert(x, to)
        assert ab.explain(x, to).kind == "refuse"
    assert remedy in str(caught.value)
    if remedy:
        assert len(eval(remedy)) == 2
