"""What no Array can hold: refused by every way into a namespace of Arrays, in the same words."""

import numpy as np
import pytest

import arraybridge as ab
from tests.support.namespaces import namespaces
from tests.support.optional import optional

torch = optional("torch")

NUMPYS = {
    "text": np.array(["a"]),
    "bytes": np.array([b"a"]),
    "objects": np.array([1, None]),
    "records": np.zeros(2, "i4,f4"),
    "times": np.zeros(2, "M8[s]"),
    "durations": np.zeros(2, "m8[D]"),
    "bare bytes": np.zeros(2, "V4"),
    "long double": np.zeros(2, np.longdouble),
    "complex long double": np.zeros(2, np.clongdouble),
    "strings": np.array(["a"], np.dtypes.StringDType()),
}
WIDER = np.dtype(np.longdouble).itemsize > 8


def ways(library):
    """Yield what makes an Array of a library's own array, by its name."""
    xp = namespaces(library)[0].xp
    model = xp.zeros(1)
    yield "ab.from_dlpack", ab.from_dlpack
    yield "from_dlpack", xp.from_dlpack
    yield "from_dlpack(copy=True)", lambda x: xp.from_dlpack(x, copy=True)
    yield "from_dlpack(device=)", lambda x: xp.from_dlpack(x, device="cpu")
    yield "asarray", xp.asarray
    yield "asarray(copy=True)", lambda x: xp.asarray(x, copy=True)
    yield "asarray of a list", lambda x: xp.asarray([x])
    yield "ab.asarray", lambda x: ab.asarray(x, like=model)
    yield "unify", lambda x: ab.unify(x, like=model)
    yield "unify, the second", lambda x: ab.unify(model, x)


@pytest.mark.parametrize("name", NUMPYS)
def test_arrays_of_numpy_that_hold_no_numbers(name):
    if "long double" in name and not WIDER:
        pytest.skip("a long double is a float64 here")
    for way, call in ways("numpy"):
        with pytest.raises((ab.ConversionError, TypeError), match=r"pass|bring|convert") as caught:
            call(NUMPYS[name])
        assert "data type" in str(caught.value) or "DLPack type" in str(caught.value), way
    assert ab.asarray(NUMPYS[name], like="numpy") is NUMPYS[name]  # NumPy's own, and no Array


def tensors():
    eye = torch.eye(4)
    yield "sparse_coo", eye.to_sparse(), "x.to_dense()"
    yield "sparse_csr", eye.to_sparse_csr(), "x.to_dense()"
    yield "sparse_csc", eye.to_sparse_csc(), "x.to_dense()"
    yield "sparse_bsr", eye.to_sparse_bsr((2, 2)), "x.to_dense()"
    if torch.backends.mkldnn.is_available():
        yield "mkldnn", eye.to_mkldnn(), "x.to_dense()"
    yield "quantized", torch.quantize_per_tensor(eye, 0.1, 0, torch.quint8), "x.dequantize()"
    channels = torch.quantize_per_channel(eye, torch.ones(4), torch.zeros(4), 0, torch.qint8)
    yield "quantized by channels", channels, "x.dequantize()"
    yield "bits", torch.empty(3, dtype=torch.uint8).view(torch.bits8), "x.view(torch.uint8)"
    parts = [torch.ones(2), torch.ones(3)]
    yield "nested", torch.nested.nested_tensor(parts), "x.unbind()"
    yield "jagged", torch.nested.nested_tensor(parts, layout=torch.jagged), "x.unbind()"


@pytest.mark.filterwarnings("ignore")
def test_tensors_that_are_no_dense_arrays_of_numbers():
    for name, x, remedy in tensors():
        for way, call in ways("torch"):
            if way == "ab.from_dlpack" and remedy in ("x.dequantize()", "x.view(torch.uint8)"):
                continue  # it is in memory, and carried to whoever asks x.native.dequantize()
            with pytest.raises(ab.ConversionError) as caught:
                call(x)
            assert remedy in str(caught.value), (name, way)


def test_what_stands_for_values_is_taken():
    """Functions compute the shapes of tensors of the device meta, and trace fake ones."""
    from torch._subclasses import FakeTensorMode

    xp = namespaces("torch")[0].xp
    meta = xp.asarray(torch.ones(3, device="meta"))
    assert xp.exp(meta).shape == (3,)
    with FakeTensorMode():
        fake = torch.ones(3)
        assert (xp.asarray(fake) + 1).shape == xp.asarray([fake]).shape[1:] == (3,)
    zeros = torch._efficientzerotensor(3)
    assert xp.asarray([zeros]).shape == (1, 3)
