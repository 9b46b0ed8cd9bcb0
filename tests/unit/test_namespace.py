"""namespace and unify."""

from __future__ import annotations

import importlib
import inspect
from contextlib import suppress
from importlib.util import find_spec
from itertools import product
from typing import NamedTuple

import array_api_compat
import array_api_strict
import jax
import numpy as np
import pyarrow
import pytest

import arraybridge as ab
from arraybridge import namespaces
from arraybridge.core import registry
from tests.support.namespaces import corrections_of
from tests.support.optional import optional, with_needs
from tests.support.places import Speaker, far_library

torch = optional("torch")

ARRAYS = {
    "numpy": lambda: np.arange(6.0, dtype=np.float32).reshape(2, 3),
    "torch": lambda: torch.arange(6.0).reshape(2, 3),
    "jax": lambda: jax.numpy.arange(6.0, dtype="float32").reshape(2, 3),
    "array_api_strict": lambda: array_api_strict.reshape(
        array_api_strict.arange(6, dtype=array_api_strict.float32), (2, 3)
    ),
}

# array-api-compat itself, and SciPy's copy, which SciPy 1.18 moved.
SCIPYS = "_external" if find_spec("scipy._external") else "_lib"
COMPATS = ["array_api_compat", f"scipy.{SCIPYS}.array_api_compat.common"]


@pytest.mark.parametrize("kind", ARRAYS)
def test_of_native_arrays(kind):
    """The native namespace has all of array-api-compat's: the same objects but for corrections."""
    x = ARRAYS[kind]()
    xp = ab.namespace(x)
    assert ab.namespace(x) is xp
    assert ab.namespace(x, 2.0, None, x) is xp
    theirs = array_api_compat.array_namespace(x)
    corrected = {*corrections_of(kind)}
    for name in dir(theirs):
        if not name.startswith("_") and not {name} <= corrected | {"linalg", "fft"}:
            found, own = getattr(xp, name), getattr(theirs, name)  # or what falls back on another
            assert inspect.unwrap(found, stop=lambda f, own=own: f is own) is own


@pytest.mark.parametrize("kind", ARRAYS)
def test_of_arrays(kind):
    x = ab.from_dlpack(ARRAYS[kind]())
    xp = ab.namespace(x)
    assert xp is ab.namespace(x, 2.0, None, x)
    assert xp is x.__array_namespace__() is array_api_compat.array_namespace(x)
    assert xp.__name__ == f"arraybridge.xp.{kind}"


def test_the_quick_way_answers_as_the_slow_one():
    """Whatever is known of the types by then."""
    registry.forget()
    bare = ab.from_pointer(0x7F0000000000, (3,), "float32", device="cuda:0")
    parts = [make() for make in ARRAYS.values()]
    parts += [ab.from_dlpack(x) for x in parts]
    parts += [2.0, 1, True, 1j, None, np.float64(1), np.int8(1), "torch", object(), bare]
    for _ in range(2):
        for xs in [(), *product(parts, repeat=2), *product(parts[3:6] + parts[8:14], repeat=3)]:
            answers = []
            for ask in (lambda *xs: namespaces._namespace_of(xs, None), ab.namespace):
                try:
                    answers.append(ask(*xs))
                except (TypeError, ImportError, ab.ConversionError) as error:
                    answers.append(f"{type(error)}: {error}")
            assert answers[0] is answers[1] or str(answers[0]) == answers[1], xs
        for x in parts:  # the types of which nothing has asked
            with suppress(TypeError, ImportError, ab.ConversionError):
                ab.namespace(x)


def test_numpys_scalars_alone_are_numpys():
    """Its native namespace gives them, where the standard has arrays of zero dimensions."""
    x = np.ones(3, np.float32)
    xp = ab.namespace(x)
    brain = np.ones(3, jax.numpy.bfloat16)
    for scalar in (xp.sum(x), np.float64(1), np.complex128(1), np.int8(1), np.True_, brain[0]):
        for _ in range(2):
            assert ab.namespace(scalar) is ab.namespace(scalar, 1.0, None, scalar) is xp
        assert ab.namespace(scalar, api_version="2024.12") is xp
    assert ab.namespace(torch.ones(1), np.float64(1)) is ab.namespace(torch.ones(1))
    with pytest.raises(ValueError, match=r"2019\.01"):
        ab.namespace(np.float64(1), api_version="2019.01")


@pytest.mark.parametrize("kind", with_needs(*ARRAYS))
def test_by_name(kind):
    """What an array of it gives, before there is one: array-api-compat#342."""
    array = ab.convert(np.ones(2), kind, dtype="float32")
    xp, module = ab.namespace(kind), importlib.import_module(kind)
    assert xp is ab.namespace(module) is ab.namespace(array) is ab.namespace(np.str_(kind))
    assert xp is ab.namespace(kind, api_version="2024.12") is ab.unify(like=kind)[0]
    assert type(xp.zeros(2)) is type(array)
    with pytest.raises(ValueError, match=r"2019\.01"):
        ab.namespace(kind, api_version="2019.01")


@pytest.mark.parametrize(
    ("xs", "error", "message"),
    [
        (("pytorch",), ValueError, "no library 'pytorch': did you mean 'torch'"),
        ((importlib,), ValueError, "no library 'importlib'"),
        (("pyarrow",), TypeError, "pyarrow has no array-API namespace: pass like="),
        (("torch", "torch"), TypeError, "one library, got 2 arguments with 'torch'"),
        ((np.ones(2), np), TypeError, "one library, got 2 arguments with <module 'numpy'"),
        ((np.ones(3), torch.ones(3)), TypeError, r"ndarray, torch\.Tensor.*arraybridge\.unify"),
        ((3, None), TypeError, "at least one array; got int, NoneType"),
        ((), TypeError, "at least one array; got nothing"),
    ],
)
def test_errors(xs, error, message):
    with pytest.raises(error, match=message):
        ab.namespace(*xs)


def softmax(x):
    xp = ab.namespace(x)
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


@pytest.mark.parametrize("kind", ARRAYS)
def test_one_function_for_every_library(kind):
    x = ARRAYS[kind]()
    y = softmax(x)
    assert type(y) is type(x)
    expected = softmax(ARRAYS["numpy"]())
    np.testing.assert_allclose(np.asarray(ab.convert(y, "numpy")), expected, rtol=1e-6)


def test_inside_torch_compile():
    x = torch.arange(6.0).reshape(2, 3)
    compiled = torch.compile(softmax, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), softmax(x))
    doubled = torch.compile(
        lambda x: ab.namespace(x, 2.0).add(x, x), fullgraph=True, backend="eager"
    )
    torch.testing.assert_close(doubled(x), 2 * x)


def test_inside_jit_and_grad():
    x = ARRAYS["jax"]()
    np.testing.assert_allclose(jax.jit(softmax)(x), softmax(x), rtol=1e-6)
    assert jax.grad(lambda x: softmax(x)[0, 0])(x).shape == (2, 3)


class Point(NamedTuple):
    x: object
    label: str


class TestUnify:
    @pytest.mark.parametrize("kind", ["numpy", "torch", "jax"])
    def test_to_the_first(self, kind):
        x = ARRAYS[kind]()
        xp, *arrays = ab.unify(x, *(make() for make in ARRAYS.values()), 2.5, None)
        assert xp is ab.namespace(x)
        assert arrays[0] is x
        assert arrays[-2:] == [2.5, None]
        for y in arrays[:-2]:
            assert type(y) is type(x)
            assert float(xp.sum(y)) == 15

    def test_like(self):
        xp, a, b = ab.unify(np.ones(3, "f4"), jax.numpy.ones(3), like=torch.ones(1))
        assert type(a) is type(b) is torch.Tensor
        assert xp is ab.namespace(a)

    def test_what_only_speaks_dlpack_goes_to_numpy(self):
        x = np.ones(3)
        for bare in (Speaker(x), x.__dlpack__(max_version=(1, 0))):
            xp, a, b = ab.unify(bare, torch.ones(3))
            assert xp is ab.namespace(x)
            assert type(a) is type(b) is np.ndarray
            assert a.ctypes.data == x.ctypes.data
            assert (a + b).tolist() == [2, 2, 2]

    def test_an_array_on_bare_memory_computes(self):
        x = np.ones(3)
        bare = ab.from_pointer(x.ctypes.data, (3,), "float64", device="cpu", owner=x)
        xp, a, b = ab.unify(bare, torch.ones(3))
        assert xp is ab.namespace(a) is ab.namespace(ab.from_dlpack(x))
        assert type(a) is type(b) is type(ab.from_dlpack(x))
        assert (a + b).to("numpy").tolist() == [2, 2, 2]

    @pytest.mark.parametrize("kind", ["numpy", "torch", "jax", "array_api_strict"])
    def test_the_model_decides_the_face(self, kind):
        array = ab.from_dlpack(ARRAYS[kind]())
        natives = [make() for make in ARRAYS.values()]
        xp, first, *others = ab.unify(array, *natives, 1.5)
        assert first is array
        assert xp is ab.namespace(array)
        assert others.pop() == 1.5
        assert all(type(y) is type(array) and float(xp.sum(y)) == 15 for y in others)
        xp, first, *others = ab.unify(ARRAYS[kind](), array, *map(ab.from_dlpack, natives))
        assert xp is ab.namespace(first)
        assert all(type(y) is type(first) for y in others)
        assert others[0] is array.native

    def test_nested(self):
        x, t = np.ones(3), torch.ones(3)
        box = {"a": [t, 1.0, None], "b": (Point(x, "text"), jax.numpy.ones(3)), "c": ["kept"]}
        xp, result, alone = ab.unify(box, t)
        assert xp is ab.namespace(t)
        assert result["a"][0] is t is alone
        assert result["a"][1:] == [1.0, None]
        point, j = result["b"]
        assert type(point) is Point
        assert point.label == "text"
        assert type(point.x) is type(j) is torch.Tensor
        assert result["c"] is box["c"]
        assert box["b"][0].x is x
        assert ab.unify(x, like=[None, {"model": t}])[0] is ab.namespace(t)

    def test_copy(self):
        x, t = np.ones(3), torch.ones(3)
        _, a, b = ab.unify(x, t, copy=True)
        a[0] = b[0] = 5
        assert x[0] == t[0] == 1
        _, a, b = ab.unify(x, t, copy=False)
        assert a is x
        assert b.ctypes.data == t.data_ptr()
        with pytest.raises(ab.ConversionError, match="copy=False"):
            ab.unify(t, x[::-1], copy=False)

    def test_scalars_and_others_are_no_arrays(self):
        class Opaque:
            pass

        others = [np.float32(1), np.float32, "text", b"bytes", memoryview(b"ab"), {1}, Opaque()]
        _, _, *back = ab.unify(torch.ones(1), *others)
        assert all(a is b for a, b in zip(back, others, strict=True))

    def test_gradients_and_tracers_of_the_model_stay(self):
        t = torch.ones(3, requires_grad=True)
        xp, a, b = ab.unify(t, np.ones(3, "f4"))
        xp.sum(a * b).backward()
        assert t.grad.tolist() == [1, 1, 1]
        x = jax.numpy.ones(3)

        @jax.jit
        def total(y):
            xp, a, b = ab.unify(y, np.ones(3, "f4"))
            return xp.sum(a + b)

        assert total(x) == 6

    @pytest.fixture
    def far(self):
        with far_library() as put:
            yield put

    def test_devices(self, far):
        here, there = np.ones(3), far(np.full(3, 2.0))
        with pytest.raises(ab.ConversionError, match="pass device='cpu'"):
            ab.unify(here, there)
        _, a, b = ab.unify(here, there, device="cpu")
        assert a is here
        assert b.tolist() == [2, 2, 2]
        _, a, b = ab.unify(here, there, like=here)
        assert b.tolist() == [2, 2, 2]
        with pytest.raises(ab.ConversionError, match="no arrays on"):
            ab.unify(here, device="ext_dev")

    def test_several_devices_of_one_library(self):
        """Arrays of the model's library pass as they are, but not from another device."""
        strict = [array_api_strict.ones(3, device=array_api_strict.Device(name))
                  for name in ("CPU_DEVICE", "device1", "device1")]  # fmt: skip
        with pytest.raises(ab.ConversionError, match=r"cpu and ext_dev:1: pass device= or like="):
            ab.unify(*strict[:2])
        assert ab.unify(*strict[1:])[2] is strict[2]

    def test_errors(self):
        with pytest.raises(TypeError, match="at least one array"):
            ab.unify(1, 2.0)
        for like in (3, [1]):
            with pytest.raises(
                TypeError, match=r"like= must be a library, an array, or a container.* got"
            ):
                ab.unify(np.ones(3), like=like)
        with pytest.raises(TypeError, match="pyarrow has no array-API namespace"):
            ab.unify(np.ones(2), like="pyarrow")
        with pytest.raises(TypeError, match="no array-API namespace"):
            ab.unify(pyarrow.array([1.0]), np.ones(1))
        with pytest.raises(ab.ConversionError, match="detach"):
            ab.unify(np.ones(3), torch.ones(3, requires_grad=True))
        gpu = ab.from_pointer(0x1000, (3,), "float32", device="cuda")
        with pytest.raises(ab.ConversionError, match="cuda:0"):
            ab.unify(np.ones(3), gpu)


def test_arrays_of_the_library_are_not_looked_at():
    meta = torch.ones(3, device="meta")  # without memory, like a tracer
    assert ab.unify(meta, copy=False)[1] is ab.unify([meta])[1][0] is meta
    with pytest.raises(ab.ConversionError, match="has no memory"):
        ab.unify(meta, copy=True)


def test_containers_that_make_their_children():
    """An array that one makes may get the id of one that another made, which is gone."""

    class Rows(dict):
        def values(self):
            return [Speaker(np.full(3, n)) for n in self]

    rows = [Rows.fromkeys(range(n, n + 3)) for n in range(0, 90, 3)]
    for found in ab.unify(torch.ones(3), *rows)[2:]:
        assert all(x.tolist() == [n] * 3 for n, x in found.items())
    adapted = ab.adapt("torch")(lambda *rows: [{n: x[0] for n, x in r.items()} for r in rows])
    assert all(x == n for found in adapted(*rows) for n, x in found.items())
