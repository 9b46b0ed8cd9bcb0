"""What is no index, no number, no data type of the standard, no dense array: one error for all."""

from __future__ import annotations

import array
import ctypes
import decimal
import fractions
import mmap
import operator
import weakref
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow
import pytest
import scipy.sparse

import arraybridge as ab
from tests.support.namespaces import each_face, each_library, namespaces
from tests.support.optional import optional

pytestmark = pytest.mark.usefixtures("x64")

MASKED = np.ma.array([1.0, 2.0], mask=[0, 1])
NO_NUMBERS = [
    *(MASKED, np.ma.masked, np.array(["2020", "2021"], "M8[Y]"), np.array([1, None])),
    *(np.datetime64(1, "ns"), np.timedelta64(1, "s"), np.str_("a")),
]
NOTHING_OF_NUMBERS = [
    *("text", ["text"], None, [None], [[1.0], [None]], {1: 2}, {1}, object(), [object()]),
    *(np.asarray(["text"]), np.asarray([b"text"]), np.asarray([1], "m8[s]"), *NO_NUMBERS[2:]),
    *(np.zeros(2, [("a", "i4")]), [np.asarray(["text"])], np.asarray("text")),
]


@each_face
@pytest.mark.parametrize("x", NOTHING_OF_NUMBERS, ids=lambda x: repr(x).split(" at 0x")[0])
def test_what_holds_no_numbers(x, namespace):
    for dtype in None, namespace.xp.float32:
        with pytest.raises(TypeError):
            namespace.xp.asarray(x, dtype=dtype)


@each_library
def test_indices_are_no_fractions(library: str) -> None:
    wrapped = namespaces(library)[0]
    x = wrapped.enter(np.asarray([10.0, 20.0, 30.0]))
    array = wrapped.enter(np.asarray([0.7, 1.9]))
    for key in (array, array[0], [0.7, 1.9], 1.7, np.float32(1.7), [[0, 1], [1, 1.5]]):
        for index in (key, (key,), (..., key)):
            with pytest.raises(IndexError):
                x[index]
            with pytest.raises(IndexError):
                x[index] = 5.0
    assert wrapped.left(x).tolist() == [10, 20, 30]


@each_library
@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda x: type(x).__name__)
def test_what_is_written_is_numbers(value: Any, library: str) -> None:
    wrapped = namespaces(library)[0]
    x = wrapped.enter(np.asarray([0.0, 0.0]))
    with pytest.raises((TypeError, BufferError)):
        x[:] = value
    assert wrapped.left(x).tolist() == [0, 0]


@each_library
def test_numpy_scalars_and_arrays_are_written(library: str) -> None:
    wrapped = namespaces(library)[0]
    x = wrapped.enter(np.asarray([0.0, 0.0]))
    x[0] = np.float32(3)
    assert wrapped.left(x).tolist() == [3, 0]
    for value in (np.asarray([1.0, 2.0], "f4"), np.asarray([1, 2], ">f4")):
        x[:] = 0
        x[:] = value
        assert wrapped.left(x).tolist() == [1, 2]


def test_numpy_scalars_beside_tensors() -> None:
    wrapped, native = namespaces("torch")
    four = torch.tensor(4.0)
    for namespace, one in ((wrapped, wrapped.xp.asarray(four)), (native, four)):
        for scalar, dtype in ((np.float32(3), "float32"), (np.float64(3), "float64")):
            made = namespace.xp.asarray([one, scalar])
            assert namespace.dtype_name(made) == dtype
            assert namespace.left(made).tolist() == [4, 3]
        made = namespace.xp.asarray([[one, 2], [np.int8(3), True]])
        assert namespace.left(made).tolist() == [[4, 2], [3, 1]]


@each_face
@pytest.mark.parametrize("values", [[True, False], [1j, 2]], ids=["bool", "complex"])
def test_isin_of_bool_and_complex(values: list[complex], namespace) -> None:
    x = namespace.enter(np.asarray(values))
    try:
        found = namespace.xp.isin(x, x[:1])
    except TypeError:
        assert namespace.library == "array_api_strict"  # which takes integers alone
        return
    assert namespace.left(found).tolist() == [True, False]
    assert namespace.left(namespace.xp.isin(x, x[:1], invert=True)).tolist() == [False, True]


@each_face
@pytest.mark.parametrize("value", [*NO_NUMBERS, None, "a", [1, 2]], ids=lambda x: type(x).__name__)
def test_fill_values_are_numbers(value: Any, namespace) -> None:
    one = namespace.enter(np.ones(2))
    for call in (
        lambda: namespace.xp.full((2,), value),
        lambda: namespace.xp.full((2,), value, dtype=namespace.xp.float64),
        lambda: namespace.xp.full_like(one, value),
        lambda: namespace.xp.linspace(value, 1.0, 3),
        lambda: namespace.xp.arange(0, value if value is not None else "a"),
    ):
        with pytest.raises((TypeError, BufferError)):
            call()


@each_face
def test_arrays_of_no_dimensions_and_numpy_scalars_fill(namespace) -> None:
    three, pair = namespace.enter(np.asarray(3.0)), namespace.enter(np.ones(2))
    for value in (*[three, np.float64(3)] * (namespace.library != "array_api_strict"), 3, 3.0):
        assert namespace.left(namespace.xp.full((2,), value)).tolist() == [3, 3]
        assert namespace.left(namespace.xp.full_like(pair, value)).tolist() == [3, 3]
    for value in (pair, torch.ones(2)):
        with pytest.raises(TypeError):
            namespace.xp.full((2,), value)


def test_dtypes_of_numpy_are_of_numbers() -> None:
    for namespace in namespaces("numpy"):
        xp, x = namespace.xp, namespace.enter(np.ones(2))
        for dtype in (object, "U3", "M8[s]", [("a", int)]):
            for call in (xp.zeros, xp.ones, xp.empty, xp.eye):
                with pytest.raises(TypeError):
                    call(2, dtype=dtype)
            with pytest.raises(TypeError):
                xp.astype(x, dtype)
            with pytest.raises(TypeError):
                xp.sum(x, dtype=dtype)
        for made in (
            xp.zeros(2, dtype=">f4"),
            xp.astype(x, np.dtype(">f4")),
            xp.eye(2, dtype=">f4"),
        ):
            assert made.dtype == np.dtype("=f4")


@each_face
def test_bounds_of_clip_are_of_the_kind_of_the_array(namespace) -> None:
    x = namespace.enter(np.asarray([0, 1, 2]))
    for bound in (0.5, float("inf"), namespace.enter(np.asarray(0.5))):
        for bounds in ((bound, None), (None, bound)):
            with pytest.raises(TypeError):
                namespace.xp.clip(x, *bounds)
    x = namespace.enter(np.asarray([0.0, 1.0, 2.0]))
    assert namespace.left(namespace.xp.clip(x, 0.5, 1)).tolist() == [0.5, 1, 1]


@each_library
def test_numbers_in_another_form_are_not_compared(library: str) -> None:
    x = namespaces(library)[0].enter(np.asarray([5.0, 6.0]))
    data = array.array("d", [5, 6])
    for other in ([5.0, 6.0], (5, 6), range(2), b"ab", bytearray(2), memoryview(b"ab"), data):
        for compare in (operator.eq, operator.ne, operator.lt):
            for pair in ((x, other), (other, x)):
                with pytest.raises(TypeError, match="asarray"):
                    compare(*pair)
    for other in (fractions.Fraction(5), decimal.Decimal(5)):
        with pytest.raises(TypeError, match="float"):
            assert x == other
    for other in (np.str_("a"), np.datetime64(1, "s")):
        with pytest.raises(TypeError):
            assert x == other


class WithArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray([5.0, 6.0])


class WithInterface:
    __array_interface__ = np.asarray([5.0, 6.0]).__array_interface__


@each_library
def test_what_holds_numbers_is_not_unequal_as_a_whole(library: str) -> None:
    x = namespaces(library)[0].enter(np.asarray([5.0, 6.0]))
    table = pyarrow.table({"a": [5.0, 6.0]})
    numbers = (ctypes.c_double * 2)(5, 6)
    for other in (WithArray(), WithInterface(), numbers, mmap.mmap(-1, 16), table):
        for compare in (operator.eq, operator.ne, operator.lt):
            for pair in ((x, other), (other, x)):
                with pytest.raises(TypeError, match="asarray"):
                    compare(*pair)
    for sparse in (scipy.sparse.coo_array([5.0, 6.0]), scipy.sparse.csr_matrix([5.0, 6.0])):
        for compare in (operator.eq, operator.ne):
            with pytest.raises(TypeError, match=r"pass x.toarray\(\)"):
                compare(x, sparse)
            # SciPy's first asks for a NumPy array, which is impossible off the host.
            with pytest.raises((TypeError, BufferError), match=r"pass (x.toarray|device='cpu')"):
                compare(sparse, x)
        assert (x == namespaces(library)[0].xp.asarray(sparse.toarray())).shape[-1] == 2
    for operate in (operator.eq, operator.add):
        with pytest.raises(TypeError, match=r"lose its mask: fill it first, x.filled\(value\)"):
            operate(x, MASKED)


@each_face
def test_counts_are_integers(namespace) -> None:
    x = namespace.enter(np.ones((2, 2)))
    for call in (
        lambda: namespace.xp.repeat(x, 1.7),
        lambda: namespace.xp.roll(x, 1.7),
        lambda: namespace.xp.roll(x, (1.7, 1), axis=(0, 1)),
        lambda: namespace.xp.roll(x, shift=1.0),
        lambda: namespace.xp.tril(x, k=0.5),
        lambda: namespace.xp.triu(x, k=0.5),
    ):
        with pytest.raises(TypeError):
            call()
    assert namespace.left(namespace.xp.repeat(x, 2, axis=0)).shape == (4, 2)


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "array_api_strict"])
@pytest.mark.parametrize(
    ("module", "make", "message"),
    [
        ("pint", lambda pint: pint.UnitRegistry().Quantity(np.ones(3), "m"), "lose its unit"),
        ("dask.array", lambda dask: dask.ones(3), r"pass x.compute\(\)"),
        ("h5py", lambda h5py: _hdf5(h5py), r"pass x\[...\]"),
        ("scipy.sparse", lambda sparse: sparse.eye_array(3), r"pass x.toarray\(\)"),
    ],
    ids=["pint", "dask", "h5py", "sparse"],
)
def test_functions_lose_no_unit_and_compute_no_graph(module, make, message, library) -> None:
    other = make(pytest.importorskip(module))
    xp = import_module(f"arraybridge.xp.{library}")
    x = xp.ones(3)
    for call in (
        lambda: xp.sum(other),
        lambda: xp.add(x, other),
        lambda: xp.add(other, other),
        lambda: xp.where(x > 0, x, other),
        lambda: xp.concat([x, other]),
        lambda: xp.zeros_like(other),
        lambda: xp.clip(x, other, None),
    ):
        with pytest.raises((TypeError, BufferError), match=message):
            call()


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "array_api_strict"])
def test_indices_lose_nothing_and_are_not_computed(library: str) -> None:
    dask, pint = pytest.importorskip("dask.array"), pytest.importorskip("pint")
    indices = np.asarray([0, 1])
    x = import_module(f"arraybridge.xp.{library}").ones(3)
    for index, message in (
        (dask.from_array(indices), r"pass x.compute\(\)"),
        (pint.UnitRegistry().Quantity(indices, "m"), "lose its unit"),
        (np.ma.array(indices, mask=[0, 1]), "lose its mask"),
    ):
        for key in (index, (index,), (..., index)):
            with pytest.raises((TypeError, BufferError), match=message):
                x[key]
            with pytest.raises((TypeError, BufferError), match=message):
                x[key] = 2.0
    assert (np.asarray(x) == 1).all()


def _hdf5(h5py: Any) -> Any:
    file = h5py.File("refused", "w", driver="core", backing_store=False)
    data = file.create_dataset("x", data=np.ones(3))
    weakref.finalize(data, file.close)
    return data


torch = optional("torch")

NUMPYS = {
    "text": np.array(["a"]),
    "bytes": np.array([b"a"]),
    "objects": np.array([1, None]),
    "records": np.zeros(2, "i4,f4"),
    "times": np.zeros(2, "M8[s]"),
    "durations": np.zeros(2, "m8[D]"),
    "bare bytes": np.zeros(2, "V4"),
    "long double": np.zeros(2, np.longdouble),
    "complex long double": np.zeros(2, np.clongdouble),
    "strings": np.array(["a"], np.dtypes.StringDType()),
}
WIDER = np.dtype(np.longdouble).itemsize > 8


def ways(library):
    """Yield what makes an Array of a library's own array, by its name."""
    xp = namespaces(library)[0].xp
    model = xp.zeros(1)
    yield "ab.from_dlpack", ab.from_dlpack
    yield "from_dlpack", xp.from_dlpack
    yield "from_dlpack(copy=True)", lambda x: xp.from_dlpack(x, copy=True)
    yield "from_dlpack(device=)", lambda x: xp.from_dlpack(x, device="cpu")
    yield "asarray", xp.asarray
    yield "asarray(copy=True)", lambda x: xp.asarray(x, copy=True)
    yield "asarray of a list", lambda x: xp.asarray([x])
    yield "ab.asarray", lambda x: ab.asarray(x, like=model)
    yield "unify", lambda x: ab.unify(x, like=model)
    yield "unify, the second", lambda x: ab.unify(model, x)


@pytest.mark.parametrize("name", NUMPYS)
def test_arrays_of_numpy_that_hold_no_numbers(name):
    if "long double" in name and not WIDER:
        pytest.skip("a long double is a float64 here")
    for way, call in ways("numpy"):
        with pytest.raises((ab.ConversionError, TypeError), match=r"pass|bring|convert") as caught:
            call(NUMPYS[name])
        assert "data type" in str(caught.value) or "DLPack type" in str(caught.value), way
    assert ab.asarray(NUMPYS[name], like="numpy") is NUMPYS[name]  # NumPy's own, and no Array


def tensors():
    eye = torch.eye(4)
    yield "sparse_coo", eye.to_sparse(), "x.to_dense()"
    yield "sparse_csr", eye.to_sparse_csr(), "x.to_dense()"
    yield "sparse_csc", eye.to_sparse_csc(), "x.to_dense()"
    yield "sparse_bsr", eye.to_sparse_bsr((2, 2)), "x.to_dense()"
    if torch.backends.mkldnn.is_available():
        yield "mkldnn", eye.to_mkldnn(), "x.to_dense()"
    yield "quantized", torch.quantize_per_tensor(eye, 0.1, 0, torch.quint8), "x.dequantize()"
    channels = torch.quantize_per_channel(eye, torch.ones(4), torch.zeros(4), 0, torch.qint8)
    yield "quantized by channels", channels, "x.dequantize()"
    yield "bits", torch.empty(3, dtype=torch.uint8).view(torch.bits8), "x.view(torch.uint8)"
    parts = [torch.ones(2), torch.ones(3)]
    yield "nested", torch.nested.nested_tensor(parts), "x.unbind()"
    yield "jagged", torch.nested.nested_tensor(parts, layout=torch.jagged), "x.unbind()"


@pytest.mark.filterwarnings("ignore")
def test_tensors_that_are_no_dense_arrays_of_numbers():
    for name, x, remedy in tensors():
        for way, call in ways("torch"):
            if way == "ab.from_dlpack" and remedy in ("x.dequantize()", "x.view(torch.uint8)"):
                continue  # it is in memory, and carried to whoever asks x.native.dequantize()
            with pytest.raises(ab.ConversionError) as caught:
                call(x)
            assert remedy in str(caught.value), (name, way)


def test_what_stands_for_values_is_taken():
    """Functions compute the shapes of tensors of the device meta, and trace fake ones."""
    from torch._subclasses import FakeTensorMode

    xp = namespaces("torch")[0].xp
    meta = xp.asarray(torch.ones(3, device="meta"))
    assert xp.exp(meta).shape == (3,)
    with FakeTensorMode():
        fake = torch.ones(3)
        assert (xp.asarray(fake) + 1).shape == xp.asarray([fake]).shape[1:] == (3,)
    zeros = torch._efficientzerotensor(3)
    assert xp.asarray([zeros]).shape == (1, 3)
