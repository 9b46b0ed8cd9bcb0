"""Every reduction, ufunc and routine of Dask's over blocks gives what Dask gives over NumPy."""

import itertools

import numpy as np
import pytest

import arraybridge as ab

da = pytest.importorskip("dask.array")

from tests.support.dasks import here  # noqa: E402, F401
from tests.support.optional import installed  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("here"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning"),
]

WHOLE = np.random.default_rng(5).integers(0, 5, (4, 6))
GAPS = WHOLE * 0.3 - 0.5
GAPS[:, 2] = GAPS[0, 0] = np.nan
ARRAYS = {
    "int64": WHOLE,
    "uint8": (WHOLE * 60).astype("u1"),
    "int8": (WHOLE * 25 - 50).astype("i1"),
    "float32": WHOLE.astype("f4") * 0.7 - 1,
    "nan": GAPS,
    "bool": WHOLE > 1,
    "complex64": (WHOLE * (1 + 2j)).astype("c8"),
    "no axes": np.array(5.0),
    "integer of no axes": np.array(5),
}
FORMS = [
    pytest.param("torch", marks=pytest.mark.skipif(not installed("torch"), reason="no torch")),
    "arraybridge.numpy",
]


def compared(function, array, backend):
    """Compare the values, data type, shape and type of blocks of what a function gives."""
    x = da.from_array(array, chunks=3 if array.ndim else ())
    try:
        values = np.asarray(function(x).compute())
    except (TypeError, ValueError, OverflowError) as error:
        with pytest.raises((TypeError, ValueError, type(error))):
            function(x.to_backend(backend)).compute()
        return
    found = function(x.to_backend(backend))
    computed = found.compute()
    library = backend.rpartition(".")[2]
    if library == backend:
        assert ab.convert(computed, library) is computed
    else:
        assert isinstance(computed, ab.Array)
        assert computed.library == library
    host = ab.convert(computed, "numpy")
    assert found.dtype == host.dtype == values.dtype
    assert host.shape == values.shape
    rtol = 0.03 if values.dtype.name == "bfloat16" else 1e-5 if values.itemsize > 2 else 2e-3
    np.testing.assert_allclose(host, values, rtol=rtol, atol=1e-7)


REDUCTIONS = (
    "sum prod any all min max mean var std nansum nanprod nanmin nanmax nanmean nanvar nanstd"
).split()
PLACES = "argmin argmax nanargmin nanargmax".split()
# The standard orders no complex numbers; a median of them is not.
REFUSED = {"min", "max", "nanmin", "nanmax", *PLACES}


@pytest.mark.parametrize("backend", FORMS)
@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("name", REDUCTIONS + PLACES)
def test_reductions(name, kind, backend):
    function, array = getattr(da, name), ARRAYS[kind]
    axes = [None, 0]
    if kind in ("int64", "nan", "no axes"):  # what axes are does not depend on the data type
        axes += [()] + [(0, 1)] * (name not in PLACES)
    if kind == "complex64" and name in REFUSED:
        with pytest.raises(TypeError, match="no order of complex numbers"):
            function(da.from_array(array, chunks=3).to_backend(backend)).compute()
        return
    for axis in axes:
        if array.ndim or axis in (None, ()):
            keepdims, every = axis == 0, 2 if axis == 0 else None
            compared(
                lambda x, axis=axis, keepdims=keepdims, every=every: function(
                    x, axis=axis, keepdims=keepdims, split_every=every
                ),
                array,
                backend,
            )


@pytest.mark.parametrize("backend", FORMS)
@pytest.mark.parametrize("dtype", ["i8", "f4"])
@pytest.mark.parametrize("name", "sum prod mean var std nansum nanmean nanvar".split())
def test_data_types_of_reductions(name, dtype, backend):
    function = getattr(da, name)
    for kind in ("uint8", "float32", "no axes"):
        compared(lambda x: function(x, dtype=dtype), ARRAYS[kind], backend)
    if name not in ("var", "std", "nanvar") or dtype.startswith("f"):  # NumPy's nan is no integer
        compared(lambda x: function(x, axis=0, dtype=dtype), ARRAYS["float32"], backend)


@pytest.mark.parametrize("backend", FORMS)
@pytest.mark.parametrize("name", "cumsum cumprod nancumsum nancumprod".split())
def test_accumulations(name, backend):
    function = getattr(da, name)
    for kind in ("uint8", "nan", "bool"):
        for axis, dtype in ((0, None), (-1, "f8"), (None, None), (1, "i8")):
            if kind != "nan" or dtype != "i8":
                compared(lambda x, axis=axis, dtype=dtype: function(x, axis, dtype=dtype),
                         ARRAYS[kind], backend)  # fmt: skip
        compared(lambda x: function(x, 0, method="blelloch"), ARRAYS[kind], backend)


@pytest.mark.parametrize("backend", FORMS)
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians(name, backend):
    function = getattr(da, name)
    for kind in ("int64", "float32", "nan"):
        for axis, keepdims in ((0, False), (-1, True), ((0, 1), False)):
            compared(lambda x, axis=axis, keepdims=keepdims: function(x, axis, keepdims),
                     ARRAYS[kind], backend)  # fmt: skip


UNARY = (
    "absolute arccos arccosh arcsin arcsinh arctan arctanh bitwise_not cbrt ceil conj cos cosh "
    "deg2rad degrees exp exp2 expm1 fabs floor isfinite isinf isnan log log10 log1p log2 "
    "logical_not negative positive rad2deg radians reciprocal rint sign signbit sin sinh spacing "
    "sqrt square tan tanh trunc isreal iscomplex angle sinc nan_to_num real imag"
).split()
BINARY = (
    "add arctan2 copysign divide equal bitwise_and bitwise_or bitwise_xor floor_divide fmax fmin "
    "fmod greater greater_equal hypot ldexp left_shift less less_equal logaddexp logaddexp2 "
    "logical_and logical_or logical_xor maximum minimum mod multiply nextafter not_equal power "
    "remainder right_shift subtract true_divide float_power"
).split()
PLAIN = {"uint8": WHOLE.astype("u1"), "nan": GAPS, "bool": ARRAYS["bool"]}


@pytest.mark.parametrize("backend", FORMS)
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name, backend):
    for array in (*PLAIN.values(), *([ARRAYS["complex64"]] if name in ("real", "angle") else [])):
        compared(getattr(da, name), array, backend)


@pytest.mark.parametrize("backend", FORMS)
@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name, backend):
    function = getattr(da, name)
    scalars = {"uint8": (2, 2.5), "nan": (2, np.float32(1.5)), "bool": (True, np.int8(3))}
    for kind, (left, right) in scalars.items():
        compared(lambda x: function(x, x[::-1]), PLAIN[kind], backend)
        compared(lambda x, right=right: function(x, right), PLAIN[kind], backend)
        compared(lambda x, left=left: function(left, x), PLAIN[kind], backend)


#: Of two data types, or of one that those above lack.
MIXED = {
    "float": lambda x: x * 2.5,
    "with float32": lambda x: x + abs(x).astype("float32"),
    "with int32": lambda x: x + (x != 0).astype("int32"),
    "with itself": lambda x: x * x,
    "divided": lambda x: x / 4,
    "sqrt": da.sqrt,
    "equal": lambda x: x == 1,
    "sum": lambda x: x.sum(axis=0),
    "mean": lambda x: x.mean(axis=0),
    "var": lambda x: x.var(axis=0),
    "where": lambda x: da.where(x != 0, x, 0),
}


@pytest.mark.parametrize("backend", FORMS)
@pytest.mark.parametrize("what", MIXED)
def test_of_other_data_types(what, backend):
    pytest.importorskip("ml_dtypes")
    for dtype in ("bfloat16", "float16", "int8", "int64", "bool", "complex64"):
        compared(MIXED[what], WHOLE.astype(dtype), backend)


@pytest.mark.parametrize("backend", FORMS)
def test_functions_of_two_results(backend):
    for array in (WHOLE - 2, ARRAYS["float32"], GAPS, np.array([0.0, -0.0, np.inf, 5e-324, 1e308])):
        for place in (0, 1):
            compared(lambda x, place=place: da.frexp(x)[place], array, backend)
            compared(lambda x, place=place: da.modf(x)[place], array, backend)
            compared(lambda x, place=place: np.divmod(x, 2)[place], array, backend)


def mask(x):
    return da.isnan(x) | (x > 0.5)


#: What ufuncs and routines take beside arrays; each gives one Dask array.
OPTIONS = {
    "any of a sum": lambda x: x.sum().any(),
    "all of a sum": lambda x: x.sum().all(),
    "add, dtype": lambda x: da.add(x, x, dtype="f4"),
    "add, wider": lambda x: da.add(x, 1, dtype="c16"),
    "add.outer": lambda x: da.add.outer(x, x[0]),
    "outer with a number": lambda x: da.multiply.outer(2, x),
    "add, where and out": lambda x: da.add(x, 1, where=mask(x), out=da.zeros_like(x)),
    "add, where an ndarray": lambda x: da.add(x, 1, where=WHOLE > 1, out=da.zeros_like(x)),
    "add, where False": lambda x: da.add(x, 1, where=False, out=da.ones_like(x)),
    "sqrt, out": lambda x: da.sqrt(abs(x), out=da.zeros_like(x, dtype="f8")),
    "out of NumPy": lambda x: da.add(x, 1, out=da.zeros(x.shape, chunks=x.chunks, dtype=x.dtype)),
    "where, integers": lambda x: da.where(x.astype("i8"), x, 0),
    "where, numbers": lambda x: da.where(x.astype("i8"), 1, 0),
    "where, NumPy's number": lambda x: da.where(x > 0, np.float64(3), x),
    "where, a truth": lambda x: da.where(True, x, x.astype("f8")),
    "isin": lambda x: da.isin(x, [1, 2, 3]),
    "isin, inverted": lambda x: da.isin(x, x[0], assume_unique=False, invert=True),
    "isin, assume_unique": lambda x: da.isin(x, x[0, :2], assume_unique=True),
    "count_nonzero": lambda x: da.count_nonzero(x, axis=0),
    "select": lambda x: da.select([x > 1, x > 0], [x, x * 2], 7),
    "choose": lambda x: da.choose(x > 1, [x, 9]),
    "digitize": lambda x: da.digitize(x, np.array([0.0, 1, 3])),
    "digitize, falling": lambda x: da.digitize(x, np.array([3.0, 1, 0]), right=True),
    "diagonal": lambda x: da.diagonal(x, 1),
    "trace": lambda x: da.trace(x.rechunk((4, 6)), -1),
    "diag": lambda x: da.diag(x[0]),
    "diag of a matrix": lambda x: da.diag(x[:, :4].rechunk(4)),
    "ravel_multi_index": lambda x: da.ravel_multi_index(
        abs(x[:2]).astype("i8"), (9, 7), mode=("clip", "wrap"), order="F"
    ),
    "apply_along_axis": lambda x: da.apply_along_axis(np.sum, 0, x, dtype=x.dtype, shape=()),
    "apply_over_axes": lambda x: da.apply_over_axes(np.max, x, [0, 1]),
    "argtopk": lambda x: da.argtopk(x.rechunk((1, 6)), 2, axis=0).shape and da.topk(x, 2, axis=0),
    "quantile": lambda x: da.quantile(x.rechunk((4, 6)), [0.2, 0.5], axis=1),
    "a method of a ufunc": lambda x: x.rechunk((4, 6)).map_blocks(
        np.add.accumulate, axis=0, dtype=x.dtype
    ),
    "inverted_cdf": lambda x: da.quantile(
        x.rechunk((4, 6)), [[0.0, 0.5, 1.0]], axis=1, method="inverted_cdf", keepdims=True
    ),
    "weights": lambda x: da.quantile(
        x.rechunk((4, 6)),
        [0.0, 0.3, 1.0],
        axis=0,
        method="inverted_cdf",
        weights=np.array([0, 1, 2.5, 0]),
    ),
    "weights and NaN": lambda x: da.nanquantile(
        da.where(x > 1, np.nan, x).rechunk((4, 6)),
        0.6,
        axis=-1,
        method="inverted_cdf",
        weights=np.array([1, 1, 2.5, 0, 1, 1]),
    ),
    "moveaxis": lambda x: da.moveaxis(x, [0], [1]),
    "diff": lambda x: da.diff(x, 1, 0),
}


@pytest.mark.parametrize("backend", FORMS)
@pytest.mark.parametrize("what", OPTIONS)
def test_options(what, backend):
    for kind in ("int64", "float32"):
        compared(OPTIONS[what], ARRAYS[kind], backend)


def test_numbers_that_do_not_fit():
    x = da.from_array(PLAIN["uint8"], chunks=3)
    for number, op in itertools.product((300, -1, 2**70), ("less", "equal", "greater_equal")):
        compared(lambda x, number=number, op=op: getattr(da, op)(x, number), PLAIN["uint8"],
                 "arraybridge.torch" if installed("torch") else "arraybridge.numpy")  # fmt: skip
    with pytest.raises(OverflowError, match="out of bounds"):
        (x.to_backend("arraybridge.numpy") + 300).compute()


BLOCK_REFUSED = {
    "a dtype of a moment": lambda b: np.var(b, dtype="i8"),
    "initial": lambda b: np.sum(b, initial=True),
    "a list": lambda b: b + [1] * 6,
    "an ndarray": lambda b: np.add(b, np.ones(6)),
    "a text": lambda b: np.add(b, "x"),
    "keywords": lambda b: np.quantile(b, 0.5, weights=b, method="linear"),
    "reduceat": lambda b: np.add.reduceat(b, [0]),
    "casting of out": lambda b: np.sqrt(abs(b), out=b.astype("i8")),
    "narrow out": lambda b: np.add(b, 1, out=b[0]),
}


@pytest.mark.parametrize("what", BLOCK_REFUSED)
def test_blocks_refuse(what):
    from arraybridge.libraries.dask.chunk import chunked

    block = chunked(ab.from_dlpack(ARRAYS["float32"]), True)
    with pytest.raises((TypeError, ValueError)):
        BLOCK_REFUSED[what](block)
    target = np.zeros_like(block)
    part = target[0]
    assert np.add(block[1], 1, out=part) is part
    np.testing.assert_allclose(np.asarray(target.array)[0], ARRAYS["float32"][1] + 1)


METHODS = "add multiply maximum minimum logical_and logical_or".split()


@pytest.mark.parametrize(
    ("name", "method"),
    [*((name, "reduce") for name in METHODS), *((name, "accumulate") for name in METHODS[:2])],
)
def test_methods_of_ufuncs(name, method):
    """Along the first axis, as NumPy's."""
    from arraybridge.libraries.dask.chunk import chunked

    own, x = getattr(getattr(np, name), method), ARRAYS["float32"]
    found = own(chunked(ab.from_dlpack(x), True))
    np.testing.assert_allclose(np.asarray(found.array), own(x), rtol=1e-6)


def test_persisted_arrays_keep_their_blocks():
    torch = pytest.importorskip("torch")
    x = da.from_array(WHOLE, chunks=3).to_backend("torch")
    y = da.cumsum(x, axis=0, method="blelloch")  # its model is NumPy's: Dask passes the dtype alone
    assert isinstance(y.persist().compute(), torch.Tensor)
    assert isinstance((y.persist() + 1).compute(), torch.Tensor)
