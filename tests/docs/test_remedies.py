"""A message that names code to pass instead: the code runs as written, and its result converts."""

import array
import ctypes
import re
import types

import numpy as np
import pytest

import arraybridge as ab
from tests.docs.test_docs import DOCS
from tests.support.optional import optional

jax, ml_dtypes, torch = optional("jax"), optional("ml_dtypes"), optional("torch")


def _text(dtype, shape):
    return np.full(shape, "1", dtype)


class Struct(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_double))


class Masked:
    """Has a mask, and its numbers."""

    data, mask = np.arange(3.0), np.array([True, False, True])
    __array_interface__ = data.__array_interface__


class Measured:
    """Has a unit, a value only if it is a scalar, and its numbers, as scipp's variables."""

    values, unit = np.arange(3.0), "m"
    __array_interface__ = values.__array_interface__

    @property
    def value(self):
        raise RuntimeError("Expected a scalar")


class Fills:
    """Makes a masked array."""

    def __array__(self, dtype=None, copy=None):
        return np.ma.array([1.0, 2.0], mask=[0, 1])


class Histogram:
    """Has the methods of boost-histogram's."""

    def counts(self):
        return np.ones(2)

    values = counts

    def to_numpy(self):
        return np.ones(2), np.ones(3)


def _ref():
    return jax.new_ref(jax.numpy.ones(3))


C_TYPES = (ctypes.c_wchar, ctypes.c_char, ctypes.c_longdouble, ctypes.c_void_p,
           ctypes.POINTER(ctypes.c_int))  # fmt: skip
SAVED = [np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn")]
DAYS = np.array([5, 6], "M8[D]").astype("M8[s]")

# Refused arrays, and the library that they are converted to.
ROWS = [
    *((lambda d=d, s=s: _text(d, s), "torch") for d in ("S3", "U2", "V3") for s in ((2, 3), ())),
    (lambda: np.array([5], "M8[s]"), "torch"),
    (lambda: np.array([5], ">M8[s]"), "torch"),
    (lambda: np.array([[5, 6]], "m8[s]").T, "torch"),
    (lambda: np.array([1, 2.5], object), "torch"),
    (lambda: np.ones(2, "longdouble"), "torch"),
    (lambda: np.zeros(2, [("a", "i4"), ("b", "f8")]), "torch"),
    (lambda: np.ma.array([1.0, 2.0], mask=[0, 1]), "torch"),
    (lambda: torch.ones(2, 3).to(torch.complex64).T, "pyarrow"),
    (lambda: torch.ones(2, 3).to(torch.bfloat16).T, "pyarrow"),
    (lambda: torch.ones(2).to(torch.complex32), "numpy"),
    (lambda: torch.ones(2, requires_grad=True), "numpy"),
    (lambda: torch._neg_view(torch.ones(2) > 0), "numpy"),
    (lambda: torch.eye(3).to_sparse(), "numpy"),
    (lambda: torch.eye(3).to_sparse_csr(), "numpy"),
    (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), "numpy"),
    (lambda: torch._efficientzerotensor((3, 4)), "numpy"),
    (lambda: jax.random.key(0), "numpy"),
    (lambda: np.array([[1, 2], [3]], object), "torch"),
    (lambda: np.array([np.ones(2), torch.ones(3)], object)[::-1], "torch"),
    (lambda: np.array([1, 2 + 1j, None], object)[:2], "torch"),
    (lambda: np.array([2**62 + 1, 3], object), "torch"),
    *((lambda d=d: np.ones((2, 4), d).view(f"V{d.itemsize}")[:, ::2], "torch") for d in SAVED),
    (lambda: np.zeros((4, 4, 1), np.uint8), "pillow"),
    (lambda: (Struct * 3)(), "torch"),
    (lambda: Struct(), "torch"),
    *((lambda c=c: (c * 3)(), "torch") for c in C_TYPES),
    (lambda: ctypes.pointer(ctypes.c_int(3)), "torch"),
    (lambda: array.array("u", "abc"), "torch"),
    (lambda: types.SimpleNamespace(__array_interface__=DAYS.__array_interface__), "torch"),
    (lambda: {"a": np.ones(2)}, "torch"),
    *((make, "torch") for make in (Masked, Measured, Histogram, _ref)),
    (lambda: Fills(), "numpy"),
]
#: Code in a message: a call with x in it, or an attribute of x.
CODE = re.compile(
    r"[A-Za-z_][\w.]*\(x\b[^()]*(?:\([^()]*\))?[^()]*\)(?:\[[^\]]*\])?(?:\.\w+\([^()]*\))*"
    r"|(?<![\w.'])x\.[a-z_]\w*(?:\.\w+|\([^()]*\))*|(?<![\w.'])x\[[^\]]*\]"
)


def refusal(x, to):
    """The error of a refused array, which `explain` gives as well."""
    try:
        why = ab.explain(x, to).why
    except (TypeError, ab.ConversionError) as error:
        why = str(error)
    with pytest.raises((TypeError, ab.ConversionError)) as caught:
        ab.convert(x, to)
    assert str(caught.value) == why
    return why


def carried_out(code, x, **names):
    return eval(code, {"x": x, "value": 0, "numpy": np, "torch": torch, "jax": jax,
                       "arraybridge": ab, **names})  # fmt: skip


@pytest.mark.filterwarnings(
    "ignore:torch.ao.quantization is deprecated",
    "ignore:.*quantiz",
    "ignore:Sparse CSR tensor support",
    "ignore:ComplexHalf support",
    "ignore:A builtin ctypes object",
)
@pytest.mark.parametrize(("make", "to"), ROWS)
def test_the_remedy_works_as_it_is_written(make, to):
    x = make()
    for code in CODE.findall(refusal(x, to)):
        made = carried_out(code, x)
        made = [*made.values()] if isinstance(made, dict) else made
        for each in made if isinstance(made, tuple | list) else [made]:
            ab.convert(each, to)
            assert ab.convert(each, "numpy").dtype != object


@pytest.mark.heavy
def test_remedies_of_tensorflow():
    tf = pytest.importorskip("tensorflow")
    for x in (
        tf.ragged.constant([[1.0], [2.0, 3.0]]),
        tf.sparse.from_dense([0.0, 1.0]),
        tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([3, 2])),
        tf.bitcast(tf.constant([1, 2], tf.int8), tf.qint8),
        tf.constant(["1", "2"]),
        tf.Variable(["1"]),
    ):
        for code in CODE.findall(refusal(x, "numpy")):
            ab.convert(carried_out(code, x, tf=tf), "torch")


@pytest.mark.heavy
def test_remedies_of_columns_and_frames():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    big = {"a": pd.array([1, 2], "Int32"), "b": [2**53 + 1, 3], "c": np.array([1, 2], "u8")}
    for x in (
        pd.Series([torch.ones(2), torch.ones(2)]),
        pl.Series([torch.ones(2), torch.ones(2)], dtype=pl.Object),
        pd.DataFrame({"a": big["a"], "b": big["b"]}),
        pd.DataFrame({"a": [1.0, 2.5], "b": [2**53, 3]}),
    ):
        why = refusal(x, "torch")
        for code in CODE.findall(why):
            assert ab.convert(carried_out(code, x), "torch").shape == (2, 2)
        terms = dict(re.findall(r"(dtype|casting)='(\w+)'", why))
        assert not terms or ab.convert(x, "numpy", **terms).tolist() == x.to_numpy().tolist()
    why = refusal(pd.DataFrame(big), "torch")  # no type has all of int64 and uint64
    terms = dict(re.findall(r"(dtype|casting)='(\w+)'", why))
    with pytest.raises(ab.ConversionError, match="9007199254740993 at index"):
        ab.convert(pd.DataFrame(big), "torch", **terms)


@pytest.mark.heavy
def test_remedies_of_keras(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    x = keras.Variable(np.ones(3, "f4"))
    assert (
        ab.convert(carried_out(*CODE.findall(refusal(x, "numpy")), x), "torch").tolist() == [1] * 3
    )
    assert ab.asarray(x, like="torch").tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match=r"pass the array to its own dst.assign\(...\)$"):
        ab.copyto(x, np.zeros(3, "f4"))
    x.assign(np.zeros(3, "f4"))
    assert not CODE.findall(refusal(keras.KerasTensor((2,)), "numpy"))
    for call in (ab.asarray, lambda y, like: ab.tree.convert([y], like)):
        with pytest.raises((TypeError, ValueError)):
            call(keras.KerasTensor((2,)), like="torch")


@pytest.mark.heavy
def test_remedies_of_astropy_and_awkward():
    nddata, ak = pytest.importorskip("astropy.nddata"), pytest.importorskip("awkward")
    given = {"unit": "adu", "mask": np.eye(2, dtype=bool)}
    for x in (
        nddata.NDData(np.ones((2, 2))),
        nddata.NDData(np.ones((2, 2)), unit="m"),
        nddata.CCDData(np.ones((2, 2)), **given),
        nddata.NDDataArray(np.ones(3), uncertainty=nddata.StdDevUncertainty(np.ones(3))),
        ak.Array([1.0, 2.0]),
        ak.Array([[1.0], [2.0]]),
    ):
        (code,) = CODE.findall(refusal(x, "torch"))
        assert ab.convert(carried_out(code, x), "torch").numel() > 1
        with pytest.raises(ab.ConversionError, match=re.escape(code)):
            ab.tree.convert([x], "torch")
    assert ab.asarray(ak.Array([1.0, 2.0]), like="torch").tolist() == [1, 2]
    with pytest.raises(ab.ConversionError, match="would lose its mask"):
        ab.asarray(nddata.CCDData(np.ones((2, 2)), **given), like="torch")
    record = np.rec.array([(1, 2.0)], dtype=[("mask", "i4"), ("b", "f8")])
    (code,) = CODE.findall(refusal(record, "torch"))
    assert ab.convert(carried_out(code, record), "torch").tolist() == [1]


def test_remedies_of_destinations():
    ref = _ref()
    with pytest.raises(TypeError, match=r"assign through its library, dst\[...\] = ...$"):
        ab.copyto(ref, np.zeros(3, "f4"))
    ref[...] = np.zeros(3, "f4")
    with pytest.raises(TypeError, match=r"the array comes first.*convert\(x, 'torch'\)"):
        ab.convert("torch", np.ones(3))
    proxy = torch.fx.Proxy(torch.fx.Graph().placeholder("x"))
    for call in (ab.convert, lambda y, to: ab.asarray(y, like=to)):
        with pytest.raises(TypeError, match=r"torch.Proxy is not an array: expected"):
            call(proxy, "numpy")
    for dst in (jax.numpy.ones(2), torch.ones(1).expand(2), np.broadcast_to(np.float32(1), 2)):
        with pytest.raises(ab.ConversionError, match=r"; make a new array, ") as caught:
            ab.copyto(dst, src := np.zeros(2, "f4"))
        made = carried_out(str(caught.value).partition("array, ")[2], None, src=src)
        assert type(made) is type(dst)
        assert ab.convert(made, "numpy").tolist() == [0, 0]
    dst = torch.ones(2, requires_grad=True)
    for call in (ab.copyto, lambda out, src: ab.contiguous(src, out=out)):
        with pytest.raises(ab.ConversionError, match=r"pass (dst|out)\.detach\(\)$") as caught:
            call(dst, src)
        code = str(caught.value).partition("pass ")[2]
        call(carried_out(code, None, dst=dst, out=dst), src)
    assert dst.tolist() == [0, 0]


@pytest.mark.parametrize("call", [ab.convert, lambda x, to, **kw: ab.unify(x, like=to, **kw)[1]])
def test_remedies_of_64_bits_in_jax_lose_no_integer(call):
    for name in ("int64", "uint64", "float64", "complex128"):
        for value, kept in ((5, True), (2**33 + 5, "int" not in name)):
            with jax.enable_x64(False):
                with pytest.raises(ab.ConversionError, match=f"jax has no {name}: ") as caught:
                    call(np.array([value], name), "jax")
                terms = dict(re.findall(r"(dtype|casting)='(\w+)'", str(caught.value)))
                if kept:
                    made = call(np.array([value], name), "jax", **terms)
                    assert made.tolist() == [float(np.float32(value))]
                else:
                    with pytest.raises(ab.ConversionError, match=f"{value} at index"):
                        call(np.array([value], name), "jax", **terms)


@pytest.mark.parametrize("like", ["numpy", "torch", "jax"])
def test_remedies_of_integers_beyond_int64(like):
    numbers = ([2**63], [2**70], [-(2**70)], [-1, 2**63], [True, 2**64], [2**70 + 1], [10**400])
    for given in numbers:
        with pytest.raises(OverflowError, match="out of the range of int64") as caught:
            ab.asarray(given, like=like)
        why = str(caught.value)
        terms = dict(re.findall(r"(dtype)='(\w+)'", why))
        assert bool(terms) != why.endswith(f"no data type of {like} has it") != (max(given) < 1e99)
        if terms:
            made = [int(x) for x in ab.asarray(given, like=like, **terms).tolist()]
            assert (made == given) != ("rounds" in why)


def test_remedies_of_images():
    pytest.importorskip("PIL")
    for value, name in ((5, "int64"), (5, "uint64"), (0.5, "float64"), (2**33 + 5, "int64")):
        why = refusal(x := np.full((2, 2), value, name), "pillow")
        dtype = name.lstrip("u").replace("64", "32")
        assert dtype in why.partition("pillow has")[2]
        terms = {"dtype": dtype, **dict(re.findall(r"(casting)='(\w+)'", why))}
        if value < 6:
            assert (np.asarray(ab.convert(x, "pillow", **terms)) == value).all()
        else:
            with pytest.raises(ab.ConversionError, match=f"{value} at index"):
                ab.convert(x, "pillow", **terms)


def test_remedies_of_what_has_no_namespace():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="pass its frames to convert or explain; to make one, "):
        ab.convert(np.ones(2), "pandas")
    for x in ([1, 2], pd.Series([1]), pd.DataFrame({"a": [1]}), (C_TYPES[2] * 3)):
        with pytest.raises(TypeError, match="has no array-API namespace") as caught:
            ab.namespace(x)
        code = CODE.findall(str(caught.value))
        if not isinstance(x, type):
            assert ab.namespace(carried_out(*code, x)).__name__.endswith("numpy")


def test_remedies_of_blocks():
    da = pytest.importorskip("dask.array")
    for x in (da.ones((2, 3)), da.ones(3), da.ones((2, 3)).sum()):
        with pytest.raises(TypeError, match="call explain on one, ") as caught:
            ab.explain(x, "torch")
        assert ab.explain(
            carried_out(re.search(r"x\S*(?: 0\])?\.compute\(\)", str(caught.value))[0], x), "torch"
        ).kind


def test_the_table_of_arrow_columns():
    pa = pytest.importorskip("pyarrow")
    columns = {
        "categories": pa.array(["b", "a"]).dictionary_encode(),
        "text": pa.array(["b", "a"]),
        "digits as text": pa.array(["0", "1"]),
        "dates, times": pa.array([0, 1], pa.timestamp("s")),
        "decimals": pa.array([0, 1], pa.decimal128(3)),
        "lists of one length": pa.array([[0.0], [1.0]]),
    }
    for kind, x in columns.items():
        (row,) = re.findall(
            rf"\| {kind} \|.*\| `(.*?)`[^|]*\|\n", (DOCS / "engines.md").read_text()
        )
        refusal(x, "numpy")
        made = carried_out(row, x, pa=pa, n=1)
        assert ab.convert(made, "torch").ravel().tolist() == [0, 1]
