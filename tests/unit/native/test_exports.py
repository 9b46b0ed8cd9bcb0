"""``__dlpack__``, ``__array__`` and the C exchange API of Arrays: C gives what Python gives."""

from __future__ import annotations

import gc
import sys
import warnings

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.array import Array
from arraybridge.dlpack import exchange_api
from arraybridge.native import C
from tests.support.optional import optional
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
    # A legacy capsule has no flag for a copy, which it is of read-only memory.
    copied = tensor.copied or x.info.pending or (tensor.version is None and x.info.readonly)
    return ("copy", *said[1:]) if copied else said


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


needs_c = pytest.mark.skipif(C is None, reason="without the extension there is no table")


@needs_c
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


def wrapped(library):
    if library == "jax":
        return ab.from_dlpack(jax.numpy.arange(6.0) + 1)
    return ab.from_dlpack(ab.convert(np.arange(6.0), library, copy=True))


@pytest.fixture(params=["numpy", "torch", "jax", "array_api_strict"])
def x(request):
    pytest.importorskip(request.param)
    return wrapped(request.param)


class TestChanges:
    """What an Array refers to changes between two exports: the second shows it."""

    def same(self, x):
        keywords = {"max_version": VERSION}
        expected = outcome(capsules(Array.__dlpack__, x, keywords), x)
        assert outcome(capsules(type(x).__dlpack__, x, keywords), x) == expected
        if C is not None:
            assert outcome(lambda: exchange_api(type(x)).acquire(x), x) == expected
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
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy would rather have new arrays
                change()
            seen.append(self.same(array))
            assert seen[-1] != seen[-2]

    def test_of_torch(self):
        t = torch.arange(12.0).reshape(3, 4)
        z = torch.ones(3, 4, dtype=torch.complex64).conj()
        array = ab.from_dlpack(t)
        seen = [self.same(array)]
        for number, change in enumerate(
            [
                lambda: t.t_(),
                lambda: t.unsqueeze_(0),
                lambda: t.as_strided_((2, 2), (3, 1), 1),
                lambda: setattr(t, "data", torch.zeros(3, 4)),
                lambda: setattr(t, "data", z.imag),  # negated
                lambda: setattr(t, "data", z),
                lambda: setattr(t, "data", torch.ones(4, 3, dtype=torch.bfloat16)),
                lambda: t.requires_grad_(),
                lambda: t.requires_grad_(False),
                lambda: t.set_(torch.ones(7, dtype=torch.bfloat16)),
                lambda: setattr(t, "data", torch.ones(0, 3)),
                lambda: setattr(array, "_native", torch.nn.Parameter(torch.ones(3))),
            ]
        ):
            change()
            seen.append(self.same(array))
            assert seen[-1] != seen[-2], number

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

    def test_of_jax(self):
        array = wrapped("jax")
        seen = [self.same(array)]
        for change in (
            lambda: array.__iadd__(1),
            lambda: setattr(array, "_native", jax.numpy.ones((2, 3)).T),
            lambda: array.native.delete(),
        ):
            change()
            seen.append(self.same(array))
            assert seen[-1] != seen[-2]


# -- The C exchange API.


@needs_c
def test_the_table_is_as_the_header_says(x):
    api = exchange_api(type(x))
    assert api.version == VERSION
    assert not api.table.header.prev_api
    assert api.current_stream(dlpack.CPU) == 0
    assert api.empty((2, 3), dlpack.DataType("int8"), dlpack.CPU).shape == (2, 3)
    with pytest.raises((BufferError, MemoryError)):
        api.empty((2,), dlpack.DataType("float32"), dlpack.Device("vulkan"))
    with pytest.raises(TypeError):
        api.acquire(object())


@needs_c
def test_references_come_back(x):
    api = exchange_api(type(x))
    gc.collect()
    owners = [x, x.native, type(x)]
    before = [sys.getrefcount(owner) for owner in owners]
    for _ in range(100):
        api.acquire(x)
        x.__dlpack__(max_version=VERSION)
        dlpack.from_capsule(x.__dlpack__(max_version=VERSION))
    gc.collect()
    after = [sys.getrefcount(owner) for owner in owners]
    assert abs(after[2] - before[2]) < 50
    assert after[:2] == before[:2]


@needs_c
def test_a_subclass_is_asked_itself(x):
    class Mine(type(x)):
        def __dlpack__(self, **keywords):
            raise RuntimeError("mine")

    assert exchange_api(Mine) is None  # to us, only the type itself counts
    with pytest.raises(RuntimeError, match="mine"):
        exchange_api(type(x)).acquire(Mine._of(x.native))


@needs_c
def test_a_struct_becomes_an_array(x):
    api = exchange_api(type(x))
    owner = np.arange(4.0, dtype="f4")
    result = api.wrap(dlpack.acquire(owner))
    assert type(result) is type(x)
    assert np.array(result).tolist() == [0, 1, 2, 3]


@needs_c
def test_what_the_library_refuses_becomes_an_array_without_one():
    """An error was carried by NumPy's allocator, which others' finalizers used meanwhile."""
    owner = np.arange(4.0)  # JAX has no float64
    before = sys.getrefcount(owner)
    result = exchange_api(type(wrapped("jax"))).wrap(dlpack.acquire(owner))
    assert result.library == "dlpack"
    assert np.from_dlpack(result).ctypes.data == owner.ctypes.data
    del result
    gc.collect()
    assert sys.getrefcount(owner) == before


@needs_c
class TestTVMFFI:
    """The table's consumer."""

    def test_arguments_and_results(self, x):
        tvm_ffi = pytest.importorskip("tvm_ffi")
        for echo in (tvm_ffi.get_global_func("testing.echo"), tvm_ffi.convert(lambda given: given)):
            result = echo(x)
            assert type(result) is type(x)
            assert np.array(result).tolist() == np.array(x).tolist()
        assert tvm_ffi.from_dlpack(x).shape == (6,)

    def test_what_it_would_misread(self):
        tvm_ffi = pytest.importorskip("tvm_ffi")
        x = ab.from_dlpack(np.ones(5, optional("ml_dtypes").int4))
        with pytest.raises(BufferError, match="int4 takes a byte"):
            tvm_ffi.from_dlpack(x)

    def test_errors_go_through(self):
        array = ab.from_dlpack(torch.ones(3, requires_grad=True))
        nop = pytest.importorskip("tvm_ffi").get_global_func("testing.nop")
        with pytest.raises(BufferError, match="gradients are tracked"):
            nop(array)
