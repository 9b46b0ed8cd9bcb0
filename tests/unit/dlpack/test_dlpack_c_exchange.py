"""The C exchange API: tables made by hand, and PyTorch's."""

from __future__ import annotations

import ctypes

import pytest

from arraybridge import dlpack
from arraybridge.dlpack import exchange_api
from arraybridge.dlpack.header import (
    CURRENT_WORK_STREAM,
    MANAGED_FROM_PY_OBJECT,
    MANAGED_TO_PY_OBJECT,
)
from tests.support.optional import optional
from tests.support.producers import Managed, address_of, new_capsule

torch = optional("torch")


def table(managed: Managed, *, version=(1, 3), previous=0, **fields):
    """A hand-made exchange table that exports `managed`."""

    def export(_, out):
        out[0] = managed.address
        return 0

    def stream(kind, number, out):
        out[0] = kind * 100 + number
        return 0

    functions = [
        MANAGED_FROM_PY_OBJECT(export),
        MANAGED_TO_PY_OBJECT(lambda *_: -1),
        CURRENT_WORK_STREAM(stream),
    ]
    result = dlpack.DLPackExchangeAPI()
    result.header.version.major, result.header.version.minor = version
    result.header.prev_api = previous
    result.managed_tensor_from_py_object_no_sync = address_of(functions[0])
    result.managed_tensor_to_py_object_no_sync = address_of(functions[1])
    result.current_work_stream = address_of(functions[2])
    for name, value in fields.items():
        setattr(result, name, value)
    _tables.append((result, functions))  # static, as the header wants it
    return result


_tables: list = []


def offering(result, name=b"dlpack_exchange_api"):
    """A type that offers a table."""
    capsule = new_capsule(ctypes.addressof(result), name)
    return type("Offering", (), {"__dlpack_c_exchange_api__": capsule})


def test_hand_made_table():
    managed = Managed(device=(2, 1))
    cls = offering(table(managed))
    api = exchange_api(cls)
    assert exchange_api(cls) is api
    assert api.version == (1, 3)
    assert api.current_stream(dlpack.Device(2, 5)) == 205
    tensor = api.acquire(cls())
    assert (tensor.shape, tensor.device) == ((2, 3), (2, 1))
    assert tensor.version == (1, 3)
    del tensor
    assert managed.deleted == 1


@pytest.mark.parametrize(
    ("chain", "found"),
    [
        ([(1, 0)], (1, 0)),
        ([(1, 9)], (1, 9)),
        ([(2, 0)], None),
        ([(0, 8)], None),
        ([(2, 0), (1, 2)], (1, 2)),
        ([(3, 0), (2, 0), (1, 3), (1, 1)], (1, 3)),
        ([(3, 0), (2, 0)], None),
    ],
)
def test_the_chain_is_walked_to_our_major_version(chain, found):
    address = 0
    for version in reversed(chain):
        if version[0] == 1:
            result = table(Managed(), version=version, previous=address)
        else:  # no function of another major version may be called
            fields = dict.fromkeys([name for name, _ in dlpack.DLPackExchangeAPI._fields_[1:]], 1)
            result = table(Managed(), version=version, previous=address, **fields)
        address = ctypes.addressof(result)
    api = exchange_api(offering(result))
    assert (api and api.version) == found


@pytest.mark.parametrize(
    "missing",
    [
        "managed_tensor_from_py_object_no_sync",
        "managed_tensor_to_py_object_no_sync",
        "current_work_stream",
    ],
)
def test_a_table_without_a_function_that_must_be(missing):
    assert exchange_api(offering(table(Managed(), **{missing: None}))) is None


@pytest.mark.parametrize("error", [BufferError, TypeError, KeyboardInterrupt])
def test_the_error_of_the_c_function_propagates(error):
    # A Python callback cannot leave an exception behind. PyObject_IsTrue can, and is called as the
    # functions of the table are: the object first, -1 for failure.
    is_true = address_of(ctypes.pythonapi.PyObject_IsTrue)
    cls = offering(table(Managed(), managed_tensor_from_py_object_no_sync=is_true))

    def fail(self):
        raise error("mine")

    cls.__bool__ = fail
    with pytest.raises(error, match=r"^mine$"):
        exchange_api(cls).acquire(cls())


def test_a_c_function_that_fails_in_silence():
    cls = offering(table(Managed(), managed_tensor_from_py_object_no_sync=address_of(_FAILS)))
    with pytest.raises(dlpack.DLPackError, match="Offering could not be exported"):
        exchange_api(cls).acquire(cls())


_FAILS = MANAGED_FROM_PY_OBJECT(lambda *_: -1)


def test_what_a_table_exports_is_checked():
    managed = Managed(ndim=-1)
    cls = offering(table(managed))
    with pytest.raises(dlpack.MalformedTensorError, match="ndim is -1"):
        exchange_api(cls).acquire(cls())
    assert managed.deleted == 1


@pytest.fixture
def torch_api():
    return exchange_api(torch.Tensor)


def test_torchs_table(torch_api):
    x = torch.arange(24.0).reshape(4, 6)[::2, 1::2]
    tensor = torch_api.acquire(x)
    assert (tensor.shape, tensor.strides) == ((2, 3), (12, 2))
    assert (tensor.pointer, tensor.dtype.name) == (x.data_ptr(), "float32")
    again = torch_api.wrap(tensor)
    assert type(again) is torch.Tensor
    assert again.data_ptr() == x.data_ptr()
    again.fill_(7)
    assert x.eq(7).all()
    assert torch_api.current_stream(tensor.device) == 0


def test_arrays_are_allocated_by_the_library_itself(torch_api):
    x = torch_api.empty((2, 3), dlpack.DataType.named("float32"), dlpack.Device(1))
    assert (x.shape, x.dtype, x.is_contiguous()) == ((2, 3), torch.float32, True)
    x += 1  # memory of its own
    assert torch_api.empty((), dlpack.DataType.named("int8"), dlpack.Device(1)).shape == ()
    assert torch_api.empty((0, 3), dlpack.DataType.named("bool"), dlpack.Device(1)).shape == (0, 3)
    with pytest.raises(dlpack.DLPackError, match="float6"):
        torch_api.empty((2,), dlpack.DataType.named("float6_e2m3fn"), dlpack.Device(1))
    with pytest.raises(MemoryError, match="shape"):
        torch_api.empty((1 << 60,), dlpack.DataType.named("int8"), dlpack.Device(1))
