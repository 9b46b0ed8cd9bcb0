"""Dask arrays: converted by blocks, adapted to, refused where memory is needed."""

import operator
import pickle
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

import arraybridge as ab

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

from arraybridge.libraries.dask.chunk import chunked  # noqa: E402
from tests.support.dasks import LIBRARIES, NUMBERS, here, is_of, lazy  # noqa: E402, F401
from tests.support.optional import installed, optional  # noqa: E402

torch = optional("torch")

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("library", LIBRARIES)
def test_conversion_is_lazy_and_by_blocks(library):
    x = lazy()
    with mock.patch.object(type(x), "compute", side_effect=AssertionError("it was computed")):
        found = ab.convert(x, library)
    assert (found.shape, found.chunks, found.dtype) == (x.shape, x.chunks, x.dtype)
    assert found.name == ab.convert(lazy(), library).name != x.name
    assert ab.convert(found, library) is found
    assert f"chunktype=arraybridge.Chunk[{library}]" in repr(found)
    assert is_of(found._meta.native, library)
    back = ab.convert(found, "numpy")
    assert type(back.compute()) is type(back._meta) is np.ndarray
    np.testing.assert_array_equal(back.compute(), NUMBERS)
    assert ab.convert(x, "numpy") is x


def test_keywords_reach_the_blocks():
    x = da.from_array(NUMBERS, chunks=6)
    assert ab.convert(x, "torch", copy=True).name != ab.convert(x, "torch").name
    strided = da.from_array(NUMBERS, chunks=(6, 8)).map_blocks(np.flip, dtype="float32")
    with pytest.raises(ab.ConversionError, match="negative"):
        ab.convert(strided, "torch", copy=False).compute()
    assert ab.convert(strided, "torch", copy=True, device="cpu").compute().dtype == torch.float32


def test_routes_are_those_of_blocks():
    x = da.ones((4, 4), chunks=2)
    for given, target in ((x, "jax"), (ab.convert(x, "torch"), "numpy"), (np.ones(3), "dask")):
        with pytest.raises(TypeError, match=r"each by its own route: explain one, x\.blocks"):
            ab.explain(given, target)
    assert ab.explain(x.blocks[0, 0].compute(), "torch").kind == "view"
    with ab.audit() as log:
        ab.convert(x, "torch", dtype="float32").compute()
    assert {record.call for record in log} == {"convert"}
    with pytest.raises(TypeError, match=r"^dask.Array is not an array in memory"):
        ab.inspect(ab.convert(x, "torch"))


def test_what_has_no_namespace_is_refused():
    pytest.importorskip("pyarrow")
    with pytest.raises(TypeError, match=r"blocks of pyarrow.*map_blocks"):
        ab.convert(lazy(), "pyarrow")


def test_masks_are_not_lost():
    masked = da.from_array(np.ma.masked_greater(NUMBERS, 0.5), chunks=3)
    with pytest.raises(ab.ConversionError, match="mask"):
        ab.convert(masked, "torch")


REFUSED = {
    "histogram": lambda x: da.histogram(x, bins=3, range=(0, 1))[0],
    "percentile": lambda x: da.percentile(x.ravel(), 50),
    "unique": lambda x: da.unique(x),
    "ndarray": lambda x: x + np.ones(8, "float32"),
    "blocks of NumPy": lambda x: x + lazy(),
    "pandas": da.isnull,
    "SciPy": lambda x: da.linalg.cholesky((x @ x.T).rechunk(3)),
    "masked arrays": lambda x: da.ma.masked_greater(x, 0.5),
    "positions of a mask": lambda x: da.nonzero(x > 0.5)[0],
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_stay_is_an_error(what):
    with pytest.raises((TypeError, ValueError)):
        REFUSED[what](ab.convert(lazy(), "torch")).compute()


@pytest.mark.parametrize("what", ["histogram", "percentile", "unique"])
def test_the_error_says_what_to_take_and_that_works(what):
    x = ab.convert(lazy(), "torch")
    with pytest.raises(TypeError, match=r"take NumPy's blocks with arraybridge\.convert"):
        REFUSED[what](x).compute()
    wanted = REFUSED[what](lazy()).compute()
    np.testing.assert_array_equal(REFUSED[what](ab.convert(x, "numpy")).compute(), wanted)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.take(x, [9], axis=0, mode="wrap"),
        lambda x: np.clip(x, 0, 1, where=False),
        lambda x: np.round(x, 1, out=x),
        lambda x: np.outer(x, x, out=x),
    ],
)
def test_keywords_of_numpy_are_not_dropped(call):
    block = chunked(torch.from_numpy(NUMBERS), False)
    assert np.hstack([block, block], dtype="float64").dtype == "float64"
    with pytest.raises(TypeError, match=r"of blocks (takes no|does not support) "):
        call(block)


def test_blocks_of_two_libraries_are_refused():
    with pytest.raises(TypeError, match="unify"):
        (ab.convert(lazy(), "torch") + ab.convert(lazy(), "jax")).compute()


def test_jax_without_64_bits_is_not_narrowed():
    jax = pytest.importorskip("jax")
    if jax.config.jax_enable_x64:
        pytest.skip("JAX has 64 bits here")
    with pytest.raises(ab.ConversionError, match="x64"):
        ab.convert(lazy(), "jax").astype("float64").compute()


def test_functions_see_what_the_user_asked_for():
    x = ab.convert(lazy(), "torch")
    seen = []

    def function(block):
        seen.append(type(block))
        return block.unsqueeze(0).squeeze(0).relu_()

    assert is_of(x.map_blocks(function, dtype="float32").compute(), "torch")
    assert is_of(x.map_overlap(function, depth=1, boundary="reflect").compute(), "torch")
    assert set(seen) == {torch.Tensor}
    assert is_of(da.map_blocks(torch.relu, x, dtype="float32").compute(), "torch")
    named = x.map_blocks(lambda b, block_id=None: b + block_id[0], dtype="float32")
    np.testing.assert_allclose(named.compute()[3:], NUMBERS[3:] + 1, rtol=1e-6)


def test_a_graph_is_not_computed_unasked():
    x = lazy()
    ways = [
        lambda: ab.from_dlpack(x),
        lambda: ab.inspect(x),
        lambda: ab.contiguous(x),
        lambda: ab.copyto(np.zeros((6, 8), "float32"), x),
        lambda: ab.unify(NUMBERS, x),
        lambda: ab.unify([{"x": NUMBERS}], {"y": [x]}),
        lambda: ab.adapt("torch")(lambda t: t)(x),
        lambda: ab.adapt("numpy")(lambda t: t)([x]),
    ]
    with mock.patch.object(type(x), "__array__", side_effect=AssertionError("it was computed")):
        for way in ways:
            with pytest.raises(TypeError, match=r"is not an array in memory: pass x\.compute\(\)"):
                way()
        given = ab.adapt("numpy")(lambda _: x)(NUMBERS)  # what a function makes it may give
        assert given is x
    with pytest.raises(TypeError, match=r"blockwise=True.*signature=.*depth="):
        ab.adapt("torch")(np.sum)(x)


def test_namespace_and_unify_agree():
    compat = pytest.importorskip("array_api_compat.dask.array")
    x = lazy()
    assert ab.namespace(x) is ab.namespace(ab.convert(x, "torch")) is compat
    with pytest.raises(TypeError, match="several libraries"):
        ab.namespace(x, NUMBERS)
    xp, a, b = ab.unify(x, torch.ones(8))
    assert xp is compat
    assert a is x
    assert type((a + b).compute()) is np.ndarray
    t = ab.convert(x, "torch")
    xp, a, (b, c) = ab.unify(t, (NUMBERS, x))
    assert a is t
    assert is_of((a + b + c).compute(), "torch")
    xp, a = ab.unify(NUMBERS, like=x)
    assert xp is compat
    np.testing.assert_array_equal(a.compute(), NUMBERS)
    assert is_of(ab.convert(torch.ones(3), "dask").sum().compute(), "torch")
    assert ab.convert(x, "dask") is x


@pytest.mark.parametrize("kind", ["numpy", "torch", "arrays"])
def test_adapted_functions_by_blocks(kind):
    x = lazy()
    if kind != "numpy":
        from arraybridge.libraries.dask.arrays import convert_blocks

        x = convert_blocks(x, "torch", wrapped=kind == "arrays")
    seen = []

    def doubled(t, by=2.0):
        seen.append(type(t))
        return t.mul(by)

    results = [
        ab.adapt("torch", blockwise=True)(doubled)(x, by=2.0),
        ab.adapt("torch", blockwise={"dtype": "float32"})(doubled)(x),
        ab.adapt("torch", depth=1, boundary="reflect")(doubled)(x),
        ab.adapt("torch", signature="(i)->(i)")(doubled)(x.rechunk((3, 8))),
    ]
    for found in results:
        assert not isinstance(found, np.ndarray | torch.Tensor)
        assert type(found._meta) is (np.ndarray if kind == "numpy" else type(x._meta))
        assert found.dtype == np.float32
        computed = found.compute()
        expected = {"numpy": np.ndarray, "torch": torch.Tensor, "arrays": ab.Array}[kind]
        assert isinstance(computed, expected)
        np.testing.assert_array_equal(np.asarray(computed), NUMBERS * 2)
    assert set(seen) == {torch.Tensor}
    median = ab.adapt("torch", signature="(i)->()")(lambda t: t.sum(-1))(x.rechunk((3, 8)))
    assert median.shape == (6,)
    np.testing.assert_allclose(np.asarray(median.compute()), NUMBERS.sum(1), rtol=1e-6)
    whole = ab.adapt("torch", blockwise=True)(doubled)(NUMBERS)  # in memory: at once
    assert type(whole) is np.ndarray


def test_a_margin_is_what_the_neighbors_have():
    @ab.adapt("torch", depth={0: 1}, boundary={0: "periodic"})
    def next_row(t):
        return torch.roll(t, -1, 0)

    np.testing.assert_array_equal(next_row(lazy()).compute(), np.roll(NUMBERS, -1, 0))


def test_adapted_functions_by_blocks_refuse_what_they_would_mistake():
    call = ab.adapt("torch", blockwise=True)(lambda t, other=None: t)
    with pytest.raises(TypeError, match="in memory: pass it as a Dask array"):
        call(lazy(), NUMBERS)
    with pytest.raises(TypeError, match="by position"):
        call(t=lazy())
    np.testing.assert_array_equal(call(lazy(), other=NUMBERS).compute(), NUMBERS)
    with pytest.raises(ValueError, match="pass only one"):
        ab.adapt("torch", signature="(i)->(i)", depth=1)
    with pytest.raises(ValueError, match="depth="):
        ab.adapt("torch", boundary="reflect")

    async def later(t):
        return t

    with pytest.raises(TypeError, match="plain function"):
        ab.adapt("torch", blockwise=True)(later)


def test_blocks_travel():
    x = ab.convert(lazy(), "torch")
    again = pickle.loads(pickle.dumps(x))
    assert type(again) is type(x)
    assert again.name == x.name
    assert is_of(again.sum().compute(), "torch")
    block = pickle.loads(pickle.dumps(x._meta))
    assert type(block) is type(x._meta)
    (kept,) = dask.persist(x)
    assert is_of(kept.compute(), "torch")
    both = dask.compute(x, x.sum(), lazy())
    assert [type(each).__name__ for each in both] == ["Tensor", "Tensor", "ndarray"]


def test_blocks_travel_to_a_process_that_knows_nothing(tmp_path):
    tmp_path.joinpath("x").write_bytes(pickle.dumps(ab.convert(lazy(), "torch")))
    program = (
        "import pickle, sys; x = pickle.load(open(sys.argv[1], 'rb'));"
        "print(type(x.compute(scheduler='sync')).__name__, end='')"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("Tensor", "")


def test_delayed_blocks_are_tensors():
    x = ab.convert(lazy(), "torch")
    first = x.to_delayed()[0, 0]
    assert is_of(first.compute(), "torch")
    again = da.from_delayed(first, (3, 4), meta=x._meta)
    assert is_of(da.sqrt(again).compute(), "torch")
    block = da.from_delayed(first, (3, 4), dtype="float32").compute()  # Dask takes it for NumPy's
    assert is_of(block.native, "torch")
    assert repr(block).startswith("<Chunk[torch], a block of a Dask array (its own array is .nat")


@pytest.mark.heavy
def test_blocks_are_stored(tmp_path):
    pytest.importorskip("zarr")
    x = ab.convert(lazy(), "torch")
    x.to_zarr(str(tmp_path / "x"))
    np.testing.assert_array_equal(da.from_zarr(str(tmp_path / "x")).compute(), NUMBERS)
    memory = np.zeros((6, 8), "float32")
    da.store(x, memory)
    np.testing.assert_array_equal(memory, NUMBERS)


def test_numbers_of_arrays():
    from arraybridge.libraries.dask.arrays import convert_blocks

    x = convert_blocks(lazy(), "numpy", wrapped=True)
    assert float(x.sum()) == pytest.approx(NUMBERS.sum())
    assert int((x > 0.5).sum()) == (NUMBERS > 0.5).sum()
    with pytest.raises(TypeError, match="length-1"):
        float(x)


def test_several_threads():
    x = ab.convert(lazy((1, 2)), "torch")
    with dask.config.set(scheduler="threads", num_workers=4):
        np.testing.assert_allclose(
            ((x - x.mean(axis=0)) @ x.T).compute(),
            (NUMBERS - NUMBERS.mean(0)) @ NUMBERS.T,
            atol=1e-5,
        )


def test_operators_of_arrays_beside_dask_arrays_still_refuse():
    x = ab.from_dlpack(NUMBERS)
    ab.convert(lazy(), "array_api_strict") if installed("array_api_strict") else None
    for op in (operator.add, operator.eq, operator.lt):
        for pair in ((x, lazy()), (lazy(), x)):
            with pytest.raises(TypeError, match=r"pass x\.compute\(\)"):
                op(*pair)


def test_casts_reach_the_blocks():
    x = ab.convert(lazy(), "torch", dtype="float64")
    assert x.dtype == np.float64
    assert x.compute().dtype == torch.float64
    assert x.name != ab.convert(lazy(), "torch", dtype="float16").name
    half = ab.convert(lazy(), "torch", dtype="bfloat16")
    assert half.dtype.name == "bfloat16"
    assert half.sum(axis=0).compute().dtype == torch.bfloat16
    with pytest.raises((TypeError, ab.ConversionError)):
        ab.convert(lazy(), "torch", dtype="int32", casting="safe").compute()
    _, a, b = ab.unify(lazy(), NUMBERS, dtype="float64")
    assert a.dtype == b.dtype == np.float64


def test_gradients_cross_a_graph_of_dasks():
    x = torch.ones(4, 4, requires_grad=True)
    (ab.convert(x, "dask") ** 2).sum().compute().backward()
    assert x.grad.tolist() == [[2.0] * 4] * 4
