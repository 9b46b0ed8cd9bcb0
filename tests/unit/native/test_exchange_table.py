"""``__dlpack_c_exchange_api__`` of Arrays, and the ``__dlpack__`` of their native arrays.

The table is called by ctypes, and by its real consumers.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import warnings
import weakref

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.array import Array
from arraybridge.dlpack import DLManagedTensorVersioned, DLTensor, ExchangeAPI, exchange_api
from arraybridge.dlpack.header import MANAGED_TENSOR_ALLOCATOR, SET_ERROR
from tests.support.optional import optional
from tests.support.threads import in_threads
from tests.unit.array.test_array import QUIET, arrays

torch = optional("torch")
jax = optional("jax")

VERSION = (1, 3)
KEYWORDS = [
    {"max_version": VERSION},
    {"max_version": (1, 0), "copy": None, "dl_device": None, "stream": None},
    {"max_version": VERSION, "copy": False},
    {"max_version": VERSION, "copy": True},
    {"max_version": VERSION, "stream": -1},
    {"max_version": VERSION, "stream": 0},
    {"max_version": VERSION, "dl_device": (1, 0)},
    {"max_version": (0, 8)},
    {},
    {"copy": False},
]


def told(tensor: dlpack.Tensor) -> tuple:
    names = "data byte_offset shape strides dtype device readonly copied padded".split()
    return tuple(getattr(tensor, name) for name in names)


def outcome(export, x) -> tuple:
    """What an export of an Array says; of a copy, not where it is."""
    try:
        tensor = export()
    except Exception as error:
        return type(error), str(error)
    said = told(tensor)
    return ("copy", *said[1:]) if tensor.copied or x.info.pending else said


def capsules(function, x, keywords):
    return lambda: dlpack.from_capsule(function(x, **keywords))


@QUIET
@pytest.mark.parametrize("keywords", KEYWORDS, ids=str)
def test_every_capsule_is_that_of_a_description(keywords):
    insists = keywords == {"copy": False}
    for name, x in arrays():
        if insists and x.library == "jax":  # which then gives what JAX gives
            continue
        expected = outcome(capsules(Array.__dlpack__, x, keywords), x)
        for _ in range(3):
            given = outcome(capsules(type(x).__dlpack__, x, keywords), x)
            assert given == expected, name


@QUIET
def test_every_struct_of_the_table_is_that_of_a_description():
    seen = set()
    for name, x in arrays():
        api = exchange_api(type(x))
        if type(x) is Array:
            assert api is None
            continue
        expected = outcome(capsules(Array.__dlpack__, x, {"max_version": VERSION, "stream": -1}), x)
        for _ in range(3):
            assert outcome(lambda x=x, api=api: api.acquire(x), x) == expected, name
        seen.add(type(x).__name__)
    there = {"NumPyArray", "JaxArray", "StrictArray"} | ({"TorchArray"} if torch else set())
    assert seen >= there


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_what_numpy_does_not_export_by_itself(name):
    x = ab.from_dlpack(np.zeros((3, 4), getattr(optional("ml_dtypes"), name))[:, ::2])
    expected = told(x.info)
    assert told(dlpack.from_capsule(x.__dlpack__(max_version=VERSION, stream=-1))) == expected
    assert told(exchange_api(type(x)).acquire(x)) == expected


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_no_table_hands_out_small_elements_in_whole_bytes(library):
    """TVM-FFI reads the table, and no flags: to it they are packed."""
    x = ab.from_dlpack(ab.convert(np.ones(5, optional("ml_dtypes").int4), library))
    assert dlpack.from_capsule(x.__dlpack__(max_version=VERSION, stream=-1)).padded
    with pytest.raises(ab.ConversionError, match="each int4 takes a byte"):
        exchange_api(type(x)).acquire(x)


def wrapped(library):
    if library == "jax":
        return ab.from_dlpack(jax.numpy.arange(6.0) + 1)
    return ab.from_dlpack(ab.convert(np.arange(6.0), library, copy=True))


LIBRARIES = ["numpy", "torch", "jax", "array_api_strict"]


@pytest.fixture(params=LIBRARIES)
def x(request):
    pytest.importorskip(request.param)
    return wrapped(request.param)


def table_of(cls) -> dlpack.DLPackExchangeAPI:
    api = exchange_api(cls)
    assert isinstance(api, ExchangeAPI)
    return api.table


def test_the_table_is_as_the_header_says(x):
    cls = type(x)
    capsule = cls.__dlpack_c_exchange_api__
    assert capsule is cls.__dlpack_c_exchange_api__ is x.__dlpack_c_exchange_api__
    table = table_of(cls)
    assert (table.header.version.major, table.header.version.minor) == VERSION
    assert not table.header.prev_api
    for name, _ in table._fields_[1:]:
        assert getattr(table, name) or name == "dltensor_from_py_object_no_sync"


def test_references_come_back(x):
    api = exchange_api(type(x))
    gc.collect()
    owners = [x, x.native, type(x)]
    if sys.version_info < (3, 12):  # where they are immortal, 3.11's macros move their counts
        owners += [None, False]
    before = [sys.getrefcount(owner) for owner in owners]
    for _ in range(100):
        api.acquire(x)
        x.__dlpack__(max_version=VERSION)
        dlpack.from_capsule(x.__dlpack__(max_version=VERSION))
    gc.collect()
    after = [sys.getrefcount(owner) for owner in owners]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True))
    assert after[:2] == before[:2]


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_export_outlives_the_array(library):
    x = wrapped(library)
    expected = np.array(x).tolist()
    if type(x).__name__ == "NumPyArray":
        alive = weakref.ref(x.native)
    api = exchange_api(type(x))
    exports = [api.acquire(x) for _ in range(3)]
    cls, name = type(x), type(x).__name__
    del x
    gc.collect()
    for tensor in exports:
        assert np.from_dlpack(ab.from_dlpack(tensor)).tolist() == expected
    del tensor
    if name == "NumPyArray":
        assert alive() is not None
        exports.clear()
        gc.collect()
        assert alive() is None
    assert cls.__dlpack_c_exchange_api__ is not None


def test_a_deleter_on_another_thread(x):
    api = exchange_api(type(x))
    api.acquire(x)
    structs = [api.acquire(x).to_struct() for _ in range(50)]

    def release(address):
        struct = DLManagedTensorVersioned.from_address(address)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(struct.deleter)(address)

    in_threads(release, structs)
    assert np.array(x).tolist() == np.from_dlpack(x).tolist()


def test_exports_of_many_threads(x):
    api = exchange_api(type(x))

    def work(_):
        for _ in range(300):
            assert api.acquire(x).shape == (6,)
            dlpack.from_capsule(x.__dlpack__(max_version=VERSION))

    in_threads(work, range(4))


class TestChanges:
    """What an Array refers to changes between two exports: the second shows it."""

    def same(self, x):
        api = exchange_api(type(x))
        keywords = {"max_version": VERSION}
        expected = outcome(capsules(Array.__dlpack__, x, keywords), x)
        assert outcome(capsules(type(x).__dlpack__, x, keywords), x) == expected
        assert outcome(lambda: api.acquire(x), x) == expected
        return expected

    def test_of_numpy(self):
        x = np.arange(12.0)
        array = ab.from_dlpack(x)
        seen = [self.same(array)]
        for change in (
            lambda: setattr(x, "shape", (3, 4)),
            lambda: setattr(x.flags, "writeable", False),
            lambda: setattr(x, "dtype", "i8"),
            lambda: setattr(x, "dtype", ">i8"),
            lambda: setattr(x, "shape", (3, 1, 4)),
            lambda: setattr(array, "_native", np.ones(5)),
            lambda: setattr(array, "_native", np.matrix(np.ones(5))),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy would rather have new arrays
                change()
            seen.append(self.same(array))
            assert seen[-1] != seen[-2]

    def changes_of_torch(self, t, array):
        z = torch.ones(3, 4, dtype=torch.complex64).conj()
        yield lambda: t.t_()
        yield lambda: t.unsqueeze_(0)
        yield lambda: t.squeeze_()
        yield lambda: t.as_strided_((2, 2), (3, 1), 1)
        yield lambda: t.as_strided_((2, 2), (3, 1), 2)
        yield lambda: setattr(t, "data", torch.zeros(3, 4))
        yield lambda: setattr(t, "data", z.imag)
        yield lambda: setattr(t, "data", z.real)
        yield lambda: setattr(t, "data", z)
        yield lambda: setattr(t, "data", torch.ones(4, 3, dtype=torch.bfloat16))
        yield lambda: t.requires_grad_()
        yield lambda: t.requires_grad_(False)
        yield lambda: setattr(t, "data", torch.ones(2, 3, 2, 3, 2, 3))
        yield lambda: t.transpose_(0, 1)
        yield lambda: setattr(t, "data", torch.ones(5, 3))
        yield lambda: t.set_(torch.ones(7))
        yield lambda: setattr(t, "data", torch.ones(0, 3))
        yield lambda: setattr(array, "_native", torch.nn.Parameter(torch.ones(3)))
        yield lambda: setattr(array, "_native", torch.ones(3))

    def test_of_torch(self):
        t = torch.arange(12.0).reshape(3, 4)
        array = ab.from_dlpack(t)
        seen = [self.same(array)]
        for number, change in enumerate(self.changes_of_torch(t, array)):
            change()
            seen.append(self.same(array))
            assert seen[-1] != seen[-2], number

    def test_a_negative_view_of_the_same_memory(self):
        z = torch.ones(3, dtype=torch.complex64)
        t = z.imag
        array = ab.from_dlpack(t)
        plain = self.same(array)
        t.data = z.conj().imag
        assert t.is_neg()
        assert self.same(array) != plain

    def test_memory_that_moves(self):
        t = torch.arange(4.0)
        array = ab.from_dlpack(t)
        before = self.same(array)
        t.share_memory_()
        assert self.same(array)[0] == t.data_ptr() != before[0]

    @pytest.mark.filterwarnings("ignore:.*torch.jit.script")
    def test_forward_gradients(self):
        from torch.autograd import forward_ad

        t = torch.ones(3)
        array = ab.from_dlpack(t)
        plain = self.same(array)
        with forward_ad.dual_level():
            array._native = forward_ad.make_dual(t, torch.ones(3))
            assert self.same(array)[0] is ab.ConversionError
            array._native = t
            assert self.same(array) == plain
            t.add_(forward_ad.make_dual(torch.ones(3), torch.ones(3)))
            assert self.same(array)[0] is ab.ConversionError

    def test_under_transformations(self):
        def export(t):
            array = ab.from_dlpack(torch.ones(3))
            for _ in range(2):
                self.same(array)
            array._native = t
            assert self.same(array)[0] is ab.ConversionError
            return t

        torch.func.vmap(export)(torch.ones(2, 3))
        torch.func.grad(lambda t: export(t).sum())(torch.ones(3))
        torch.func.functionalize(export)(torch.ones(3))

    def test_under_modes(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        array = ab.from_dlpack(torch.ones(3))
        expected = self.same(array)
        with FakeTensorMode():
            assert self.same(array) == expected
            assert self.same(ab.from_dlpack(torch.ones(3)))[0] is ab.ConversionError

    def test_of_jax(self):
        array = wrapped("jax")
        seen = [self.same(array)]
        for change in (
            lambda: array.__iadd__(1),
            lambda: array.__setitem__(0, 7),
            lambda: setattr(array, "_native", jax.numpy.ones((2, 3)).T),
            lambda: array.native.delete(),
        ):
            change()
            seen.append(self.same(array))
            assert seen[-1] != seen[-2]
        assert "no memory" in seen[-1][1]


def test_a_subclass_is_asked_itself(x):
    class Mine(type(x)):
        def __dlpack__(self, **keywords):
            raise RuntimeError("mine")

    class Plain(type(x)):
        pass

    assert exchange_api(Mine) is None  # to us, only the type itself counts
    api = exchange_api(type(x))
    with pytest.raises(RuntimeError, match="mine"):
        api.acquire(Mine._of(x.native))
    assert api.acquire(Plain._of(x.native)).shape == (6,)
    capsule = Plain._of(x.native).__dlpack__(max_version=VERSION)
    assert dlpack.from_capsule(capsule).shape == (6,)


def test_what_is_no_array_is_an_error(x):
    with pytest.raises(TypeError):
        exchange_api(type(x)).acquire(object())


@pytest.mark.parametrize("keywords", [{"odd": 1}, {"max_version": 3}, {"max_version": VERSION}])
def test_arguments_that_are_wrong(x, keywords):
    def said(function, *args):
        try:
            function(x, *args, **keywords)
        except Exception as error:
            return type(error)

    x.__dlpack__(max_version=VERSION)
    for args in ((), (None,)):
        expected = said(Array.__dlpack__, *args)
        assert said(type(x).__dlpack__, *args) is expected
        assert (expected is None) == (args == () and keywords == {"max_version": VERSION})


def test_a_struct_becomes_an_array(x):
    api = exchange_api(type(x))
    owner = np.arange(4.0, dtype="f4")
    result = api.wrap(dlpack.acquire(owner))
    assert type(result) is type(x)
    assert np.array(result).tolist() == [0, 1, 2, 3]
    before = sys.getrefcount(owner)
    with pytest.raises(Exception, match=r"float6|int4|type"):
        api.wrap(
            dlpack.ManagedTensor.adopt(
                owner.ctypes.data, 4, dlpack.DataType("handle64"), owner=owner
            )
        )
    gc.collect()
    assert sys.getrefcount(owner) == before


class TestAllocator:
    """``managed_tensor_allocator``."""

    def allocate(self, x, shape, dtype, device):
        said = []
        extents = (ctypes.c_int64 * len(shape))(*shape)
        prototype = DLTensor(
            1, dlpack.DLDevice(*device), len(shape), dlpack.DLDataType(*dtype)
        )  # data is not looked at
        prototype.shape = ctypes.addressof(extents)
        out = ctypes.c_void_p()
        error = SET_ERROR(lambda _, kind, message: said.append((kind, message)))
        function = MANAGED_TENSOR_ALLOCATOR(table_of(type(x)).managed_tensor_allocator)
        code = function(ctypes.byref(prototype), ctypes.byref(out), None, error)
        return code, out.value, said

    def test_memory_on_the_host(self, x):
        for shape in ((2, 3), (), (0, 3)):
            code, address, said = self.allocate(x, shape, (2, 32, 1), (1, 0))
            assert (code, said) == (0, [])
            tensor = dlpack.ManagedTensor.from_struct(address, True)
            assert (tensor.shape, tensor.dtype.name, tensor.readonly) == (shape, "float32", False)

    def test_what_there_is_not(self, x):
        for shape, dtype, device in (
            ((2,), (2, 32, 1), (7, 0)),
            ((2,), (2, 31, 1), (1, 0)),
            ((1 << 61,), (2, 64, 1), (1, 0)),
        ):
            if type(x).__name__ == "TorchArray" and dtype[1] == 31:
                continue  # PyTorch's own allocator aborts
            code, address, said = self.allocate(x, shape, dtype, device)
            assert code
            assert not address
            assert len(said) == 1


def test_the_current_stream(x):
    assert exchange_api(type(x)).current_stream(dlpack.Device("cpu")) == 0


@pytest.fixture
def tvm_ffi():
    return pytest.importorskip("tvm_ffi")


class TestTVMFFI:
    """The table's consumer."""

    def test_arguments_and_results(self, x, tvm_ffi):
        echo = tvm_ffi.get_global_func("testing.echo")
        for _ in range(3):
            result = echo(x)
            assert type(result) is type(x)
            assert np.array(result).tolist() == np.array(x).tolist()
        assert tvm_ffi.from_dlpack(x).shape == (6,)

    def test_data_types_that_numpy_does_not_export(self, tvm_ffi):
        x = np.arange(4).astype(optional("ml_dtypes").bfloat16)
        t = tvm_ffi.from_dlpack(ab.from_dlpack(x))
        assert (str(t.dtype), t.data_ptr()) == ("bfloat16", x.ctypes.data)
        with pytest.raises(BufferError, match="int4 takes a byte"):
            tvm_ffi.from_dlpack(ab.from_dlpack(x.astype(optional("ml_dtypes").int4)))

    def test_several_in_one_call(self, x, tvm_ffi):
        other = type(x)._of(x.native)
        seen = []
        function = tvm_ffi.convert(
            lambda *given: seen.append([np.from_dlpack(each).tolist() for each in given])
        )
        function(x, other, x)
        assert seen == [[np.array(x).tolist()] * 3]

    def test_a_callback_gives_an_array_back(self, x, tvm_ffi):
        function = tvm_ffi.convert(lambda given: given)
        assert np.array(function(x)).tolist() == np.array(x).tolist()

    def test_errors_go_through(self, tvm_ffi):
        array = ab.from_dlpack(torch.ones(3, requires_grad=True))
        nop = tvm_ffi.get_global_func("testing.nop")
        with pytest.raises(BufferError, match="gradients are tracked"):
            nop(array)
        array.native.requires_grad_(False)
        nop(array)
