"""Strided copies on a CUDA device: every layout, width and start, by every function that copies."""

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.kernels import cuda
from benchmarks.gpu.bare import Bare, copied
from benchmarks.gpu.sanitized import NESTS
from tests.support.cuda_arrays import CUDA, cases, first_wrong, image, on_host, place, placed, torch

pytestmark = pytest.mark.gpu

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex64 complex128 float8_e4m3fn float8_e5m2"
).split()


def test_a_device_has_the_kernels():
    assert cuda.unavailable() is None


@pytest.mark.parametrize(("library", "layout"), cases())
def test_layouts(library, layout):
    x, expected = placed(library, layout)
    route = ab.explain(x, library, copy=True)
    assert (route.kind, route.device, route.nbytes) == ("copy", CUDA, expected.nbytes)
    assert route.kernel == "arraybridge's own copy"
    out = ab.contiguous(place(library, np.zeros_like(expected, order="C")))
    for y in (
        ab.contiguous(x),
        ab.convert(x, library, copy=True),
        ab.contiguous(ab.from_dlpack(x)).native,
        ab.contiguous(x, out=out),
    ):
        assert type(y) is type(x)
        assert ab.inspect(y).device == CUDA
        assert ab.inspect(y).c_contiguous
        assert first_wrong(on_host(y), expected) == ""


@pytest.mark.parametrize(("library", "layout"), cases())
def test_layouts_to_the_other_library(library, layout):
    x, expected = placed(library, layout)
    target = {"torch": "cupy", "cupy": "torch"}[library]
    y = ab.convert(x, target, copy=True)
    assert ab.inspect(y).library == target
    assert first_wrong(on_host(y), expected) == ""


@pytest.fixture(scope="module")
def bare():
    return Bare()


@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_nests(bare, nest):
    """By the kernels, in memory of exactly their size; bytes in between are untouched."""
    assert copied(bare, nest) == "right"


def bits(dtype, *shape):
    """A tensor of a dtype whose bytes are random."""
    kind = getattr(torch, dtype)
    most = 2 if dtype == "bool" else 256
    raw = torch.randint(0, most, (*shape, kind.itemsize), dtype=torch.uint8)
    return raw.cuda().view(kind).reshape(shape)


def same_bits(found, expected):
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    views = [x.reshape(-1).view(torch.uint8) for x in (found, expected)]
    return torch.equal(*views)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    x = bits(dtype, 6, 130, 72)
    repeated = x[:, :1].expand(6, 9, 72)
    for view in (x.permute(0, 2, 1), x.permute(2, 1, 0), x[:, 1:-1, 3:], x[::2, :, ::3], repeated):
        y = ab.contiguous(view)
        assert y.is_contiguous()
        assert same_bits(y, view.contiguous())


@pytest.mark.parametrize("start", [0, 1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_any_start_in_cupy(width, start):
    cupy = pytest.importorskip("cupy")
    kind = {1: "u1", 2: "u2", 4: "f4", 8: "f8", 16: "c16"}[width]
    host = np.random.default_rng(width).integers(0, 255, 90 * 110 * width + 16, np.uint8)
    if kind == "c16":  # so that no NaN is compared
        host %= 64
    there = cupy.asarray(host)
    for shape, strides, first in (
        ((110, 90), (width, 110 * width), 0),
        ((90, 110), (-110 * width, width), 89 * 110 * width),
        ((90, 110), (110 * width, -width), 109 * width),
        ((110, 90), (-width, -110 * width), (90 * 110 - 1) * width),
        ((30, 37), (330 * width, 2 * width), 0),
    ):
        x = cupy.ndarray(shape, kind, there.data + (start + first), strides)
        expected = np.ndarray(shape, kind, host, start + first, strides)
        y = ab.contiguous(x)
        assert y.flags.c_contiguous
        assert first_wrong(cupy.asnumpy(y), np.ascontiguousarray(expected)) == ""


def test_into_strided_destinations_of_another_library():
    cupy = pytest.importorskip("cupy")
    expected = image().transpose(2, 0, 1)
    x = place("torch", image()).permute(2, 0, 1)
    out = cupy.zeros((4, 2, 6), "f4")[:, :, ::2]
    ab.copyto(out, x)
    np.testing.assert_array_equal(cupy.asnumpy(out), expected)
    backwards = cupy.zeros((4, 2, 3), "f4")[::-1, :, ::-1]
    assert ab.contiguous(x, out=backwards) is backwards
    np.testing.assert_array_equal(cupy.asnumpy(backwards), expected)
    back = torch.zeros(6, 4, 2, device="cuda").permute(1, 2, 0)[:, :, 1::2]
    version = back._version
    ab.copyto(back, out)
    assert back._version > version
    np.testing.assert_array_equal(back.cpu().numpy(), expected)


def test_gradients_flow_through():
    x = torch.rand(300, 200, device="cuda", requires_grad=True)
    y = ab.contiguous(x.t())
    assert y.is_contiguous()
    (y * 2).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2))


def test_conjugates_are_resolved():
    x = torch.randn(40, 50, dtype=torch.complex64, device="cuda")
    y = ab.contiguous(x.conj().t())
    assert not y.is_conj()
    assert torch.equal(y, x.conj().t().resolve_conj())
    np.testing.assert_array_equal(on_host(x.conj()), x.cpu().numpy().conj())


def test_more_than_two_to_the_31_items():
    free, _ = torch.cuda.mem_get_info()
    rows, columns = 46400, 46336  # 2.15e9 bytes
    if free < 5 * rows * columns:
        pytest.skip("11 GB of device memory are needed")
    x = torch.randint(0, 255, (rows, columns), dtype=torch.uint8, device="cuda")
    assert x.numel() > 2**31
    y = ab.contiguous(x.t())
    for first in (0, 20000, columns - 300):
        assert torch.equal(y[first : first + 300], x[:, first : first + 300].t())
    del y
    z = ab.contiguous(x.view(-1)[::2])
    assert torch.equal(z[-1000:], x.view(-1)[::2][-1000:])
