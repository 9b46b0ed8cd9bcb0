"""Array as the standard's array object, beside its operators, over every library."""

from __future__ import annotations

import copy
import operator
import pickle

import array_api_strict
import jax
import numpy as np
import pyarrow
import pytest
import tvm_ffi

import arraybridge as ab
from arraybridge.array import device_namespace as fallback
from arraybridge.array.operators import OPERATORS
from tests.support.namespaces import each_library, namespaces
from tests.support.optional import optional

torch = optional("torch")

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)
MAKERS = {
    "numpy": np.array,
    "torch": torch.asarray,
    "jax": jax.numpy.asarray,
    "array_api_strict": array_api_strict.asarray,
}
FOREIGN = {  # what has no namespace of its own here
    "capsule": lambda x: x.__dlpack__(max_version=(1, 0)),
    "pointer": lambda x: ab.from_pointer(x.ctypes.data, x.shape, x.dtype, device="cpu", owner=x),
    "tvm_ffi": tvm_ffi.from_dlpack,
    "pyarrow": lambda x: pyarrow.Tensor.from_numpy(x),
}


@pytest.fixture(params=MAKERS)
def library(request):
    return request.param


@pytest.fixture
def x(library):
    return ab.from_dlpack(MAKERS[library](VALUES.copy()))


def values(x):
    return np.asarray(ab.convert(x, "numpy"))


class TestAttributes:
    def test_are_the_librarys(self, x, library):
        xp = x.__array_namespace__()
        assert (x.shape, x.ndim, x.size, len(x)) == ((2, 3), 2, 6, 2)
        assert x.dtype == xp.float32
        assert x.device == ab.Device(1) == xp.__array_namespace_info__().default_device()
        assert x.library == library
        assert type(x.native) is type(MAKERS[library](VALUES))

    def test_versions(self, x):
        assert x.__array_namespace__(api_version="2025.12") is x.__array_namespace__()
        with pytest.raises(ValueError, match=r"'2019\.01'.*2021\.12.*2025\.12"):
            x.__array_namespace__(api_version="2019.01")

    def test_devices(self, x):
        xp = x.__array_namespace__()
        for device in (x.device, "cpu", (1, 0), x.native.device):
            assert x.to_device(device) is x
            assert xp.zeros(2, device=device).device == x.device
        with pytest.raises(ab.ConversionError, match="vpi"):
            x.to_device("vpi:0")
        for nonsense in (5, 1.5):
            with pytest.raises((TypeError, ValueError), match=r"device must be|device_put.*only"):
                x.to_device(nonsense)
        with pytest.raises(ValueError, match="stream=None"):
            x.to_device("cpu", stream=3)
        assert xp.__array_namespace_info__().devices()[0] == ab.Device(1) == x.device

    def test_repr(self, x, library):
        assert repr(x).startswith("Array([[0., 1., 2.],")
        assert repr(x).endswith(f"{library}: float32 (2, 3) on cpu)")

    def test_what_a_property_raises_is_kept(self):
        with pytest.raises(AttributeError, match=r"no __cuda_array_interface__ .* on cpu"):
            ab.from_dlpack(VALUES).__cuda_array_interface__  # noqa: B018
        with pytest.raises(AttributeError, match="no __cuda_array_interface__: a JAX tracer"):
            jax.jit(lambda a: a.__cuda_array_interface__)(ab.from_dlpack(jax.numpy.ones(3)))


class TestScalars:
    def test_format(self, x, library):
        if library == "array_api_strict":
            pytest.skip("its arrays have no format")
        xp = x.__array_namespace__()
        assert f"{xp.mean(x):.3f}" == "2.500"
        assert f"{xp.asarray(7):04d} {xp.asarray(7):x}" == "0007 7"
        assert f"{xp.asarray(True):d}" == "1"
        assert f"{ab.from_dlpack(MAKERS[library](np.asarray(1 + 2j, 'c8'))):.1f}" == "1.0+2.0j"
        assert f"{x}" == str(x)
        assert f"{x[0, 0]}" == str(x[0, 0])
        with pytest.raises(TypeError):
            f"{x:.3f}"

    def test_what_cannot_be_compared_is_not_in_it(self, x):
        for value in (None, "a", object(), [1.0]):
            assert value not in x

    def test_iteration_is_over_one_axis(self, x):
        row = x[1, :]
        assert [float(element) for element in row] == [3, 4, 5]
        assert all(isinstance(element, type(x)) and element.ndim == 0 for element in row)
        assert 4 in row
        assert 9 not in row
        with pytest.raises(TypeError, match="zero dimensions"):
            iter(row[0])
        with pytest.raises(TypeError, match="zero dimensions"):
            len(row[0])


class TestOperands:
    @pytest.mark.parametrize("op", [op for op in OPERATORS if op.forms == "arithmetic"], ids=str)
    def test_another_librarys_array_is_an_error(self, x, library, op):
        other = ab.from_dlpack(MAKERS["torch" if library == "numpy" else "numpy"](VALUES))
        with pytest.raises(TypeError, match=r"in one operation.*arraybridge\.unify"):
            op.plain(x, other)
        with pytest.raises(TypeError, match=r"in one operation.*arraybridge\.unify"):
            getattr(operator, f"__i{op.name}__")(x, other)

    @pytest.mark.parametrize("kind", FOREIGN)
    def test_memory_without_a_library_joins_in(self, x, kind):
        other = ab.from_dlpack(FOREIGN[kind](VALUES))
        xp = x.__array_namespace__()
        for total in (x + other, other.__radd__(x) if x.library == "numpy" else x + other):
            np.testing.assert_array_equal(values(total), VALUES * 2)
        np.testing.assert_array_equal(values(xp.add(x, other)), VALUES * 2)


class TestAdoption:
    @pytest.mark.parametrize("kind", FOREIGN)
    def test_by_numpy_on_the_cpu(self, kind):
        source = VALUES.copy()
        x = ab.from_dlpack(FOREIGN[kind](source))
        assert type(x) is ab.Array
        total = 1 + x * 2
        assert total.library == "numpy"
        np.testing.assert_array_equal(values(total), 1 + VALUES * 2)
        assert x.__array_namespace__() is total.__array_namespace__()
        assert x[1].shape == (3,)
        assert float(x[1, 2]) == 5
        assert x.T.shape == (3, 2)
        assert f"{x}" == str(x) == repr(x)
        assert f"{ab.from_dlpack(FOREIGN[kind](source[1, 2:]))[0]:.2f}" == "5.00"

    def test_is_of_the_same_memory(self):
        source = VALUES.copy()
        x = ab.from_dlpack(source.__dlpack__(max_version=(1, 0)))
        x[0, 0] = 9
        assert source[0, 0] == 9
        x += 1
        assert source[1, 2] == 6

    def test_elsewhere_says_what_to_install(self, monkeypatch):
        monkeypatch.setattr(fallback, "find_spec", lambda name: None)
        for device, install in [
            ("cuda", r"CuPy \(cupy-cuda12x\) or a CUDA build of PyTorch"),
            ("rocm", "a ROCm build of CuPy or a ROCm build of PyTorch"),
            ("oneapi", "dpnp"),
        ]:
            x = ab.from_pointer(0x1000, (2,), "float32", device=device)
            assert x.shape == (2,)
            message = f"no installed library computes on {device}:0: install {install}$"
            with pytest.raises(ImportError, match=message):
                x + 1
        x = ab.from_pointer(0x1000, (2,), "float32", device="metal")
        with pytest.raises(BufferError, match=r"no library .* computes on metal:0"):
            x + 1

    def test_a_library_built_for_the_cpu_alone_does_not_compute_elsewhere(self, monkeypatch):
        """PyTorch of the CPU, or CuPy without a driver."""
        monkeypatch.setattr(fallback, "find_spec", lambda name: name)
        library_named = fallback.library_named

        def without_gpu(name):
            if name == "cupy":
                raise ImportError("libcuda.so.1")
            return library_named(name)

        monkeypatch.setattr(fallback, "library_named", without_gpu)
        torchs = library_named("torch")
        cpu = torchs.accepts._replace(devices=frozenset({ab.DeviceType.CPU}))
        monkeypatch.setattr(type(torchs), "accepts", cpu)
        x = ab.from_pointer(0x1000, (2, 3), "float32", device="cuda:0")
        for compute in (
            lambda: x + 1,
            lambda: x.to_device("cpu"),
            lambda: ab.namespace(x),
        ):
            with pytest.raises(ImportError, match=r"computes on cuda:0: install CuPy"):
                compute()


class TestSubclassesOfNumPys:
    """Taken as plain arrays on the same memory; what has a mask is refused."""

    @staticmethod
    def entrances():
        like = ab.from_dlpack(np.ones(1))
        xp = ab.namespace(like)
        return (
            ab.from_dlpack,
            ab.from_dlpack,  # by what is known of the type
            xp.from_dlpack,
            xp.asarray,
            lambda x: ab.unify(like, x)[2],
            lambda x: ab.from_dlpack(x, device="cpu"),
            lambda x: ab.from_dlpack(x, copy=True),
        )

    @pytest.mark.parametrize("kind", [np.matrix, np.recarray, type("Own", (np.ndarray,), {})])
    def test_are_plain(self, kind):
        source = np.asarray([[1.0, 2], [3, 4]])
        for enter in self.entrances():
            x = enter(source.view(kind))
            assert type(x.native) is np.ndarray
            assert x[0, ...].shape == x[0].shape == (2,)
            np.testing.assert_array_equal(values(x**2), source**2)
            np.testing.assert_array_equal(values(x * x), source * source)
        x = ab.from_dlpack(source.view(kind))
        x[0, 0] = 9
        assert source[0, 0] == 9

    def test_a_file_in_memory(self, tmp_path):
        file = np.memmap(tmp_path / "file", "f8", "w+", shape=(3,))
        x = ab.from_dlpack(file)
        x[1] = 5
        file.flush()
        assert type(x.native) is np.ndarray
        assert np.fromfile(tmp_path / "file").tolist() == [0, 5, 0]

    def test_a_mask_would_be_lost(self, library):
        masked = np.ma.masked_array([1.0, 2.0], [True, False])
        xp = ab.from_dlpack(MAKERS[library](VALUES)).__array_namespace__()
        own = xp.zeros(2, dtype=xp.asarray(VALUES).dtype)
        enter = (xp.asarray, lambda x: xp.asarray([x, x]), xp.from_dlpack, *self.entrances())
        enter += (lambda x: own.__setitem__(slice(None), x),)
        enter += (lambda x: own[x > 0], lambda x: own.__setitem__((x > 0,), 0))
        for each in enter:
            with pytest.raises(ab.ConversionError, match=r"would lose its mask: fill it first"):
                each(masked)


class TestWrites:
    def test_numbers_and_arrays_of_the_library(self, x, library):
        xp = x.__array_namespace__()
        row = np.asarray([7, 8, 9], np.float32)
        bare = ab.from_pointer(row.ctypes.data, (3,), "float32", device="cpu", owner=row)
        numbers = 4, 4.5, np.float64(4.5), np.float32(4), xp.asarray(4.5, dtype=xp.float32)
        for value in (*numbers, row.tolist(), bare, xp.asarray(row), MAKERS[library](row)):
            expected = VALUES.copy()
            x[...] = VALUES.tolist()
            x[1, :] = value
            expected[1, :] = np.asarray(value)
            np.testing.assert_array_equal(values(x), expected)

    def test_nothing_else(self, x, library):
        other = "jax" if library == "torch" else "torch"
        foreign = MAKERS[other](VALUES)
        for value in ("a", None, object(), foreign, ab.from_dlpack(foreign)):
            with pytest.raises(TypeError, match=r"cannot write a|arraybridge\.unify"):
                x[...] = value
        np.testing.assert_array_equal(values(x), VALUES)


class TestCopies:
    def test_a_gradient_goes_on_in_a_copy(self):
        x = ab.from_dlpack(torch.ones(2, requires_grad=True))
        y = x * 2  # no leaf of the graph
        again = copy.copy(y)
        again[0] = 5
        assert y.native.tolist() == [2, 2]
        again.native.sum().backward()
        assert x.native.grad.tolist() == [0, 2]

    @pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
    def test_copied(self, x, make):
        again = make(x)
        again[0, 0] = 9
        assert float(x[0, 0]) == 0
        assert float(again[0, 0]) == 9

    def test_carried_memory_is_pickled_as_its_fallback_librarys(self):
        x = ab.from_dlpack(VALUES.__dlpack__(max_version=(1, 0)))
        again = pickle.loads(pickle.dumps(x))
        assert again.library == "numpy"
        np.testing.assert_array_equal(values(again), VALUES)


# In place: what fails, or overlaps, never leaves half of a result in the array.


def misaligned(size: int) -> np.ndarray:
    """Integers of which NumPy must buffer every part: their addresses are odd."""
    memory = np.zeros(8 * size + 1, np.uint8)
    x = memory[1:].view("i8")
    x[:] = np.arange(size) % 7 + 2
    x[size // 2] = -3
    assert not x.flags.aligned
    return x


@pytest.mark.parametrize("size", [3, 100, 20_000])
def test_negative_powers_of_misaligned_integers(size: int) -> None:
    """NumPy's ValueError, and the elements as they were: none of memory that nobody wrote."""
    x = misaligned(size)
    before = x.copy()
    array = ab.from_dlpack(x)
    with pytest.raises(ValueError, match="negative integer powers"):
        array **= array
    np.testing.assert_array_equal(x, before)
    with pytest.raises(ValueError, match="negative integer powers"):
        array**array
    shifted = ab.from_dlpack(misaligned(size)[1:])
    with pytest.raises(ValueError, match="negative integer powers"):
        shifted **= ab.from_dlpack(x[:-1])


@each_library
def test_what_does_not_fit_leaves_the_array(library: str) -> None:
    enter = namespaces(library)[0].enter
    for op, right, error in (
        (operator.iadd, np.ones((2, 3), "f4"), ValueError),
        (operator.iadd, np.ones(3, "c8"), TypeError),
        (operator.imul, np.ones(4, "f4"), Exception),
    ):
        x = enter(np.arange(3, dtype="f4"))
        with pytest.raises(error):
            op(x, enter(right))
        assert np.asarray(ab.convert(x, "numpy", device="cpu")).tolist() == [0, 1, 2]
