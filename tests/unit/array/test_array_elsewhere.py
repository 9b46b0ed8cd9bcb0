"""Arrays where NumPy, Python and other libraries ask for one: conversions, bytes, refusals."""

from __future__ import annotations

import hashlib
import io
import operator

import array_api_strict
import jax
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest

import arraybridge as ab
from tests.support.optional import optional

torch = optional("torch")

pytestmark = pytest.mark.usefixtures("x64")

EXOTIC = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]
PLAIN = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
COMPLEX = ["complex64", "complex128"]
MAKERS = {
    "numpy": lambda x: x,
    "torch": lambda x: ab.convert(x, "torch", copy=True),
    "jax": jax.numpy.asarray,
    "array_api_strict": array_api_strict.asarray,
    "dlpack": lambda x: x,
}
CASES = [
    (library, dtype)
    for library in MAKERS
    for dtype in [*PLAIN, *COMPLEX, *EXOTIC]
    if library != "array_api_strict" or dtype not in [*EXOTIC, "float16"]
]


def made(library: str, dtype: str) -> tuple[ab.Array, np.ndarray]:
    values = np.asarray([[0, 1, 1], [1, 0, 1]]).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    if library == "dlpack" and dtype not in EXOTIC:
        pointer = values.ctypes.data
        x = ab.from_pointer(pointer, values.shape, dtype, device="cpu", owner=values)
    else:
        x = ab.from_dlpack(MAKERS[library](values.copy()))
    return x, values


@pytest.mark.filterwarnings("ignore:You are comparing a array_api_strict dtype")
@pytest.mark.parametrize(("library", "dtype"), CASES)
def test_every_dtype_elsewhere(library: str, dtype: str) -> None:
    """``asarray`` of NumPy, JAX and PyTorch: the values, in that dtype."""
    x, values = made(library, dtype)
    found = np.asarray(x)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)
    assert np.array(x).tobytes() == bytes(x) == values.tobytes()
    there = jax.numpy.asarray(x)
    assert there.dtype == values.dtype
    np.testing.assert_array_equal(np.asarray(there), values)
    for take in (torch.asarray, torch.as_tensor):
        tensor = take(x)
        assert str(tensor.dtype) == f"torch.{dtype}"
        assert tensor.to(torch.complex128).tolist() == values.astype("c16").tolist()


def test_bytes_are_in_c_order() -> None:
    image = np.arange(24, dtype="i4").reshape(2, 3, 4)
    for view in (image, image.T, image[:, ::-1, ::2], image[1, 1, 1], image[:0]):
        for x in (ab.from_dlpack(view), ab.from_dlpack(jax.numpy.asarray(view))):
            assert bytes(x) == view.tobytes()
            assert int.from_bytes(x, "big") == int.from_bytes(view.tobytes(), "big")
    lazy = ab.from_dlpack(torch.arange(3).to(torch.complex64).conj())
    assert bytes(lazy) == np.arange(3, dtype="c8").conj().tobytes()


def test_what_wants_a_buffer() -> None:
    """``numpy.asarray`` has a buffer; of an Array PyTorch would read one as bare bytes."""
    x = ab.from_dlpack(np.asarray([1, 2, 3], "i4"))
    for use in (hashlib.sha256, io.BytesIO().write, lambda b: b"".join([b]), memoryview):
        use(np.asarray(x))
        with pytest.raises(TypeError):
            use(x)
    assert bytearray(np.asarray(x)) == bytearray(bytes(x)) == np.asarray(x).tobytes()


def arrays() -> list[ab.Array]:
    values = np.asarray([3.0, 1.0, 2.0])
    return [
        ab.from_dlpack(values.copy()),
        ab.from_dlpack(torch.from_numpy(values.copy())),
        ab.from_dlpack(jax.numpy.asarray(values)),
        ab.from_dlpack(array_api_strict.asarray(values)),
        ab.from_pointer(values.ctypes.data, (3,), "float64", device="cpu", owner=values),
    ]


UFUNCS = dict.fromkeys(f for f in vars(np).values() if isinstance(f, np.ufunc))


@pytest.mark.parametrize("ufunc", UFUNCS)
@np.errstate(all="ignore")
def test_numpys_ufuncs_take_arrays(ufunc: np.ufunc) -> None:
    """They compute as on ``numpy.asarray``: the results are NumPy's."""
    for values in ([2, 1, 3], [2.0, 1.0, 3.0], [True, True, True]):
        for make in (np.asarray, torch.tensor, jax.numpy.asarray):
            x = ab.from_dlpack(make(values))
            plain = np.asarray(x)
            for given in ((x,), (x, plain), (values, x), (x, x)):
                alike = [plain if g is x else g for g in given]
                if len(given) != ufunc.nin:
                    continue
                try:
                    expected = ufunc(*alike)
                except (TypeError, ValueError):  # not for these data types, or vectors
                    continue
                assert repr(ufunc(*given)) == repr(expected)


def test_numpys_ufuncs_write_to_numpys_arrays_alone() -> None:
    for x in arrays():
        out = before = np.ones(3)
        out += x
        assert out is before
        assert out.tolist() == [4.0, 2.0, 3.0]
        np.add.at(out, [0, 0], x[:1])
        assert np.multiply(x, x, out=out, where=x > 1) is out
        assert out.tolist() == [9.0, 2.0, 4.0]
        assert np.multiply.outer(x, x).trace() == np.add.reduce(np.square(x)) == 14
        with pytest.raises(TypeError, match="cannot write to an Array"):
            np.add(out, out, out=x)
        with pytest.raises(TypeError, match="cannot write to an Array"):
            np.add.at(x, [0], 1.0)
        np.testing.assert_array_equal(x, [3.0, 1.0, 2.0])
    with pytest.raises(ab.ConversionError, match="detach"):
        np.sin(ab.from_dlpack(torch.ones(3, requires_grad=True)))


@pytest.mark.parametrize("scalar", [np.float64(2), np.float32(2), np.int64(2), np.uint8(2)])
def test_scalars_of_numpy_are_operands(scalar: np.generic) -> None:
    for x in arrays():
        if x.library == "array_api_strict" and scalar.dtype.kind in "iu":
            continue
        for op in (getattr(operator, name) for name in "add sub mul pow lt eq".split()):
            np.testing.assert_array_equal(op(scalar, x), op(scalar, np.asarray(x)))
            np.testing.assert_array_equal(op(x, scalar), op(np.asarray(x), scalar))


OTHERS = {
    "numpy": np.asarray,
    "torch": lambda v: torch.tensor(v),
    "jax": jax.numpy.asarray,
    "array_api_strict": array_api_strict.asarray,
    "pyarrow": pa.array,
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_native_array_is_no_operand(other: str) -> None:
    """Never a bare bool: in either order, for each operator."""
    native = OTHERS[other]([3.0, 1.0, 2.0])
    for x in arrays():
        remedy = "asarray" if other in ("numpy", x.library) else "unify"
        for op in (getattr(operator, name) for name in "eq ne lt ge add mod matmul".split()):
            with pytest.raises(TypeError, match=remedy):
                op(x, native)
            with pytest.raises(TypeError):
                op(native, x)
        with pytest.raises(TypeError):
            assert native in [x]


def test_what_is_no_array_compares_as_python_has_it() -> None:
    for x in arrays():
        for other in (None, "text", object(), {}):
            assert (x == other) is (other == x) is False
            assert (x != other) is (other != x) is True
            with pytest.raises(TypeError):
                assert x < other


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("name", EXOTIC)
def test_what_the_namespaces_say_of_small_floats(library: str, name: str) -> None:
    x = ab.from_dlpack(MAKERS[library](np.ones(2, getattr(ml_dtypes, name))))
    for xp, array in ((ab.namespace(x), x), (ab.namespace(x.native), x.native)):
        dtype = array.dtype
        for kind in ("real floating", "numeric", ("integral", "real floating"), dtype):
            assert xp.isdtype(dtype, kind)
        for kind in ("bool", "integral", "signed integer", "complex floating", xp.float32):
            assert not xp.isdtype(dtype, kind)
        with pytest.raises(ValueError, match="kind"):
            xp.isdtype(dtype, "no kind")
        limits = ml_dtypes.finfo(getattr(ml_dtypes, name))
        for found in (xp.finfo(dtype), xp.finfo(array)):
            assert found.bits == limits.bits
            assert (found.max, found.eps) == (float(limits.max), float(limits.eps))
            assert type(found.max) is type(found.smallest_normal) is float
