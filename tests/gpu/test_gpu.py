"""CUDA: PyTorch, CuPy, Numba and JAX on one device. Run by `make gpu`; skipped without one."""

import numpy as np
import pytest

import arraybridge as ab
from tests.support.cuda_arrays import CUDA, LIBRARIES, image, on_host, place, torch

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("source", LIBRARIES)
@pytest.mark.parametrize("target", LIBRARIES)
def test_every_pair_stays_on_the_device(source, target, copy):
    place(target, image())  # skips where the target has no device
    x = place(source, image())
    route = ab.explain(x, target, copy=copy)
    y = ab.convert(x, target, copy=copy)
    assert ab.inspect(y).device == CUDA
    assert (ab.inspect(y).pointer == ab.inspect(x).pointer) == (route.kind == "view")
    # JAX's memory is read-only to the others, and theirs may still be written: copies both ways.
    shared = source == target or "jax" not in (source, target)
    assert (route.kind == "view") == (shared and not copy)
    np.testing.assert_array_equal(on_host(y), image())


def test_array_carries_the_device():
    x = ab.from_dlpack(place("torch", image()))
    assert x.device == CUDA
    assert x.__dlpack_device__() == (2, 0)
    assert torch.from_dlpack(x).data_ptr() == x.info.pointer
    assert x.__cuda_array_interface__["data"][0] == x.info.pointer
    with pytest.raises(BufferError):
        np.asarray(x)


@pytest.mark.parametrize("source", LIBRARIES)
def test_arrays_compute_on_the_device(source):
    x = ab.from_dlpack(place(source, image()))
    xp = ab.namespace(x)  # numba has none of its own: CuPy or PyTorch computes
    y = xp.sum(x * 2 + 1, axis=0)
    assert y.device == x.device == CUDA
    if y.library != "cupy":  # which has no arrays on the CPU
        assert y.to_device("cpu").device == ab.Device(1)
    np.testing.assert_array_equal(on_host(y), (image() * 2 + 1).sum(axis=0))
    np.testing.assert_array_equal(on_host(x[:, ::-1, 0]), image()[:, ::-1, 0])
    made = xp.zeros(3, device=CUDA)
    assert made.device == CUDA


def test_bare_memory_computes_on_the_device():
    x = place("torch", image())
    bare = ab.from_dlpack(x.__dlpack__(max_version=(1, 0)))  # one that may be written
    assert bare.library == "dlpack"
    np.testing.assert_array_equal(on_host(bare + 1), image() + 1)
    bare[0, 0, 0] = 5
    assert float(x[0, 0, 0]) == 5


@pytest.mark.parametrize("target", LIBRARIES)
def test_adapted_functions_stay_on_the_device(target):
    place(target, image())
    seen = []

    @ab.adapt(target)
    def function(x):
        seen.append(ab.inspect(x))
        return x

    x = place("torch", image())
    y = function(x)
    assert (seen[0].library, seen[0].device) == (target, CUDA)
    assert isinstance(y, torch.Tensor)
    assert y.is_cuda
    assert torch.equal(y, x)


@pytest.mark.parametrize("other", ["cupy", "numba", "jax"])
def test_unify_on_the_device(other):
    x, y = place("torch", image()), place(other, image() + 1)
    xp, a, b = ab.unify(x, y)
    assert a is x
    assert b.is_cuda
    assert torch.equal(b, x + 1)
    np.testing.assert_array_equal(on_host(xp.add(a, b)), 2 * image() + 1)
    host = image() + 2
    _, c = ab.unify(host, like=x)
    assert c.is_cuda
    np.testing.assert_array_equal(on_host(c), host)
