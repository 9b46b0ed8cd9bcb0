"""``asarray`` of whatever there is: every library's arrays, bare and nested; buffers; no text."""

from __future__ import annotations

import array
import ctypes
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import arraybridge as ab
from arraybridge.xp.standard.data_types import DATA_TYPES
from tests.support.namespaces import each_face, each_library, namespaces
from tests.support.optional import optional

torch = optional("torch")

pytestmark = pytest.mark.usefixtures("x64")

SHAPES = [(), (1,), (0,), (5,), (2, 3), (2, 0, 3), (3, 1, 2)]
SOURCES = [
    *("numpy", "torch", "jax", "array_api_strict", "tvm_ffi"),
    *(pytest.param(n, marks=pytest.mark.heavy) for n in ("tensorflow", "paddle", "mlx", "warp")),
]


def drawn(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers whose bytes make no sense as any other type's."""
    x = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape)
    return (x % 2 if name == "bool" else x).astype(name)


def native(source: str, x: np.ndarray) -> Any:
    """The array of a library; None where it has none of that type."""
    try:
        return ab.convert(x, source)
    except ab.ConversionError:
        return None


def same(namespace: Any, found: Any, expected: np.ndarray) -> None:
    back = namespace.left(found)
    assert back.dtype == expected.dtype
    np.testing.assert_array_equal(back, expected)
    assert back.shape == expected.shape


def lacks(namespace: Any, name: str) -> bool:
    return not hasattr(namespace.xp, name)


@each_library
@pytest.mark.parametrize("source", SOURCES)
def test_every_librarys_arrays(source, library):
    """All dtypes and shapes, both namespaces; bare, as an Array, and in nested sequences."""
    pytest.importorskip(source)
    shapes = SHAPES[:5:2] if library == "jax" else SHAPES  # which compiles for each
    for name, shape in itertools.product(DATA_TYPES, shapes):
        if source == "mlx" and name in ("float64", "complex128"):
            continue
        if library == "jax" and name not in ("bool", "int32", "uint8", "float64", "complex64"):
            continue
        x = drawn(name, shape)
        theirs = native(source, x)
        if theirs is None:
            continue
        for namespace in namespaces(library):
            same(namespace, namespace.xp.asarray(theirs), x)
            same(namespace, namespace.xp.asarray(ab.from_dlpack(theirs)), x)
            if source in ("warp", "tvm_ffi") and not shape:
                continue  # NumPy counts some of theirs as of one axis
            same(namespace, namespace.xp.asarray([theirs, theirs]), np.asarray([x, x]))
            same(namespace, namespace.xp.asarray(([theirs], [theirs])), np.asarray([[x], [x]]))
            same(namespace, namespace.xp.asarray([ab.from_dlpack(theirs)]), np.asarray([x]))


@each_library
def test_data_types_beyond_the_standard(library):
    for name in ("float16", "bfloat16", "float8_e4m3fn"):
        x = torch.asarray([1.0, -2.0, 0.5]).to(getattr(torch, name))
        for namespace in namespaces(library):
            if library in ("array_api_strict", "dpnp"):
                if library == "array_api_strict" or name != "float16":
                    with pytest.raises((ab.ConversionError, TypeError)):
                        namespace.xp.asarray(x)
            else:
                assert name in str(namespace.xp.asarray(x).dtype)
            found = namespace.xp.asarray(x, dtype=namespace.xp.float32)  # which every library has
            same(namespace, found, np.asarray([1.0, -2.0, 0.5], "float32"))


@each_face
@pytest.mark.parametrize("source", ["numpy", "torch", "jax", "array_api_strict"])
def test_dtype_and_copy_are_honored(source, namespace):
    x = np.arange(16, dtype="int32")
    theirs = native(source, x)
    for name in ("int32", "float32", "uint8"):
        dtype = getattr(namespace.xp, name)
        for copy in (None, True):
            same(namespace, namespace.xp.asarray(theirs, dtype=dtype, copy=copy), x.astype(name))
        same(namespace, namespace.xp.asarray([theirs], dtype=dtype), x.astype(name)[None])
    for never, dtype in ((theirs, namespace.xp.float32), ([theirs, theirs], None)):
        with pytest.raises(ValueError):  # noqa: PT011 - each library's own words
            namespace.xp.asarray(never, dtype=dtype, copy=False)
    fresh = namespace.xp.asarray(theirs, copy=True)
    try:
        view = namespace.xp.asarray(theirs, copy=False)
    except ValueError:
        pass
    else:
        assert ab.inspect(view).data == ab.inspect(theirs).data
    if ab.inspect(fresh).size:
        assert ab.inspect(fresh).data != ab.inspect(theirs).data


LAYOUTS = hnp.arrays(st.sampled_from([*DATA_TYPES, ">i4", "<f2"]), hnp.array_shapes(max_dims=3))


@each_library
def test_layouts(library):
    """Strides of every kind, byte orders, memory that may not be written."""

    @settings(max_examples=4 if library == "jax" else 30, deadline=None)
    @given(st.data(), LAYOUTS, st.booleans())
    def holds(data, x, readonly):
        view = x[data.draw(hnp.basic_indices(x.shape, allow_newaxis=True))]
        if not isinstance(view, np.ndarray):
            return
        view.flags.writeable = not readonly
        expected = view.astype(view.dtype.newbyteorder("="))
        if lacks(namespaces(library)[0], expected.dtype.name):
            return
        for namespace in namespaces(library):
            same(namespace, namespace.xp.asarray(view), expected)
            same(namespace, namespace.xp.asarray([view, view]), np.asarray([expected, expected]))

    holds()


@each_face
def test_arrays_beside_numbers(namespace):
    a, b = np.asarray(1.5, "float32"), jnp.asarray(2.0)
    found = namespace.xp.asarray([[a, 7], [torch.tensor(4), b]], dtype=namespace.xp.float32)
    same(namespace, found, np.asarray([[1.5, 7], [4, 2]], "float32"))
    with pytest.raises((ValueError, TypeError, RuntimeError)):  # JAX's, PyTorch's
        namespace.xp.asarray([np.ones(2), np.ones(3)])


@each_face
def test_buffers(namespace):
    for buffer, expected in (
        (array.array("d", [1.0, 2.0]), np.asarray([1.0, 2.0])),
        (bytearray(b"abc"), np.asarray([97, 98, 99], "uint8")),
        (b"abc", np.asarray([97, 98, 99], "uint8")),
        (memoryview(np.ones((2, 3), "float32"))[1:], np.ones((1, 3), "float32")),
        (memoryview(np.arange(4, dtype="i2")[::-2]), np.asarray([3, 1], "i2")),
        (memoryview(np.asarray(3, "u4")), np.asarray(3, "u4")),
        (memoryview(np.asarray([1.0, 2.0], ">f4")), np.asarray([1, 2], "f4")),
        ((ctypes.c_int32 * 3)(1, 2, 3), np.asarray([1, 2, 3], "i4")),
        (b"", np.zeros(0, "uint8")),
    ):
        same(namespace, namespace.xp.asarray(buffer), expected)
        same(namespace, namespace.xp.asarray([buffer, buffer]), np.asarray([expected, expected]))
    same(
        namespace,
        namespace.xp.asarray(range(3), dtype=namespace.xp.int64),
        np.arange(3, dtype="int64"),
    )
    own = bytearray(b"abc")
    copied = namespace.xp.asarray(own, copy=True)
    own[0] = 0
    assert namespace.left(copied).tolist() == [97, 98, 99]


WIDE = ("int64", "uint64", "float64", "complex128")
MAKERS = {
    "zeros": lambda xp, d: xp.zeros(2, dtype=d),
    "full": lambda xp, d: xp.full((2,), 1, dtype=d),
    "astype": lambda xp, d: xp.astype(xp.ones(2), d),
    "empty_like": lambda xp, d: xp.empty_like(xp.ones(2), dtype=np.dtype(d).name),
    "sum": lambda xp, d: xp.sum(xp.ones(2), dtype=d),
    "trace": lambda xp, d: xp.linalg.trace(xp.ones((2, 2)), dtype=np.dtype(d)),
    "asarray": lambda xp, d: xp.asarray([1.0], dtype=d),
    "asarray of an array": lambda xp, d: xp.asarray(xp.ones(2), dtype=np.dtype(d)),
    "asarray of NumPy's": lambda xp, d: xp.asarray(np.ones(2, d)),
    "asarray of a list of NumPy's": lambda xp, d: xp.asarray([np.ones(2, d)]),
    "from_dlpack": lambda xp, d: xp.from_dlpack(np.ones(2, d)),
    "asarray of an Array": lambda xp, d: xp.asarray(ab.from_dlpack(np.ones(2, d))),
    "asarray of torch's": lambda xp, d: xp.asarray(torch.from_numpy(np.ones(2, d))),
}
TOO_LARGE = {
    "asarray": lambda xp: xp.asarray(2**31),
    "asarray of a list": lambda xp: xp.asarray([[1], [-(2**31) - 1]]),
    "asarray of NumPy's": lambda xp: xp.asarray(np.int64(2**40)),
    "asarray of a list of NumPy's": lambda xp: xp.asarray([np.int64(2**40)]),
    "full": lambda xp: xp.full((2,), 2**40),
    "arange": lambda xp: xp.arange(2**31, 2**31 + 2),
    "arange of NumPy's": lambda xp: xp.arange(np.int64(2**31), np.int64(2**31 + 2)),
    "arange down": lambda xp: xp.arange(-(2**31), -(2**31) - 5, -2),
}


class TestJaxWithoutWideTypes:
    """Nothing is narrowed: the error names the remedy, which works."""

    @pytest.fixture(autouse=True)
    def narrow(self, x64):
        with jax.enable_x64(False):
            yield

    @pytest.mark.parametrize("name", WIDE)
    def test_dtypes(self, name):
        for namespace in namespaces("jax"):
            xp, dtype = namespace.xp, getattr(namespace.xp, name)
            for make in MAKERS.values():
                with pytest.raises(ab.ConversionError, match="jax_enable_x64"):
                    make(xp, dtype)
            for wide in (np.asarray([3, 4], name), torch.from_numpy(np.asarray([3, 4], name))):
                narrow = xp.asarray(wide, dtype=xp.complex64)
                assert namespace.left(narrow).tolist() == [3, 4]
            with jax.enable_x64(True):
                same(namespace, xp.asarray(np.asarray([3, 4], name)), np.asarray([3, 4], name))

    @pytest.mark.parametrize("call", TOO_LARGE)
    def test_integers(self, call):
        for namespace in namespaces("jax"):
            with pytest.raises(OverflowError, match="jax_enable_x64"):
                TOO_LARGE[call](namespace.xp)
            with jax.enable_x64(True):
                assert namespace.dtype_name(TOO_LARGE[call](namespace.xp)) == "int64"
