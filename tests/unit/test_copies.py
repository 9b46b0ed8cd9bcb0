"""contiguous and copyto: who copies, where the result lies, what is refused."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.kernels.cpu import SMALL
from tests.support.optional import optional
from tests.support.places import Speaker
from tests.support.strategies import strided_arrays

torch = optional("torch")

LARGE = (300, SMALL // 140)


def large(dtype="f4") -> np.ndarray:
    return np.random.default_rng(0).integers(0, 99, LARGE).astype(dtype)


class TestContiguous:
    def test_gradients_flow(self) -> None:
        for x in (torch.ones(2, 3, requires_grad=True), torch.ones(LARGE, requires_grad=True)):
            ab.contiguous(x.T).sum().backward()
            assert (x.grad == 1).all()

    @pytest.mark.parametrize("dtype", ["u1", "f4", "f8", "c16"])
    def test_large_results_are_aligned(self, dtype) -> None:
        x = large(dtype)
        for _ in range(3):
            assert ab.contiguous(x.T).ctypes.data % 64 == 0
            assert ab.contiguous(torch.from_numpy(x).T).data_ptr() % 64 == 0


class TestContiguousWithoutALibrary:
    """Arrays, and what only speaks DLPack."""

    X = np.arange(6.0).reshape(2, 3)

    def bare(self, **how):
        return ab.from_pointer(self.X.ctypes.data, (2, 3), "float64", device="cpu", **how)

    @pytest.mark.parametrize("make", [np.asarray, torch.from_numpy, jax.numpy.asarray])
    def test_an_array_gives_an_array(self, make) -> None:
        x = ab.from_dlpack(make(self.X))
        assert ab.contiguous(x) is x
        if x.library != "jax":  # whose arrays are always contiguous
            x = ab.from_dlpack(make(self.X).T)
            y = ab.contiguous(x)
            assert (type(y), y.library, y.shape) == (type(x), x.library, (3, 2))
            assert y.info.c_contiguous
            np.testing.assert_array_equal(np.asarray(y), self.X.T)

    def test_an_array_of_bare_memory(self) -> None:
        x = self.bare()
        assert ab.contiguous(x) is x
        y = ab.contiguous(self.bare(strides=(1, 2)))
        assert isinstance(y, ab.Array)
        assert (y.library, y.strides) == ("dlpack", (3, 1))
        np.testing.assert_array_equal(np.asarray(y), [[0, 2, 4], [1, 3, 5]])

    @pytest.mark.parametrize("make", [Speaker, lambda x: x.__dlpack__(), ab.dlpack.acquire])
    def test_what_only_speaks_dlpack(self, make) -> None:
        y = ab.contiguous(make(self.X))
        assert isinstance(y, ab.Array)
        assert (y.library, y.info.pointer) == ("numpy", self.X.ctypes.data)
        y = ab.contiguous(make(self.X.T))
        assert (y.library, y.info.c_contiguous) == ("numpy", True)
        np.testing.assert_array_equal(y.native, self.X.T)

    def test_memory_that_nothing_serves(self) -> None:
        there = ab.from_pointer(4096, (2, 3), "float64", device="vulkan")
        assert ab.contiguous(there) is there
        there = ab.from_pointer(4096, (2, 3), "float64", device="vulkan", strides=(1, 2))
        with pytest.raises(BufferError, match=r"no library .* computes on vulkan:0"):
            ab.contiguous(there)


class TestCopyTo:
    @settings(max_examples=150, deadline=None)
    @given(strided_arrays(), st.data())
    def test_into_any_layout(self, x: np.ndarray, data) -> None:
        steps = [data.draw(st.sampled_from([-2, -1, 1, 2, 3])) for _ in x.shape]
        memory = np.zeros([2 * abs(s) * n for s, n in zip(steps, x.shape, strict=True)], x.dtype)
        expected = memory.copy()

        def view(block):
            block = block[(..., *(slice(None, None, s) for s in steps))]
            return block[(..., *(slice(0, n) for n in x.shape))]

        np.copyto(view(expected), x)
        dst = view(memory)
        ab.copyto(dst, x)
        assert memory.tobytes() == expected.tobytes()

    @pytest.mark.parametrize("shape", [(2, 3), LARGE])
    def test_what_differs_in_shape_or_dtype(self, shape) -> None:
        x = np.ones(shape, np.float32)
        for dst, what in [
            (
                np.zeros((*shape, 1), "f4"),
                r"has shape .*, but (src|x) has \(.*: the shapes must match",
            ),
            (np.zeros(shape), "has dtype float64, but (src|x) has float32: the dtypes must match"),
        ]:
            with pytest.raises(ab.ConversionError, match=f"dst {what}"):
                ab.copyto(dst, x)
            with pytest.raises(ab.ConversionError, match=f"out {what}"):
                ab.contiguous(x, out=dst)
        with pytest.raises(TypeError, match="not an array"):
            ab.copyto(object(), x)


class Copies:
    """A producer that hands over a copy of what it has."""

    def __init__(self) -> None:
        self.x = np.zeros(3, np.float32)

    def __dlpack__(self, **asked: object) -> object:
        return self.x.__dlpack__(max_version=(1, 0), copy=True)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


THREE = np.arange(3, dtype=np.float32)
NOBODYS = {
    "a scalar": (lambda: np.float32(0), "NumPy scalar is immutable"),
    "a boolean": (lambda: np.bool_(False), "NumPy scalar is immutable"),
    "a copy": (Copies, "Copies exports a copy"),
    "a capsule of a copy": (
        lambda: THREE.__dlpack__(max_version=(1, 0), copy=True),
        "PyCapsule exports a copy",
    ),
    "a legacy capsule": (lambda: np.zeros(3, np.float32).__dlpack__(), "read-only"),
    "bytes": (lambda: bytes(12), "dtype uint8|shape"),
    "broadcast": (lambda: np.broadcast_to(np.float32(0), (3,)), "read-only"),
    "one cell": (lambda: torch.zeros(1).expand(3), "share memory"),
    "windows": (
        lambda: np.lib.stride_tricks.as_strided(np.zeros(3, np.float32), (3,), (0,)),
        "share memory",
    ),
    "jax": (lambda: jax.numpy.zeros(3), "read-only"),
    "an Array of jax": (lambda: ab.from_dlpack(jax.numpy.zeros(3)), "read-only"),
    "tracked": (lambda: torch.zeros(3, requires_grad=True), "gradients are tracked"),
    "negated": (lambda: torch._neg_view(torch.zeros(3)), "its negative bit is set; assign through"),
}


@pytest.mark.parametrize("name", NOBODYS)
@pytest.mark.parametrize("source", ["numpy", "torch", "jax"])
def test_what_nobody_would_see_is_not_written(name: str, source: str) -> None:
    make, why = NOBODYS[name]
    x = THREE if name not in ("a scalar", "a boolean") else np.zeros((), make().dtype)
    x = ab.convert(x, source)
    with pytest.raises(ab.ConversionError, match=f"(dst cannot be written: .*|dst has )({why})"):
        ab.copyto(make(), x)
    with pytest.raises(ab.ConversionError, match=f"(out cannot be written: .*|out has )({why})"):
        ab.contiguous(x, out=make())


def test_memory_of_any_protocol_is_written() -> None:
    x = np.zeros(3, np.float32)
    ab.copyto(SimpleNamespace(__array_interface__=x.__array_interface__), THREE)
    np.testing.assert_array_equal(x, THREE)
    held = ab.from_dlpack(Copies())  # an Array holds its memory, a copy or not
    ab.copyto(held, THREE)
    np.testing.assert_array_equal(np.asarray(held), THREE)
    buffer = bytearray(3)
    ab.copyto(buffer, np.arange(3, dtype=np.uint8))
    assert buffer == b"\0\1\2"


# Small copies, which NumPy makes for `contiguous`: arguments, what is registered, leaks.


def test_nothing_leaks():
    dense = np.arange(4096, dtype="f4").reshape(64, 64)
    x = dense.copy().T
    ab.contiguous(x), ab.contiguous(dense)
    gc.collect()  # what earlier tests left has the dtype too
    before = sys.getrefcount(x), sys.getrefcount(dense), sys.getrefcount(x.dtype)
    tracemalloc.start()
    for _ in range(1000):
        ab.contiguous(x), ab.contiguous(dense)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 100_000
    after = sys.getrefcount(x), sys.getrefcount(dense), sys.getrefcount(x.dtype)
    assert before == after
    y = ab.contiguous(dense)
    assert sys.getrefcount(dense) == before[1] + 1
    assert y is dense


@pytest.mark.skipif(torch is None, reason="torch is not installed")
@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_a_tensor_that_another_thread_gives_other_memory(to) -> None:
    """The copy is of the memory that it had before or after, whole, and of memory that lives."""
    turned = [torch.full((300, 500), float(value)).T for value in range(4)]
    t, stop = turned[0].clone(), threading.Event()

    def change() -> None:
        while not stop.is_set():
            for other in turned:
                t.data = other.clone()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            copied = np.asarray(ab.convert(t, to, copy=True))
            assert copied.shape == (500, 300)
            assert (copied == copied[0, 0]).all()
    finally:
        stop.set()
        thread.join()
