"""Blocks of Dask arrays stay in their library, whatever Dask computes with them."""

import numpy as np
import pytest

import arraybridge as ab

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")


from tests.support.dasks import LIBRARIES, NUMBERS, here, is_of, lazy  # noqa: E402, F401

pytestmark = pytest.mark.usefixtures("here")


def setitem(x):
    x = x.copy()
    x[0] = 7
    x[2:4, ::2] = x[2:4, 1::2]
    return x


#: What Dask computes with NumPy's functions, and has to give in the blocks' library; each ufunc and
#: reduction of tensors is in test_dask_functions.
STAYS = {
    "itself": lambda x: x,
    "add": lambda x: x + 1,
    "arrays": lambda x: x + x[::-1] * x,
    "reflected": lambda x: 1 - x,
    "compare": lambda x: x > 0.5,
    "logical": lambda x: (x > 0.2) & ~(x > 0.8),
    "numpy.sqrt": np.sqrt,
    "hypot": lambda x: da.hypot(x, x),
    "power": lambda x: x**2,
    "negative": lambda x: abs(-x),
    "round": lambda x: x.round(1),
    "clip": lambda x: da.clip(x, 0.2, 0.7),
    "sum": lambda x: x.sum(axis=0),
    "mean of all": lambda x: x.mean(),
    "var of many blocks": lambda x: x.rechunk(1).var(),
    "mean of many blocks": lambda x: x.rechunk(1).mean(),
    "argmax of all": lambda x: x.argmax(),
    "median": lambda x: da.median(x, axis=1),
    "cumsum": lambda x: x.cumsum(axis=0),
    "nanmean": lambda x: da.nanmean(da.where(x > 0.5, x, np.nan), axis=1),
    "matmul": lambda x: x @ x.T,
    "dot": lambda x: da.dot(x, x.T),
    "tensordot": lambda x: da.tensordot(x, x, axes=((1,), (1,))),
    "outer": lambda x: da.outer(x[0], x[1]),
    "norm": da.linalg.norm,
    "singular values": lambda x: da.linalg.svd(x.rechunk((3, 8)))[1],
    "concatenate": lambda x: da.concatenate([x, x], axis=1),
    "stack": lambda x: da.stack([x, x]),
    "rechunk": lambda x: x.rechunk((2, 8)),
    "slices": lambda x: x[1:5:2, ::-1],
    "integer": lambda x: x[2],
    "newaxis": lambda x: x[:, None],
    "positions": lambda x: x[[4, 0, 5]],
    "take": lambda x: da.take(x, [3, 1], axis=1),
    "points": lambda x: x.vindex[[1, 2], [3, 4]],
    "mask": lambda x: x[x > 0.5],
    "after a mask": lambda x: (x[x > 0.5] * 2).sum(),
    "reshape": lambda x: x.reshape(48),
    "transpose": lambda x: x.T,
    "flip": lambda x: da.flip(x, 0),
    "roll": lambda x: da.roll(x, 2, axis=0),
    "gradient": lambda x: da.gradient(x, axis=0),
    "diff": lambda x: da.diff(x, axis=1),
    "pad": lambda x: da.pad(x, 1, mode="edge"),
    "repeat": lambda x: da.repeat(x, 2, axis=0),
    "broadcast": lambda x: da.broadcast_to(x, (2, 6, 8)),
    "topk": lambda x: da.topk(x, 2, axis=0),
    "coarsen": lambda x: da.coarsen(np.sum, x, {0: 3}),
    "overlap": lambda x: da.overlap.overlap(x, depth=1, boundary="reflect"),
    "setitem": setitem,
    "astype": lambda x: (x * 10).astype("int32"),
    "ones_like": da.ones_like,
    "isclose": lambda x: da.isclose(x, x),
}
STRICT = ("arrays", "sum", "var of many blocks", "argmax of all", "mask", "matmul", "setitem")
DOUBLE = {  # needs 64 bits by NumPy's rules
    "astype": lambda x: x.astype("float64"),
    "integers divided": lambda x: (x * 10).astype("int32") / 2,
    "mixed": lambda x: x + (x * 10).astype("int32"),
    "covariance": da.cov,
    "lower triangle": da.tril,
    "NumPy's scalar": lambda x: x + np.float64(1),
    "NumPy's scalar first": lambda x: np.int64(2) * x,
    "argtopk": lambda x: da.argtopk(x, 2, axis=0),
}


def marks(library, number):
    """Of JAX, which compiles every step of each, `make test` has every third."""
    seldom = library.values == ("jax",) and number % 3
    return [*library.marks, *([pytest.mark.heavy] if seldom else [])]


CASES = [
    pytest.param(what, *library.values, marks=marks(library, n), id=f"{what}-{library.values[0]}")
    for library in LIBRARIES
    for n, what in enumerate(STRICT if library.values == ("array_api_strict",) else STAYS)
]


@pytest.mark.parametrize(("what", "library"), CASES)
def test_blocks_stay_in_their_library(what, library):
    function = STAYS[what]
    expected = function(lazy())
    found = function(ab.convert(lazy(), library))
    computed = found.compute()
    assert is_of(computed, library)
    host = ab.convert(computed, "numpy")
    if not (library == "jax" and "arg" in what):  # JAX's positions have 32 bits
        assert found.dtype == expected.dtype == host.dtype
    assert found.chunks == expected.chunks or np.isnan(found.shape).any()
    np.testing.assert_allclose(host, expected.compute(), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("what", DOUBLE)
def test_results_are_promoted_as_dask_has_declared_them(what, library):
    pytest.importorskip(library)
    found, expected = DOUBLE[what](ab.convert(lazy(), library)), DOUBLE[what](lazy())
    computed = found.compute()
    assert is_of(computed, library)
    host = ab.convert(computed, "numpy")
    assert found.dtype == expected.dtype == host.dtype
    np.testing.assert_allclose(host, expected.compute(), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_stay_arrays(library):
    from arraybridge.libraries.dask.arrays import convert_blocks

    x = convert_blocks(lazy(), library, wrapped=True)
    for found in (x, x.sum(axis=0), da.sqrt(x), x @ x.T, da.concatenate([x, x]), x[x > 0.5]):
        computed = found.compute()
        assert isinstance(computed, ab.Array)
        assert computed.library == library
    np.testing.assert_allclose(np.asarray(x.mean().compute()), NUMBERS.mean(), rtol=1e-6)
    seen = []
    x.map_blocks(lambda block: seen.append(block) or block, dtype=x.dtype).compute()
    assert all(isinstance(block, ab.Array) for block in seen)


def test_einsum_of_tensors():
    pytest.importorskip("torch")
    found = da.einsum("ij,kj->ik", ab.convert(lazy(), "torch"), ab.convert(lazy(), "torch"))
    assert is_of(found.compute(), "torch")
    np.testing.assert_allclose(found.compute(), NUMBERS @ NUMBERS.T, rtol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_assignment_leaves_what_was_assigned_to(library):
    x = ab.convert(lazy(), library)
    y = x.copy()
    y[::-1] = x
    found, kept = (ab.convert(each, "numpy") for each in dask.compute(y, x))
    np.testing.assert_array_equal(found, NUMBERS[::-1])
    np.testing.assert_array_equal(kept, NUMBERS)


def test_what_namespaces_have_beyond_the_standard():
    pytest.importorskip("torch")
    x = ab.convert(lazy((6, 8)), "torch")
    windows = da.lib.stride_tricks.sliding_window_view
    for function in (lambda x: windows(x, (2, 2)), lambda x: da.quantile(x, [0.3, 0.5], axis=1)):
        found = function(x).compute()
        assert is_of(found, "torch")
        np.testing.assert_allclose(np.asarray(found), function(lazy((6, 8))).compute(), rtol=1e-6)


def test_nothing_in_a_block():
    pytest.importorskip("torch")
    x = ab.convert(da.from_array(np.zeros((0, 4), "float32"), chunks=2), "torch")
    assert x.compute().shape == (0, 4)
    assert x.sum(axis=0).compute().tolist() == [0] * 4
    with pytest.raises(ValueError, match="zero-size"):
        x.max(axis=0).compute()
    scalar = ab.convert(da.from_array(np.float32(3), chunks=()), "torch")
    assert (scalar + 1).compute().shape == ()
    assert float(scalar) == 3.0
