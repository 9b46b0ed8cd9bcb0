"""Transfers between host memory and a CUDA device, and what is refused or goes wrong there."""

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.kernels.cuda import transfer
from tests.support.cuda_arrays import (
    CUDA,
    LIBRARIES,
    SLOW,
    cases,
    first_wrong,
    image,
    needs_two,
    on_host,
    place,
    placed,
    torch,
)

pytestmark = pytest.mark.gpu

HOSTS = {
    "numpy": lambda x: x,
    "torch": lambda x: torch.from_numpy(x),
    "jax": lambda x: _jax().device_put(x, _jax().devices("cpu")[0]),
}
VIEWS = {
    "contiguous": lambda x: x,
    "permuted": lambda x: x.permute(2, 0, 1) if hasattr(x, "permute") else x.transpose(2, 0, 1),
    "stepped": lambda x: x[:, :, ::2],
}


def _jax():
    return pytest.importorskip("jax")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("target", LIBRARIES)
@pytest.mark.parametrize("source", HOSTS)
def test_from_the_host(source, target, view):
    place(target, image())  # skips where the target has no device
    x, expected = HOSTS[source](image()), VIEWS[view](image())
    if source == "jax":  # which has no strides
        expected = image()
    else:
        x = VIEWS[view](x)
    route = ab.explain(x, target, device="cuda:0")
    assert (route.kind, route.device, route.nbytes) == ("transfer", CUDA, expected.nbytes)
    y = ab.convert(x, target, device="cuda:0")
    assert ab.inspect(y).device == CUDA
    assert first_wrong(on_host(y), expected) == ""


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("target", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("source", LIBRARIES)
def test_to_the_host(source, target, view):
    x, expected = place(source, image()), image()
    if source in ("torch", "cupy"):  # the others have no strides, or none that they read themselves
        x, expected = VIEWS[view](x), VIEWS[view](expected)
    y = ab.convert(x, target, device="cpu")
    assert ab.inspect(y).device.host
    assert first_wrong(np.asarray(y), expected) == ""


@pytest.mark.parametrize(("library", "layout"), cases())
def test_layouts_there_and_back(library, layout):
    x, expected = placed(library, layout)
    route = ab.explain(x, "numpy", device="cpu")
    assert (route.kind, route.nbytes) == ("transfer", expected.nbytes)
    assert route.kernel.startswith("arraybridge's own copy")
    assert first_wrong(ab.convert(x, "numpy", device="cpu"), expected) == ""
    y = ab.convert(expected, library, device="cuda:0")
    assert ab.inspect(y).c_contiguous
    assert first_wrong(on_host(y), expected) == ""


@pytest.mark.parametrize("library", ["torch", "cupy"])
@pytest.mark.parametrize("blocks", [0.5, 1, 1.5, 3, 4.5], ids=lambda n: f"{n} blocks")
def test_around_the_ring(blocks, library):
    """Less than a block, just one, more than the ring has."""
    place(library, image())
    count = int(blocks * transfer.BLOCK_BYTES) // 4
    host = np.random.default_rng(0).random((count // 512, 512), np.float32)
    for x in (host, host.T, host[:, ::2]):
        y = ab.convert(x, library, device="cuda:0")
        assert first_wrong(on_host(y), x) == ""


def test_host_memory_may_change_after_the_call():
    host = np.random.default_rng(0).random((2000, 3000), np.float32)
    expected = host.T.copy()
    torch.cuda._sleep(SLOW)
    y = ab.convert(host.T, "torch", device="cuda:0")
    host[:] = -1
    assert first_wrong(on_host(y), expected) == ""


def test_a_transfer_waits_for_its_stream():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.zeros(3000, 2000, device="cuda")
        torch.cuda._sleep(SLOW)
        x += 7
        host = ab.convert(x.t(), "numpy", device="cpu")
        again = ab.convert(host, "torch", device="cuda:0")
        torch.cuda._sleep(SLOW)
        again += 1
    assert (host == 7).all()
    side.synchronize()
    assert bool((again == 8).all())


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_out_of_memory(library):
    """The library's own error, as by its own functions; nothing is kept, the device works on."""
    x = place(library, np.ones((1, 1), np.float32))
    side = 1 << 21  # 16 TB
    if library == "torch":
        huge, error = x.expand(side, side), torch.cuda.OutOfMemoryError
    else:
        cupy = pytest.importorskip("cupy")
        huge, error = cupy.broadcast_to(x, (side, side)), cupy.cuda.memory.OutOfMemoryError
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    for _ in range(3):
        with pytest.raises(error):
            ab.contiguous(huge)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before[0]
    assert torch.cuda.mem_get_info()[0] > before[1] - (64 << 20)
    assert bool((ab.contiguous(torch.ones(30, 40, device="cuda").t()) == 1).all())


@needs_two
def test_between_two_devices():
    x = torch.rand(300, 500, device="cuda:1")
    y = ab.contiguous(x.t())  # device 0 is the current one
    assert y.device == x.device
    assert torch.equal(y, x.t())
    there = ab.convert(x.t(), "torch", device="cuda:0")
    assert there.device.index == 0
    assert torch.equal(there.cpu(), x.t().cpu())
    back = ab.convert(there, "cupy", device="cuda:1")
    np.testing.assert_array_equal(back.get(), x.t().cpu().numpy())


def test_pinned_memory_is_shared_and_stays_pinned():
    x = torch.arange(6.0).pin_memory()
    assert int(x.__dlpack_device__()[0]) == ab.DeviceType.CUDA_HOST
    y = ab.convert(x, "numpy", copy=False)
    assert y.ctypes.data == x.data_ptr()
    for given in (y, x.__dlpack__(), ab.from_dlpack(x)):
        again = ab.convert(given, "torch", copy=False)
        assert again.data_ptr() == x.data_ptr()
        assert again.is_pinned()


def test_pinned_memory_of_cupy():
    cupyx = pytest.importorskip("cupyx")
    x = cupyx.zeros_pinned((64,), "f4")
    y = ab.convert(x, "torch", copy=False)
    assert y.data_ptr() == x.ctypes.data
    assert y.is_pinned()
