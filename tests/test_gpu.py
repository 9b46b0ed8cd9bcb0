"""CUDA: PyTorch, CuPy, Numba and JAX on one device. Run by `make gpu`; skipped without a device."""

from __future__ import annotations

import numpy as np
import pytest

import arraybridge as ab

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

CUDA = ab.Device.parse("cuda:0")


def image():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def on_torch():
    return torch.from_numpy(image()).cuda()


def on_cupy():
    return pytest.importorskip("cupy").asarray(image())


def on_numba():
    return pytest.importorskip("numba.cuda").to_device(image())


def on_jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no CUDA device here")
    return jax.numpy.asarray(image())


SOURCES = {"torch": on_torch, "cupy": on_cupy, "numba": on_numba, "jax": on_jax}


def on_host(x):
    return ab.convert(x, "numpy", device="cpu")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", SOURCES)
def test_every_pair_stays_on_the_device(source, target):
    SOURCES[target]()  # skips where the target has no device
    x = SOURCES[source]()
    route = ab.explain(x, target)
    y = ab.convert(x, target)
    assert ab.inspect(y).device == CUDA
    assert (ab.inspect(y).pointer == ab.inspect(x).pointer) == (route.kind == "view")
    assert (route.kind == "view") == (source != "jax" or target in ("jax", source))
    np.testing.assert_array_equal(on_host(y), image())


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_comes_to_the_host_unasked(source):
    x = SOURCES[source]()
    with pytest.raises(ab.ConversionError, match="device='cpu'"):
        ab.convert(x, "numpy")
    assert ab.explain(x, "numpy", device="cpu").kind == "transfer"
    np.testing.assert_array_equal(on_host(x), image())


@pytest.mark.parametrize("target", SOURCES)
def test_from_the_host(target):
    SOURCES[target]()
    y = ab.convert(image(), target, device="cuda:0")
    assert ab.inspect(y).device == CUDA
    np.testing.assert_array_equal(on_host(y), image())


@pytest.mark.parametrize("target", SOURCES)
def test_strided_on_the_device(target):
    SOURCES[target]()
    x = on_torch().permute(2, 0, 1)[:, :, ::2]
    y = ab.convert(x, target)
    np.testing.assert_array_equal(on_host(y), image().transpose(2, 0, 1)[:, :, ::2])


def test_array_carries_the_device():
    x = ab.from_dlpack(on_torch())
    assert x.device == CUDA
    assert x.__dlpack_device__() == (2, 0)
    assert torch.from_dlpack(x).data_ptr() == x.info.pointer
    assert x.__cuda_array_interface__["data"][0] == x.info.pointer
    with pytest.raises(BufferError):
        np.asarray(x)


def test_work_of_another_stream_is_waited_for():
    pytest.importorskip("cupy")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.zeros(1 << 24, device="cuda")
        for _ in range(50):
            x += 1
        y = ab.convert(x, "cupy")  # CuPy reads on its own current stream
    assert float(on_host(y)[-1]) == 50


def test_contiguous_on_the_device():
    x = on_torch().permute(2, 1, 0)
    y = ab.contiguous(x)
    assert y.is_contiguous()
    assert y.is_cuda
    np.testing.assert_array_equal(on_host(y), image().T)


@pytest.mark.parametrize("source", SOURCES)
def test_arrays_compute_on_the_device(source):
    x = ab.from_dlpack(SOURCES[source]())
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
    x = on_torch()
    bare = ab.from_dlpack(x.__dlpack__())
    assert bare.library == "dlpack"
    np.testing.assert_array_equal(on_host(bare + 1), image() + 1)
    bare[0, 0, 0] = 5
    assert float(x[0, 0, 0]) == 5
