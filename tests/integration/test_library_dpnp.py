"""dpnp on its OpenCL CPU device: a real DLPack device that is not the CPU."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings

from tests.support import coexist

coexist.prepare()  # names the OpenCL driver, before dpnp is loaded
dpnp = pytest.importorskip("dpnp", exc_type=ImportError)
dpctl = pytest.importorskip("dpctl")
if not dpctl.get_num_devices():
    pytest.skip("no SYCL device", allow_module_level=True)

import arraybridge as ab  # noqa: E402
from arraybridge import dlpack  # noqa: E402
from arraybridge.kernels import cpu  # noqa: E402
from arraybridge.layout import span  # noqa: E402
from arraybridge.libraries.dpnp.exchange import LIBRARY  # noqa: E402
from tests.support.arrays import same  # noqa: E402
from tests.support.small_layouts import small_layouts  # noqa: E402
from tests.support.strategies import strided_arrays  # noqa: E402

pytestmark = pytest.mark.heavy


def block() -> dpnp.ndarray:
    return dpnp.arange(24, dtype="f4").reshape(4, 6)


@given(strided_arrays(["f4", "c16", "u1"], unaligned=False, readonly=False, max_dims=4))
@settings(max_examples=100, deadline=None)
def test_any_strides_on_the_device(array: np.ndarray) -> None:
    """The same strides over a block on the device, wrapped and exported again."""
    low, high = span(array.shape, array.strides, array.itemsize)
    size = max((high - low) // array.itemsize, 1)
    block = dpnp.arange(size, dtype="f4").astype(array.dtype)
    layout = dlpack.ManagedTensor.adopt(
        ab.inspect(block).pointer - low,
        array.shape,
        ab.inspect(array).dtype,
        owner=block,
        device=ab.Device(14),
        strides=ab.inspect(array).strides,
    )
    x = ab.convert(layout, "dpnp", copy=False)
    host = np.arange(size).astype(array.dtype)
    expected = np.ndarray(array.shape, array.dtype, host, -low, array.strides)
    assert same(np.asarray(x.asnumpy()), expected)
    assert same(ab.convert(LIBRARY.export(x), "dpnp").asnumpy() + 0, expected + 0)


def test_its_own_importer_still_miscounts_negative_strides() -> None:
    """Once this fails, the detour by a flat span can go."""

    class Producer:
        def __dlpack_device__(self):
            return 14, 0

        def __dlpack__(self, **_):
            return dlpack.to_capsule(LIBRARY.export(block()[1:, ::-2]))

    with pytest.raises(ValueError, match="can not accommodate"):
        dpnp.from_dlpack(Producer())


def test_the_owner_lives_on() -> None:
    x = dpnp.arange(1 << 18)
    core = LIBRARY.export(x[::-1])
    y = ab.convert(core, "dpnp")
    del x, core
    gc.collect()
    reuse = [dpnp.zeros(1 << 18) for _ in range(4)]
    assert int(y[0]) == (1 << 18) - 1
    assert int(y.sum()) == sum(range(1 << 18))
    del reuse


def test_a_part_of_a_device_can_only_be_copied_from() -> None:
    part = dpctl.SyclDevice("0").create_sub_devices(partition=1)[0]
    x = dpnp.ones(3, sycl_queue=dpctl.SyclQueue(part))
    with pytest.raises(ab.ConversionError, match=r"x\.to_device"):
        LIBRARY.export(x)
    assert ab.convert(x, "numpy", device="cpu").tolist() == [1.0, 1.0, 1.0]


# The 26 layouts: copies and transfers through one seam.
DEVICE = ab.Device(14)


@pytest.fixture(params=[pytest.param(layout, id=layout.name) for layout in small_layouts()])
def case(request):
    """An array on the device in a layout, and the same in host memory."""
    layout = request.param
    host = layout.base()
    there = dpnp.asarray(host)
    if "broadcast" in layout.name:
        view = layout.view(host)
        return dpnp.broadcast_to(there, view.shape), view
    return layout.view(there), layout.view(host)


@pytest.fixture(params=["dpnp's own", "registered"])
def copied(request):
    """What a kernel for oneAPI has copied: that device's memory is the host's, too."""
    calls = []

    def kernel(dst, src, shape, dst_strides, src_strides, itemsize, stream):
        assert stream is None  # DLPack has no streams for it
        calls.append(shape)
        cpu.copy(dst, src, shape, dst_strides, src_strides, itemsize)

    if request.param == "registered":
        ab.register_kernel("oneapi", kernel, name="mine")
        yield calls
        ab.register_kernel("oneapi", None)
    else:
        yield None


def test_copies_on_the_device(case, copied):
    x, expected = case
    strides = zip(ab.inspect(x).strides, expected.strides, x.shape, strict=True)
    assert all(a * x.dtype.itemsize == b or n == 1 for a, b, n in strides)
    route = ab.explain(x, "dpnp", copy=True)
    assert (route.kind, route.device, route.nbytes) == ("copy", DEVICE, expected.nbytes)
    assert route.kernel == ("mine" if copied is not None else "dpnp's own copy")
    results = [
        ab.contiguous(x),
        ab.contiguous(ab.from_dlpack(x)).native,
        ab.convert(x, "dpnp", copy=True),
        ab.unify(x, like=x)[1],
        ab.contiguous(x, out=dpnp.zeros(x.shape, dtype=x.dtype, order="F")),
    ]
    for result in results:
        info = ab.inspect(result)
        assert info.device == DEVICE
        np.testing.assert_array_equal(dpnp.asnumpy(result), expected)
    assert all(ab.inspect(y).c_contiguous for y in results[:3])
    if copied is not None:
        assert len(copied) == 4  # unify has nothing to copy


def test_transfers(case, copied):
    x, expected = case
    route = ab.explain(x, "numpy", device="cpu")
    assert (route.kind, route.nbytes) == ("transfer", expected.nbytes)
    assert (copied is not None) == route.kernel.startswith("mine, then")
    np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), expected)
    assert not copied or len(copied) == 1
    there = ab.convert(expected, "dpnp", device="oneapi:0")
    assert ab.inspect(there).device == DEVICE
    np.testing.assert_array_equal(dpnp.asnumpy(there), expected)


def test_what_overlaps_is_copied_first(copied):
    x = dpnp.arange(12)
    ab.copyto(x[1:], x[:-1])
    assert dpnp.asnumpy(x).tolist() == [0, *range(11)]
