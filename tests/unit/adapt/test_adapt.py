"""adapt: functions of one library on arrays of any, results of the caller's kind."""

from __future__ import annotations

import dataclasses
import typing

import jax
import numba
import numpy as np
import pyarrow
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.special
import scipy.stats

import arraybridge as ab
from tests.support.optional import optional
from tests.support.places import THERE, Far, Speaker, far_library

torch = optional("torch")

X = np.arange(12, dtype=np.float32).reshape(3, 4)
X.flags.writeable = False

# How a caller makes an array of X, and what the results of that caller are.
CALLERS = {
    "numpy": (lambda: X.copy(), np.ndarray),
    "torch": (lambda: torch.from_numpy(X.copy()), torch.Tensor),
    "jax": (lambda: jax.numpy.asarray(X), jax.Array),
    "pyarrow": (lambda: pyarrow.Tensor.from_numpy(X.copy()), pyarrow.Tensor),
    "DLPack only": (lambda: Speaker(X.copy()), np.ndarray),
    "capsule": (lambda: X.copy().__dlpack__(max_version=(1, 0)), np.ndarray),
    "Array of numpy": (lambda: ab.from_dlpack(X.copy()), ab.Array),
    "Array of torch": (lambda: ab.from_dlpack(torch.from_numpy(X.copy())), ab.Array),
    "Array of jax": (lambda: ab.from_dlpack(jax.numpy.asarray(X)), ab.Array),
    "Array of pyarrow": (lambda: ab.from_dlpack(pyarrow.Tensor.from_numpy(X.copy())), ab.Array),
    "Array of memory": (lambda: ab.from_pointer(X.ctypes.data, (3, 4), "float32", device="cpu",
                                                owner=X, readonly=True), ab.Array),
}  # fmt: skip


def values(x) -> np.ndarray:
    return ab.convert(x, "numpy")


@pytest.fixture(params=CALLERS)
def caller(request):
    make, kind = CALLERS[request.param]
    return request.param, make, kind


@pytest.fixture
def far():
    with far_library() as put:
        yield put


@numba.njit
def add_one(x):
    result = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            result[i, j] = x[i, j] + 1
    return result


@numba.njit
def fill(x, value):
    x[:] = value
    return x


# Functions that nobody here wrote, or that Numba compiles.
FUNCTIONS = {
    "ndimage.gaussian_filter": (scipy.ndimage.gaussian_filter, {"sigma": 1.0}),
    "ndimage.sobel": (scipy.ndimage.sobel, {"axis": 0}),
    "special.erf, a ufunc": (scipy.special.erf, {}),
    "linalg.pinv": (scipy.linalg.pinv, {}),
    "numba": (add_one, {}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_others(name, caller):
    function, options = FUNCTIONS[name]
    spelled, make, kind = caller
    result = ab.adapt("numpy")(function)(make(), **options)
    assert isinstance(result, kind)
    if spelled.startswith("Array of"):
        assert result.library == {"memory": "numpy"}.get(spelled[9:], spelled[9:])
    np.testing.assert_array_equal(values(result), function(X, **options))


def test_results_in_containers_of_others():
    t = torch.from_numpy(X.copy())
    result = ab.adapt("numpy")(scipy.stats.ttest_1samp)(t, 0)
    assert type(result) is type(scipy.stats.ttest_1samp(X, 0))
    assert isinstance(result.pvalue, torch.Tensor)
    assert isinstance(result.df, torch.Tensor)
    labels, count = ab.adapt("numpy")(scipy.ndimage.label)(t > 5)
    assert isinstance(labels, torch.Tensor)
    assert count == 1
    assert type(count) is int


def test_the_very_argument_comes_back(caller):
    name, make, kind = caller
    given = make()
    box, alone = ab.adapt("numpy")(lambda x, also: ([x], also))(given, also=given)
    if name == "capsule":  # it is consumed
        assert isinstance(alone, kind)
    else:
        assert box[0] is alone is given


def test_an_array_given_twice_is_seen_once():
    seen = []
    x = np.arange(4.0)[::-1]  # which torch must copy
    ab.adapt("torch")(lambda *args, **kwargs: seen.extend((*args, kwargs["k"][0])))(x, x, k=[x])
    assert seen[0] is seen[1] is seen[2]
    capsule = X.copy().__dlpack__(max_version=(1, 0))
    total = ab.adapt("numpy")(lambda a, b: float((a + b).sum()))(capsule, capsule)
    assert total == 2 * X.sum()


def test_a_producer_is_asked_once():
    asked = []

    class Asked(Speaker):
        def __dlpack__(self, **options):
            asked.append(options)
            return super().__dlpack__(**options)

    assert ab.adapt(np.negative)(Asked(np.ones(2))).tolist() == [-1, -1]
    assert len(asked) == 1


@dataclasses.dataclass
class Pair:
    a: typing.Any
    b: typing.Any

    @ab.adapt("numpy")
    def plus(self, other):
        assert not isinstance(other, Pair) or type(other.a) is np.ndarray
        self.seen = type(self.a)
        return np.add(2, other.a if isinstance(other, Pair) else other)

    @ab.adapt("numpy")
    @staticmethod
    def above(pair):
        return type(pair.a), pair.a + 1

    @staticmethod
    @ab.adapt("numpy")
    def below(x):
        return type(x), x + 1

    @ab.adapt("numpy")
    @classmethod
    def above_class(cls, x):
        return cls, type(x), x + 1

    @classmethod
    @ab.adapt("numpy")
    def below_class(cls, x):
        return cls, type(x), x + 1

    @property
    @ab.adapt("numpy")
    def total(self):
        return self.a + self.b


class TestContainers:
    def test_arguments(self):
        t, kept = torch.ones(2), ["a", 1, None]
        pair = Pair(t, [jax.numpy.zeros(2), (t, 2.5)])

        @ab.adapt("numpy")
        def function(arrays, others, *, pair):
            assert type(arrays[0]) is type(pair.b[0]) is np.ndarray
            assert arrays[1]["x"][0] is arrays[0] is pair.a is pair.b[1][0]
            assert others is kept
            return pair

        result = function([t, {"x": (t,)}], kept, pair=pair)
        assert pair.a is result.a is t
        assert result.b[0] is pair.b[0]
        assert result.b[1] == (t, 2.5)

    def test_what_is_no_array_is_untouched(self):
        others = [1, 2.5, True, None, "text", b"bytes", np.float32(1), np.float32, np.ndarray]
        others += [memoryview(b"ab"), bytearray(b"ab"), {1, 2}, object(), torch.float32, print]
        result = ab.adapt("torch")(lambda *args: list(args))(*others)
        assert all(a is b for a, b in zip(result, others, strict=True))


class TestWhoseKind:
    def test_the_first_array(self):
        x, t, j = np.ones(2), torch.ones(2), jax.numpy.ones(2)
        new = ab.adapt("numpy")(lambda *_, **__: np.zeros(2, "f4"))
        assert type(new(t, x)) is torch.Tensor
        assert type(new(x, t)) is np.ndarray
        assert type(new(1, [None, {"a": j}], k=t)) is type(j)
        assert type(new(k=t)) is torch.Tensor
        assert type(new(ab.from_dlpack(t), x)) is type(ab.from_dlpack(t))
        assert type(new()) is np.ndarray

    def test_result(self):
        x, t = np.ones(2), torch.ones(2)
        assert type(ab.adapt("numpy", result="function")(np.negative)(t)) is np.ndarray
        assert type(ab.adapt("numpy", result="jax")(np.float32)(t)) is type(jax.numpy.ones(1))
        assert type(ab.adapt("numpy", result=torch)(np.negative)(x)) is torch.Tensor
        assert ab.adapt("numpy", result="torch")(lambda x: x)(t).data_ptr() == t.data_ptr()
        seen = ab.adapt("numpy", result="function")(lambda x: x)(t)
        assert type(seen) is np.ndarray

    def test_a_foreign_result(self):
        """A function may give arrays of a third library."""
        assert type(ab.adapt("numpy")(lambda x: torch.ones(2))(np.ones(1))) is np.ndarray


class TestPolicies:
    def test_views_only(self):
        x = np.arange(3.0)
        only = ab.adapt("torch", copy=False)
        assert only(torch.neg)(x).tolist() == [0, -1, -2]
        assert only(lambda x: x[1:])(x).ctypes.data == x[1:].ctypes.data
        with pytest.raises(ab.ConversionError, match="copy=False, but torch takes no negative"):
            only(torch.neg)(x[::-1])
        with pytest.raises(ab.ConversionError, match="copy=False") as caught:
            ab.adapt("numpy", copy=False)(lambda x: x[::-1])(torch.ones(3))
        assert "Raised for a result of" in caught.value.__notes__[0]
        assert "test_views_only" in caught.value.__notes__[0]

    def test_read_only_memory(self):
        j = jax.numpy.zeros(3)
        with pytest.raises(ValueError, match="read-only"):
            ab.adapt("numpy")(lambda x: x.fill(1))(j)
        address = j.unsafe_buffer_pointer()
        where = ab.adapt("torch", result="function")(torch.Tensor.data_ptr)
        assert where(j) != address
        seen = ab.adapt("torch", alias_readonly=True)(torch.Tensor.data_ptr)(j)
        assert seen == address

    def test_gradients_and_tracers(self):
        t = torch.ones(3, requires_grad=True)
        with pytest.raises(ab.ConversionError, match="detach") as caught:
            ab.adapt("numpy")(np.exp)(t)
        assert caught.value.__notes__ == ["Raised for an argument of exp, adapted by arraybridge."]
        ab.adapt("torch")(lambda a, b: (a * b).sum())(t, np.ones(3, "f4")).backward()
        assert t.grad.tolist() == [1, 1, 1]
        result = ab.adapt("torch")(lambda a: a.sum())(ab.from_dlpack(t))
        assert type(result) is type(ab.from_dlpack(t))
        result.native.backward()
        assert t.grad.tolist() == [2, 2, 2]
        total = ab.adapt("jax")(lambda a, b: (a + b).sum())
        assert jax.jit(lambda a: total(a, np.ones(3, "f4")))(jax.numpy.ones(3)) == 6
        assert jax.grad(lambda a: total(a, 1.0))(jax.numpy.ones(3)).tolist() == [1, 1, 1]

    def test_inside_torch_compile(self):
        """Once it has run outside, when what it needs is loaded."""
        function = ab.adapt("torch")(lambda x, y: [x * 2 + y])
        x = torch.ones(3)
        assert function(x, x)[0].tolist() == [3, 3, 3]
        compiled = torch.compile(function, fullgraph=True, backend="eager")
        assert compiled(x, 1.0)[0].tolist() == [3, 3, 3]

    def test_a_dtype_that_the_caller_lacks(self):
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", False)
        try:
            with pytest.raises(ab.ConversionError, match="x64"):
                ab.adapt("numpy")(lambda x: x.astype("f8"))(jax.numpy.ones(3))
        finally:
            jax.config.update("jax_enable_x64", before)

    def test_devices(self, far):
        there = far(np.arange(3.0))
        with pytest.raises(ab.ConversionError, match="pass device='cpu'"):
            ab.adapt("numpy")(np.exp)(there)
        on_cpu = ab.adapt("numpy", device="cpu")
        result = on_cpu(np.exp)(there)
        assert type(result) is Far
        assert ab.inspect(result).device == THERE
        np.testing.assert_array_equal(values_far(result), np.exp(np.arange(3.0)))
        again = on_cpu(lambda x: x)(there)
        assert again is not there
        assert values_far(again).tolist() == [0, 1, 2]
        # one that was not there stays where it was
        t = torch.ones(3, dtype=torch.float64)
        assert on_cpu(np.add)(t, there).tolist() == [1, 2, 3]
        assert type(on_cpu(lambda x: x)(t)) is torch.Tensor
        assert on_cpu(lambda x: x)(t) is t
        assert type(ab.adapt("numpy", device="cpu", result="function")(np.exp)(there)) is np.ndarray
        assert type(ab.adapt("numpy", device="cpu", result="torch")(np.exp)(there)) is torch.Tensor

    def test_memory_elsewhere_that_no_library_serves(self):
        there = ab.from_pointer(0x1000, (3,), "float64", device="vulkan")
        with pytest.raises(BufferError, match=r"no library .* computes on vulkan:0"):
            ab.adapt("numpy", device="cpu")(np.exp)(there)

    def test_an_array_elsewhere(self, far):
        there = ab.from_dlpack(far(np.arange(3.0)))
        result = ab.adapt("numpy", device="cpu")(np.exp)(there)
        assert type(result) is type(there) is ab.Array
        assert (result.library, result.device) == ("far", THERE)


@pytest.mark.heavy
def test_on_a_real_device():
    dpnp = pytest.importorskip("dpnp", exc_type=ImportError)
    if not pytest.importorskip("dpctl").get_num_devices():
        pytest.skip("no SYCL device")
    x = dpnp.arange(6, dtype="f4").reshape(2, 3)
    with pytest.raises(ab.ConversionError, match="pass device='cpu'"):
        ab.adapt("numpy")(scipy.ndimage.sobel)(x)
    for given in (x, ab.from_dlpack(x)):
        result = ab.adapt("numpy", device="cpu")(scipy.ndimage.sobel)(given)
        assert type(result) is type(given)
        assert ab.inspect(result).device == ab.inspect(x).device
        expected = scipy.ndimage.sobel(np.arange(6, dtype="f4").reshape(2, 3))
        np.testing.assert_array_equal(values_far(result), expected)
    xp, a, b = ab.unify(x, np.ones(3, "f4"), device=ab.inspect(x).device)
    assert values_far(xp.sum(a * b)) == 15


def values_far(x) -> np.ndarray:
    return ab.convert(x, "numpy", device="cpu")


def test_errors():
    with pytest.raises(TypeError, match=r"got a property: put adapt below"):
        ab.adapt("numpy")(property(lambda self: 1))
    with pytest.raises(TypeError, match="got a int"):
        ab.adapt(3)
    with pytest.raises(ValueError, match="copy is 'never'"):
        ab.adapt("numpy", copy="never")
    with pytest.raises(ValueError, match="unknown device"):
        ab.adapt("numpy", device="gpuu")
    with pytest.raises(ValueError, match="no library 'nunpy': did you mean 'numpy'"):
        ab.adapt("nunpy")
    with pytest.raises(ValueError, match="no library 'callers'"):
        ab.adapt(result="callers")


def test_copy_is_a_boolean():
    def pointer(x):
        return x.ctypes.data

    x = np.ones(3)
    assert ab.adapt("numpy", copy=np.True_)(pointer)(x) != pointer(x)
    assert ab.adapt("numpy", copy=0)(pointer)(x) == pointer(x)
    with pytest.raises(ab.ConversionError, match="copy=False"):
        ab.adapt("torch", copy=np.False_)(torch.sum)(x[::-1])


def test_the_module_does_not_hide_the_function():
    import arraybridge.adapting

    assert ab.adapt is arraybridge.adapting.adapt
