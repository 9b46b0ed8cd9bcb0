"""Arrays at the edge of what their library has: an answer or a clear error, by every way."""

import gc
import importlib
import re

import numpy as np
import pyarrow as pa
import pytest
from numpy.lib.stride_tricks import as_strided

import arraybridge as ab
from tests.support.optional import optional
from tests.support.producers import Managed

torch = optional("torch")


def torchs_namespace():
    return importlib.import_module("arraybridge.xp.torch")


def nested(layout):
    parts = [torch.ones(2), torch.arange(3.0)]
    return torch.nested.nested_tensor(parts, layout=layout)


WITHOUT_SHAPE = {
    "nested, strided": (lambda: nested(torch.strided), "parts differ in shape"),
    "nested, jagged": (lambda: nested(torch.jagged), "parts differ in shape"),
    "uninitialized parameter": (torch.nn.UninitializedParameter, "has no shape yet"),
    "uninitialized buffer": (torch.nn.UninitializedBuffer, "has no shape yet"),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(("make", "message"), WITHOUT_SHAPE.values(), ids=list(WITHOUT_SHAPE))
def test_torchs_tensors_without_a_shape(make, message):
    x = make()
    xp = torchs_namespace()
    for way in (
        lambda: ab.convert(x, "numpy"),
        lambda: ab.explain(x, "numpy"),
        lambda: ab.inspect(x),
        lambda: ab.from_dlpack(x),
        lambda: ab.unify(np.ones(2), x),
        lambda: ab.copyto(np.ones(2), x),
        lambda: xp.asarray(x),
        lambda: xp.asarray([x, x]),
        lambda: xp.native.asarray(x),
    ):
        for _ in range(2):
            with pytest.raises(ab.ConversionError, match=message):
                way()
        assert ab.convert(torch.ones(2), "numpy").sum() == 2  # which records the fast path
        ab.from_dlpack(torch.ones(2))


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.bool_()], ids=str)
def test_arrows_arrays_without_buffers(kind):
    x = pa.Array.from_buffers(kind, 0, [None, None])
    for taken in (x, pa.chunked_array([x]), pa.chunked_array([x, x])):
        assert ab.inspect(taken).shape == (0,)
        for to in ("numpy", "torch"):
            assert ab.convert(taken, to).shape == (0,)
            assert ab.explain(taken, to).kind != "refuse"


class Contradictory:
    """A producer whose device is another than its tensor's."""

    def __init__(self, said, came):
        self.managed = Managed(device=came)
        self.said = said

    def __dlpack_device__(self):
        return self.said

    def __dlpack__(self, **kwargs):
        return self.managed.capsule()


@pytest.mark.parametrize(
    ("said", "came"),
    [((2, 0), (1, 0)), ((1, 0), (2, 0)), ((2, 1), (2, 0)), ((14, 0), (2, 0)), ((13, 1), (2, 0))],
)
def test_a_device_that_contradicts_the_tensor_is_refused_and_the_tensor_released(said, came):
    for way in (
        ab.dlpack.acquire,
        ab.inspect,
        ab.from_dlpack,
        lambda x: ab.convert(x, "numpy"),
        lambda x: ab.convert(x, "numpy", device="cpu"),
    ):
        x = Contradictory(said, came)
        with pytest.raises(ab.dlpack.MalformedTensorError, match="one of them is wrong") as caught:
            way(x)
        assert x.managed.deleted == 1
        del caught
        gc.collect()
        assert x.managed.deleted == 1


@pytest.mark.heavy
@pytest.mark.parametrize("to", ["mlx", "warp"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_strides_that_reach_no_element_may_be_negative(to, dtype):
    pytest.importorskip(f"{to}.core" if to == "mlx" else to)
    row = np.arange(3).astype(dtype)
    for x in (
        np.ones(1, dtype)[::-1],
        as_strided(row, (1, 3), (-3 * row.itemsize, row.itemsize)),
        as_strided(row, (3, 1), (row.itemsize, -5 * row.itemsize)),
        as_strided(row, (1, 3), (-8, row.itemsize))[:, ::-1],
        np.ones((2, 0), dtype)[::-1],
    ):
        for _ in range(2):
            assert ab.explain(x, to).kind != "refuse"
            np.testing.assert_array_equal(np.asarray(ab.convert(x, to)), x)
            np.testing.assert_array_equal(np.asarray(ab.convert(ab.dlpack.acquire(x), to)), x)


IN_ARRAYS = {
    "gradients": (lambda: torch.ones(2, requires_grad=True), "numpy", "x.native.detach()"),
    "quantized": (
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
        "numpy",
        "x.native.dequantize()",
    ),
    "complex32": (
        lambda: torch.ones(2).to(torch.complex32),
        "numpy",
        "torch.view_as_real(x.native)",
    ),
    "bool": (
        lambda: torch.ones(2, 3).T > 0,
        "pyarrow",
        "arraybridge.convert(x.native, 'numpy').view('uint8')",
    ),
}


@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated")
@pytest.mark.filterwarnings("ignore:.*quantiz")
@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize(("make", "to", "code"), IN_ARRAYS.values(), ids=IN_ARRAYS)
def test_the_remedy_for_an_array_works_as_it_is_written(make, to, code):
    """Its native array has what the remedy names, the Array has not."""
    x, like = ab.from_dlpack(make()), ab.convert(np.ones(2), to)
    ways = [
        lambda: ab.convert(x, to),
        lambda: x.to(to),
        lambda: ab.adapt(to)(lambda y: y)(x),
    ]
    if to == "numpy":
        ways += [lambda: np.asarray(x), lambda: ab.unify(like, x)]
    if "pass x." in str(ab.explain(x, to).why):  # it has no DLPack type
        ways += [lambda: np.from_dlpack(x), lambda: ab.copyto(np.ones(2, "f4"), x)]
    for way in ways:
        with pytest.raises(ab.ConversionError, match=re.escape(code)):
            way()
    assert code in ab.explain(x, to).why
    ab.convert(eval(code, {"x": x, "torch": torch, "arraybridge": ab}), to)
