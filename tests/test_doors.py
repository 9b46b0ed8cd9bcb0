"""Doors and plan are one: the first call and later ones give the same, and `explain` says it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.dispatch.registry import forget

from .support.doors import check
from .support.optional import optional
from .support.strategies import STANDARD_DTYPES, strided_arrays

torch = optional("torch")

LIGHT = ["numpy", "torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict"]
HEAVY = ["tensorflow", "paddle", "warp", "mlx"]
TARGETS = [*LIGHT, *(pytest.param(name, marks=pytest.mark.heavy) for name in HEAVY)]
PAIRS = [
    *((a, b) for a in LIGHT for b in LIGHT if a != b),
    *(
        pytest.param(a, b, marks=pytest.mark.heavy)
        for heavy in HEAVY
        for a, b in [("numpy", heavy), (heavy, "numpy"), ("torch", heavy), (heavy, "tvm_ffi")]
    ),
]


@pytest.fixture(params=TARGETS)
def target(request):
    pytest.importorskip("mlx.core" if request.param == "mlx" else request.param)
    return request.param


def warm(library: str):
    return ab.convert(np.arange(4, dtype="f4"), library)


def numpys():
    """NumPy arrays that some door could take for others than they are."""
    base = np.arange(24, dtype="f4").reshape(4, 6)
    yield "zero strides, writable with a warning", np.broadcast_arrays(base[0], base)[0]
    yield "contiguous, writable with a warning", np.broadcast_arrays(base, base[0])[0]
    yield "zero strides, read-only", np.broadcast_to(base[0], (4, 6))
    yield "zero strides, writable", np.lib.stride_tricks.as_strided(base, (3, 6), (0, 4))
    yield "64-d", base.reshape((1,) * 62 + (4, 6))
    yield "0-d", np.array(1.0)
    yield "empty", base[:0]
    yield "empty, backwards", base[:0, ::-1]
    yield "odd steps over one element", np.lib.stride_tricks.as_strided(base, (1, 6), (3, 4))
    yield "a field of 5 bytes", np.zeros(3, [("a", "f4"), ("b", "i1")])["a"]
    yield "a field of 8 bytes", np.zeros(3, [("a", "f4"), ("b", "i4")])["a"]
    yield "a field of 24 bytes", np.zeros(3, [("a", "D"), ("b", "f8")])["a"]
    yield "a part of complex numbers", np.zeros(3, "F").imag
    yield "a mask", np.ma.masked_array([1.0, 2.0], [False, True])
    yield "a mask of none", np.ma.masked_array([1.0, 2.0])
    yield "a matrix", np.matrix([[1.0, 2.0]])
    yield "a record array", np.zeros(3).view(np.recarray)
    for dtype in "? b B h H i I l L q Q e f d F D g >i4 >f8 >D M8[s] m8 O S3 U2 V3 i4,f4".split():
        yield f"dtype {dtype}", np.zeros(4, dtype)
    for dtype in "hifdFD":
        for offset in (1, 2, 4, 8):
            block = np.zeros(200, np.uint8)
            first = -block.ctypes.data % 64 + offset
            size = 3 * np.dtype(dtype).itemsize
            yield f"{dtype} {offset} bytes off", block[first : first + size].view(dtype)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # numpy.matrix
def test_numpy_arrays(target):
    for name, x in numpys():
        try:
            kind = check(x, target, np.arange(3.0, dtype="f4"))
        except AssertionError as error:
            error.add_note(name)
            raise
        if target == "torch" and name.startswith("zero strides, writable with"):
            assert kind == "copy"


def tensors():
    """PyTorch's, in the states that doors do not see."""
    ones = torch.ones(3)
    yield "conj", torch.ones(3, dtype=torch.complex64).conj()
    yield "neg", torch.ones(3, dtype=torch.complex64).conj().imag
    yield "65-d", torch.ones((1,) * 65)
    yield "70-d", torch.ones((1,) * 68 + (2, 3))
    yield "gradient", torch.ones(3, requires_grad=True)
    yield "computed with a gradient", torch.ones(3, requires_grad=True) * 2
    yield "a parameter", torch.nn.Parameter(ones)
    yield "a parameter without gradient", torch.nn.Parameter(ones, requires_grad=False)
    yield "a subclass", ones.as_subclass(type("Sub", (torch.Tensor,), {}))
    yield "sparse", torch.eye(3).to_sparse()
    yield "without memory", torch.ones(3, device="meta")
    yield "expanded", torch.ones(1, 3).expand(4, 3)
    yield "empty", torch.ones(0, 3)
    yield "of inference", torch.inference_mode()(lambda: torch.ones(3))()
    for dtype in ("bfloat16", "complex32", "float8_e4m3fn", "uint16", "uint64", "bool"):
        yield dtype, torch.zeros(3, dtype=getattr(torch, dtype))
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(3)
    yield "fake", fake


@pytest.mark.filterwarnings("ignore:.*complex32")
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_tensors(target):
    for name, x in tensors():
        try:
            check(x, target, torch.ones(3))
        except AssertionError as error:
            error.add_note(name)
            raise


def test_under_modes(target):
    from torch._subclasses.fake_tensor import FakeTensorMode

    x, tensor = np.arange(3, dtype="f4"), torch.ones(4)
    for mode in (FakeTensorMode, lambda: torch.device("meta"), torch.inference_mode):
        with mode():
            check(x, target)
            if target in ("numpy", "tvm_ffi"):
                assert check(tensor, target) == "view"
    result = ab.convert(x, "torch")
    assert type(result) is torch.Tensor


def test_jax_arrays(target):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    deleted = jnp.ones(5) + 1
    deleted.delete()
    key, transposed = jax.random.key(0), jax.jit(lambda x: x.T)(jnp.ones((3, 4)))
    for x in (deleted, key, transposed, jnp.ones(3, "bfloat16"), jnp.ones(()), jnp.ones((0, 3))):
        check(x, target, jnp.ones(3))
    with pytest.raises(ab.ConversionError, match="no memory"):
        ab.convert(deleted, "numpy")


def test_arrow_arrays(target):
    pa = pytest.importorskip("pyarrow")
    for x in (
        pa.array([1, 2, 3]),
        pa.array([1, None, 3]),
        pa.array([1, 2, 3, 4])[1:3],
        pa.array([True, False]),
        pa.array([], pa.float32()),
        pa.array(["a"]),
        pa.array([1, 2], pa.date32()),
        pa.chunked_array([[1, 2]]),
        pa.chunked_array([[1, 2], [3]]),
        pa.Tensor.from_numpy(np.empty((0, 3))),
    ):
        check(x, target, pa.array([1]).cast("float32"))


def test_strict_arrays(target):
    strict = pytest.importorskip("array_api_strict")
    row = strict.asarray([1.0], dtype=strict.float32)
    check(strict.broadcast_arrays(row, strict.asarray([1.0, 2.0]))[0], target, row)
    field = np.zeros(3, [("a", "D"), ("b", "f8")])["a"]
    check(strict.asarray(field), target, row)
    check(strict.asarray([1.0], device=strict.Device("device1")), target, row)


@pytest.mark.parametrize(("source", "to"), PAIRS)
def test_drawn_arrays(source, to):
    for name in (source, to):
        pytest.importorskip("mlx.core" if name == "mlx" else name)
    plain = warm(source)

    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def drawn(data):
        dtype = data.draw(st.sampled_from(STANDARD_DTYPES))
        x = data.draw(strided_arrays(dtypes=st.just(dtype)))
        if data.draw(st.booleans()):
            x.flags.writeable = False
        try:
            x = x if source == "numpy" else ab.convert(x, source, alias_readonly=True)
        except ab.ConversionError:
            return
        check(x, to, plain)

    drawn()


class TestFromDlpack:
    """An Array is made, or not, the first time as later."""

    def told(self, x):
        try:
            return type(ab.from_dlpack(x))
        except ab.ConversionError as error:
            return str(error)

    @pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
    def test_is_the_same_again(self):
        for x in [x for _, x in numpys()] + [x for _, x in tensors()]:
            forget()
            first = self.told(x)
            ab.from_dlpack(np.ones(3)), ab.from_dlpack(torch.ones(3))
            assert [self.told(x), self.told(x)] == [first, first]
