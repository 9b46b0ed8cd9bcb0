"""``__dlpack_c_exchange_api__`` of Arrays: TVM-FFI, its consumer."""

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional
from tests.unit.native.test_exchange_table import LIBRARIES, wrapped

torch = optional("torch")


@pytest.fixture(params=LIBRARIES)
def x(request):
    pytest.importorskip(request.param)
    return wrapped(request.param)


@pytest.fixture
def tvm_ffi():
    return pytest.importorskip("tvm_ffi")


def test_arguments_and_results(x, tvm_ffi):
    echo = tvm_ffi.get_global_func("testing.echo")
    for _ in range(3):
        result = echo(x)
        assert type(result) is type(x)
        assert np.array(result).tolist() == np.array(x).tolist()
    assert tvm_ffi.from_dlpack(x).shape == (6,)


def test_data_types_that_numpy_does_not_export(tvm_ffi):
    ml_dtypes = optional("ml_dtypes")
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    t = tvm_ffi.from_dlpack(ab.from_dlpack(x))
    assert (str(t.dtype), t.data_ptr()) == ("bfloat16", x.ctypes.data)
    with pytest.raises(BufferError, match="int4 takes a byte"):
        tvm_ffi.from_dlpack(ab.from_dlpack(x.astype(ml_dtypes.int4)))


def test_several_in_one_call(x, tvm_ffi):
    other = type(x)._of(x.native)
    seen = []
    function = tvm_ffi.convert(
        lambda *given: seen.append([np.from_dlpack(each).tolist() for each in given])
    )
    function(x, other, x)
    assert seen == [[np.array(x).tolist()] * 3]


def test_a_callback_gives_an_array_back(x, tvm_ffi):
    function = tvm_ffi.convert(lambda given: given)
    assert np.array(function(x)).tolist() == np.array(x).tolist()


def test_errors_go_through(tvm_ffi):
    array = ab.from_dlpack(torch.ones(3, requires_grad=True))
    nop = tvm_ffi.get_global_func("testing.nop")
    with pytest.raises(BufferError, match="gradients are tracked"):
        nop(array)
    array.native.requires_grad_(False)
    nop(array)
