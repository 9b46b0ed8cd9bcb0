"""The 26 layouts on dpnp's OpenCL CPU device, a real one: copies and transfers through one seam."""

import numpy as np
import pytest

from tests.support import coexist
from tests.support.small_layouts import small_layouts

coexist.prepare()  # names the OpenCL driver, before dpnp is loaded
dpnp = pytest.importorskip("dpnp", exc_type=ImportError)
dpctl = pytest.importorskip("dpctl")
if not dpctl.get_num_devices():
    pytest.skip("no SYCL device", allow_module_level=True)

import arraybridge as ab  # noqa: E402
from arraybridge.kernels import cpu  # noqa: E402

pytestmark = pytest.mark.heavy
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
    assert (route.kind, route.device, route.nbytes) == ("kernel", DEVICE, expected.nbytes)
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


def test_into_a_strided_destination(case, copied):
    x, expected = case
    out = dpnp.zeros((*x.shape, 2), dtype=x.dtype)[..., 1]
    ab.copyto(out, x)
    np.testing.assert_array_equal(dpnp.asnumpy(out), expected)
    assert copied is None or copied == [x.shape]


def test_what_overlaps_is_copied_first(copied):
    x = dpnp.arange(12)
    ab.copyto(x[1:], x[:-1])
    assert dpnp.asnumpy(x).tolist() == [0, *range(11)]


def test_order_is_kept_across_devices(case, copied):
    x, expected = case
    fetched = ab.convert(x, "numpy", device="cpu", order="C")
    assert fetched.flags.c_contiguous
    assert fetched.tobytes() == expected.tobytes()
    put = ab.convert(expected, "dpnp", device=DEVICE, order="C")
    assert ab.inspect(put).c_contiguous
    assert dpnp.asnumpy(put).tobytes() == expected.tobytes()


def test_a_library_that_has_no_such_device_casts_nothing_on_it():
    x = dpnp.asarray(np.ones((2, 3), np.float32))
    for to in ("jax", "torch"):
        pytest.importorskip(to)
        terms = {"device": "cpu", "dtype": "bfloat16"}  # which dpnp lacks
        assert ab.explain(x, to, **terms).kind == "refuse"
        with pytest.raises(ab.ConversionError, match="do it in the library"):
            ab.convert(x, to, **terms)
